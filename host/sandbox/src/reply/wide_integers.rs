//! Detects integers in results that some clients cannot read exactly: JSON numbers beyond 2^53,
//! which JavaScript and many other languages round.

use serde_json::{Map, Value};
use toolbay_model::ToolDefinition;
use toolbay_model::text::{clean_line, format_thousands};

/// The largest integer up to which every client represents all integers exactly.
const EXACT_INTEGER_BOUND: i64 = 1 << 53;

/// Maximum length of a schema that is checked, and of all schemas together, in bytes.
const MAX_SCHEMA_BYTES: usize = 64 << 10;
const MAX_TOTAL_SCHEMA_BYTES: usize = 1 << 20;

/// Maximum length of a quoted name, in bytes.
const MAX_TOOL_NAME_BYTES: usize = 100;

/// Keywords whose values are schemas, lists of schemas, and maps of schemas.
const SCHEMA_KEYWORDS: [&str; 3] = ["items", "additionalProperties", "not"];
const SCHEMA_LIST_KEYWORDS: [&str; 4] = ["prefixItems", "anyOf", "oneOf", "allOf"];
const SCHEMA_MAP_KEYWORDS: [&str; 3] = ["properties", "patternProperties", "$defs"];

/// Returns a warning about tools whose structured content can have integers beyond 2^53; `None` if
/// there are no such tools.
pub(crate) fn wide_integer_warning(tools: &[ToolDefinition]) -> Option<String> {
    let mut remaining_bytes = MAX_TOTAL_SCHEMA_BYTES;
    let mut affected_tools = tools.iter().filter(|tool| {
        let schema = tool
            .output_schema
            .as_deref()
            .filter(|schema| schema.len() <= MAX_SCHEMA_BYTES.min(remaining_bytes));
        remaining_bytes -= schema.map_or(0, str::len);
        schema
            .and_then(|schema| serde_json::from_str(schema).ok())
            .is_some_and(|schema: Value| allows_wide_integer(&schema))
    });
    let first = clean_line(&affected_tools.next()?.name, MAX_TOOL_NAME_BYTES);
    let more = match affected_tools.count() {
        0 => String::new(),
        more => format!(" and {} more", format_thousands(more as u64)),
    };
    Some(format!(
        "results of {first}{more} can have integers beyond 2^53, which many clients round in structured content (the text is \
         exact): bound them in the schema, or make identifiers strings"
    ))
}

/// Returns whether a value that matches the schema can contain an integer beyond 2^53.
fn allows_wide_integer(schema: &Value) -> bool {
    let Value::Object(members) = schema else {
        return false;
    };
    let member = |key: &&str| members.get(*key);
    let any_allows_wide = |value: &Value| match value {
        Value::Array(schemas) => schemas.iter().any(allows_wide_integer),
        Value::Object(schemas) => schemas.values().any(allows_wide_integer),
        _ => false,
    };
    is_inexact_integer(members)
        || SCHEMA_KEYWORDS
            .iter()
            .filter_map(member)
            .any(allows_wide_integer)
        || SCHEMA_LIST_KEYWORDS
            .iter()
            .chain(&SCHEMA_MAP_KEYWORDS)
            .filter_map(member)
            .any(any_allows_wide)
}

/// Returns whether this schema is an integer without bounds that keep it exact.
fn is_inexact_integer(members: &Map<String, Value>) -> bool {
    let is_integer = match members.get("type") {
        Some(Value::String(name)) => name == "integer",
        Some(Value::Array(names)) => names.iter().any(|name| name == "integer"),
        _ => false,
    };
    let is_narrow = ["int8", "uint8", "int16", "uint16", "int32", "uint32"]
        .iter()
        .any(|format| members.get("format").is_some_and(|it| it == format));
    if !is_integer || is_narrow || members.contains_key("enum") || members.contains_key("const") {
        return false;
    }
    let bound = |key: &str| members.get(key).and_then(Value::as_f64);
    #[expect(clippy::cast_precision_loss, reason = "a power of two")]
    let exact = EXACT_INTEGER_BOUND as f64;
    let minimum = bound("minimum").or_else(|| bound("exclusiveMinimum"));
    let maximum = bound("maximum").or_else(|| bound("exclusiveMaximum"));
    minimum.is_none_or(|least| least < -exact) || maximum.is_none_or(|most| most > exact)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, output: &str) -> ToolDefinition {
        let output_schema = Some(output.to_owned());
        ToolDefinition {
            name: name.to_owned(),
            output_schema,
            ..ToolDefinition::default()
        }
    }

    #[test]
    fn integers_without_bounds_are_wide() {
        let of = |member: &str| allows_wide_integer(&serde_json::from_str(member).unwrap());
        for wide in [
            r#"{"type":"integer"}"#,
            r#"{"type":["integer","null"],"minimum":0}"#,
            r#"{"type":"integer","minimum":0,"maximum":9007199254740994}"#,
            r#"{"properties":{"id":{"type":"integer","format":"uint64","minimum":0}}}"#,
            r#"{"items":{"anyOf":[{"type":"null"},{"type":"integer"}]}}"#,
            r#"{"$defs":{"a":{"type":"integer"}}}"#,
        ] {
            assert!(of(wide), "{wide}");
        }
        for exact in [
            "true",
            r#"{"type":"number"}"#,
            r#"{"type":"integer","minimum":0,"maximum":9007199254740992}"#,
            r#"{"type":"integer","format":"int32"}"#,
            r#"{"type":"integer","enum":[1,2]}"#,
            r#"{"properties":{"id":{"type":"string"}},"required":["id"]}"#,
        ] {
            assert!(!of(exact), "{exact}");
        }
    }

    #[test]
    fn one_warning_is_for_all_tools() {
        let wide = r#"{"properties":{"id":{"type":"integer"}}}"#;
        let tools = [
            tool("a", "{}"),
            tool("b", wide),
            tool("c", "{"),
            tool("d", wide),
        ];
        assert!(
            wide_integer_warning(&tools)
                .unwrap()
                .starts_with("results of b and 1 more can have integers beyond 2^53")
        );
        assert_eq!(
            wide_integer_warning(&[tool("a", "{}"), ToolDefinition::default()]),
            None
        );
        let long = format!("{}{}", " ".repeat(MAX_SCHEMA_BYTES), wide);
        assert_eq!(wide_integer_warning(&[tool("a", &long)]), None);
    }
}
