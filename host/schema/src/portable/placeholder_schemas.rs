//! Schemas in place of others: for any value, for a schema that exceeds a limit, and for a
//! recursive reference.

use serde_json::{Value, json};

/// The types of an unrestricted value.
const ALL_TYPES: [&str; 6] = ["string", "number", "boolean", "object", "array", "null"];

/// Returns a schema for an unrestricted value.
pub(super) fn any_value_schema() -> Value {
    let schema_of_type = |name: &&str| {
        if *name == "array" {
            json!({"type": name, "items": {"type": "string"}})
        } else {
            json!({"type": name})
        }
    };
    json!({"anyOf": ALL_TYPES.iter().map(schema_of_type).collect::<Vec<_>>()})
}

/// Returns a schema in place of one that exceeds a limit.
pub(super) fn truncated_schema() -> Value {
    json!({"type": "object", "description": "Nested further than this schema shows."})
}

/// Returns a schema in place of a reference to a definition that contains it.
pub(super) fn recursive_schema(target: &str, definition: &Value) -> Value {
    let name = target.rsplit('/').next().unwrap_or_default();
    let kind = definition
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or("object");
    let mut placeholder = json!({"type": kind, "description": format!("The same again ({name}).")});
    if let (Some(members), "array") = (placeholder.as_object_mut(), kind) {
        members.insert("items".into(), any_value_schema());
    }
    placeholder
}
