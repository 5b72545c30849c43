//! Assembles a schema from its parts.

use serde_json::{Map, Value};

use super::description_text::DescriptionText;
use super::placeholder_schemas::any_value_schema;

/// Merges a part of `allOf` into the schema of the same value.
pub(super) fn merge_part(
    own: &mut Map<String, Value>,
    types: &mut Vec<&str>,
    words: &mut DescriptionText,
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
        match (key.as_str(), own.get_mut(&key), value) {
            ("type" | "anyOf", ..) => {}
            ("description", _, Value::String(text)) => words.add(&text),
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
                own.insert(key, value);
            }
            _ => {}
        }
    }
}

/// Assembles a schema from its parts: with one type, or with alternatives that have one each.
pub(super) fn assemble_schema(
    mut own: Map<String, Value>,
    types: &[&str],
    alternatives: Vec<Value>,
    words: &DescriptionText,
) -> Value {
    let mut written = match (types, alternatives.is_empty()) {
        ([], true) => match any_value_schema() {
            Value::Object(any) => {
                own.extend(any);
                own
            }
            _ => own,
        },
        ([only], true) => {
            own.insert("type".into(), (*only).into());
            own
        }
        ([only], false) if *only == "object" => {
            // The common part of all alternatives keeps its members, and the alternatives contain
            // only their own.
            own.insert("type".into(), (*only).into());
            own.insert("anyOf".into(), alternatives.into());
            own
        }
        (_, false) => Map::from_iter([("anyOf".to_owned(), Value::from(alternatives))]),
        (several, true) => {
            let of_type = |name: &&str| {
                let own = own
                    .iter()
                    .filter(|(key, _)| applies_to_type(key, name))
                    .map(|(key, value)| (key.clone(), value.clone()));
                let mut own: Map<String, Value> = own.collect();
                own.insert("type".into(), (*name).into());
                Value::Object(own)
            };
            Map::from_iter([(
                "anyOf".to_owned(),
                several.iter().map(of_type).collect::<Vec<_>>().into(),
            )])
        }
    };
    if let Some(text) = words.joined() {
        written.insert("description".into(), text.into());
    }
    Value::Object(written)
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
