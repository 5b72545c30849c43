//! Results of calls: content blocks and structured content, checked and ready to be encoded for a
//! peer.

use bytes::Bytes;
use serde_json::{Map, Value};

/// The successful result of a tool, checked and sanitized.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// The content blocks, in order.
    pub content: Vec<ContentBlock>,
    /// The structured content: any JSON value. `None` if the tool returned none.
    pub structured: Option<Value>,
    /// Additional members for the result's `_meta`.
    pub meta: Map<String, Value>,
}

/// One content block.
#[derive(Clone, Debug, PartialEq)]
pub struct ContentBlock {
    /// The block's kind and data.
    pub body: ContentBody,
    /// The intended audience: `user`, `assistant` or both. Empty means everyone.
    pub audience: Vec<&'static str>,
    /// The importance, from 0.0 (optional) to 1.0 (required). `None` if the tool gave none.
    pub priority: Option<f64>,
    /// Time of the last modification of the content, in ISO 8601. `None` if the tool did not report
    /// it.
    pub last_modified: Option<String>,
}

/// The part of a content block that depends on its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum ContentBody {
    /// Plain text.
    Text(String),
    /// An image; its MIME type is `image/…`.
    Image(MediaContent),
    /// Audio; its MIME type is `audio/…`.
    Audio(MediaContent),
    /// A link to a resource that the client can fetch.
    ResourceLink(ResourceLink),
    /// A resource whose content is included.
    Resource(EmbeddedResource),
}

/// Bytes with a MIME type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaContent {
    /// The raw bytes, not base64.
    pub data: Bytes,
    /// The MIME type (RFC 6838), such as `image/png`.
    pub mime_type: String,
}

/// A link to a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceLink {
    /// An absolute URI.
    pub uri: String,
    /// The resource's name.
    pub name: String,
    /// A display name.
    pub title: Option<String>,
    /// A description for people and models.
    pub description: Option<String>,
    /// Its MIME type, if known.
    pub mime_type: Option<String>,
    /// Its size in bytes, if known.
    pub size: Option<u64>,
}

/// A resource whose content is part of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddedResource {
    /// An absolute URI.
    pub uri: String,
    /// Its MIME type, if known.
    pub mime_type: Option<String>,
    /// Its content.
    pub content: ResourceContent,
}

/// The content of an embedded resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceContent {
    /// Text.
    Text(String),
    /// Raw bytes, not base64.
    Blob(Bytes),
}
