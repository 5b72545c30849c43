//! JSON-RPC 2.0: decodes messages and encodes responses. Independent of MCP.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr2_iter;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::protocol::id_scanner::IdScanner;
use crate::protocol::lenient_object::is_empty_list;
use crate::protocol::request_id::ID_DESCRIPTION;
pub use crate::protocol::request_id::{RequestId, VerbatimNumber};

/// Maximum number of messages in a batch.
pub const MAX_BATCH_MESSAGES: usize = 100;

/// Maximum length of a word that an error message explains, in bytes.
const MAX_WORD_BYTES: usize = 16;

/// Byte order mark, which editors of some systems write before a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The content of one line or body.
#[derive(Debug)]
pub enum IncomingContent<'a> {
    /// One message.
    Single(Message<'a>),
    /// A batch: an array of messages.
    Batch(Vec<Result<Message<'a>, Error>>),
}

impl IncomingContent<'_> {
    /// Returns the id of a single request.
    pub fn id(&self) -> Option<&RequestId> {
        match self {
            Self::Single(Message::Request(request)) => Some(&request.id),
            _ => None,
        }
    }

    /// Returns whether the content needs a response: it contains a request or an invalid message.
    pub fn needs_response(&self) -> bool {
        match self {
            Self::Single(message) => matches!(message, Message::Request(_)),
            Self::Batch(messages) => messages
                .iter()
                .any(|message| matches!(message, Ok(Message::Request(_)) | Err(_))),
        }
    }
}

/// One message.
#[derive(Debug)]
pub enum Message<'a> {
    /// A message that expects a response.
    Request(Request<'a>),
    /// A message that expects no response.
    Notification {
        /// The method's name.
        method: Cow<'a, str>,
        /// The parameters, not yet parsed.
        params: Option<&'a RawValue>,
    },
    /// A response to a request from the server.
    Response {
        /// The id of the request; `None` if the client could not read it.
        id: Option<RequestId>,
        /// The result, not yet parsed, or the error.
        outcome: Result<&'a RawValue, Error>,
    },
}

/// A message that expects a response.
#[derive(Debug)]
pub struct Request<'a> {
    /// The id, which the response repeats.
    pub id: RequestId,
    /// The method's name.
    pub method: Cow<'a, str>,
    /// The parameters, not yet parsed.
    pub params: Option<&'a RawValue>,
}

/// An error object, with the request id if it is available.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// The request's id.
    pub id: Option<RequestId>,
    /// One of the codes of this module.
    pub code: i32,
    /// A message for people and models.
    pub message: String,
    /// Structured details for programs.
    pub data: Option<Box<Value>>,
}

/// The message is not valid JSON.
pub const PARSE_ERROR: i32 = -32700;
/// The JSON is not a valid request.
pub const INVALID_REQUEST: i32 = -32600;
/// The method is unknown.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// The parameters are invalid for the method.
pub const INVALID_PARAMS: i32 = -32602;
/// An error in the server.
pub const INTERNAL_ERROR: i32 = -32603;

impl Error {
    /// Creates an error without an id.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self {
            id: None,
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Returns the error with the id of its request.
    #[must_use]
    pub fn with_id(self, id: &RequestId) -> Self {
        Self {
            id: Some(id.clone()),
            ..self
        }
    }
}

/// Members of a message. Unknown members are ignored, duplicates rejected.
#[derive(Deserialize)]
struct MessageMembers<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// An error object from a client.
#[derive(Deserialize)]
struct ClientError<'a> {
    code: i32,
    #[serde(borrow, default)]
    message: Cow<'a, str>,
}

/// Distinguishes `"id": null`, which is a mistake, from an absent id.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Returns the parameters, if present. `null` counts as absent, and so does the empty list that
/// some languages write for an empty object.
fn non_empty_params(raw: Option<&RawValue>) -> Option<&RawValue> {
    raw.filter(|raw| raw.get() != "null" && !is_empty_list(raw.get()))
}

/// Returns the id of a message that is too long, or whose end is missing: the first member `id`.
pub fn id_of_truncated(bytes: &[u8]) -> Option<RequestId> {
    let mut scanner = IdScanner::default();
    scanner.scan(bytes);
    scanner.first_id()
}

/// Returns the error for a message that cannot be parsed. It has the id of the message, if exactly
/// one id can be found.
fn unparsable_error(bytes: &[u8], code: i32, message: String) -> Error {
    let mut scanner = IdScanner::default();
    scanner.scan(bytes);
    Error {
        id: scanner.only_id(),
        ..Error::new(code, message)
    }
}

