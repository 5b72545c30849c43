//! A validated definition of a resource or of a resource template.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolbay_model::text::clean_line;
use toolbay_model::{ListedResource, ResourceDefinition};
use toolbay_policy::{UiAccess, UiDenial};

use crate::definition::definition_meta::{check_icons, encode_meta, parse_meta_members};
use crate::definition::fingerprint::DefinitionFingerprint;
use crate::definition::requested_view::{DefinedView, RequestedView};
use crate::definition::view::{self, ViewRequest};
use crate::resource_uri::uri;
use crate::resource_uri::uri_template::UriTemplate;

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
    pub required_capabilities: Map<String, Value>,
    /// The access that it requests as a view; `None` if it is not a view.
    requested_view: Option<Arc<RequestedView>>,
    /// Warnings for the operator, without the URI.
    warnings: Vec<String>,
}

impl ResourceEntry {
    /// Validates the definition of a plugin's resource.
    ///
    /// # Errors
    ///
    /// Returns a message that describes the problem.
    pub(crate) fn from_resource(definition: ResourceDefinition) -> Result<Self, String> {
        let error_message = |why: String| {
            format!(
                "resource {:?}: {why}",
                clean_line(&definition.uri, MAX_SHOWN_URI_BYTES)
            )
        };
        uri::check(&definition.uri).map_err(|why| error_message(format!("its URI {why}")))?;
        check_not_reserved(&definition.uri)
            .and_then(|()| view::check_authority(&definition.uri))
            .map_err(error_message)?;
        Self::new(definition, None, "resource")
    }

    /// Validates the definition of a plugin's resource template.
    ///
    /// # Errors
    ///
    /// Returns a message that describes the problem.
    pub(crate) fn from_template(definition: ResourceDefinition) -> Result<Self, String> {
        let error_message = |why: String| {
            format!(
                "resource template {:?}: {why}",
                clean_line(&definition.uri, MAX_SHOWN_URI_BYTES)
            )
        };
        let template = UriTemplate::parse(&definition.uri)
            .map_err(|why| error_message(format!("it {why}")))?;
        check_not_reserved(&definition.uri)
            .and_then(|()| view::check_authority(&definition.uri))
            .map_err(error_message)?;
        let definition = ResourceDefinition {
            size: None,
            last_modified: None,
            ..definition
        };
        Self::new(definition, Some(Arc::new(template)), "resource template")
    }

    /// Creates the entry of one of the operator's files.
    pub(crate) fn from_file(resource: ListedResource) -> Self {
        let requested_view =
            view::is_view(&resource.uri).then(|| Arc::new(RequestedView::EverythingGranted));
        let resource = Arc::new(resource);
        let required_capabilities = Map::new();
        let fingerprint = DefinitionFingerprint::of_resource(&resource);
        Self {
            fingerprint,
            resource,
            template: None,
            required_capabilities,
            requested_view,
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
        let view_message = |why: &String| {
            format!(
                "view {:?}: {why}",
                clean_line(&self.resource.uri, MAX_SHOWN_URI_BYTES)
            )
        };
        let mut remarks: Vec<String> = self.warnings.iter().map(view_message).collect();
        let Some(requested_view) = &self.requested_view else {
            return (Arc::clone(self), remarks);
        };
        let (meta, denied) = requested_view.granted_meta(grant);
        let remedies = denied.iter().map(|denied| {
            format!(
                "it may not have {denied} (to allow it, add to [permissions] in {plugin}.toml: {})",
                denied.remedy()
            )
        });
        remarks.extend(remedies.map(|why| view_message(&why)));
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
            Some(RequestedView::FromPlugin(request)) => Some(request.access()),
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
        let own_request = meta
            .contains_key(view::META_MEMBER)
            .then(|| RequestedView::FromPlugin(ViewRequest::read(meta)));
        let Some(request) = own_request.as_ref().or(self.requested_view.as_deref()) else {
            meta.clear();
            return Vec::new();
        };
        let (granted_meta, denied) = request.granted_meta(grant);
        *meta = granted_meta;
        // Denials of access that the list requests were reported when the plugin was loaded.
        if own_request.is_some() {
            denied
        } else {
            Vec::new()
        }
    }

    fn new(
        definition: ResourceDefinition,
        template: Option<Arc<UriTemplate>>,
        kind: &str,
    ) -> Result<Self, String> {
        let ResourceDefinition {
            uri,
            name,
            priority,
            mime_type,
            last_modified,
            ..
        } = definition;
        let error_message =
            |why: String| format!("{kind} {:?}: {why}", clean_line(&uri, MAX_SHOWN_URI_BYTES));
        if name.is_empty() || name.len() > MAX_NAME_BYTES || name.chars().any(char::is_control) {
            return Err(error_message(format!(
                "its name must have 1 to {MAX_NAME_BYTES} bytes without control characters"
            )));
        }
        // The sandbox has already removed invalid values, including those of MIME types, priorities
        // and dates.
        let audience = ["user", "assistant"]
            .into_iter()
            .filter(|role| definition.audience.iter().any(|listed| listed == role));
        let audience = audience.collect();
        let (mut meta, required_capabilities) = match &definition.meta {
            Some(text) => parse_meta_members(text).map_err(error_message)?,
            None => (Map::new(), Map::new()),
        };
        check_icons(&definition.icons).map_err(error_message)?;
        let DefinedView {
            requested,
            mime_type,
            warnings,
        } = DefinedView::take(&uri, &mut meta, mime_type);
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
            required_capabilities,
            requested_view: requested.map(Arc::new),
            warnings,
        })
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
pub(crate) mod tests;
