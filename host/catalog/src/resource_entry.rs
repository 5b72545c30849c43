//! The definition of a resource or of a resource template after validation.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolbay_model::text::line;
use toolbay_model::{ListedResource, ResourceDefinition};

use crate::fingerprint::Fingerprint;
use crate::members::{check_icons, meta};
use crate::uri;
use crate::uri_template::UriTemplate;

/// Longest name, in bytes.
const NAME: usize = 512;

/// Longest part of a URI in an error, in bytes.
const SHOWN: usize = 200;

/// A resource, or a resource template, whose definition is valid. All offers made from it share it.
#[derive(Clone, Debug)]
pub struct ResourceEntry {
    /// What clients see.
    pub resource: Arc<ListedResource>,
    /// What its URIs must match, if it is a template.
    pub template: Option<Arc<UriTemplate>>,
    /// Differs from that of every other one that clients see differently.
    pub(crate) fingerprint: Fingerprint,
    /// The capabilities that a client must declare to read it.
    pub needs: Map<String, Value>,
}

impl ResourceEntry {
    /// Validates the definition of a plugin's resource.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(crate) fn resource(definition: ResourceDefinition) -> Result<Self, String> {
        let wrong = |why: String| format!("resource {:?}: {why}", line(&definition.uri, SHOWN));
        uri::check(&definition.uri).map_err(|why| wrong(format!("its URI {why}")))?;
        reserved(&definition.uri).map_err(wrong)?;
        Self::new(definition, None, "resource")
    }

    /// Validates the definition of a plugin's resource template.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(crate) fn template(definition: ResourceDefinition) -> Result<Self, String> {
        let wrong = |why: String| format!("resource template {:?}: {why}", line(&definition.uri, SHOWN));
        let template = UriTemplate::parse(&definition.uri).map_err(|why| wrong(format!("it {why}")))?;
        reserved(&definition.uri).map_err(wrong)?;
        let definition = ResourceDefinition { size: None, last_modified: None, ..definition };
        Self::new(definition, Some(Arc::new(template)), "resource template")
    }

    /// The entry of a file of the operator's.
    pub(crate) fn of_file(resource: ListedResource) -> Self {
        let fingerprint = Fingerprint::of_resource(&resource);
        Self { fingerprint, resource: Arc::new(resource), template: None, needs: Map::new() }
    }

    fn new(definition: ResourceDefinition, template: Option<Arc<UriTemplate>>, what: &str) -> Result<Self, String> {
        let ResourceDefinition { uri, name, priority, mime_type, last_modified, .. } = definition;
        let wrong = |why: String| format!("{what} {:?}: {why}", line(&uri, SHOWN));
        if name.is_empty() || name.len() > NAME || name.chars().any(char::is_control) {
            return Err(wrong(format!("its name must have 1 to {NAME} bytes without control characters")));
        }
        // The sandbox leaves only what clients may be given: of MIME types, priorities and dates as well.
        let audience =
            ["user", "assistant"].into_iter().filter(|role| definition.audience.iter().any(|one| one == role));
        let audience = audience.collect();
        let (meta, needs) = match &definition.meta {
            Some(text) => meta(text).map_err(wrong)?,
            None => (None, Map::new()),
        };
        check_icons(&definition.icons).map_err(wrong)?;
        let resource = ListedResource {
            uri,
            name,
            title: definition.title,
            description: definition.description,
            mime_type,
            size: definition.size,
            audience,
            priority,
            last_modified,
            icons: definition.icons.into(),
            meta,
        };
        Ok(Self { fingerprint: Fingerprint::of_resource(&resource), resource: Arc::new(resource), template, needs })
    }
}

