//! Messages of the server: whether they are JSON-RPC, and what tests ask of them.

use serde_json::Value;

/// A line of the server's as a message, or a batch of them. Anything else fails the test.
pub(crate) fn read(line: &str) -> Value {
    let message: Value =
        serde_json::from_str(line).unwrap_or_else(|error| panic!("a line is not JSON ({error}): {line}"));
    let all = message.as_array().map_or(std::slice::from_ref(&message), Vec::as_slice);
    for message in all {
        let is_answer = message.get("result").is_some() != message.get("error").is_some();
        let is_notification = message["method"].is_string() && message.get("id").is_none();
        assert!(message["jsonrpc"] == "2.0" && is_answer != is_notification, "not JSON-RPC: {line}");
    }
    message
}

/// The text blocks of a result.
pub(crate) fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().unwrap();
    blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// The kind and the text of a result that must be an error.
pub(crate) fn failure(result: &Value) -> (String, String) {
    assert_eq!(result["isError"], true, "{result}");
    let kind = result["_meta"]["dev.toolbay/error"].as_str().unwrap_or("none");
    (kind.to_owned(), text(result))
}
