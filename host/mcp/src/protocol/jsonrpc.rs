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
pub use crate::protocol::request_id::{RequestId, SpelledNumber};

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

/// Returns the error for a message that cannot be parsed. It has the id of the message if the id
/// can be found; of several ids, none.
fn unparsed(bytes: &[u8], code: i32, message: String) -> Error {
    let mut scanner = IdScanner::default();
    scanner.scan(bytes);
    Error {
        id: scanner.only_id(),
        ..Error::new(code, message)
    }
}

/// Returns the error for a text that is not JSON.
fn not_json(text: &str, error: &serde_json::Error) -> Error {
    let what = error.to_string();
    let is_word = ["expected value", "expected ident", "invalid number"]
        .iter()
        .any(|start| what.starts_with(start));
    let word = if is_word { word_at(text, error) } else { None };
    let hint = word.and_then(foreign_word_hint).unwrap_or_default();
    unparsed(
        text.as_bytes(),
        PARSE_ERROR,
        format!("the message is not valid JSON: {what}{hint}"),
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

/// Returns what to write instead of a word of another language.
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
        unparsed(
            bytes,
            PARSE_ERROR,
            format!("the message is not valid UTF-8: mistake after {at} bytes"),
        )
    })?;
    let invalid = |error: serde_json::Error| not_json(text, &error);
    if text.trim_ascii_start().starts_with('[') {
        let mut items = Vec::new();
        let mut reader = serde_json::Deserializer::from_str(text);
        let read = reader
            .deserialize_seq(BatchItems(&mut items))
            .and_then(|()| reader.end());
        if items.len() > MAX_BATCH_MESSAGES {
            return Err(Error::new(
                INVALID_REQUEST,
                format!("a batch can have at most {MAX_BATCH_MESSAGES} messages"),
            ));
        }
        read.map_err(invalid)?;
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
        unparsed(raw.get().as_bytes(), INVALID_REQUEST, what)
    })?;
    let params = non_empty_params(members.params);
    let answers = members.method.is_none() && (members.result.is_some() || members.error.is_some());
    let id = match members.id {
        None => None,
        // A client sends this if it could not read the id of a request.
        Some(raw) if answers && raw.get() == "null" => None,
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

/// Encodes an error. Without a request's id, the id is `null` if `null_id`, otherwise absent.
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
    let end_at = |at: usize| {
        ENDS.iter()
            .find(|(end, _)| text.get(at..).is_some_and(|rest| rest.starts_with(end)))
    };
    let found = memchr2_iter(0xc2, 0xe2, &text).filter_map(|at| Some((at, end_at(at)?)));
    let (mut out, mut rest) = (Vec::new(), 0);
    for (at, (end, escaped)) in found {
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
mod tests {
    use super::*;
    use crate::protocol::request_id::MAX_ID_BYTES;

    fn refusal(text: &str) -> String {
        match decode(text.as_bytes()) {
            Err(refused) => String::from_utf8(error(&refused, true)).unwrap(),
            Ok(incoming) => panic!("{text} was read as {incoming:?}"),
        }
    }

    #[test]
    fn the_kinds_of_messages_are_distinguished() {
        let single = |text: &'static str| match decode(text.as_bytes()).unwrap() {
            IncomingContent::Single(message) => message,
            IncomingContent::Batch(_) => panic!("{text}"),
        };
        assert!(
            matches!(single(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), Message::Request(r)
            if r.method == "ping" && r.id == RequestId::Number(1.into()) && r.params.is_none())
        );
        assert!(
            matches!(single(r#" {"jsonrpc":"2.0","method":"pi\u006eg","params":{}} "#),
            Message::Notification { method, params: Some(_) } if method == "ping")
        );
        assert!(
            matches!(single(r#"{"jsonrpc":"2.0","id":"a","result":{"b":1}}"#),
            Message::Response { id: Some(RequestId::Text(id)), outcome: Ok(result) } if id == "a" && result.get() == r#"{"b":1}"#)
        );
        assert!(matches!(
            single(r#"{"jsonrpc":"2.0","id":1,"result":null}"#),
            Message::Response { outcome: Ok(_), .. }
        ));
        let batch = decode(br#"[{"jsonrpc":"2.0","method":"a"},1]"#).unwrap();
        assert!(
            matches!(batch, IncomingContent::Batch(items) if items.len() == 2 && items[1].is_err())
        );
    }

    #[test]
    fn the_error_of_a_client_is_short() {
        let read = |text: &str| match decode(text.as_bytes()) {
            Ok(IncomingContent::Single(Message::Response {
                id,
                outcome: Err(error),
            })) => (id, error.code, error.message),
            other => panic!("{text}: {other:?}"),
        };
        let error = read(
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":-1,"message":"no","data":[]}}"#,
        );
        assert_eq!(error, (Some(RequestId::Number(1.into())), -1, "no".into()));
        let long = format!(
            r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":-1,"message":"{}"}}}}"#,
            "é".repeat(1 << 20)
        );
        let (id, _, message) = read(&long);
        assert!(id.is_none() && message.len() <= 500);
        for odd in [
            "null",
            "7",
            "{}",
            r#"{"code":"x"}"#,
            r#"{"code":1e99,"message":""}"#,
        ] {
            let (_, code, message) = read(&format!(r#"{{"jsonrpc":"2.0","id":1,"error":{odd}}}"#));
            assert_eq!(
                (code, message.as_str()),
                (INTERNAL_ERROR, "an error that is not a JSON-RPC error"),
                "{odd}"
            );
        }
    }

    #[test]
    fn invalid_messages_get_an_error() {
        let cases = [
            "{",
            "\"text\"",
            "[]",
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
        ];
        insta::assert_snapshot!(
            cases
                .map(|case| format!("{case}\n  {}", refusal(case)))
                .join("\n")
        );
        assert!(decode(b"\xff").is_err());
    }

    #[test]
    fn parameters_that_are_null_or_an_empty_list_are_none() {
        for params in ["null", "[]", "[ ]"] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{params}}}"#);
            assert!(
                matches!(decode(text.as_bytes()), Ok(IncomingContent::Single(Message::Request(r))) if r.params.is_none()),
                "{params}"
            );
        }
        let list = br#"{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}"#;
        assert!(
            matches!(decode(list), Ok(IncomingContent::Single(Message::Request(r))) if r.params.is_some())
        );
    }

    #[test]
    fn a_byte_order_mark_before_a_message_is_skipped() {
        let text = "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
        assert!(matches!(
            decode(text.as_bytes()),
            Ok(IncomingContent::Single(Message::Request(_)))
        ));
        assert!(decode("\u{feff}\u{feff}{}".as_bytes()).is_err());
    }

    #[test]
    fn an_error_has_the_id_wherever_it_can_be_found() {
        for (text, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":7}"#, Some("7")),
            (r#"{"jsonrpc":2,"id":"a","method":"ping"}"#, Some("a")),
            (r#"{"method":["ping"],"jsonrpc":"2.0","id":"a"}"#, Some("a")),
            (r#"{"jsonrpc":"2.0","id":7,"id":8,"method":7}"#, None),
            (r#"{"jsonrpc":"2.0","id":{},"method":7}"#, None),
        ] {
            let error = decode(text.as_bytes()).unwrap_err();
            assert_eq!(error.id.map(|id| id.to_string()).as_deref(), id, "{text}");
        }
        for (beginning, id) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"x":"xxx"#,
                Some("7"),
            ),
            (
                r#"{"jsonrpc":"2.0","params":{"id":1,"y":[2]},"id":"b","x":"y"#,
                Some("b"),
            ),
            (r#"{"jsonrpc":"2.0","params":{"id":1"#, None),
            (r#"{"id":7"#, None),
            (r#"{"id":7,"#, Some("7")),
            (
                r#"{"method":"a","params":{"id":1,"x":"xxx"},"jsonrpc":"2.0","id":7}"#,
                Some("7"),
            ),
            (r#"[{"id":7}"#, None),
            ("", None),
        ] {
            let found = id_of_truncated(beginning.as_bytes());
            assert_eq!(found.map(|id| id.to_string()).as_deref(), id, "{beginning}");
        }
    }

    #[test]
    fn an_error_has_the_id_of_a_message_that_is_not_json() {
        let cases: [(&[u8], &str); 8] = [
            (
                br#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"a":NaN}}"#,
                "expected value at line 1 column 52: JSON has no number NaN; send null, or leave the value out",
            ),
            (
                br#"{"method":"a","params":[-Infinity],"jsonrpc":"2.0","id":7}"#,
                ": JSON has no number Infinity;",
            ),
            (
                br#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"a":True}}"#,
                ": JSON has the words true and false",
            ),
            (
                br#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"a":None}}"#,
                ": JSON has the word null",
            ),
            (
                br#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"a":01}}"#,
                "invalid number at line 1 column ",
            ),
            (
                br#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"a":"cut"#,
                "EOF while parsing",
            ),
            (
                b"{\"id\":7,\"x\":\"\xff\"}",
                "the message is not valid UTF-8: mistake after 13 bytes",
            ),
            (
                br#"{"\ud800":1,"jsonrpc":"2.0","id":7,"method":"a"}"#,
                "not a JSON-RPC message: ",
            ),
        ];
        for (text, said) in cases {
            let shown = String::from_utf8_lossy(text);
            let error = decode(text).unwrap_err();
            assert_eq!(error.id, Some(RequestId::Number(7.into())), "{shown}");
            assert!(error.message.contains(said), "{shown}: {}", error.message);
        }
        for text in [
            r#"[{"jsonrpc":"2.0","id":7,"x":NaN}]"#,
            r#"{"id":7,"id":8,"x":NaN}"#,
        ] {
            assert_eq!(decode(text.as_bytes()).unwrap_err().id, None, "{text}");
        }
    }

    #[test]
    fn an_id_is_returned_as_it_was_written() {
        for id in ["1e2", "-0", "100.0", "18446744073709551615", r#""\u00e4""#] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            let Ok(IncomingContent::Single(Message::Request(read))) = decode(text.as_bytes())
            else {
                panic!("{text}")
            };
            let id = id.replace("\\u00e4", "ä");
            let answer = String::from_utf8(result(&read.id, &Value::Null)).unwrap();
            assert_eq!(
                answer,
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":null}}"#)
            );
            let answer = String::from_utf8(error(
                &Error::new(INTERNAL_ERROR, "no").with_id(&read.id),
                true,
            ))
            .unwrap();
            assert!(answer.contains(&format!(r#""id":{id},"#)), "{answer}");
        }
    }

    #[test]
    fn a_message_is_one_line_for_every_reader() {
        let text = "a\u{2028}\u{2029}b\u{85}\u{2028}ü\u{2027}";
        let message = result(
            &RequestId::Number(1.into()),
            &serde_json::json!({ text: text }),
        );
        let message = String::from_utf8(message).unwrap();
        assert!(
            !message.contains(['\u{2028}', '\u{2029}', '\u{85}']),
            "{message}"
        );
        assert!(
            message.contains("\\u2028\\u2029b\\u0085\\u2028ü\u{2027}"),
            "{message}"
        );
        let read: Value = serde_json::from_str(&message).unwrap();
        assert_eq!(read["result"][text], text);
    }

    #[test]
    fn a_batch_is_read_up_to_its_limit() {
        let batch = |messages: usize| {
            format!(
                " [{}]",
                vec![r#"{"jsonrpc":"2.0","method":"a"}"#; messages].join(",")
            )
        };
        let read = |text: &str| match decode(text.as_bytes()) {
            Ok(IncomingContent::Batch(messages)) => messages.len(),
            other => panic!("{other:?}"),
        };
        assert_eq!(read(&batch(MAX_BATCH_MESSAGES)), MAX_BATCH_MESSAGES);
        for count in [MAX_BATCH_MESSAGES + 1, 100_000] {
            let error = decode(batch(count).as_bytes()).unwrap_err();
            assert_eq!(
                (error.code, error.message.as_str()),
                (INVALID_REQUEST, "a batch can have at most 100 messages")
            );
        }
        // The rest after the limit is not read.
        assert_eq!(
            decode(format!("{}no JSON", batch(MAX_BATCH_MESSAGES + 1)).as_bytes())
                .unwrap_err()
                .code,
            INVALID_REQUEST
        );
        assert_eq!(
            decode(format!("{}no JSON", batch(MAX_BATCH_MESSAGES)).as_bytes())
                .unwrap_err()
                .code,
            PARSE_ERROR
        );
    }

    #[test]
    fn an_id_is_short() {
        let request = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let text = |length: usize| format!("\"{}\"", "x".repeat(length));
        decode(request(&text(MAX_ID_BYTES - 2)).as_bytes()).unwrap();
        for id in [
            text(MAX_ID_BYTES - 1),
            text(1 << 20),
            format!("1.{}", "0".repeat(MAX_ID_BYTES)),
        ] {
            let error = decode(request(&id).as_bytes()).unwrap_err();
            assert_eq!((error.code, error.id), (INVALID_REQUEST, None));
            assert!(error.message.len() < 200, "{}", error.message);
        }
    }

    #[test]
    fn an_error_without_a_request_has_a_null_id_or_no_id() {
        let problem = Error::new(PARSE_ERROR, "no");
        let text = |null| String::from_utf8(error(&problem, null)).unwrap();
        assert_eq!(
            text(true),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#
        );
        assert_eq!(
            text(false),
            r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}"#
        );
    }
}