/// Returns the error for a text that is not JSON.
fn invalid_json_error(text: &str, error: &serde_json::Error) -> Error {
    let parser_error = error.to_string();
    let is_word = ["expected value", "expected ident", "invalid number"]
        .iter()
        .any(|start| parser_error.starts_with(start));
    let word = if is_word { word_at(text, error) } else { None };
    let hint = word.and_then(foreign_word_hint).unwrap_or_default();
    unparsable_error(
        text.as_bytes(),
        PARSE_ERROR,
        format!("the message is not valid JSON: {parser_error}{hint}"),
    )
}

/// Returns the number or word of a text where an error is.
fn word_at<'t>(text: &'t str, error: &serde_json::Error) -> Option<&'t str> {
    // Lines and columns begin with 1, and columns count bytes.
    let line = text.split('\n').nth(error.line().checked_sub(1)?)?;
    let (before, after) = line
        .as_bytes()
        .split_at_checked(error.column().checked_sub(1)?)?;
    let is_inside = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let start = before.len() - before.iter().rev().take_while(is_inside).count();
    let end = before.len() + after.iter().take_while(is_inside).count();
    line.get(start..end)
        .filter(|word| word.len() <= MAX_WORD_BYTES)
}

/// Returns a hint for a word that other languages use in place of JSON.
fn foreign_word_hint(word: &str) -> Option<String> {
    let word = word.trim_start_matches(['+', '-']);
    match word.to_ascii_lowercase().as_str() {
        "nan" | "infinity" | "inf" => Some(format!(
            ": JSON has no number {word}; send null, or leave the value out"
        )),
        // `null`, `true` and `false` are JSON in this spelling only.
        "none" | "undefined" | "nil" | "null" => Some(": JSON has the word null".to_owned()),
        "true" | "false" => Some(": JSON has the words true and false".to_owned()),
        _ => None,
    }
}

/// Decodes one line or body. Skips a byte order mark before it.
///
/// # Errors
///
/// Returns [`PARSE_ERROR`] or [`INVALID_REQUEST`].
pub fn decode(bytes: &[u8]) -> Result<IncomingContent<'_>, Error> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        unparsable_error(
            bytes,
            PARSE_ERROR,
            format!("the message is not valid UTF-8: mistake after {at} bytes"),
        )
    })?;
    let invalid = |error: serde_json::Error| invalid_json_error(text, &error);
    if text.trim_ascii_start().starts_with('[') {
        let mut items = Vec::new();
        let mut reader = serde_json::Deserializer::from_str(text);
        let parsed = reader
            .deserialize_seq(BatchItems(&mut items))
            .and_then(|()| reader.end());
        if items.len() > MAX_BATCH_MESSAGES {
            return Err(Error::new(
                INVALID_REQUEST,
                format!("a batch can have at most {MAX_BATCH_MESSAGES} messages"),
            ));
        }
        parsed.map_err(invalid)?;
        if items.is_empty() {
            return Err(Error::new(INVALID_REQUEST, "the batch is empty"));
        }
        return Ok(IncomingContent::Batch(
            items.into_iter().map(parse_message).collect(),
        ));
    }
    parse_message(serde_json::from_str(text).map_err(invalid)?).map(IncomingContent::Single)
}

/// Collects the messages of a batch, not yet parsed, and stops at the first beyond
/// [`MAX_BATCH_MESSAGES`].
struct BatchItems<'v, 'a>(&'v mut Vec<&'a RawValue>);

impl<'de> Visitor<'de> for BatchItems<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a batch")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(item) = list.next_element()? {
            self.0.push(item);
            if self.0.len() > MAX_BATCH_MESSAGES {
                return Err(A::Error::custom("too many messages"));
            }
        }
        Ok(())
    }
}

fn parse_message(raw: &RawValue) -> Result<Message<'_>, Error> {
    if !raw.get().starts_with('{') {
        return Err(Error::new(
            INVALID_REQUEST,
            "a message must be a JSON object",
        ));
    }
    let members: MessageMembers<'_> = serde_json::from_str(raw.get()).map_err(|error| {
        let what = format!(
            "not a JSON-RPC message: {}",
            truncate_error(&error.to_string())
        );
        unparsable_error(raw.get().as_bytes(), INVALID_REQUEST, what)
    })?;
    let params = non_empty_params(members.params);
    let is_response =
        members.method.is_none() && (members.result.is_some() || members.error.is_some());
    let id = match members.id {
        None => None,
        // A client sends this if it could not read the id of a request.
        Some(raw) if is_response && raw.get() == "null" => None,
        Some(raw) => Some(RequestId::parse(raw.get()).ok_or_else(|| {
            let what = truncate_quote(raw.get());
            Error::new(
                INVALID_REQUEST,
                format!("id must be {ID_DESCRIPTION}, not {what}"),
            )
        })?),
    };
    let invalid = |message: &str| Error {
        id: id.clone(),
        ..Error::new(INVALID_REQUEST, message)
    };
    if members.jsonrpc.as_deref() != Some("2.0") {
        return Err(invalid("jsonrpc must be \"2.0\""));
    }
    match (members.method, id.clone()) {
        (Some(method), Some(id)) => Ok(Message::Request(Request { id, method, params })),
        (Some(method), None) => Ok(Message::Notification { method, params }),
        (None, id) => match (members.result, members.error) {
            (_, Some(error)) => Ok(Message::Response {
                id,
                outcome: Err(parse_client_error(error)),
            }),
            (Some(result), None) => Ok(Message::Response {
                id,
                outcome: Ok(result),
            }),
            (None, None) => Err(invalid("method is missing")),
        },
    }
}

