//! Conversion of tool results that consist of parts with media types.

use serde::de::IgnoredAny;
use toolbay_model::Interrupt;

use crate::reply::block::{BlockKind, RawBlock};
use crate::reply::cbor::{self, CborError};
use crate::reply::cleaner::quote;
use crate::reply::guest_reply::{ResultPart, ToolResult};
use crate::reply::syntax::is_mime_type;

/// The reason why parts cannot be converted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PartsError {
    /// A part does not match its media type. The text describes the part and the error.
    Malformed(String),
    /// The CBOR parts are too large as JSON.
    TooLarge,
    /// The conversion was stopped, because the interrupt was due.
    Interrupted,
}

/// The form of a part.
enum PartForm {
    Text,
    Json,
    Cbor,
    Media(BlockKind),
    /// Any other form. True if the media type is specific.
    Other(bool),
}

/// Assembles a result from its parts. Text, images and audio become content blocks, and other media
/// types become resources. A single JSON or CBOR object becomes structured content. Next to other
/// parts, it is text.
///
/// The total size of the JSON that is converted from CBOR is at most `max_json_bytes` bytes.
pub(crate) fn combine(
    parts: Vec<ResultPart>,
    max_json_bytes: usize,
    interrupt: &Interrupt,
) -> Result<ToolResult, PartsError> {
    let is_only_part = parts.len() == 1;
    let mut result = ToolResult::default();
    let mut remaining_bytes = max_json_bytes;
    for (index, part) in parts.into_iter().enumerate() {
        let ResultPart { data, mime_type } = part;
        // Ignore an invalid media type.
        let mime_type = mime_type.filter(|mime_type| is_mime_type(mime_type));
        let form = PartForm::of(mime_type.as_deref());
        let malformed = |mime_type: Option<&str>, why: &str| {
            PartsError::Malformed(format!(
                "content[{index}] is {} and {why}",
                quote(mime_type.unwrap_or_default())
            ))
        };
        let decode_utf8 = |data| {
            String::from_utf8(data).map_err(|_| malformed(mime_type.as_deref(), "not UTF-8"))
        };
        let json = match form {
            PartForm::Text => {
                result.content.push(RawBlock::text(decode_utf8(data)?));
                continue;
            }
            PartForm::Json => {
                let text = decode_utf8(data)?;
                serde_json::from_str::<IgnoredAny>(&text).map_err(|error| {
                    malformed(mime_type.as_deref(), &format!("not valid JSON: {error}"))
                })?;
                text
            }
            PartForm::Cbor => {
                let json =
                    cbor::to_json(&data, remaining_bytes, interrupt).map_err(
                        |error| match error {
                            CborError::Malformed(why) => malformed(mime_type.as_deref(), why),
                            CborError::TooLarge => PartsError::TooLarge,
                            CborError::Interrupted => PartsError::Interrupted,
                        },
                    )?;
                remaining_bytes -= json.len();
                json
            }
            PartForm::Media(kind) => {
                result.content.push(RawBlock {
                    kind: kind.name().into(),
                    data: Some(data),
                    mime_type,
                    ..RawBlock::default()
                });
                continue;
            }
            PartForm::Other(is_known) => {
                result
                    .content
                    .push(resource_block(index, data, mime_type, is_known));
                continue;
            }
        };
        if is_only_part && json.trim_start().starts_with('{') {
            result.structured = Some(json);
        } else {
            result.content.push(RawBlock::text(json));
        }
    }
    Ok(result)
}

impl PartForm {
    fn of(mime_type: Option<&str>) -> Self {
        let Some(mime_type) = mime_type else {
            return Self::Other(false);
        };
        let essence = mime_type
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        let (family, subtype) = essence.split_once('/').unwrap_or_default();
        match (family, subtype) {
            ("text", _) => Self::Text,
            ("image", _) => Self::Media(BlockKind::Image),
            ("audio", _) => Self::Media(BlockKind::Audio),
            ("application", "json") => Self::Json,
            ("application", "cbor") => Self::Cbor,
            ("application", "octet-stream") => Self::Other(false),
            (_, subtype) if subtype.ends_with("+json") => Self::Json,
            (_, subtype) if subtype.ends_with("+cbor") => Self::Cbor,
            _ => Self::Other(true),
        }
    }
}

