//! Parser of JSON-RPC messages from a guest.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use toolbay_model::{LogLevel, ProgressUpdate, QuestionKind};

/// Error code: a required client capability is missing (MCP 2026-07-28).
const MISSING_CAPABILITY: i64 = -32021;

/// Error code: the parameters are invalid (JSON-RPC).
const INVALID_PARAMS: i64 = -32602;

/// Error code: the method does not exist (JSON-RPC).
const METHOD_NOT_FOUND: i64 = -32601;

/// Error code: the resource does not exist (MCP, up to 2025-11-25).
const RESOURCE_NOT_FOUND: i64 = -32002;

/// Message from a guest.
#[derive(Clone, Debug, PartialEq)]
pub enum GuestMessage {
    /// Response to the request with this id; `None` if the id is missing or not a number.
    Response(Option<u64>, RequestOutcome),
    /// Notification.
    Notification(GuestNotification),
    /// Request from the guest to the host.
    Request {
        /// Id of the request, as JSON text.
        id: String,
        /// Method of the request.
        method: String,
    },
}

/// Outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// Result, a JSON value as text.
    Result(String),
    /// Error.
    Error(ProtocolError),
}

/// Error response of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolError {
    /// Error code.
    pub code: i64,
    /// Error message.
    pub message: String,
    /// Kinds of questions that the client must support, if the error is a missing capability.
    pub missing_capabilities: Vec<QuestionKind>,
}

/// Notification that a guest sends during a request.
#[derive(Clone, Debug, PartialEq)]
pub enum GuestNotification {
    /// Progress of the request with this token.
    Progress(Option<u64>, ProgressUpdate),
    /// Log message.
    Log(LogLevel, String),
    /// Change of the content of the resource with this URI.
    Updated(String),
    /// Any other notification, which is ignored.
    Other,
}

impl ProtocolError {
    /// Returns whether the guest rejected the parameters.
    pub fn is_invalid_params(&self) -> bool {
        self.code == INVALID_PARAMS
    }

    /// Returns whether the guest has no such method.
    pub fn is_method_not_found(&self) -> bool {
        self.code == METHOD_NOT_FOUND
    }

    /// Returns whether the guest has no such resource. Only valid for errors of a resource request.
    pub fn is_resource_not_found(&self) -> bool {
        [RESOURCE_NOT_FOUND, INVALID_PARAMS].contains(&self.code)
    }
}

