//! A validated definition of a resource or of a resource template.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolbay_model::text::clean_line;
use toolbay_model::{ListedResource, ResourceDefinition};
use toolbay_policy::{UiAccess, UiDenial};

use crate::definition_meta::{check_icons, encode_meta, parse_meta_members};
use crate::fingerprint::DefinitionFingerprint;
use crate::uri;
use crate::uri_template::UriTemplate;
use crate::view::{self, ViewRequest};

/// Maximum length of a name, in bytes.
const MAX_NAME_BYTES: usize = 512;

/// Maximum length of a URI in an error, in bytes.
const MAX_SHOWN_URI_BYTES: usize = 200;

/// A validated definition of a resource or resource template, shared by all offers built from it.
#[derive(Clone, Debug)]
pub struct ResourceEntry {
    /// The definition as listed to clients.
    pub resource: Arc<ListedResource>,
    /// The template that its URIs must match, if it is a resource template.
    pub template: Option<Arc<UriTemplate>>,
    /// Fingerprint of the definition. It differs for definitions that differ for clients.
    pub(crate) fingerprint: DefinitionFingerprint,
    /// The capabilities that a client must declare to read it.
    pub needs: Map<String, Value>,
    /// The access that it requests as a view; `None` if it is not a view.
    requested_view: Option<Arc<RequestedView>>,
    /// Warnings for the operator, without the URI.
    warnings: Vec<String>,
}

/// The access that a view requests.
#[derive(Clone, Debug)]
enum RequestedView {
    /// The access that the plugin requests.
    FromPlugin(ViewRequest),
    /// Everything that the grant allows. The view is a file of the operator, who also wrote the
    /// grant.
    EverythingGranted,
}

impl ResourceEntry {
    /// Validates the definition of a plugin's resource.
    ///
    /// # Errors
    ///
    /// Returns a message that describes the problem.
    pub(crate) fn from_resource(definition: ResourceDefinition) -> Result<Self, String> {
        let wrong = |why: String| {
            format!(
                "resource {:?}: {why}",
                clean_line(&definition.uri, MAX_SHOWN_URI_BYTES)
            )
        };
        uri::check(&definition.uri).map_err(|why| wrong(format!("its URI {why}")))?;
        check_not_reserved(&definition.uri)
            .and_then(|()| view::check_authority(&definition.uri))
            .map_err(wrong)?;
        Self::new(definition, None, "resource")
    }

    /// Validates the definition of a plugin's resource template.
    ///
    /// # Errors
    ///
    /// Returns a message that describes the problem.
    pub(crate) fn from_template(definition: ResourceDefinition) -> Result<Self, String> {
        let wrong = |why: String| {
            format!(
                "resource template {:?}: {why}",
                clean_line(&definition.uri, MAX_SHOWN_URI_BYTES)
            )
        };
        let template =
            UriTemplate::parse(&definition.uri).map_err(|why| wrong(format!("it {why}")))?;
        check_not_reserved(&definition.uri)
            .and_then(|()| view::check_authority(&definition.uri))
            .map_err(wrong)?;
        let definition = ResourceDefinition {
            size: None,
            last_modified: None,
            ..definition
        };
        Self::new(definition, Some(Arc::new(template)), "resource template")
    }

    /// Creates the entry of one of the operator's files.
    pub(crate) fn from_file(resource: ListedResource) -> Self {
        let wish = view::is_view(&resource.uri).then(|| Arc::new(RequestedView::EverythingGranted));
        let (resource, needs) = (Arc::new(resource), Map::new());
        let fingerprint = DefinitionFingerprint::of_resource(&resource);
        Self {
            fingerprint,
            resource,
            template: None,
            needs,
            requested_view: wish,
            warnings: Vec::new(),
        }
    }

