//! Generates a small value that matches a schema, as an example for the author of a value that does
//! not.

use serde_json::{Map, Value, json};

use super::schema_parts::{SchemaParts, TypeSet, is_required, item_schema};

/// Maximum number of schema parts that generating an example may visit.
const MAX_VISITS: usize = 5_000;

/// Maximum nesting of an example.
const MAX_EXAMPLE_DEPTH: usize = 12;

/// Maximum number of items in a list, and of characters in a text, if the schema requires a
/// minimum.
const MAX_EXAMPLE_ITEMS: u64 = 20;
const MAX_EXAMPLE_CHARS: u64 = 100;

/// Generates a value that probably matches. The caller must check it.
pub(super) fn generate(schema: &Value) -> Option<Value> {
    let parts = SchemaParts::new(schema, MAX_VISITS);
    generate_value(&parts, schema, MAX_EXAMPLE_DEPTH)
}

fn generate_value<'a>(parts: &SchemaParts<'a>, schema: &'a Value, depth: usize) -> Option<Value> {
    if depth == 0 || !parts.try_visit() {
        return None;
    }
    let Some(members) = parts.resolve(schema) else {
        return (schema == &Value::Bool(true)).then(|| Value::from("text"));
    };
    if let Some(constant) = members.get("const") {
        return Some(constant.clone());
    }
    if let Some(Value::Array(values)) = members.get("enum") {
        return values
            .iter()
            .min_by_key(|value| value.to_string().len())
            .cloned();
    }
    // The author's own example is better than a generated one, but it may be large. It is used only
    // for a string with a pattern or format.
    let has_pattern_or_format = ["pattern", "format"]
        .iter()
        .any(|keyword| members.contains_key(*keyword));
    if has_pattern_or_format {
        let author_example = members
            .get("examples")
            .and_then(|examples| examples.get(0))
            .or_else(|| members.get("default"));
        if let Some(example) = author_example.filter(|own| own.is_string()) {
            return Some(example.clone());
        }
    }
    let types = parts.types(schema);
    let has_object = members.contains_key("properties") || members.contains_key("required");
    let mut generated = match () {
        () if types.contains("object") && (has_object || types == TypeSet::from_name("object")) => {
            generate_object(parts, members, depth)?
        }
        () => match alternatives(members) {
            Some(branches) => return smallest_alternative(parts, branches, depth),
            None => generate_by_type(parts, members, types, depth)?,
        },
    };
    // An object combines the members of all parts of its schema.
    if let Value::Object(object) = &mut generated {
        let alternative = match alternatives(members) {
            Some(branches) => smallest_alternative(parts, branches, depth)?,
            None => json!({}),
        };
        let all = members
            .get("allOf")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let mut additions = vec![alternative];
        for part in all {
            additions.push(generate_value(parts, part, depth - 1)?);
        }
        for part in additions.iter().filter_map(Value::as_object) {
            for (name, value) in part {
                object.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
    }
    Some(generated)
}

/// Returns the alternatives of a schema, if it has any.
fn alternatives(members: &Map<String, Value>) -> Option<&Vec<Value>> {
    ["anyOf", "oneOf"]
        .into_iter()
        .find_map(|keyword| members.get(keyword)?.as_array())
}

/// Generates the smallest value of these alternatives.
fn smallest_alternative<'a>(
    parts: &SchemaParts<'a>,
    branches: &'a [Value],
    depth: usize,
) -> Option<Value> {
    // `null` is the least helpful example.
    let examples = branches
        .iter()
        .filter_map(|branch| generate_value(parts, branch, depth - 1));
    examples.min_by_key(|value| {
        if value.is_null() {
            usize::MAX
        } else {
            value.to_string().len()
        }
    })
}

fn generate_object<'a>(
    parts: &SchemaParts<'a>,
    members: &'a Map<String, Value>,
    depth: usize,
) -> Option<Value> {
    let properties = members.get("properties").and_then(Value::as_object);
    let mut object = Map::new();
    for (name, schema) in properties
        .into_iter()
        .flatten()
        .filter(|(name, _)| is_required(members, name))
    {
        object.insert(name.clone(), generate_value(parts, schema, depth - 1)?);
    }
    let required = members
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    for name in required.filter_map(Value::as_str) {
        if !object.contains_key(name) {
            let additional_schema = members
                .get("additionalProperties")
                .unwrap_or(&Value::Bool(true));
            object.insert(
                name.to_owned(),
                generate_value(parts, additional_schema, depth - 1)?,
            );
        }
    }
    Some(object.into())
}

fn generate_by_type<'a>(
    parts: &SchemaParts<'a>,
    members: &'a Map<String, Value>,
    types: TypeSet,
    depth: usize,
) -> Option<Value> {
    let count = |keyword: &str| members.get(keyword).and_then(Value::as_u64);
    Some(match () {
        () if types.contains("string") => {
            generate_text(members, count("minLength"), count("maxLength")).into()
        }
        () if types.contains("number") => {
            generate_number(members, !types.is_superset(TypeSet::from_name("number")))?
        }
        () if types.contains("boolean") => true.into(),
        () if types.contains("array") => {
            let items = (0..count("minItems").unwrap_or(0).min(MAX_EXAMPLE_ITEMS)).map(|number| {
                let schema = item_schema(members, usize::try_from(number).ok()?)
                    .unwrap_or(&Value::Bool(true));
                generate_value(parts, schema, depth - 1)
            });
            items.collect::<Option<Vec<Value>>>()?.into()
        }
        () if types.contains("object") => json!({}),
        () => Value::Null,
    })
}

