//! The kinds of content blocks, and their representation in the contract.
//!
//! To add a kind, add a variant of [`TypedContent`]. The compiler then requires an arm in the
//! `match` below, which uses every field of the variant.

use crate::bindings::toolbay::plugin::types;

/// A content block with the fields of its kind.
pub(crate) enum TypedContent {
    Text(String),
    Image(MediaFields),
    Audio(MediaFields),
    ResourceLink(ResourceLinkFields),
    EmbeddedResource(EmbeddedResourceFields),
}

/// The data of an image or of audio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MediaFields {
    pub(crate) bytes: Vec<u8>,
    pub(crate) mime_type: String,
}

/// A resource that the client can fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResourceLinkFields {
    pub(crate) uri: String,
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) mime_type: Option<String>,
    /// The size, in bytes.
    pub(crate) size: Option<u64>,
}

/// A resource that is included in the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EmbeddedResourceFields {
    pub(crate) uri: String,
    pub(crate) body: ResourceBody,
    pub(crate) mime_type: Option<String>,
}

/// The content of an embedded resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResourceBody {
    Text(String),
    Bytes(Vec<u8>),
}

impl MediaFields {
    pub(crate) fn new(bytes: impl Into<Vec<u8>>, mime_type: impl Into<String>) -> Self {
        Self {
            bytes: bytes.into(),
            mime_type: mime_type.into(),
        }
    }
}

impl ResourceLinkFields {
    /// Creates a link with only the required fields.
    pub(crate) fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            name: name.into(),
            title: None,
            description: None,
            mime_type: None,
            size: None,
        }
    }
}

impl EmbeddedResourceFields {
    /// Creates a resource without a MIME type.
    pub(crate) fn new(uri: impl Into<String>, body: ResourceBody) -> Self {
        Self {
            uri: uri.into(),
            body,
            mime_type: None,
        }
    }
}

impl From<TypedContent> for types::Content {
    fn from(block: TypedContent) -> Self {
        match block {
            TypedContent::Text(text) => Self {
                text: Some(text),
                ..empty_content("text")
            },
            TypedContent::Image(MediaFields { bytes, mime_type }) => Self {
                data: Some(bytes),
                mime_type: Some(mime_type),
                ..empty_content("image")
            },
            TypedContent::Audio(MediaFields { bytes, mime_type }) => Self {
                data: Some(bytes),
                mime_type: Some(mime_type),
                ..empty_content("audio")
            },
            TypedContent::ResourceLink(ResourceLinkFields {
                uri,
                name,
                title,
                description,
                mime_type,
                size,
            }) => {
                let (uri, name) = (Some(uri), Some(name));
                Self {
                    uri,
                    name,
                    title,
                    description,
                    mime_type,
                    size,
                    ..empty_content("resource-link")
                }
            }
            TypedContent::EmbeddedResource(EmbeddedResourceFields {
                uri,
                body,
                mime_type,
            }) => {
                let (text, data) = match body {
                    ResourceBody::Text(text) => (Some(text), None),
                    ResourceBody::Bytes(bytes) => (None, Some(bytes)),
                };
                Self {
                    uri: Some(uri),
                    text,
                    data,
                    mime_type,
                    ..empty_content("embedded-resource")
                }
            }
        }
    }
}

fn empty_content(kind: &str) -> types::Content {
    types::Content {
        kind: kind.to_owned(),
        text: None,
        data: None,
        mime_type: None,
        uri: None,
        name: None,
        title: None,
        description: None,
        size: None,
        audience: Vec::new(),
        priority: None,
        last_modified: None,
        members: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_only_the_fields_of_its_kind() {
        let media = || MediaFields {
            bytes: vec![1],
            mime_type: "a/b".to_owned(),
        };
        let embedded = |body| {
            TypedContent::EmbeddedResource(EmbeddedResourceFields {
                uri: "c:".to_owned(),
                body,
                mime_type: None,
            })
        };
        let link = ResourceLinkFields {
            uri: "c:".to_owned(),
            name: "n".to_owned(),
            title: Some("t".to_owned()),
            description: Some("d".to_owned()),
            mime_type: Some("a/b".to_owned()),
            size: Some(2),
        };
        let said = |text: &str| Some(text.to_owned());
        let data = || Some(vec![1]);
        let (uri, mime_type) = (said("c:"), said("a/b"));
        let cases = [
            (
                TypedContent::Text("x".to_owned()),
                types::Content {
                    text: said("x"),
                    ..empty_content("text")
                },
            ),
            (
                TypedContent::Image(media()),
                types::Content {
                    data: data(),
                    mime_type: mime_type.clone(),
                    ..empty_content("image")
                },
            ),
            (
                TypedContent::Audio(media()),
                types::Content {
                    data: data(),
                    mime_type: mime_type.clone(),
                    ..empty_content("audio")
                },
            ),
            (
                TypedContent::ResourceLink(link),
                types::Content {
                    uri: uri.clone(),
                    name: said("n"),
                    title: said("t"),
                    description: said("d"),
                    mime_type,
                    size: Some(2),
                    ..empty_content("resource-link")
                },
            ),
            (
                embedded(ResourceBody::Text("x".to_owned())),
                types::Content {
                    uri: uri.clone(),
                    text: said("x"),
                    ..empty_content("embedded-resource")
                },
            ),
            (
                embedded(ResourceBody::Bytes(vec![1])),
                types::Content {
                    uri,
                    data: data(),
                    ..empty_content("embedded-resource")
                },
            ),
        ];
        for (block, expected) in cases {
            assert_eq!(types::Content::from(block), expected);
        }
    }
}