    /// Returns this entry under the grant of `plugin`, and warnings for the operator. Without a
    /// grant, a view has no access.
    pub(crate) fn with_grant(
        self: &Arc<Self>,
        plugin: &str,
        grant: &UiAccess,
    ) -> (Arc<Self>, Vec<String>) {
        let about = |why: &String| {
            format!(
                "view {:?}: {why}",
                clean_line(&self.resource.uri, MAX_SHOWN_URI_BYTES)
            )
        };
        let mut remarks: Vec<String> = self.warnings.iter().map(about).collect();
        let Some(asked) = &self.requested_view else {
            return (Arc::clone(self), remarks);
        };
        let (meta, denied) = asked.granted_meta(grant);
        let remedies = denied.iter().map(|denied| {
            format!(
                "it may not have {denied} (to allow it, add to [permissions] in {plugin}.toml: {})",
                denied.remedy()
            )
        });
        remarks.extend(remedies.map(|why| about(&why)));
        if meta.is_empty() {
            return (Arc::clone(self), remarks);
        }
        let resource = ListedResource {
            meta: encode_meta(meta),
            ..ListedResource::clone(&self.resource)
        };
        let fingerprint = DefinitionFingerprint::of_resource(&resource);
        (
            Arc::new(Self {
                fingerprint,
                resource: Arc::new(resource),
                ..Self::clone(self)
            }),
            remarks,
        )
    }

    /// Returns the access that the plugin requests for this view. `None` if this is not a view, or
    /// if it is a file.
    pub(crate) fn requested_access(&self) -> Option<&UiAccess> {
        match self.requested_view.as_deref() {
            Some(RequestedView::FromPlugin(wish)) => Some(wish.access()),
            _ => None,
        }
    }

    /// Returns the warnings for the operator that do not depend on a grant.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Limits the `_meta` of content read at `uri` to the members that clients may receive, and
    /// returns the denied access.
    ///
    /// A view without its own `ui` member gets the one in the list. The `ui` member of content that
    /// is not a view is removed.
    pub fn limit_meta(
        &self,
        uri: &str,
        meta: &mut Map<String, Value>,
        grant: &UiAccess,
    ) -> Vec<UiDenial> {
        if !view::is_view(uri) {
            meta.remove(view::META_MEMBER);
            return Vec::new();
        }
        let own = meta
            .contains_key(view::META_MEMBER)
            .then(|| RequestedView::FromPlugin(ViewRequest::read(meta)));
        let Some(asked) = own.as_ref().or(self.requested_view.as_deref()) else {
            meta.clear();
            return Vec::new();
        };
        let (left, denied) = asked.granted_meta(grant);
        *meta = left;
        // Denials of access that the list requests were reported when the plugin was loaded.
        if own.is_some() { denied } else { Vec::new() }
    }

    fn new(
        definition: ResourceDefinition,
        template: Option<Arc<UriTemplate>>,
        what: &str,
    ) -> Result<Self, String> {
        let ResourceDefinition {
            uri,
            name,
            priority,
            mime_type,
            last_modified,
            ..
        } = definition;
        let wrong =
            |why: String| format!("{what} {:?}: {why}", clean_line(&uri, MAX_SHOWN_URI_BYTES));
        if name.is_empty() || name.len() > MAX_NAME_BYTES || name.chars().any(char::is_control) {
            return Err(wrong(format!(
                "its name must have 1 to {MAX_NAME_BYTES} bytes without control characters"
            )));
        }
        // The sandbox has already removed invalid values, including those of MIME types, priorities
        // and dates.
        let audience = ["user", "assistant"]
            .into_iter()
            .filter(|role| definition.audience.iter().any(|one| one == role));
        let audience = audience.collect();
        let (mut meta, needs) = match &definition.meta {
            Some(text) => parse_meta_members(text).map_err(wrong)?,
            None => (Map::new(), Map::new()),
        };
        check_icons(&definition.icons).map_err(wrong)?;
        let (mut wish, mut mistakes, mut mime_type) = (None, Vec::new(), mime_type);
        if view::is_view(&uri) {
            let asked = ViewRequest::read(&meta);
            mistakes.clone_from(&asked.warnings);
            wish = Some(Arc::new(RequestedView::FromPlugin(asked)));
            meta.clear();
            let mime_type = mime_type.get_or_insert_with(|| view::MIME_TYPE.to_owned());
            if mime_type != view::MIME_TYPE {
                mistakes.push(format!(
                    "clients do not show {mime_type}, only {}",
                    view::MIME_TYPE
                ));
            }
        } else if meta.remove(view::META_MEMBER).is_some() {
            mistakes.push(
                "ui in its _meta has no effect, because its URI does not begin with \"ui://\""
                    .to_owned(),
            );
        }
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
            meta: encode_meta(meta),
        };
        let fingerprint = DefinitionFingerprint::of_resource(&resource);
        Ok(Self {
            fingerprint,
            resource: Arc::new(resource),
            template,
            needs,
            requested_view: wish,
            warnings: mistakes,
        })
    }
}

