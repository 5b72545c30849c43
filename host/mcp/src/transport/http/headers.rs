//! Validates the headers of a request, by themselves and against its body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, Method, Uri};
use mime::Mime;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use toolbay_model::{HeaderKind, ParamHeader, TraceContext};

use super::decimal::DecimalNumber;
use super::event::EventId;
use super::header_arguments;
use crate::host::caller::Caller;
use crate::host::list_source::ListSource;
use crate::protocol::jsonrpc::{Error, INVALID_REQUEST, Request};
use crate::protocol::method::McpMethod;
use crate::protocol::revision::Revision;

/// Header with the id of the session of a request.
pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// Header with the protocol revision of a request.
pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// Header with the id of the last event that a client has received from a stream.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");
const PARAM_PREFIX: &str = "mcp-param-";

/// Maximum number of bytes that are quoted from a value: a value in a body can have megabytes.
const MAX_QUOTED_BYTES: usize = 200;

/// Error code for headers that differ from the body (2026-07-28, "Error Codes").
pub(super) const HEADER_MISMATCH: i32 = -32020;

/// Returns the length of the head of a request in bytes, as clients write it: with one space after
/// each colon.
pub(super) fn head_length(method: &Method, target: &Uri, headers: &HeaderMap) -> usize {
    const AROUND_TARGET: usize = " ".len() + " HTTP/1.1\r\n".len();
    const AROUND_HEADER: usize = ": ".len() + "\r\n".len();
    let origin = target
        .scheme_str()
        .map_or(0, |scheme| scheme.len() + "://".len())
        + target
            .authority()
            .map_or(0, |authority| authority.as_str().len());
    let path = target
        .path_and_query()
        .map_or(0, |path| path.as_str().len());
    let fields: usize = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + AROUND_HEADER)
        .sum();
    method.as_str().len() + origin + path + AROUND_TARGET + fields + "\r\n".len()
}

/// Returns whether `Accept` allows a response of this kind. Without the header, every kind is
/// allowed (RFC 9110, 12.5.1).
pub(super) fn accepts(headers: &HeaderMap, kind: &Mime) -> bool {
    if !headers.contains_key(ACCEPT) {
        return true;
    }
    let values = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let ranges = values
        .flat_map(|value| value.split(','))
        .filter_map(|range| range.trim().parse::<Mime>().ok());
    // The most specific range that matches the kind decides.
    let matching = ranges.filter_map(|range| {
        let rank = match (range.type_(), range.subtype()) {
            (mime::STAR, mime::STAR) => 0,
            (main, mime::STAR) if main == kind.type_() => 1,
            (main, sub) if main == kind.type_() && sub == kind.subtype() => 2,
            _ => return None,
        };
        let weight = range
            .get_param("q")
            .and_then(|weight| weight.as_str().parse::<f32>().ok());
        Some((rank, weight.is_none_or(|weight| weight > 0.0)))
    });
    matching.max().is_some_and(|(_, accepted)| accepted)
}

/// Returns whether the body is compressed or has another content coding.
pub(super) fn is_encoded(headers: &HeaderMap) -> bool {
    let values = headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .map(|value| value.to_str().unwrap_or("?"));
    values
        .flat_map(|value| value.split(','))
        .any(|coding| !coding.trim().eq_ignore_ascii_case("identity"))
}

/// Checks that the headers that control how a request is handled are unambiguous.
///
/// # Errors
///
/// One of them is present twice, with different values.
pub(super) fn check_unambiguous(headers: &HeaderMap) -> Result<(), Error> {
    for name in [PROTOCOL_VERSION, SESSION_ID, LAST_EVENT_ID] {
        let mut values = headers.get_all(&name).iter();
        if values
            .next()
            .is_some_and(|first| values.any(|other| other != first))
        {
            let what = format!(
                "{} is present twice, with different values",
                capitalized_name(name.as_str())
            );
            return Err(Error::new(INVALID_REQUEST, what));
        }
    }
    Ok(())
}

