//! Assembles a schema from its parts.

use serde_json::{Map, Value};

use super::description_text::DescriptionText;
use super::placeholder_schemas::any_value_schema;

/// Merges a part of `allOf` into the schema of the same value.
pub(super) fn merge_part(
    output: &mut Map<String, Value>,
    types: &mut Vec<&str>,
    sentences: &mut DescriptionText,
    part: Value,
) {
    let Value::Object(part) = part else { return };
    if types.is_empty() {
        types.extend(match part.get("type").and_then(Value::as_str) {
            Some("object") => Some("object"),
            Some("array") => Some("array"),
            Some("string") => Some("string"),
            Some("integer") => Some("integer"),
            Some("number") => Some("number"),
            Some("boolean") => Some("boolean"),
            _ => None,
        });
    }
    for (key, value) in part {
        match (key.as_str(), output.get_mut(&key), value) {
            ("type" | "anyOf", ..) => {}
            ("description", _, Value::String(text)) => sentences.add(&text),
            ("properties", Some(Value::Object(ours)), Value::Object(theirs)) => {
                for (name, schema) in theirs {
                    ours.entry(name).or_insert(schema);
                }
            }
            ("required", Some(Value::Array(ours)), Value::Array(theirs)) => {
                for name in theirs {
                    if !ours.contains(&name) {
                        ours.push(name);
                    }
                }
            }
            (_, None, value) => {
                output.insert(key, value);
            }
            _ => {}
        }
    }
}

/// Assembles a schema from its parts: with one type, or with alternatives that have one each.
pub(super) fn assemble_schema(
    mut output: Map<String, Value>,
    types: &[&str],
    alternatives: Vec<Value>,
    sentences: &DescriptionText,
) -> Value {
    let mut assembled = match (types, alternatives.is_empty()) {
        ([], true) => match any_value_schema() {
            Value::Object(any) => {
                output.extend(any);
                output
            }
            _ => output,
        },
        ([only], true) => {
            output.insert("type".into(), (*only).into());
            output
        }
        ([only], false) if *only == "object" => {
            // The common part of all alternatives keeps its members, and the alternatives contain
            // only their own.
            output.insert("type".into(), (*only).into());
            output.insert("anyOf".into(), alternatives.into());
            output
        }
        (_, false) => Map::from_iter([("anyOf".to_owned(), Value::from(alternatives))]),
        (several, true) => {
            let of_type = |name: &&str| {
                let applicable = output
                    .iter()
                    .filter(|(key, _)| applies_to_type(key, name))
                    .map(|(key, value)| (key.clone(), value.clone()));
                let mut alternative: Map<String, Value> = applicable.collect();
                alternative.insert("type".into(), (*name).into());
                Value::Object(alternative)
            };
            Map::from_iter([(
                "anyOf".to_owned(),
                several.iter().map(of_type).collect::<Vec<_>>().into(),
            )])
        }
    };
    if let Some(text) = sentences.joined() {
        assembled.insert("description".into(), text.into());
    }
    Value::Object(assembled)
}

/// Returns whether a keyword applies to values of a type.
fn applies_to_type(keyword: &str, name: &str) -> bool {
    match keyword {
        "properties" | "required" => name == "object",
        "items" | "minItems" | "maxItems" => name == "array",
        "minLength" | "maxLength" | "pattern" | "format" | "enum" => name == "string",
        "minimum" | "maximum" => matches!(name, "integer" | "number"),
        _ => true,
    }
}
