//! The keywords whose values contain other schemas.

use serde_json::{Map, Value};

/// Keywords whose values are maps from names to schemas.
const SCHEMA_MAP_KEYWORDS: [&str; 6] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
];

/// Keywords whose values are lists of schemas. `items` can be a list up to draft 2019-09.
const SCHEMA_LIST_KEYWORDS: [&str; 5] = ["allOf", "anyOf", "oneOf", "prefixItems", "items"];

/// Keywords whose values are schemas.
const SCHEMA_KEYWORDS: [&str; 12] = [
    "items",
    "contains",
    "additionalItems",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
];

/// Keywords whose values every validator also accepts as a boolean.
const BOOLEAN_KEYWORDS: [&str; 4] = [
    "additionalItems",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Returns whether the value of this keyword is a map from names to schemas.
pub(super) fn is_schema_map(keyword: &str) -> bool {
    SCHEMA_MAP_KEYWORDS.contains(&keyword)
}

/// Returns whether every validator accepts a boolean as the value of this keyword.
pub(super) fn can_be_boolean(keyword: &str) -> bool {
    BOOLEAN_KEYWORDS.contains(&keyword)
}

/// Returns the schemas in the value of a keyword: the value itself, or its elements. Returns none
/// if the keyword has no schemas.
pub fn subschemas<'a>(keyword: &str, value: &'a Value) -> Vec<&'a Value> {
    match value {
        Value::Object(schemas) if SCHEMA_MAP_KEYWORDS.contains(&keyword) => {
            schemas.values().collect()
        }
        Value::Array(schemas) if SCHEMA_LIST_KEYWORDS.contains(&keyword) => {
            schemas.iter().collect()
        }
        Value::Object(_) | Value::Bool(_) if SCHEMA_KEYWORDS.contains(&keyword) => vec![value],
        _ => Vec::new(),
    }
}

/// Calls `f` with every direct subschema and its keyword.
pub(super) fn for_each_subschema<'a>(
    members: &'a Map<String, Value>,
    f: &mut dyn FnMut(&str, &'a Value),
) {
    for (key, value) in members {
        for schema in subschemas(key, value) {
            f(key, schema);
        }
    }
}

/// Like [`for_each_subschema`], with mutable subschemas.
pub(super) fn for_each_subschema_mut(
    members: &mut Map<String, Value>,
    f: &mut dyn FnMut(&str, &mut Value),
) {
    for (key, value) in members.iter_mut() {
        match value {
            Value::Object(schemas) if SCHEMA_MAP_KEYWORDS.contains(&key.as_str()) => {
                schemas.values_mut().for_each(|schema| f(key, schema));
            }
            Value::Array(schemas) if SCHEMA_LIST_KEYWORDS.contains(&key.as_str()) => {
                for schema in schemas.iter_mut() {
                    f(key, schema);
                }
            }
            Value::Object(_) | Value::Bool(_) if SCHEMA_KEYWORDS.contains(&key.as_str()) => {
                f(key, value);
            }
            _ => {}
        }
    }
}

/// Returns the number of values within a value, including itself.
pub(super) fn count_values(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count_values).sum(),
        Value::Object(members) => members.values().map(count_values).sum(),
        _ => 0,
    }
}
