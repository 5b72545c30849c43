//! The `_meta` of definitions: a JSON object as text.

use serde_json::{Map, Value};

/// Adds a member to the nested object that is the member `outer`.
pub(crate) fn insert_nested_member(
    meta: &mut Option<String>,
    outer: &str,
    key: &str,
    value: Value,
) {
    let members: Option<Map<String, Value>> = meta
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok());
    let mut inner = match members.and_then(|mut members| members.remove(outer)) {
        Some(Value::Object(inner)) => inner,
        _ => Map::new(),
    };
    inner.insert(key.to_owned(), value);
    insert_member(meta, outer.to_owned(), inner.into());
}

/// Adds a member.
pub(crate) fn insert_member(meta: &mut Option<String>, key: String, value: Value) {
    let mut members: Map<String, Value> = meta
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    members.insert(key, value);
    *meta = Some(Value::Object(members).to_string());
}
