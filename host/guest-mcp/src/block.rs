//! Content blocks as guests write them.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;

use crate::lenient;

/// Content block of a guest, not validated yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GuestBlock {
    /// Type of the block, as named by MCP.
    pub kind: String,
    /// Text of the block or of the embedded resource.
    pub text: Option<String>,
    /// Bytes of the block or of the embedded resource.
    pub data: Option<Vec<u8>>,
    /// MIME type of the bytes.
    pub mime_type: Option<String>,
    /// URI of the embedded or linked resource.
    pub uri: Option<String>,
    /// Name of the linked resource.
    pub name: Option<String>,
    /// Display name of the linked resource.
    pub title: Option<String>,
    /// Description of the linked resource.
    pub description: Option<String>,
    /// Size of the linked resource, in bytes.
    pub size: Option<u64>,
    /// Intended audience: `user`, `assistant`, each at most once. Empty means everyone.
    pub audience: Vec<&'static str>,
    /// Importance of the block.
    pub priority: Option<f64>,
    /// Time of the last change.
    pub last_modified: Option<String>,
}

/// Annotations of a block or a resource.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct BlockAnnotations {
    #[serde(deserialize_with = "lenient::readable_items")]
    audience: Vec<String>,
    #[serde(deserialize_with = "lenient::or_none")]
    pub(crate) priority: Option<f64>,
    #[serde(deserialize_with = "lenient::or_none")]
    pub(crate) last_modified: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockFields {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    data: Option<String>,
    mime_type: Option<String>,
    uri: Option<String>,
    name: Option<String>,
    title: Option<String>,
    description: Option<String>,
    #[serde(default, deserialize_with = "lenient::or_none")]
    size: Option<u64>,
    resource: Option<ResourceFields>,
    #[serde(default, deserialize_with = "lenient::or_none")]
    annotations: Option<BlockAnnotations>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceFields {
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
    blob: Option<String>,
}

impl BlockAnnotations {
    /// Returns the audience. Roles that MCP does not define are ignored.
    pub(crate) fn audience(&self) -> Vec<&'static str> {
        ["user", "assistant"]
            .into_iter()
            .filter(|known| self.audience.iter().any(|named| named == known))
            .collect()
    }
}

impl GuestBlock {
    /// Parses a block.
    ///
    /// # Errors
    ///
    /// Returns the reason that the block is invalid.
    pub(crate) fn parse(json: &str) -> Result<Self, String> {
        let fields: BlockFields = serde_json::from_str(json)
            .map_err(|error| format!("is not a content block: {error}"))?;
        let BlockFields {
            kind,
            text,
            data,
            mime_type,
            uri,
            name,
            title,
            description,
            size,
            resource,
            annotations,
        } = fields;
        let annotations = annotations.unwrap_or_default();
        let block = Self {
            audience: annotations.audience(),
            priority: annotations.priority,
            last_modified: annotations.last_modified,
            ..Self::default()
        };
        Ok(match (kind.as_str(), resource) {
            ("image" | "audio", _) => Self {
                kind,
                data: data.as_deref().map(decode_base64).transpose()?,
                mime_type,
                ..block
            },
            ("resource_link", _) => Self {
                kind,
                mime_type,
                uri,
                name,
                title,
                description,
                size,
                ..block
            },
            (
                "resource",
                Some(ResourceFields {
                    uri,
                    mime_type,
                    text,
                    blob,
                }),
            ) => {
                let data = blob.as_deref().map(decode_base64).transpose()?;
                Self {
                    kind,
                    uri: Some(uri),
                    mime_type,
                    text,
                    data,
                    ..block
                }
            }
            ("resource", None) => return Err("is a resource without `resource`".to_owned()),
            // Text, or an unknown type, whose text is a fallback for hosts that do not support it.
            _ => Self {
                kind,
                text,
                ..block
            },
        })
    }
}

/// Decodes base64, with or without padding.
///
/// # Errors
///
/// Returns an error if the text is not base64.
pub(crate) fn decode_base64(text: &str) -> Result<Vec<u8>, String> {
    const ANY_PADDING: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let decoded = GeneralPurpose::new(&STANDARD, ANY_PADDING).decode(text);
    decoded.map_err(|error| format!("has data that is not base64: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn named(uri: &str, name: &str) -> GuestBlock {
        GuestBlock {
            uri: Some(uri.into()),
            name: Some(name.into()),
            ..GuestBlock::default()
        }
    }

    #[test]
    fn every_kind_of_block_is_parsed() {
        let read = |block: serde_json::Value| GuestBlock::parse(&block.to_string()).unwrap();
        let annotations = json!({"audience": ["assistant", "nobody", "user", "user"], "priority": 0.5, "lastModified": "2026-01-12"});
        let text =
            read(json!({"type": "text", "text": "a", "annotations": annotations, "_meta": {}}));
        assert_eq!(
            (text.text.as_deref(), text.audience.as_slice()),
            (Some("a"), &["user", "assistant"][..])
        );
        assert_eq!(
            (text.priority, text.last_modified.as_deref()),
            (Some(0.5), Some("2026-01-12"))
        );
        let image = read(json!({"type": "image", "data": "AQI=", "mimeType": "image/png"}));
        assert_eq!(
            (image.data, image.mime_type.as_deref()),
            (Some(vec![1, 2]), Some("image/png"))
        );
        let audio = read(json!({"type": "audio", "data": "AQI", "mimeType": "audio/wav"}));
        assert_eq!(
            (audio.kind.as_str(), audio.data),
            ("audio", Some(vec![1, 2]))
        );
        let link = read(
            json!({"type": "resource_link", "uri": "a:b", "name": "n", "title": "t", "description": "d", "mimeType": "text/plain", "size": 3}),
        );
        assert_eq!(
            (link.uri.as_deref(), link.name.as_deref(), link.size),
            (Some("a:b"), Some("n"), Some(3))
        );
        let resource = read(
            json!({"type": "resource", "resource": {"uri": "a:b", "blob": "AA==", "mimeType": "x/y"}}),
        );
        assert_eq!(
            (resource.uri.as_deref(), resource.data),
            (Some("a:b"), Some(vec![0]))
        );
        let annotations = json!({"audience": "user", "priority": "high", "lastModified": 7});
        let sloppy = read(
            json!({"type": "resource_link", "uri": "a:b", "name": "n", "size": -1, "annotations": annotations}),
        );
        assert_eq!(
            sloppy,
            GuestBlock {
                kind: "resource_link".into(),
                ..named("a:b", "n")
            }
        );
        let newer = read(json!({"type": "hologram", "text": "instead"}));
        assert_eq!(
            (newer.kind.as_str(), newer.text.as_deref()),
            ("hologram", Some("instead"))
        );
    }

    #[test]
    fn invalid_blocks_are_rejected_with_a_reason() {
        let wrong = [
            r#"{"type":"image","data":"!","mimeType":"image/png"}"#,
            r#"{"type":"resource"}"#,
            r#"{"text":"a"}"#,
            r#""a""#,
        ];
        for json in wrong {
            let why = GuestBlock::parse(json).unwrap_err();
            assert!(why.starts_with("is ") || why.starts_with("has "), "{why}");
        }
    }
}
