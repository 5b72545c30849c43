//! Resources, which clients read by URI.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::icon::DEFINITION_OVERHEAD_BYTES;
use crate::{EmbeddedResource, Icon, JsonText};

/// One resource, or the resources that a template describes, as the plugin defines them, not yet
/// checked.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct ResourceDefinition {
    /// The URI, or the URI template (RFC 6570).
    pub uri: String,
    /// Its name.
    pub name: String,
    /// A display name.
    pub title: Option<String>,
    /// A description of the resource, for the model.
    pub description: Option<String>,
    /// The MIME type of its content, if known.
    pub mime_type: Option<String>,
    /// The size of its content in bytes, if known. A template has none.
    pub size: Option<u64>,
    /// The intended audience: `user`, `assistant` or both. Empty means everyone.
    pub audience: Vec<String>,
    /// The importance, from 0.0 (optional) to 1.0 (required).
    pub priority: Option<f64>,
    /// Time of the last change, in ISO 8601. A template has none.
    pub last_modified: Option<String>,
    /// Icons that a client can display.
    pub icons: Vec<Icon>,
    /// Members for `_meta`: a JSON object as text.
    pub meta: Option<String>,
}

/// A resource as clients receive it in `resources/list`, or a template as they receive it in
/// `resources/templates/list`: checked, and ready to be listed in any revision of MCP.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedResource {
    /// The URI, or the URI template.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// A display name.
    pub title: Option<String>,
    /// A description of the resource, for the model.
    pub description: Option<String>,
    /// The MIME type of its content, if known.
    pub mime_type: Option<String>,
    /// The size of its content in bytes, if known.
    pub size: Option<u64>,
    /// The intended audience: `user`, `assistant` or both. Empty means everyone.
    pub audience: Vec<&'static str>,
    /// The importance, from 0.0 (optional) to 1.0 (required).
    pub priority: Option<f64>,
    /// Time of the last change, in ISO 8601.
    pub last_modified: Option<String>,
    /// Icons that a client can display.
    pub icons: Arc<[Icon]>,
    /// The definition's `_meta`, an object; `None` if it has no members.
    pub meta: Option<JsonText>,
}

/// One item of the content of a resource, checked and sanitized.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceItem {
    /// The item's URI, MIME type and content.
    pub resource: EmbeddedResource,
    /// Additional members for the item's `_meta`.
    pub meta: Map<String, Value>,
}

impl ResourceDefinition {
    /// Returns the size in bytes. Each part has an overhead, even if it is empty.
    pub fn size(&self) -> usize {
        let texts = [
            &self.title,
            &self.description,
            &self.mime_type,
            &self.last_modified,
            &self.meta,
        ];
        let texts = texts.into_iter().flatten().chain([&self.uri, &self.name]);
        DEFINITION_OVERHEAD_BYTES
            + texts.map(String::len).sum::<usize>()
            + self.icons.iter().map(Icon::size).sum::<usize>()
    }
}

impl ListedResource {
    /// Returns the size of the resource in a list of resources, in bytes, without the JSON syntax.
    pub fn size(&self) -> usize {
        let texts = [
            self.title.as_ref(),
            self.description.as_ref(),
            self.mime_type.as_ref(),
        ];
        let texts = texts
            .into_iter()
            .flatten()
            .chain([&self.uri, &self.name])
            .chain(&self.last_modified);
        texts.map(String::len).sum::<usize>()
            + self.meta.as_ref().map_or(0, |meta| meta.get().len())
            + self.icons.iter().map(Icon::size).sum::<usize>()
    }
}
