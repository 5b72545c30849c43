//! Results of calls: content blocks and structured content, checked and ready to be encoded for a
//! peer.

use std::borrow::Cow;

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

impl ContentBody {
    /// Returns the text of a text block.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Image(_) | Self::Audio(_) | Self::ResourceLink(_) | Self::Resource(_) => None,
        }
    }

    /// Returns a word for the block: its MIME type if it has data, otherwise its kind.
    pub fn label(&self) -> &str {
        match self {
            Self::Text(_) => "text",
            Self::Image(media) | Self::Audio(media) => &media.mime_type,
            Self::ResourceLink(_) => "resource link",
            Self::Resource(resource) => resource.mime_type.as_deref().unwrap_or("resource"),
        }
    }

    /// Returns the size of data and texts, in bytes.
    pub fn byte_len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Image(media) | Self::Audio(media) => media.data.len() + media.mime_type.len(),
            Self::ResourceLink(link) => {
                let texts = [&link.title, &link.description, &link.mime_type];
                link.uri.len()
                    + link.name.len()
                    + texts.into_iter().flatten().map(String::len).sum::<usize>()
            }
            Self::Resource(EmbeddedResource {
                uri,
                mime_type,
                content,
            }) => {
                let content = match content {
                    ResourceContent::Text(text) => text.len(),
                    ResourceContent::Blob(bytes) => bytes.len(),
                };
                uri.len() + mime_type.as_ref().map_or(0, String::len) + content
            }
        }
    }

    /// Returns a short text for a reader who cannot see the block: its MIME type and size, or its
    /// URI. Returns the whole text of a text block.
    pub fn summary(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => text.into(),
            Self::Image(media) | Self::Audio(media) => {
                format!("[{}, {} bytes]", media.mime_type, media.data.len()).into()
            }
            Self::ResourceLink(link) => format!("[{}]", link.uri).into(),
            Self::Resource(resource) => format!("[{}]", resource.uri).into(),
        }
    }
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