/// Refuses the schemes of the operator's own files.
fn reserved(text: &str) -> Result<(), String> {
    let Ok(scheme) = uri::scheme(text) else { return Ok(()) };
    match [uri::SCHEME, uri::SKILLS].into_iter().find(|reserved| scheme.eq_ignore_ascii_case(reserved)) {
        Some(reserved) => Err(format!(
            "the scheme \"{reserved}\" is reserved for files beside the plugins; use another, such as the plugin's name"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn definition(uri: &str) -> ResourceDefinition {
        ResourceDefinition { uri: uri.into(), name: "a".into(), ..ResourceDefinition::default() }
    }

    #[test]
    fn what_is_valid_is_kept() {
        let all = ResourceDefinition {
            mime_type: Some("text/plain".into()),
            size: Some(7),
            audience: vec!["assistant".into(), "user".into(), "user".into()],
            priority: Some(0.5),
            last_modified: Some("2026-01-12T15:00:58Z".into()),
            meta: Some("{ \"a\": 1 }".into()),
            ..definition("notes://a")
        };
        let resource = ResourceEntry::resource(all.clone()).unwrap().resource;
        assert_eq!(resource.audience, ["user", "assistant"]);
        assert_eq!((resource.size, resource.priority), (Some(7), Some(0.5)));
        assert_eq!(resource.meta.as_ref().unwrap().get(), r#"{"a":1}"#);
        let template = ResourceEntry::template(ResourceDefinition { uri: "notes://{id}".into(), ..all }).unwrap();
        assert_eq!((template.resource.size, template.resource.last_modified.as_deref()), (None, None));
        assert!(template.template.unwrap().matches("notes://7"));
    }

    #[test]
    fn invalid_definitions_are_refused() {
        let with = |change: fn(&mut ResourceDefinition)| {
            let mut resource = definition("notes://a");
            change(&mut resource);
            resource
        };
        let resources = [
            definition("a"),
            definition("notes://a b"),
            definition("Toolbay://acme/a"),
            definition("SKILL://pdf/SKILL.md"),
            with(|resource| resource.name.clear()),
            with(|resource| resource.name = "\u{1b}".into()),
            with(|resource| resource.meta = Some("[]".into())),
        ];
        let templates = [definition("notes://a"), definition("skill://acme/{id}"), definition("{+any}")];
        let said = resources.map(|resource| ResourceEntry::resource(resource).unwrap_err()).into_iter();
        let said = said.chain(templates.map(|template| ResourceEntry::template(template).unwrap_err()));
        insta::assert_snapshot!(said.collect::<Vec<_>>().join("\n"), @r#"
        resource "a": its URI must begin with a scheme, such as "notes:"
        resource "notes://a b": its URI contains ' ', which a URI can only contain percent-encoded
        resource "Toolbay://acme/a": the scheme "toolbay" is reserved for files beside the plugins; use another, such as the plugin's name
        resource "SKILL://pdf/SKILL.md": the scheme "skill" is reserved for files beside the plugins; use another, such as the plugin's name
        resource "notes://a": its name must have 1 to 512 bytes without control characters
        resource "notes://a": its name must have 1 to 512 bytes without control characters
        resource "notes://a": its _meta must be a JSON object
        resource template "notes://a": it has no variable, such as {id}; list it as a resource
        resource template "skill://acme/{id}": the scheme "skill" is reserved for files beside the plugins; use another, such as the plugin's name
        resource template "{+any}": it must begin with a scheme, such as "notes:"
        "#);
    }

    #[test]
    fn what_clients_see_makes_the_fingerprint() {
        let one = definition("notes://a");
        let fingerprint = |definition: ResourceDefinition| ResourceEntry::resource(definition).unwrap().fingerprint;
        let same = fingerprint(one.clone());
        assert_eq!(fingerprint(one.clone()), same);
        for other in [
            ResourceDefinition { priority: Some(0.5), ..one.clone() },
            ResourceDefinition { size: Some(1), ..one.clone() },
            ResourceDefinition { audience: vec!["user".into()], ..one.clone() },
            ResourceDefinition { mime_type: Some("text/plain".into()), ..one.clone() },
        ] {
            assert_ne!(fingerprint(other), same);
        }
    }
}