/// Parses the error in a response. Truncates its message.
fn parse_client_error(raw: &RawValue) -> Error {
    let read: Result<ClientError<'_>, _> = serde_json::from_str(raw.get());
    read.map_or_else(
        |_| Error::new(INTERNAL_ERROR, "an error that is not a JSON-RPC error"),
        |error| Error::new(error.code, truncate_error(&error.message)),
    )
}

/// Truncates an error message, which may quote megabytes of client input.
pub(crate) fn truncate_error(text: &str) -> &str {
    text.get(..text.floor_char_boundary(500)).unwrap_or(text)
}

/// Truncates client text, which may be megabytes long, for a message or the log.
pub(crate) fn truncate_quote(text: &str) -> &str {
    text.get(..text.floor_char_boundary(40)).unwrap_or(text)
}

/// Encodes the result of a request.
pub fn result(id: &RequestId, result: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Answer<'a, T> {
        jsonrpc: &'static str,
        id: &'a RequestId,
        result: &'a T,
    }
    encode(&Answer {
        jsonrpc: "2.0",
        id,
        result,
    })
}

/// Encodes an error. If the error has no request id, `id` is `null` if `null_id` is set, and absent
/// otherwise.
pub fn error(error: &Error, null_id: bool) -> Vec<u8> {
    #[derive(Serialize)]
    struct Body<'a> {
        code: i32,
        message: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<&'a Value>,
    }
    #[derive(Serialize)]
    struct Answer<'a> {
        jsonrpc: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<ErrorId<'a>>,
        error: Body<'a>,
    }
    /// `null` without an id.
    #[derive(Serialize)]
    #[serde(transparent)]
    struct ErrorId<'a>(Option<&'a RequestId>);
    let id = (error.id.is_some() || null_id).then_some(ErrorId(error.id.as_ref()));
    let body = Body {
        code: error.code,
        message: &error.message,
        data: error.data.as_deref(),
    };
    encode(&Answer {
        jsonrpc: "2.0",
        id,
        error: body,
    })
}

/// Encodes a request.
pub fn request(id: &RequestId, method: &str, params: Option<&impl Serialize>) -> Vec<u8> {
    #[derive(Serialize)]
    struct Request<'a, T> {
        jsonrpc: &'static str,
        id: &'a RequestId,
        method: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        params: Option<&'a T>,
    }
    encode(&Request {
        jsonrpc: "2.0",
        id,
        method,
        params,
    })
}

/// Encodes a notification.
pub fn notification(method: &str, params: Option<&impl Serialize>) -> Vec<u8> {
    #[derive(Serialize)]
    struct Notification<'a, T> {
        jsonrpc: &'static str,
        method: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        params: Option<&'a T>,
    }
    encode(&Notification {
        jsonrpc: "2.0",
        method,
        params,
    })
}

fn encode(message: &impl Serialize) -> Vec<u8> {
    let text = serde_json::to_vec(message).unwrap_or_else(|error| {
        // Unreachable: all types have string keys and a `Serialize` implementation that does not
        // fail.
        tracing::error!(%error, "cannot encode a message");
        br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"the response could not be encoded"}}"#.to_vec()
    });
    escape_line_ends(text)
}

/// Returns the JSON as one line for every reader. Some readers end a line at U+0085, U+2028 or
/// U+2029, which occur in JSON only within strings.
fn escape_line_ends(text: Vec<u8>) -> Vec<u8> {
    const ENDS: [(&[u8], &[u8]); 3] = [
        (b"\xc2\x85", b"\\u0085"),
        (b"\xe2\x80\xa8", b"\\u2028"),
        (b"\xe2\x80\xa9", b"\\u2029"),
    ];
    let line_end_at = |at: usize| {
        ENDS.iter()
            .find(|(end, _)| text.get(at..).is_some_and(|rest| rest.starts_with(end)))
    };
    let line_ends = memchr2_iter(0xc2, 0xe2, &text).filter_map(|at| Some((at, line_end_at(at)?)));
    let mut out = Vec::new();
    let mut rest = 0;
    for (at, (end, escaped)) in line_ends {
        out.extend_from_slice(text.get(rest..at).unwrap_or_default());
        out.extend_from_slice(escaped);
        rest = at + end.len();
    }
    if rest == 0 {
        return text;
    }
    out.extend_from_slice(text.get(rest..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests;