/// Returns the last event that the client has received from the stream that it resumes; `None` if
/// it opens a new stream. A value that is not an event id of this server came from another server.
/// Clients resend it with every attempt, so a rejection would lock them out forever.
pub(super) fn last_event_id(headers: &HeaderMap) -> Option<EventId> {
    headers.get(LAST_EVENT_ID)?.to_str().ok()?.parse().ok()
}

/// The form of the id of an error that belongs to no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorId {
    /// The id is `null`, as in JSON-RPC.
    Null,
    /// The id is absent.
    Absent,
}

impl ErrorId {
    /// Returns the form for the client of a request with these headers. Newer revisions do not
    /// allow `null`.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let version = headers
            .get(PROTOCOL_VERSION)
            .and_then(|value| value.to_str().ok());
        let revision = version.and_then(Revision::parse);
        if revision.is_some_and(|revision| revision.features().errors_without_id) {
            Self::Absent
        } else {
            Self::Null
        }
    }
}

/// Returns whether the body is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    value
        .parse::<Mime>()
        .is_ok_and(|kind| kind.essence_str() == mime::APPLICATION_JSON.essence_str())
}

/// Returns the trace context of the request; `None` if it has none.
pub(super) fn trace_context(headers: &HeaderMap) -> Option<TraceContext> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    TraceContext::parse(
        text("traceparent")?,
        text("tracestate").map(str::to_owned),
        text("baggage").map(str::to_owned),
    )
}

#[derive(Default, Deserialize)]
struct NamedTarget<'a> {
    name: Option<String>,
    uri: Option<String>,
    #[serde(rename = "taskId")]
    task_id: Option<String>,
    /// Parsed only if a header mirrors an argument.
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(rename = "_meta")]
    meta: Option<VersionMeta>,
}

#[derive(Deserialize)]
struct VersionMeta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<Value>,
}

/// Checks that the headers of a stateless request match its body.
///
/// # Errors
///
/// The first header that does not match. The text quotes both values.
pub(super) fn check_against_body(
    headers: &HeaderMap,
    request: &Request<'_>,
    lists: &dyn ListSource,
    caller: &Caller,
) -> Result<(), Error> {
    let named: NamedTarget<'_> = request
        .params
        .and_then(|params| serde_json::from_str(params.get()).ok())
        .unwrap_or_default();
    let version = named
        .meta
        .as_ref()
        .and_then(|meta| meta.version.as_ref())
        .and_then(Value::as_str);
    check_header(headers, &PROTOCOL_VERSION, version, false)?;
    check_header(headers, &MCP_METHOD, Some(&request.method), false)?;
    let method = McpMethod::parse(&request.method);
    match method {
        Some(McpMethod::CallTool | McpMethod::GetPrompt) => {
            check_header(headers, &MCP_NAME, named.name.as_deref(), true)?;
        }
        // Some clients do not send the header.
        Some(McpMethod::GetTask | McpMethod::UpdateTask | McpMethod::CancelTask)
            if headers.contains_key(MCP_NAME) =>
        {
            check_header(headers, &MCP_NAME, named.task_id.as_deref(), true)?;
        }
        Some(McpMethod::ReadResource) => {
            check_header(headers, &MCP_NAME, named.uri.as_deref(), true)?;
        }
        _ => {}
    }
    if method != Some(McpMethod::CallTool) {
        return Ok(());
    }
    let tool = named
        .name
        .filter(|name| caller.may_use(name))
        .and_then(|name| lists.tool(&name));
    let Some(tool) = tool else { return Ok(()) };
    if tool.headers.is_empty() {
        return Ok(());
    }
    let arguments = header_arguments::find_mirrored(named.arguments, &tool.headers);
    tool.headers
        .iter()
        .zip(arguments)
        .try_for_each(|(header, argument)| check_parameter(headers, header, argument))
}