fn generate_text(
    members: &Map<String, Value>,
    min_length: Option<u64>,
    max_length: Option<u64>,
) -> String {
    let format_example = match members.get("format").and_then(Value::as_str) {
        Some("date-time") => Some("2026-01-31T12:00:00Z"),
        Some("date") => Some("2026-01-31"),
        Some("time") => Some("12:00:00Z"),
        Some("email") => Some("ada@example.com"),
        Some("uri" | "uri-reference" | "url") => Some("https://example.com/"),
        Some("uuid") => Some("123e4567-e89b-42d3-a456-426614174000"),
        Some("ipv4") => Some("192.0.2.1"),
        Some("ipv6") => Some("2001:db8::1"),
        Some("hostname") => Some("example.com"),
        Some("duration") => Some("PT1H"),
        _ => None,
    };
    let min_chars = min_length.unwrap_or(0).min(MAX_EXAMPLE_CHARS);
    let text = format_example.unwrap_or("text").chars();
    let max_chars = usize::try_from(max_length.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let mut text: String = text.take(max_chars).collect();
    while (text.chars().count() as u64) < min_chars {
        text.push('x');
    }
    text
}

fn generate_number(members: &Map<String, Value>, is_integer: bool) -> Option<Value> {
    let bound = |keyword: &str| members.get(keyword).and_then(Value::as_f64);
    let step = bound("multipleOf").filter(|step| *step > 0.0);
    let exclusive_minimum = bound("exclusiveMinimum").map(|bound_value| {
        if is_integer {
            bound_value.floor() + 1.0
        } else {
            bound_value + step.unwrap_or(0.5)
        }
    });
    let minimum = bound("minimum")
        .into_iter()
        .chain(exclusive_minimum)
        .fold(f64::NEG_INFINITY, f64::max);
    let exclusive_maximum = bound("exclusiveMaximum").map(|bound_value| {
        if is_integer {
            bound_value.ceil() - 1.0
        } else {
            bound_value - step.unwrap_or(0.5)
        }
    });
    let maximum = bound("maximum")
        .into_iter()
        .chain(exclusive_maximum)
        .fold(f64::INFINITY, f64::min);
    let mut number = 1.0_f64.max(minimum).min(maximum);
    if is_integer {
        number = if number < minimum.ceil() {
            minimum.ceil()
        } else {
            number.floor().max(minimum.ceil())
        };
    }
    if let Some(step) = step {
        number = (number / step).ceil() * step;
    }
    let text = number.to_string();
    text.parse::<i64>()
        .map(Value::from)
        .or_else(|_| text.parse::<u64>().map(Value::from))
        .ok()
        .or_else(|| serde_json::Number::from_f64(number).map(Value::Number))
}

#[cfg(test)]
mod tests {
    use crate::JsonSchema;

    fn example(schema: &str) -> Option<String> {
        JsonSchema::compile(schema)
            .unwrap()
            .example()
            .map(str::to_owned)
    }

    #[test]
    fn examples_match_and_are_small() {
        let schemas = [
            r#"{"type":"object","required":["city"],"properties":{"city":{"type":"string"},"days":{"type":"integer"}}}"#,
            r#"{"type":"object","required":["unit","n"],"properties":{"unit":{"enum":["celsius","K"]},"n":{"type":"integer","minimum":3}}}"#,
            r##"{"type":"object","required":["p"],"properties":{"p":{"$ref":"#/$defs/p"}},"$defs":{"p":{"type":"object","required":["x"],"properties":{"x":{"type":"number","exclusiveMinimum":1},"next":{"$ref":"#/$defs/p"}}}}}"##,
            r#"{"type":"object","required":["a","b"],"properties":{"a":{"type":"array","minItems":2,"items":{"type":"boolean"}},"b":{"anyOf":[{"type":"null"},{"type":"integer","multipleOf":7}]}}}"#,
            r#"{"type":"object","required":["t"],"properties":{"t":{"prefixItems":[{"type":"string"},{"type":"integer"}],"type":"array","minItems":2,"maxItems":2}}}"#,
            r#"{"type":"object","required":["w"],"properties":{"w":{"type":"string","format":"date-time"}}}"#,
            r#"{"type":"object","required":["w"],"properties":{"w":{"type":"string","pattern":"^[A-Z]{3}$","examples":["EUR"]}}}"#,
            r#"{"type":"object","required":["kind"],"oneOf":[{"properties":{"kind":{"const":"a"}},"required":["kind"]},{"properties":{"kind":{"const":"bcd"}},"required":["kind"]}]}"#,
            r#"{"type":"object","allOf":[{"required":["x"],"properties":{"x":{"type":"integer","maximum":-2}}},{"required":["y"],"properties":{"y":{"minLength":6,"type":"string"}}}]}"#,
            r#"{"type":"object"}"#,
        ];
        let said: Vec<String> = schemas
            .iter()
            .map(|schema| example(schema).unwrap_or_else(|| "none".to_owned()))
            .collect();
        insta::assert_snapshot!(said.join("\n"));
    }

    #[test]
    fn no_example_is_returned_if_no_small_one_matches() {
        for schema in [
            r#"{"type":"object","required":["w"],"properties":{"w":{"type":"string","pattern":"^[A-Z]{3}$"}}}"#,
            r#"{"type":"object","required":["w"],"properties":{"w":{"type":"string","minLength":90000}}}"#,
            r##"{"type":"object","required":["x"],"properties":{"x":{"$ref":"#"}}}"##,
            r#"{"type":"object","required":["x"],"properties":{"x":false}}"#,
        ] {
            assert_eq!(example(schema), None, "{schema}");
        }
        let wide: Vec<String> = (0..300).map(|n| format!("\"p{n}\"")).collect();
        let wide = format!(r#"{{"type":"object","required":[{}]}}"#, wide.join(","));
        assert_eq!(example(&wide), None);
    }
}
