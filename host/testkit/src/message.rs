//! Builds requests, validates that lines are JSON-RPC, and parses responses.

use std::fmt;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// A message from the server, with the time of its arrival.
#[derive(Clone, Debug)]
pub struct TimedMessage<T> {
    /// The message.
    pub message: T,
    /// The time at which the line was read.
    pub received_at: Instant,
}

/// The result of a request, or the JSON-RPC error.
pub type RequestResult = Result<Value, RpcError>;

/// A JSON-RPC error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcError {
    /// The error code.
    pub code: i64,
    /// The error message.
    pub message: String,
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code, self.message)
    }
}

impl std::error::Error for RpcError {}

/// Builds a request.
pub fn request(id: impl Into<Value>, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

/// Builds a notification.
pub fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// Builds the parameters of `initialize`, for a client without capabilities.
pub fn initialize_params(revision: &str) -> Value {
    let client = json!({"name": "toolbay-testkit", "version": env!("CARGO_PKG_VERSION")});
    json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client})
}

/// Builds a request of a stateless revision. Adds the required members to `_meta` unless `params`
/// already contains them.
pub fn stateless_request(
    revision: &str,
    id: impl Into<Value>,
    method: &str,
    mut params: Value,
) -> Value {
    let stated = [
        ("protocolVersion", json!(revision)),
        ("clientCapabilities", json!({})),
    ];
    if let Some(params) = params.as_object_mut() {
        let meta = params.entry("_meta").or_insert(Value::Null);
        if meta.is_null() {
            *meta = json!({});
        }
        if let Some(meta) = meta.as_object_mut() {
            for (key, value) in stated {
                meta.entry(format!("io.modelcontextprotocol/{key}"))
                    .or_insert(value);
            }
        }
    }
    request(id, method, &params)
}

/// Builds the parameters of a tool call. `progress` is the progress token, if any.
pub fn call_params(tool: &str, arguments: &Value, progress: Option<u64>) -> Value {
    match progress {
        Some(token) => {
            json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": token}})
        }
        None => json!({"name": tool, "arguments": arguments}),
    }
}

/// Parses a line from the server, which is a message or a batch. An error contains the line and the
/// problem.
pub fn parse_line(line: &[u8]) -> Result<Value> {
    let shown = || String::from_utf8_lossy(line);
    let message: Value = serde_json::from_slice(line)
        .map_err(|error| anyhow::anyhow!("a line is not JSON ({error}): {}", shown()))?;
    let all = message
        .as_array()
        .map_or(std::slice::from_ref(&message), Vec::as_slice);
    for message in all {
        let has = |key: &str| message.get(key).is_some();
        let is_answer = has("result") != has("error");
        // The message is a notification, or a request to the client.
        let is_asked = message.get("method").is_some_and(Value::is_string);
        let versioned = message
            .get("jsonrpc")
            .is_some_and(|version| version == "2.0");
        ensure!(
            versioned && is_answer != is_asked,
            "not JSON-RPC: {}",
            shown()
        );
    }
    Ok(message)
}

/// Parses a response. Fails if the message is not a response.
pub fn parse_response(mut message: Value) -> Result<RequestResult> {
    if let Some(result) = message.get_mut("result") {
        return Ok(Ok(result.take()));
    }
    let error = message
        .get("error")
        .with_context(|| format!("neither a result nor an error: {message}"))?;
    let code = error
        .get("code")
        .and_then(Value::as_i64)
        .unwrap_or_default();
    let message = error
        .get("message")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    Ok(Err(RpcError { code, message }))
}

/// Returns all tools, from all pages. `list` sends `tools/list` with the given parameters and
/// returns the result.
pub fn list_all_tools(mut list: impl FnMut(Value) -> Result<Value>) -> Result<Vec<Value>> {
    let mut tools = Vec::new();
    let mut params = json!({});
    loop {
        let mut page = list(params)?;
        let listed = page
            .get_mut("tools")
            .and_then(Value::as_array_mut)
            .context("tools/list has no tools")?;
        tools.append(listed);
        match page.get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return Ok(tools),
        }
    }
}

/// Returns the names of tools.
pub fn tool_names(tools: &[Value]) -> Vec<String> {
    tools
        .iter()
        .filter_map(|tool| Some(tool.get("name")?.as_str()?.to_owned()))
        .collect()
}

/// Returns the text blocks of a result, joined with line feeds.
pub fn result_text(result: &Value) -> String {
    let blocks = result
        .get("content")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let texts = blocks
        .iter()
        .filter_map(|block| block.get("text")?.as_str());
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns whether a result reports that the call failed.
pub fn is_error(result: &Value) -> bool {
    result.get("isError").is_some_and(|is| is == true)
}

/// Returns the error kind of a failed result, such as `fuel`, or `None` if the plugin reported the
/// failure.
pub fn error_kind(result: &Value) -> Option<&str> {
    result.get("_meta")?.get("dev.toolbay/error")?.as_str()
}

/// Returns the error kind (`none` if there is none) and the text of a failed result.
///
/// # Panics
///
/// Panics if the result does not report a failure.
pub fn error_kind_and_text(result: &Value) -> (String, String) {
    assert!(is_error(result), "the call did not fail: {result}");
    (
        error_kind(result).unwrap_or("none").to_owned(),
        result_text(result),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_must_be_messages_or_batches() {
        for good in [
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#,
            r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}]"#,
        ] {
            parse_line(good.as_bytes()).unwrap();
        }
        for bad in [
            "hello",
            r#"{"id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"roots/list","result":{}}"#,
            r#"[{"jsonrpc":"2.0","id":1,"result":{}},7]"#,
        ] {
            let error = parse_line(bad.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(bad), "{error}");
        }
        assert!(
            parse_line(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}").is_err(),
            "not UTF-8"
        );
    }

    #[test]
    fn a_stateless_request_adds_what_its_parameters_do_not_state() {
        let key = "io.modelcontextprotocol/protocolVersion";
        let message = stateless_request("2026-07-28", 1, "ping", json!({}));
        assert_eq!(message["params"]["_meta"][key], "2026-07-28");
        let message = stateless_request(
            "2026-07-28",
            1,
            "ping",
            json!({"_meta": {key: "1999-01-01"}, "a": 1}),
        );
        assert_eq!(
            (&message["params"]["_meta"][key], &message["params"]["a"]),
            (&json!("1999-01-01"), &json!(1))
        );
    }

    #[test]
    fn responses_are_results_or_errors() {
        assert_eq!(
            parse_response(json!({"id": 1, "result": {"a": 1}})).unwrap(),
            Ok(json!({"a": 1}))
        );
        let refusal = parse_response(json!({"id": 1, "error": {"code": -32602, "message": "no"}}))
            .unwrap()
            .unwrap_err();
        assert_eq!(refusal.to_string(), "-32602 no");
        assert!(parse_response(json!({"id": 1})).is_err());
    }

    #[test]
    fn a_failed_result_has_a_kind_and_a_text() {
        let content = json!([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]);
        let result =
            json!({"isError": true, "content": content, "_meta": {"dev.toolbay/error": "fuel"}});
        assert_eq!(
            error_kind_and_text(&result),
            ("fuel".to_owned(), "a\nb".to_owned())
        );
        assert_eq!(error_kind_and_text(&json!({"isError": true})).0, "none");
        assert!(!is_error(&json!({"content": []})));
    }
}
