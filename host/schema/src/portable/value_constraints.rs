//! Constraints of single values: bounds, enumerations and types. What keywords cannot express goes
//! into the description.

use serde_json::{Map, Value};

use super::description_text::DescriptionText;
use crate::client_schema::type_name;

/// Writes exclusive bounds and `multipleOf`.
pub(super) fn write_exclusive_bounds(
    members: &Map<String, Value>,
    types: &[&str],
    output: &mut Map<String, Value>,
    sentences: &mut DescriptionText,
) {
    let is_integer = types == ["integer"];
    for (keyword, bound, step, word) in [
        ("exclusiveMinimum", "minimum", 1, "Greater than"),
        ("exclusiveMaximum", "maximum", -1, "Less than"),
    ] {
        match members.get(keyword) {
            Some(Value::Number(number)) => match number
                .as_i64()
                .filter(|_| is_integer && !output.contains_key(bound))
            {
                Some(whole) => {
                    output.insert(bound.into(), whole.saturating_add(step).into());
                }
                None => sentences.add(&format!("{word} {number}.")),
            },
            // The form of draft 4.
            Some(Value::Bool(true)) => {
                if let Some(number) = output.get(bound) {
                    sentences.add(&format!("{word} {number}."));
                }
            }
            _ => {}
        }
    }
    if let Some(step) = members.get("multipleOf") {
        sentences.add(&format!("A multiple of {step}."));
    }
}

/// Returns the types of a schema that does not specify them.
pub(super) fn implied_types(members: &Map<String, Value>) -> Vec<&'static str> {
    let has = |keywords: &[&str]| {
        keywords
            .iter()
            .any(|keyword| members.contains_key(*keyword))
    };
    match () {
        () if has(&["properties", "required", "additionalProperties"]) => vec!["object"],
        () if has(&["items", "prefixItems", "minItems", "maxItems"]) => vec!["array"],
        () if has(&["pattern", "format", "minLength", "maxLength"]) => vec!["string"],
        () if has(&[
            "minimum",
            "maximum",
            "multipleOf",
            "exclusiveMinimum",
            "exclusiveMaximum",
        ]) =>
        {
            vec!["number"]
        }
        () => Vec::new(),
    }
}

/// Writes the values of an enumeration and returns their types. Only strings can be in an `enum`.
pub(super) fn write_enumeration(
    output: &mut Map<String, Value>,
    sentences: &mut DescriptionText,
    values: &[Value],
) -> Vec<&'static str> {
    let mut types: Vec<&'static str> = Vec::new();
    for name in values.iter().map(type_name) {
        if !types.contains(&name) {
            types.push(name);
        }
    }
    let texts: Vec<Value> = values
        .iter()
        .filter(|value| value.is_string())
        .cloned()
        .collect();
    if texts.is_empty() || types.iter().any(|name| !["string", "null"].contains(name)) {
        let value_texts: Vec<String> = values.iter().map(ToString::to_string).collect();
        sentences.add(&format!("One of: {}.", value_texts.join(", ")));
    } else {
        output.insert("enum".into(), texts.into());
    }
    types
}

/// Adds the descriptions of the values to choose from.
pub(super) fn describe_choices(sentences: &mut DescriptionText, branches: &[Value]) {
    for branch in branches {
        if let (Some(value), Some(text)) = (
            branch.get("const"),
            branch.get("description").and_then(Value::as_str),
        ) {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            sentences.add(&format!("{value}: {text}"));
        }
    }
}