impl RequestedView {
    /// Returns the `_meta` for clients under a grant, and the access that the grant denies.
    fn granted_meta(&self, grant: &UiAccess) -> (Map<String, Value>, Vec<UiDenial>) {
        match self {
            Self::FromPlugin(wish) => wish.granted_meta(grant),
            Self::EverythingGranted => (view::access_meta(grant, None), Vec::new()),
        }
    }
}

/// Rejects URIs with the schemes of the operator's own files.
fn check_not_reserved(text: &str) -> Result<(), String> {
    let Ok(scheme) = uri::scheme(text) else {
        return Ok(());
    };
    match [uri::FILE_SCHEME, uri::SKILL_SCHEME]
        .into_iter()
        .find(|reserved| scheme.eq_ignore_ascii_case(reserved))
    {
        Some(reserved) => Err(format!(
            "the scheme \"{reserved}\" is reserved for files next to the plugins; use another, such as the plugin's name"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn definition(uri: &str) -> ResourceDefinition {
        ResourceDefinition {
            uri: uri.into(),
            name: "a".into(),
            ..ResourceDefinition::default()
        }
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
        let resource = ResourceEntry::from_resource(all.clone()).unwrap().resource;
        assert_eq!(resource.audience, ["user", "assistant"]);
        assert_eq!((resource.size, resource.priority), (Some(7), Some(0.5)));
        assert_eq!(resource.meta.as_ref().unwrap().get(), r#"{"a":1}"#);
        let template = ResourceEntry::from_template(ResourceDefinition {
            uri: "notes://{id}".into(),
            ..all
        })
        .unwrap();
        assert_eq!(
            (
                template.resource.size,
                template.resource.last_modified.as_deref()
            ),
            (None, None)
        );
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
        let templates = [
            definition("notes://a"),
            definition("skill://acme/{id}"),
            definition("{+any}"),
        ];
        let said = resources
            .map(|resource| ResourceEntry::from_resource(resource).unwrap_err())
            .into_iter();
        let said = said
            .chain(templates.map(|template| ResourceEntry::from_template(template).unwrap_err()));
        insta::assert_snapshot!(said.collect::<Vec<_>>().join("\n"), @r#"
        resource "a": its URI must begin with a scheme, such as "notes:"
        resource "notes://a b": its URI contains ' ', which a URI can only contain percent-encoded
        resource "Toolbay://acme/a": the scheme "toolbay" is reserved for files next to the plugins; use another, such as the plugin's name
        resource "SKILL://pdf/SKILL.md": the scheme "skill" is reserved for files next to the plugins; use another, such as the plugin's name
        resource "notes://a": its name must have 1 to 512 bytes without control characters
        resource "notes://a": its name must have 1 to 512 bytes without control characters
        resource "notes://a": its _meta must be a JSON object
        resource template "notes://a": it has no variable, such as {id}; list it as a resource
        resource template "skill://acme/{id}": the scheme "skill" is reserved for files next to the plugins; use another, such as the plugin's name
        resource template "{+any}": it must begin with a scheme, such as "notes:"
        "#);
    }

    #[test]
    fn a_view_is_told_of_under_its_grant_alone() {
        let meta = r#"{"ui":{"csp":{"connectDomains":["https://a.example"]}},"x":1}"#;
        let listed = ResourceDefinition {
            meta: Some(meta.into()),
            ..definition("ui://acme/view")
        };
        let entry = Arc::new(ResourceEntry::from_resource(listed).unwrap());
        assert_eq!(
            (
                entry.resource.meta.as_ref(),
                entry.resource.mime_type.as_deref()
            ),
            (None, Some(view::MIME_TYPE))
        );
        let grant = UiAccess {
            connect: entry.requested_access().unwrap().connect.clone(),
            ..UiAccess::default()
        };
        let (closed, remarks) = entry.with_grant("acme", &UiAccess::default());
        assert_eq!(
            (closed.resource.meta.as_ref(), closed.fingerprint),
            (None, entry.fingerprint)
        );
        assert_eq!(
            remarks,
            [
                "view \"ui://acme/view\": it may not have connections to https://a.example (to allow it, add to [permissions] \
              in acme.toml: ui.connect = [\"https://a.example\"])"
            ]
        );
        let (open, remarks) = entry.with_grant("acme", &grant);
        assert_ne!(
            open.fingerprint, entry.fingerprint,
            "clients are told that the list changed"
        );
        assert_eq!(
            (open.resource.meta.as_ref().unwrap().get(), remarks.len()),
            (&meta.replace(r#","x":1"#, "")[..], 0)
        );
        // The `ui` member in the list applies to content without one. Content with one replaces it.
        let read = |uri: &str, text: &str| {
            let mut meta = serde_json::from_str(text).unwrap();
            let denied = open.limit_meta(uri, &mut meta, &grant);
            (Value::Object(meta).to_string(), denied.len())
        };
        let granted = meta.replace(r#","x":1"#, "");
        assert_eq!(read("ui://acme/view", r#"{"y":2}"#), (granted, 0));
        let greedy =
            r#"{"ui":{"csp":{"frameDomains":["https://a.example"]}},"openai/widgetCSP":{}}"#;
        assert_eq!(read("ui://acme/view", greedy), ("{}".to_owned(), 1));
        assert_eq!(read("ui://acme/view", r#"{"ui":{}}"#), ("{}".to_owned(), 0));
        // The `ui` member of content that is not a view is removed, and the rest stays.
        assert_eq!(
            read("notes://a", r#"{"ui":{"prefersBorder":true},"y":2}"#),
            (r#"{"y":2}"#.to_owned(), 0)
        );
    }

    #[test]
    fn a_view_says_plainly_to_whom_it_belongs() {
        for uri in [
            "UI://victim/x",
            "Ui://victim/x",
            "ui:x",
            "ui://a@victim/x",
            "ui://victim:1/x",
            "ui://[victim]/x",
        ] {
            let why = ResourceEntry::from_resource(definition(uri)).unwrap_err();
            let said = [
                ": a view cannot have ",
                "must begin with \"ui://\"",
                "not an IPv6 address",
            ];
            assert!(said.iter().any(|said| why.contains(said)), "{why}");
        }
        for uri in [
            "ui://{a}/{b}",
            "ui://{+any}",
            "ui:{+any}",
            "ui://vic{a}/x",
            "ui://a@{b}/x",
            "UI://victim/{a}",
        ] {
            let why = ResourceEntry::from_template(definition(uri)).unwrap_err();
            assert!(
                why.contains(": a view cannot have ") || why.contains("must begin with \"ui://\""),
                "{why}"
            );
        }
        for uri in [
            "ui://victim/x",
            "ui://victim/a@b:1",
            "ui:///x",
            "ui://victim?x=a:b",
        ] {
            ResourceEntry::from_resource(definition(uri)).unwrap();
        }
        for uri in ["ui://victim/{a}", "ui://victim?{a}"] {
            ResourceEntry::from_template(definition(uri)).unwrap();
        }
    }

    #[test]
    fn what_is_no_view_has_no_ui_in_its_meta() {
        let both = ResourceDefinition {
            meta: Some(r#"{"ui":{},"x":1}"#.into()),
            ..definition("notes://a")
        };
        let entry = ResourceEntry::from_resource(both).unwrap();
        assert_eq!(
            (
                entry.resource.meta.as_ref().unwrap().get(),
                entry.warnings().len()
            ),
            (r#"{"x":1}"#, 1)
        );
        let other = ResourceDefinition {
            mime_type: Some("text/html".into()),
            ..definition("ui://acme/view")
        };
        assert!(
            ResourceEntry::from_resource(other).unwrap().warnings()[0]
                .contains("clients do not show text/html")
        );
    }

    #[test]
    fn what_clients_see_makes_the_fingerprint() {
        let one = definition("notes://a");
        let fingerprint = |definition: ResourceDefinition| {
            ResourceEntry::from_resource(definition)
                .unwrap()
                .fingerprint
        };
        let same = fingerprint(one.clone());
        assert_eq!(fingerprint(one.clone()), same);
        for other in [
            ResourceDefinition {
                priority: Some(0.5),
                ..one.clone()
            },
            ResourceDefinition {
                size: Some(1),
                ..one.clone()
            },
            ResourceDefinition {
                audience: vec!["user".into()],
                ..one.clone()
            },
            ResourceDefinition {
                mime_type: Some("text/plain".into()),
                ..one.clone()
            },
        ] {
            assert_ne!(fingerprint(other), same);
        }
    }
}
