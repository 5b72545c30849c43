//! The result of a tool that returns parts with media types.

use serde::de::IgnoredAny;
use toolbay_model::Interrupt;

use crate::block::{Block, Kind};
use crate::cbor::{self, Unreadable};
use crate::cleaner::quoted;
use crate::returned::{Part, ToolResult};

/// Why parts are no result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// One of them is not what it says it is. The text says which, and why not.
    Malformed(String),
    /// What is CBOR in them has too many bytes as JSON.
    Large,
    /// The interrupt was due first.
    Interrupted,
}

/// What a part is.
enum Form {
    Text,
    Json,
    Cbor,
    Media(Kind),
    /// Anything else. Whether its type is known.
    Other(bool),
}

/// The result that consists of these parts: text, images and audio are blocks, and what nobody here knows is a resource. An
/// object in JSON or CBOR that is alone is structured content; beside other parts, it is text.
///
/// All that is made of CBOR has `most` bytes at the most.
pub(crate) fn result(parts: Vec<Part>, most: usize, interrupt: &Interrupt) -> Result<ToolResult, Unfit> {
    let is_alone = parts.len() == 1;
    let (mut result, mut room) = (ToolResult::default(), most);
    for (index, part) in parts.into_iter().enumerate() {
        let form = Form::of(part.mime_type.as_deref());
        let malformed = |part: Option<&str>, why: &str| {
            Unfit::Malformed(format!("content[{index}] is {} and {why}", quoted(part.unwrap_or_default())))
        };
        let Part { data, mime_type } = part;
        let utf8 = |data| String::from_utf8(data).map_err(|_| malformed(mime_type.as_deref(), "not UTF-8"));
        let json = match form {
            Form::Text => {
                result.content.push(Block::text(utf8(data)?));
                continue;
            }
            Form::Json => {
                let text = utf8(data)?;
                serde_json::from_str::<IgnoredAny>(&text)
                    .map_err(|error| malformed(mime_type.as_deref(), &format!("not valid JSON: {error}")))?;
                text
            }
            Form::Cbor => {
                let json = cbor::to_json(&data, room, interrupt).map_err(|error| match error {
                    Unreadable::Malformed(why) => malformed(mime_type.as_deref(), why),
                    Unreadable::Large => Unfit::Large,
                    Unreadable::Interrupted => Unfit::Interrupted,
                })?;
                room -= json.len();
                json
            }
            Form::Media(kind) => {
                result.content.push(Block { kind: kind.name().into(), data: Some(data), mime_type, ..Block::default() });
                continue;
            }
            Form::Other(is_known) => {
                result.content.push(resource(index, data, mime_type, is_known));
                continue;
            }
        };
        if is_alone && json.trim_start().starts_with('{') {
            result.structured = Some(json);
        } else {
            result.content.push(Block::text(json));
        }
    }
    Ok(result)
}

impl Form {
    fn of(mime_type: Option<&str>) -> Self {
        let Some(mime_type) = mime_type else { return Self::Other(false) };
        let essence = mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let (family, subtype) = essence.split_once('/').unwrap_or_default();
        match (family, subtype) {
            ("text", _) => Self::Text,
            ("image", _) => Self::Media(Kind::Image),
            ("audio", _) => Self::Media(Kind::Audio),
            ("application", "json") => Self::Json,
            ("application", "cbor") => Self::Cbor,
            ("application", "octet-stream") => Self::Other(false),
            (_, subtype) if subtype.ends_with("+json") => Self::Json,
            (_, subtype) if subtype.ends_with("+cbor") => Self::Cbor,
            _ => Self::Other(true),
        }
    }
}

/// A part that is none of the other forms: a resource with its text, or else with its bytes.
fn resource(index: usize, data: Vec<u8>, mime_type: Option<String>, is_known: bool) -> Block {
    let (text, data) = match String::from_utf8(data) {
        Ok(text) if is_known => (Some(text), None),
        Ok(text) => (None, Some(text.into_bytes())),
        Err(error) => (None, Some(error.into_bytes())),
    };
    let (kind, uri) = (Kind::EmbeddedResource.name().into(), Some(format!("act:content/{index}")));
    Block { kind, text, data, mime_type, uri, ..Block::default() }
}
