//! Members that definitions and results share.

use serde_json::{Map, Value, json};

/// Returns the annotations of a resource or a content block. Absent ones are left out.
pub(super) fn annotations(
    audience: &[&str],
    priority: Option<f64>,
    last_modified: Option<&str>,
) -> Map<String, Value> {
    let mut annotations = Map::new();
    insert_some(
        &mut annotations,
        "audience",
        Some(json!(audience)).filter(|_| !audience.is_empty()),
    );
    insert_some(&mut annotations, "priority", priority);
    insert_some(&mut annotations, "lastModified", last_modified);
    annotations
}

/// Inserts a member if it has a value.
pub(super) fn insert_some(
    map: &mut Map<String, Value>,
    key: &str,
    value: Option<impl Into<Value>>,
) {
    if let Some(value) = value {
        map.insert(key.into(), value.into());
    }
}
