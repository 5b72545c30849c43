//! Entry of a server: its connection keys, and the form in which it is displayed.

use serde_json::{Map, Value, json};

/// Keys that define the connection to a server, in any format. All other keys of an entry belong to
/// the user.
pub(crate) const CONNECTION_KEYS: [&str; 10] = [
    "type",
    "command",
    "args",
    "url",
    "httpUrl",
    "serverUrl",
    "headers",
    "bearer_token_env_var",
    "http_headers",
    "env_http_headers",
];

/// Returns whether an entry has this `connection`. Ignores the other keys.
pub fn has_same_connection(entry: &Map<String, Value>, connection: &Map<String, Value>) -> bool {
    CONNECTION_KEYS
        .iter()
        .all(|key| entry.get(*key) == connection.get(*key))
}

/// Returns `entry` with this `connection`. Keeps the other keys.
pub(crate) fn merge_connection(
    entry: &Map<String, Value>,
    connection: &Map<String, Value>,
) -> Map<String, Value> {
    let mut merged = entry.clone();
    merged
        .retain(|key, _| connection.contains_key(key) || !CONNECTION_KEYS.contains(&key.as_str()));
    merged.extend(
        connection
            .iter()
            .map(|(key, value)| (key.clone(), value.clone())),
    );
    merged
}

/// Returns the connection of an entry for display: without the values of headers, which may be
/// secret.
pub fn redacted_connection(entry: &Map<String, Value>) -> Map<String, Value> {
    let member = |key: &&str| Some(((*key).to_owned(), entry.get(*key)?.clone()));
    let mut redacted: Map<String, Value> = CONNECTION_KEYS.iter().filter_map(member).collect();
    for key in ["headers", "http_headers"] {
        if let Some(Value::Object(headers)) = redacted.get_mut(key) {
            for value in headers.values_mut() {
                // A reference to a variable does not reveal its value.
                if !value.as_str().is_some_and(|text| text.contains("${")) {
                    *value = json!("(not shown)");
                }
            }
        }
    }
    redacted
}

/// Returns whether an entry appears to start this program.
pub fn is_toolbay(entry: &Map<String, Value>) -> bool {
    let is_program = |text: &str| {
        text.rsplit(['/', '\\'])
            .next()
            .is_some_and(|name| name == "toolbay")
    };
    let command = entry.get("command").and_then(Value::as_str);
    let arguments = entry
        .get("args")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    command.into_iter().chain(arguments).any(is_program)
}
