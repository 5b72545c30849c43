//! JSON-RPC 2.0: decodes messages and encodes responses. Independent of MCP.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr2_iter;
use serde::de::{Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Number, Value};

/// Maximum number of messages in a batch.
pub const MAX_BATCH_MESSAGES: usize = 100;

/// Maximum length of an id, in bytes of its JSON. The id is stored for as long as the request is
/// open.
const MAX_ID_BYTES: usize = 1 << 10;

/// Byte order mark, which editors of some systems write before a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Description of a valid id, for error messages.
const ID_DESCRIPTION: &str = "a string of at most 1,024 bytes or a number of at most 64 bits";

/// The id of a request: a string or a number (MCP allows no `null`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum RequestId {
    /// A number.
    Number(Number),
    /// A string.
    Text(String),
}

impl RequestId {
    /// Parses an id. Rejects an integer of more than 64 bits, because it could not be returned
    /// unchanged, and an id that is too long.
    fn parse(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        if text.len() > MAX_ID_BYTES {
            return None;
        }
        if text.starts_with('"') {
            return serde_json::from_str(text).ok().map(Self::Text);
        }
        let number: Number = serde_json::from_str(text).ok()?;
        let exact = !number.is_f64() || text.contains(['.', 'e', 'E']) || text == "-0";
        exact.then_some(Self::Number(number))
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(&raw).ok_or_else(|| D::Error::custom(format_args!("expected {ID_DESCRIPTION}")))
    }
}

impl From<RequestId> for Value {
    fn from(id: RequestId) -> Self {
        match id {
            RequestId::Number(number) => Self::Number(number),
            RequestId::Text(text) => Self::String(text),
        }
    }
}

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
            Self::Batch(messages) => messages.iter().any(|message| matches!(message, Ok(Message::Request(_)) | Err(_))),
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
        Self { id: None, code, message: message.into(), data: None }
    }

    /// Returns the error with the id of its request.
    #[must_use]
    pub fn with_id(self, id: &RequestId) -> Self {
        Self { id: Some(id.clone()), ..self }
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
    let is_empty =
        |text: &str| text == "null" || text.strip_prefix('[').is_some_and(|rest| rest.trim_ascii_start() == "]");
    raw.filter(|raw| !is_empty(raw.get()))
}

/// The id of a message that is not a valid request otherwise.
#[derive(Deserialize)]
struct IdAlone<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
}

/// Returns the id of a truncated message.
pub fn id_of_truncated(bytes: &[u8]) -> Option<RequestId> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let mut id = None;
    // The result is an error, because the end is missing.
    let _ = serde_json::Deserializer::from_slice(bytes).deserialize_map(IdFirst(&mut id));
    id
}

/// Reads the first member `id` of an object.
struct IdFirst<'i>(&'i mut Option<RequestId>);

impl<'de> Visitor<'de> for IdFirst<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            if name == "id" {
                let id = map.next_value::<Box<RawValue>>()?;
                // A number may continue after the end of the text.
                map.next_key::<IgnoredAny>()?;
                *self.0 = RequestId::parse(&id);
                return Ok(());
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

/// Decodes one line or body. Skips a byte order mark before it.
///
/// # Errors
///
/// Returns [`PARSE_ERROR`] or [`INVALID_REQUEST`].
pub fn decode(bytes: &[u8]) -> Result<IncomingContent<'_>, Error> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|_| Error::new(PARSE_ERROR, "the message is not valid UTF-8"))?;
    let invalid = |error| Error::new(PARSE_ERROR, format!("the message is not valid JSON: {error}"));
    if text.trim_ascii_start().starts_with('[') {
        let mut items = Vec::new();
        let mut reader = serde_json::Deserializer::from_str(text);
        let read = reader.deserialize_seq(BatchItems(&mut items)).and_then(|()| reader.end());
        if items.len() > MAX_BATCH_MESSAGES {
            return Err(Error::new(INVALID_REQUEST, format!("a batch can have at most {MAX_BATCH_MESSAGES} messages")));
        }
        read.map_err(invalid)?;
        if items.is_empty() {
            return Err(Error::new(INVALID_REQUEST, "the batch is empty"));
        }
        return Ok(IncomingContent::Batch(items.into_iter().map(parse_message).collect()));
    }
    parse_message(serde_json::from_str(text).map_err(invalid)?).map(IncomingContent::Single)
}

