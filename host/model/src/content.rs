//! What a call returns: content blocks and structured content, checked and ready to be shaped for a peer.

use bytes::Bytes;
use serde_json::{Map, Value};

/// A successful result of a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// The blocks, in reading order.
    pub content: Vec<Content>,
    /// Structured content: any JSON value.
    pub structured: Option<Value>,
    /// Members for the result's `_meta`.
    pub meta: Map<String, Value>,
}

/// One content block.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// What it is.
    pub body: Body,
    /// Who it is for: `user`, `assistant`; empty means everyone.
    pub audience: Vec<&'static str>,
    /// From 0.0 (optional) to 1.0 (required).
    pub priority: Option<f64>,
    /// When what it shows was last changed, in ISO 8601.
    pub last_modified: Option<String>,
}

/// The part of a content block that depends on its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// Plain text.
    Text(String),
    /// A picture.
    Image(Media),
    /// A sound.
    Audio(Media),
    /// The address of something that the client can fetch.
    ResourceLink(ResourceLink),
    /// Something with an address whose bytes are here.
    Resource(Resource),
}

/// Bytes with a MIME type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Media {
    /// The bytes themselves, not base64.
    pub data: Bytes,
    /// Such as `image/png`.
    pub mime_type: String,
}

/// The address of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceLink {
    /// Where it is.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Its MIME type.
    pub mime_type: Option<String>,
    /// Its size in bytes.
    pub size: Option<u64>,
}

/// A resource whose content is part of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Its address.
    pub uri: String,
    /// Its MIME type.
    pub mime_type: Option<String>,
    /// Its content.
    pub content: ResourceContent,
}

/// The content of an embedded resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceContent {
    /// Text.
    Text(String),
    /// Bytes, not base64.
    Blob(Bytes),
}