/// Converts a part of another form to a resource, with its text or its bytes.
fn resource_block(
    index: usize,
    data: Vec<u8>,
    mime_type: Option<String>,
    is_known: bool,
) -> RawBlock {
    let (text, data) = match String::from_utf8(data) {
        Ok(text) if is_known => (Some(text), None),
        Ok(text) => (None, Some(text.into_bytes())),
        Err(error) => (None, Some(error.into_bytes())),
    };
    let kind = BlockKind::EmbeddedResource.name().into();
    let uri = Some(format!("act:content/{index}"));
    RawBlock {
        kind,
        text,
        data,
        mime_type,
        uri,
        ..RawBlock::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn part(mime_type: &str, data: impl AsRef<[u8]>) -> ResultPart {
        ResultPart {
            data: data.as_ref().to_vec(),
            mime_type: Some(mime_type.to_owned()),
        }
    }

    fn read(parts: Vec<ResultPart>) -> Result<ToolResult, PartsError> {
        combine(parts, 100, &Interrupt::default())
    }

    fn malformed(part: ResultPart) -> String {
        match read(vec![part]) {
            Err(PartsError::Malformed(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_single_object_is_structured_content() {
        let cbor = cbor::from_json(&json!({"a": 1})).unwrap();
        for (mime_type, data) in [
            ("application/json", br#" {"a":1}"#.as_slice()),
            ("application/JSON; charset=utf-8", br#"{"a":1}"#),
            ("application/geo+json", br#"{"a":1}"#),
            ("application/cbor", &cbor),
            ("application/senml+cbor", &cbor),
        ] {
            let result = read(vec![part(mime_type, data)]).unwrap();
            assert_eq!(
                result.structured.as_deref().map(str::trim),
                Some(r#"{"a":1}"#),
                "{mime_type}"
            );
            assert!(result.content.is_empty());
        }
        for (mime_type, data, text) in [
            ("application/json", b"[1]".as_slice(), "[1]"),
            ("application/cbor", b"\x01", "1"),
        ] {
            let result = read(vec![part(mime_type, data)]).unwrap();
            assert_eq!(
                (result.structured, result.content[0].text.as_deref()),
                (None, Some(text))
            );
        }
        assert_eq!(read(Vec::new()).unwrap().size(), 0);
    }

    #[test]
    fn parts_that_do_not_match_their_media_type_are_refused() {
        assert_eq!(
            malformed(part("text/plain", b"\xff")),
            "content[0] is \"text/plain\" and not UTF-8"
        );
        assert_eq!(
            malformed(part("application/json", b"\xff")),
            "content[0] is \"application/json\" and not UTF-8"
        );
        let json = malformed(part("application/json", "{"));
        assert!(
            json.starts_with("content[0] is \"application/json\" and not valid JSON: EOF"),
            "{json}"
        );
        let cbor = malformed(part("application/cbor", b"\x61"));
        assert_eq!(
            cbor,
            "content[0] is \"application/cbor\" and ends in the middle of an item"
        );
    }

    #[test]
    fn all_cbor_together_has_a_bound_as_json() {
        let cbor = cbor::from_json(&json!("x".repeat(48))).unwrap();
        let parts = |count: usize| {
            (0..count)
                .map(|_| part("application/cbor", &cbor))
                .collect()
        };
        assert_eq!(read(parts(2)).unwrap().content.len(), 2);
        assert_eq!(read(parts(3)).unwrap_err(), PartsError::TooLarge);
    }

    #[test]
    fn parts_of_unknown_types_become_resources() {
        let text = |part| {
            let block = read(vec![part]).unwrap().content.remove(0);
            assert_eq!(
                (block.kind.as_str(), block.uri.as_deref()),
                ("embedded-resource", Some("act:content/0"))
            );
            block.text
        };
        assert_eq!(
            text(part("application/xml", "<a/>")).as_deref(),
            Some("<a/>")
        );
        assert_eq!(text(part("application/pdf", b"\xff")), None);
        assert_eq!(text(part("application/octet-stream", "abc")), None);
        assert_eq!(
            text(ResultPart {
                data: b"abc".to_vec(),
                mime_type: None
            }),
            None
        );
        assert_eq!(text(part("nonsense", "abc")), None);
    }
}
