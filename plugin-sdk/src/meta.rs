//! The `_meta` of definitions: a JSON object as text.

use serde_json::{Map, Value};

/// Adds a member.
pub(crate) fn add(meta: &mut Option<String>, key: String, value: Value) {
    let mut members: Map<String, Value> =
        meta.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    members.insert(key, value);
    *meta = Some(Value::Object(members).to_string());
}