/// Collects the messages of a batch, not yet parsed, and stops at the first beyond [`MAX_BATCH_MESSAGES`].
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
        return Err(Error::new(INVALID_REQUEST, "a message must be a JSON object"));
    }
    let members: MessageMembers<'_> = serde_json::from_str(raw.get()).map_err(|error| {
        let alone: Option<IdAlone<'_>> = serde_json::from_str(raw.get()).ok();
        let id = alone.and_then(|alone| RequestId::parse(alone.id?));
        Error {
            id,
            ..Error::new(INVALID_REQUEST, format!("not a JSON-RPC message: {}", truncate_error(&error.to_string())))
        }
    })?;
    let params = non_empty_params(members.params);
    let answers = members.method.is_none() && (members.result.is_some() || members.error.is_some());
    let id = match members.id {
        None => None,
        // A client sends this if it could not read the id of a request.
        Some(raw) if answers && raw.get() == "null" => None,
        Some(raw) => Some(RequestId::parse(raw).ok_or_else(|| {
            let what = truncate_quote(raw.get());
            Error::new(INVALID_REQUEST, format!("id must be {ID_DESCRIPTION}, not {what}"))
        })?),
    };
    let invalid = |message: &str| Error { id: id.clone(), ..Error::new(INVALID_REQUEST, message) };
    if members.jsonrpc.as_deref() != Some("2.0") {
        return Err(invalid("jsonrpc must be \"2.0\""));
    }
    match (members.method, id.clone()) {
        (Some(method), Some(id)) => Ok(Message::Request(Request { id, method, params })),
        (Some(method), None) => Ok(Message::Notification { method, params }),
        (None, id) => match (members.result, members.error) {
            (_, Some(error)) => Ok(Message::Response { id, outcome: Err(parse_client_error(error)) }),
            (Some(result), None) => Ok(Message::Response { id, outcome: Ok(result) }),
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
    encode(&Answer { jsonrpc: "2.0", id, result })
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
        id: Option<Value>,
        error: Body<'a>,
    }
    let id = error.id.clone().map(Value::from).or(null_id.then_some(Value::Null));
    let body = Body { code: error.code, message: &error.message, data: error.data.as_deref() };
    encode(&Answer { jsonrpc: "2.0", id, error: body })
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
    encode(&Request { jsonrpc: "2.0", id, method, params })
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
    encode(&Notification { jsonrpc: "2.0", method, params })
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
    const ENDS: [(&[u8], &[u8]); 3] =
        [(b"\xc2\x85", b"\\u0085"), (b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029")];
    let end_at = |at: usize| ENDS.iter().find(|(end, _)| text.get(at..).is_some_and(|rest| rest.starts_with(end)));
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
        assert!(matches!(single(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), Message::Request(r)
            if r.method == "ping" && r.id == RequestId::Number(1.into()) && r.params.is_none()));
        assert!(matches!(single(r#" {"jsonrpc":"2.0","method":"pi\u006eg","params":{}} "#),
            Message::Notification { method, params: Some(_) } if method == "ping"));
        assert!(matches!(single(r#"{"jsonrpc":"2.0","id":"a","result":{"b":1}}"#),
            Message::Response { id: Some(RequestId::Text(id)), outcome: Ok(result) } if id == "a" && result.get() == r#"{"b":1}"#));
        assert!(matches!(
            single(r#"{"jsonrpc":"2.0","id":1,"result":null}"#),
            Message::Response { outcome: Ok(_), .. }
        ));
        let batch = decode(br#"[{"jsonrpc":"2.0","method":"a"},1]"#).unwrap();
        assert!(matches!(batch, IncomingContent::Batch(items) if items.len() == 2 && items[1].is_err()));
    }

    #[test]
    fn the_error_of_a_client_is_short() {
        let read = |text: &str| match decode(text.as_bytes()) {
            Ok(IncomingContent::Single(Message::Response { id, outcome: Err(error) })) => {
                (id, error.code, error.message)
            }
            other => panic!("{text}: {other:?}"),
        };
        let error = read(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":-1,"message":"no","data":[]}}"#);
        assert_eq!(error, (Some(RequestId::Number(1.into())), -1, "no".into()));
        let long =
            format!(r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":-1,"message":"{}"}}}}"#, "é".repeat(1 << 20));
        let (id, _, message) = read(&long);
        assert!(id.is_none() && message.len() <= 500);
        for odd in ["null", "7", "{}", r#"{"code":"x"}"#, r#"{"code":1e99,"message":""}"#] {
            let (_, code, message) = read(&format!(r#"{{"jsonrpc":"2.0","id":1,"error":{odd}}}"#));
            assert_eq!((code, message.as_str()), (INTERNAL_ERROR, "an error that is not a JSON-RPC error"), "{odd}");
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
        insta::assert_snapshot!(cases.map(|case| format!("{case}\n  {}", refusal(case))).join("\n"));
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
        assert!(matches!(decode(list), Ok(IncomingContent::Single(Message::Request(r))) if r.params.is_some()));
    }

    #[test]
    fn a_byte_order_mark_before_a_message_is_skipped() {
        let text = "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
        assert!(matches!(decode(text.as_bytes()), Ok(IncomingContent::Single(Message::Request(_)))));
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
            (r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"x":"xxx"#, Some("7")),
            (r#"{"jsonrpc":"2.0","params":{"id":1,"y":[2]},"id":"b","x":"y"#, Some("b")),
            (r#"{"jsonrpc":"2.0","params":{"id":1"#, None),
            (r#"{"id":7"#, None),
            (r#"[{"id":7}"#, None),
            ("", None),
        ] {
            let found = id_of_truncated(beginning.as_bytes());
            assert_eq!(found.map(|id| id.to_string()).as_deref(), id, "{beginning}");
        }
    }

    #[test]
    fn a_message_is_one_line_for_every_reader() {
        let text = "a\u{2028}\u{2029}b\u{85}\u{2028}ü\u{2027}";
        let message = result(&RequestId::Number(1.into()), &serde_json::json!({ text: text }));
        let message = String::from_utf8(message).unwrap();
        assert!(!message.contains(['\u{2028}', '\u{2029}', '\u{85}']), "{message}");
        assert!(message.contains("\\u2028\\u2029b\\u0085\\u2028ü\u{2027}"), "{message}");
        let read: Value = serde_json::from_str(&message).unwrap();
        assert_eq!(read["result"][text], text);
    }

    #[test]
    fn a_batch_is_read_up_to_its_limit() {
        let batch = |messages: usize| format!(" [{}]", vec![r#"{"jsonrpc":"2.0","method":"a"}"#; messages].join(","));
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
            decode(format!("{}no JSON", batch(MAX_BATCH_MESSAGES + 1)).as_bytes()).unwrap_err().code,
            INVALID_REQUEST
        );
        assert_eq!(decode(format!("{}no JSON", batch(MAX_BATCH_MESSAGES)).as_bytes()).unwrap_err().code, PARSE_ERROR);
    }

    #[test]
    fn an_id_is_short() {
        let request = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let text = |length: usize| format!("\"{}\"", "x".repeat(length));
        decode(request(&text(MAX_ID_BYTES - 2)).as_bytes()).unwrap();
        for id in [text(MAX_ID_BYTES - 1), text(1 << 20), format!("1.{}", "0".repeat(MAX_ID_BYTES))] {
            let error = decode(request(&id).as_bytes()).unwrap_err();
            assert_eq!((error.code, error.id), (INVALID_REQUEST, None));
            assert!(error.message.len() < 200, "{}", error.message);
        }
    }

    #[test]
    fn an_error_without_a_request_has_a_null_id_or_no_id() {
        let problem = Error::new(PARSE_ERROR, "no");
        let text = |null| String::from_utf8(error(&problem, null)).unwrap();
        assert_eq!(text(true), r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#);
        assert_eq!(text(false), r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}"#);
    }
}
