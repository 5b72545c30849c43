//! The entry of a server: which of its keys say how it is reached, and what may be shown of it.

use serde_json::{Map, Value, json};

/// The keys that say how a server is reached, in any dialect. Whatever else is in an entry is the user's.
pub(crate) const REACH: [&str; 10] = [
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

/// Whether an entry reaches the server as `wanted` does, whatever else is in it.
pub fn same(entry: &Map<String, Value>, wanted: &Map<String, Value>) -> bool {
    REACH.iter().all(|key| entry.get(*key) == wanted.get(*key))
}

/// What an entry becomes if it reaches the server as `wanted` does, and keeps whatever else is in it.
pub(crate) fn merged(entry: &Map<String, Value>, wanted: &Map<String, Value>) -> Map<String, Value> {
    let mut merged = entry.clone();
    merged.retain(|key, _| wanted.contains_key(key) || !REACH.contains(&key.as_str()));
    merged.extend(wanted.iter().map(|(key, value)| (key.clone(), value.clone())));
    merged
}

/// How an entry reaches the server, for people: without the values of headers, which may be secret.
pub fn shown(entry: &Map<String, Value>) -> Map<String, Value> {
    let part = |key: &&str| Some(((*key).to_owned(), entry.get(*key)?.clone()));
    let mut shown: Map<String, Value> = REACH.iter().filter_map(part).collect();
    for key in ["headers", "http_headers"] {
        if let Some(Value::Object(headers)) = shown.get_mut(key) {
            for value in headers.values_mut() {
                // A reference to a variable is none of its value.
                if !value.as_str().is_some_and(|text| text.contains("${")) {
                    *value = json!("(not shown)");
                }
            }
        }
    }
    shown
}

/// Whether an entry starts this program, as far as that can be told.
pub fn is_toolbay(entry: &Map<String, Value>) -> bool {
    let is_program = |text: &str| text.rsplit(['/', '\\']).next().is_some_and(|name| name == "toolbay");
    let command = entry.get("command").and_then(Value::as_str);
    let arguments = entry.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    command.into_iter().chain(arguments).any(is_program)
}