/// Requires exactly one header `name`, with the value in the body. A `None` in the body is reported
/// elsewhere.
fn check_header(
    headers: &HeaderMap,
    name: &HeaderName,
    body: Option<&str>,
    encoded: bool,
) -> Result<(), Error> {
    let value = single_value(headers, name.as_str())?
        .ok_or_else(|| mismatch(&format!("{} is missing", capitalized_name(name.as_str()))))?;
    let value = if encoded {
        decode_value(name.as_str(), value)?
    } else {
        value.to_owned()
    };
    match body {
        Some(body) if body != value => Err(value_mismatch(name.as_str(), &value, body)),
        _ => Ok(()),
    }
}

/// Checks one `Mcp-Param-…` against the argument that it mirrors.
fn check_parameter(
    headers: &HeaderMap,
    header: &ParamHeader,
    argument: Option<&RawValue>,
) -> Result<(), Error> {
    let name = format!("{PARAM_PREFIX}{}", header.name.to_ascii_lowercase());
    let argument = argument.map(RawValue::get).filter(|text| *text != "null");
    let value = single_value(headers, &name)?;
    let (value, argument) = match (value, argument) {
        (None, None) => return Ok(()),
        (Some(_), None) => {
            return Err(mismatch(&format!(
                "{} is present, but its argument is missing from the body",
                capitalized_name(&name)
            )));
        }
        (None, Some(_)) => {
            return Err(mismatch(&format!(
                "{} is missing, but its argument is present in the body",
                capitalized_name(&name)
            )));
        }
        (Some(value), Some(argument)) => (decode_value(&name, value)?, argument),
    };
    // Compares the notation: as a floating-point number, a long integer would be rounded.
    let same = match header.kind {
        _ if argument.starts_with('"') => {
            serde_json::from_str::<String>(argument).is_ok_and(|text| text == value)
        }
        _ if matches!(argument, "true" | "false") => value == argument,
        // 42.0 and 42 are equal, in a header and in JSON.
        HeaderKind::Integer if !argument.starts_with(['{', '[']) => {
            match DecimalNumber::parse(argument) {
                Some(number) => DecimalNumber::parse(&value) == Some(number),
                None => value == argument,
            }
        }
        // Arguments that do not match the schema are reported as such.
        _ => return Ok(()),
    };
    let text = || serde_json::from_str::<String>(argument).unwrap_or_else(|_| argument.to_owned());
    if same {
        Ok(())
    } else {
        Err(value_mismatch(&name, &value, &text()))
    }
}

/// Returns the value of a header that may occur at most once.
fn single_value<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Error> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => match value.to_str() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(mismatch(&format!(
                "{} contains characters that are not allowed in a header",
                capitalized_name(name)
            ))),
        },
        (Some(_), Some(_)) => Err(mismatch(&format!(
            "{} is present more than once",
            capitalized_name(name)
        ))),
    }
}

/// Decodes a value that may be encoded as `=?base64?…?=`.
fn decode_value(name: &str, value: &str) -> Result<String, Error> {
    let Some(inner) = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="))
    else {
        return Ok(value.to_owned());
    };
    let text = BASE64
        .decode(inner)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    text.ok_or_else(|| {
        mismatch(&format!(
            "{} is not base64-encoded UTF-8",
            capitalized_name(name)
        ))
    })
}

fn value_mismatch(name: &str, header: &str, body: &str) -> Error {
    let quoted = |text: &str| match text.get(..text.floor_char_boundary(MAX_QUOTED_BYTES)) {
        Some(beginning) if text.len() > MAX_QUOTED_BYTES => format!("{beginning:?}…"),
        _ => format!("{text:?}"),
    };
    let [header, body] = [header, body].map(quoted);
    mismatch(&format!(
        "{} is {header}, but the body has {body}",
        capitalized_name(name)
    ))
}

pub(super) fn mismatch(what: &str) -> Error {
    Error::new(HEADER_MISMATCH, format!("Header mismatch: {what}"))
}

/// Returns the name of a header in its usual capitalization.
fn capitalized_name(name: &str) -> String {
    let words: Vec<String> = name
        .split('-')
        .map(|word| {
            let mut letters = word.chars();
            letters
                .next()
                .map(|first| first.to_ascii_uppercase().to_string() + letters.as_str())
                .unwrap_or_default()
        })
        .collect();
    words.join("-")
}

#[cfg(test)]
mod tests;