#[derive(Deserialize)]
struct MessageEnvelope<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ErrorFields {
    code: i64,
    #[serde(default)]
    message: String,
    #[serde(default)]
    data: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProgressParams {
    progress_token: Option<Value>,
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
}

#[derive(Deserialize)]
struct LogParams {
    #[serde(default)]
    level: LogLevel,
    #[serde(default)]
    data: Value,
}

/// Parses a message.
///
/// # Errors
///
/// Returns the reason that the message is invalid, addressed to the guest's author.
pub fn parse_message(text: &str) -> Result<GuestMessage, String> {
    let MessageEnvelope {
        jsonrpc,
        id,
        method,
        params,
        result,
        error,
    } = serde_json::from_str(text)
        .map_err(|error| format!("it is not a JSON-RPC message: {error}"))?;
    if jsonrpc.as_deref() != Some("2.0") {
        return Err("it is not a JSON-RPC message: `jsonrpc` is not \"2.0\"".to_owned());
    }
    if let Some(method) = method {
        return Ok(match id {
            Some(id) => GuestMessage::Request {
                id: id.get().to_owned(),
                method: method.into_owned(),
            },
            None => GuestMessage::Notification(parse_notification(&method, params)),
        });
    }
    let id = id.and_then(|id| serde_json::from_str(id.get()).ok());
    match (result, error) {
        (Some(result), None) => Ok(GuestMessage::Response(id, RequestOutcome::Result(result.get().to_owned()))),
        (None, Some(error)) => {
            let ErrorFields { code, message, data } = serde_json::from_str(error.get())
                .map_err(|error| format!("it is not a JSON-RPC message: its `error`: {error}"))?;
            let lacking = if code == MISSING_CAPABILITY { missing_capabilities(&data) } else { Vec::new() };
            Ok(GuestMessage::Response(
                id,
                RequestOutcome::Error(ProtocolError { code, message, missing_capabilities: lacking }),
            ))
        }
        _ => Err("it is not a JSON-RPC message: it has neither `method`, nor one of `result` and `error`".to_owned()),
    }
}

fn parse_notification(method: &str, params: Option<&RawValue>) -> GuestNotification {
    let params = params.map_or("null", RawValue::get);
    let notification = match method {
        "notifications/progress" => {
            serde_json::from_str(params)
                .ok()
                .map(|params: ProgressParams| {
                    let ProgressParams {
                        progress_token,
                        progress,
                        total,
                        message,
                    } = params;
                    GuestNotification::Progress(
                        progress_token.and_then(|token| token.as_u64()),
                        ProgressUpdate {
                            progress,
                            total,
                            message,
                        },
                    )
                })
        }
        "notifications/message" => {
            serde_json::from_str(params)
                .ok()
                .map(|LogParams { level, data }| {
                    GuestNotification::Log(
                        level,
                        if let Value::String(text) = data {
                            text
                        } else {
                            data.to_string()
                        },
                    )
                })
        }
        "notifications/resources/updated" => {
            serde_json::from_str(params).ok().and_then(|params: Value| {
                params
                    .get("uri")?
                    .as_str()
                    .map(|uri| GuestNotification::Updated(uri.to_owned()))
            })
        }
        _ => None,
    };
    notification.unwrap_or(GuestNotification::Other)
}

/// Returns the kinds of questions whose capabilities are missing.
fn missing_capabilities(data: &Value) -> Vec<QuestionKind> {
    let required = data.get("requiredCapabilities");
    let needs = |kind: QuestionKind| {
        QuestionKind::capabilities(&[kind])
            .iter()
            .all(|(name, parts)| {
                let has =
                    |part: &String| required.and_then(|all| all.get(name)?.get(part)).is_some();
                required.and_then(|all| all.get(name)).is_some()
                    && parts.as_object().is_some_and(|parts| parts.keys().all(has))
            })
    };
    let mut kinds: Vec<QuestionKind> = QuestionKind::ALL
        .into_iter()
        .filter(|kind| needs(*kind))
        .collect();
    let elicits = required.is_some_and(|all| all.get("elicitation").is_some());
    if elicits
        && !kinds
            .iter()
            .any(|kind| matches!(kind, QuestionKind::Form | QuestionKind::Url))
    {
        // An elicitation without a mode is a form.
        kinds.insert(0, QuestionKind::Form);
    }
    kinds
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_response_has_a_result_or_an_error() {
        let message = parse_message(r#"{"jsonrpc":"2.0","id":3,"result":{"a": 1}}"#).unwrap();
        assert_eq!(
            message,
            GuestMessage::Response(Some(3), RequestOutcome::Result(r#"{"a": 1}"#.into()))
        );
        let message =
            parse_message(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"no"}}"#)
                .unwrap();
        let GuestMessage::Response(None, RequestOutcome::Error(problem)) = message else {
            panic!("{message:?}")
        };
        assert!(
            problem.is_invalid_params()
                && problem.is_resource_not_found()
                && !problem.is_method_not_found()
        );
        let text = parse_message(r#"{"jsonrpc":"2.0","id":"3","result":{}}"#).unwrap();
        assert_eq!(
            text,
            GuestMessage::Response(None, RequestOutcome::Result("{}".into()))
        );
    }

    #[test]
    fn invalid_messages_are_rejected_with_a_reason() {
        let cases = [
            "",
            "[]",
            "hello",
            "{}",
            r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":"x"}"#,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}{",
        ];
        for text in cases {
            let why = parse_message(text).unwrap_err();
            assert!(
                why.starts_with("it is not a JSON-RPC message: "),
                "{text}: {why}"
            );
        }
    }

    #[test]
    fn notifications_are_parsed_by_their_method() {
        let notice = |method: &str, params: &Value| match parse_message(
            &json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string(),
        )
        .unwrap()
        {
            GuestMessage::Notification(notice) => notice,
            other => panic!("{other:?}"),
        };
        let progress = json!({"progressToken": 1, "progress": 0.5, "total": 2, "message": "half"});
        let expected = ProgressUpdate {
            progress: 0.5,
            total: Some(2.0),
            message: Some("half".into()),
        };
        assert_eq!(
            notice("notifications/progress", &progress),
            GuestNotification::Progress(Some(1), expected)
        );
        let log = json!({"level": "warning", "logger": "x", "data": {"a": 1}});
        assert_eq!(
            notice("notifications/message", &log),
            GuestNotification::Log(LogLevel::Warning, r#"{"a":1}"#.into())
        );
        let text = json!({"level": "info", "data": "hello"});
        assert_eq!(
            notice("notifications/message", &text),
            GuestNotification::Log(LogLevel::Info, "hello".into())
        );
        assert_eq!(
            notice("notifications/resources/updated", &json!({"uri": "a:b"})),
            GuestNotification::Updated("a:b".into())
        );
        assert_eq!(
            notice("notifications/progress", &json!({"progress": "x"})),
            GuestNotification::Other
        );
        assert_eq!(
            notice("notifications/tools/list_changed", &json!({})),
            GuestNotification::Other
        );
        let request = parse_message(r#"{"jsonrpc":"2.0","id":"x","method":"roots/list"}"#).unwrap();
        assert_eq!(
            request,
            GuestMessage::Request {
                id: "\"x\"".into(),
                method: "roots/list".into()
            }
        );
    }

    #[test]
    fn missing_capabilities_are_parsed_from_the_error() {
        let kinds =
            |required: Value| missing_capabilities(&json!({"requiredCapabilities": required}));
        assert_eq!(kinds(json!({"sampling": {}})), [QuestionKind::Sampling]);
        assert_eq!(kinds(json!({"elicitation": {}})), [QuestionKind::Form]);
        assert_eq!(
            kinds(json!({"elicitation": {"url": {}}, "roots": {}})),
            [QuestionKind::Url, QuestionKind::Roots]
        );
        assert_eq!(kinds(json!({"other": {}})), []);
    }
}
