//! Forms: the fields that clients can show (MCP, "Elicitation"), and the answers that are valid for
//! them.

use serde_json::{Map, Value};
use toolbay_model::text::clean_line;
use toolbay_model::{JsonText, SchemaViolation};
use toolbay_schema::{JsonSchema, PatternBudget};

/// Maximum number of fields in a form.
const MAX_FIELDS: usize = 64;

/// Maximum size of a field's name in a message, in bytes.
const MAX_QUOTED_BYTES: usize = 100;

/// Maximum number of violations that are reported for an answer, and maximum size of each, in
/// bytes.
const MAX_VIOLATIONS: usize = 3;
const MAX_VIOLATION_BYTES: usize = 200;

/// The supported keywords of a form, and those of its fields by type.
const FORM_KEYWORDS: [&str; 4] = ["$schema", "properties", "required", "type"];
const COMMON_KEYWORDS: [&str; 4] = ["default", "description", "title", "type"];
const STRING_KEYWORDS: [&str; 6] = [
    "enum",
    "enumNames",
    "format",
    "maxLength",
    "minLength",
    "oneOf",
];
const NUMBER_KEYWORDS: [&str; 2] = ["maximum", "minimum"];
const ARRAY_KEYWORDS: [&str; 3] = ["items", "maxItems", "minItems"];
const STRING_FORMATS: [&str; 4] = ["date", "date-time", "email", "uri"];

/// Checks the parameters of a form.
///
/// # Errors
///
/// The part that clients cannot show.
pub(super) fn check_form(params: &Value) -> Result<(), String> {
    if !params.get("message").is_some_and(Value::is_string) {
        return Err("`message` must state the purpose of the form".to_owned());
    }
    let Some(Value::Object(schema)) = params.get("requestedSchema") else {
        return Err("`requestedSchema` must be an object: the schema of the fields".to_owned());
    };
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("`requestedSchema.type` must be \"object\"".to_owned());
    }
    check_members(schema, &[&FORM_KEYWORDS]).map_err(|name| {
        format!("`requestedSchema.{name}` is not something that clients can show")
    })?;
    let Some(Value::Object(fields)) = schema.get("properties") else {
        return Err(
            "`requestedSchema.properties` must be an object: a schema for each field".to_owned(),
        );
    };
    if fields.is_empty() || fields.len() > MAX_FIELDS {
        return Err(format!(
            "a form has 1 to {MAX_FIELDS} fields, not {}",
            fields.len()
        ));
    }
    for (name, field) in fields {
        self::check_field(field)
            .map_err(|why| format!("field {:?}: {why}", clean_line(name, MAX_QUOTED_BYTES)))?;
    }
    compile_schema(&Value::Object(schema.clone())).map(drop)
}

/// Returns the client's result as an answer to the form with these parameters, without members for
/// which the form has no field.
///
/// # Errors
///
/// The problem with the answer, worded for the user who filled in the form.
pub(super) fn check_answer(params: &JsonText, mut answer: Value) -> Result<Value, String> {
    match parse_action(&answer) {
        None => return Err("it has no `action` that is accept, decline or cancel".to_owned()),
        Some("accept") => {}
        Some(_) => return Ok(answer),
    }
    let mut params: Value = serde_json::from_str(params.get()).unwrap_or_default();
    let schema = params
        .get_mut("requestedSchema")
        .map(Value::take)
        .unwrap_or_default();
    let content = answer.get_mut("content").ok_or("it has no `content`")?;
    if let (Some(fields), Some(content)) = (
        schema.get("properties").and_then(Value::as_object),
        content.as_object_mut(),
    ) {
        content.retain(|name, _| fields.contains_key(name));
    }
    let violations = compile_schema(&schema)?
        .quick_violations(content)
        .ok_or("it is too large to be checked")?;
    let messages: Vec<String> = violations
        .iter()
        .take(MAX_VIOLATIONS)
        .map(describe_violation)
        .collect();
    if messages.is_empty() {
        Ok(answer)
    } else {
        Err(messages.join("; "))
    }
}

/// Describes a violation for the user who filled in the form.
fn describe_violation(violation: &SchemaViolation) -> String {
    let path = violation.pointer.trim_start_matches('/');
    clean_line(
        &if path.is_empty() {
            violation.message.clone()
        } else {
            format!("{path}: {}", violation.message)
        },
        MAX_VIOLATION_BYTES,
    )
}

/// Returns the user's action.
pub(super) fn parse_action(answer: &Value) -> Option<&str> {
    answer
        .get("action")
        .and_then(Value::as_str)
        .filter(|action| ["accept", "cancel", "decline"].contains(action))
}

fn compile_schema(schema: &Value) -> Result<JsonSchema, String> {
    let text = schema.to_string();
    let patterns = PatternBudget::for_schemas([text.as_str()]);
    JsonSchema::compile_with(&text, &patterns)
        .map_err(|why| format!("`requestedSchema` is not valid: {why}"))
}

fn check_field(schema: &Value) -> Result<(), String> {
    let Value::Object(schema) = schema else {
        return Err("its schema must be an object".to_owned());
    };
    let type_keywords: &[&str] =
        match schema.get("type").and_then(Value::as_str) {
            Some("string") => &STRING_KEYWORDS,
            Some("number" | "integer") => &NUMBER_KEYWORDS,
            Some("boolean") => &[],
            Some("array") => &ARRAY_KEYWORDS,
            _ => return Err(
                "its type must be string, number, integer, boolean, or array for several choices"
                    .to_owned(),
            ),
        };
    check_members(schema, &[&COMMON_KEYWORDS, type_keywords])
        .map_err(|name| format!("`{name}` is not something that clients can show"))?;
    if let Some(format) = schema.get("format")
        && !format
            .as_str()
            .is_some_and(|format| STRING_FORMATS.contains(&format))
    {
        return Err(format!(
            "its format must be one of {}",
            STRING_FORMATS.join(", ")
        ));
    }
    if type_keywords == ARRAY_KEYWORDS {
        let Some(Value::Object(items)) = schema.get("items") else {
            return Err("`items` must list the choices".to_owned());
        };
        check_members(items, &[&["anyOf", "enum", "type"]])
            .map_err(|name| format!("`items.{name}` is not something that clients can show"))?;
        if !items.contains_key("enum") && !items.contains_key("anyOf") {
            return Err("`items` must have `enum` or `anyOf`: the choices".to_owned());
        }
    }
    Ok(())
}

/// Checks that all members are in `allowed`.
///
/// # Errors
///
/// Returns the name of the first other member.
fn check_members<'a>(members: &'a Map<String, Value>, allowed: &[&[&str]]) -> Result<(), &'a str> {
    match members.keys().find(|name| {
        !allowed
            .iter()
            .any(|keywords| keywords.contains(&name.as_str()))
    }) {
        Some(name) => Err(truncate_name(name)),
        None => Ok(()),
    }
}

fn truncate_name(name: &str) -> &str {
    name.get(..name.floor_char_boundary(MAX_QUOTED_BYTES))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(properties: &Value) -> Value {
        json!({"message": "m", "requestedSchema": {"type": "object", "properties": properties}})
    }

    #[test]
    fn every_field_that_clients_can_show_is_accepted() {
        let properties = json!({
            "name": {"type": "string", "title": "Name", "minLength": 1, "maxLength": 9, "default": "Ada"},
            "mail": {"type": "string", "format": "email"},
            "age": {"type": "integer", "minimum": 0, "maximum": 150, "default": 30},
            "score": {"type": "number", "default": 95.5},
            "verified": {"type": "boolean", "default": true},
            "single": {"type": "string", "enum": ["a", "b"]},
            "titled": {"type": "string", "oneOf": [{"const": "a", "title": "A"}]},
            "legacy": {"type": "string", "enum": ["a"], "enumNames": ["A"]},
            "several": {"type": "array", "items": {"type": "string", "enum": ["a"]}, "minItems": 1, "maxItems": 2},
            "many": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}, "default": []},
        });
        check_form(&form(&properties)).unwrap();
        let params = JsonText::new(&form(&properties));
        assert!(
            check_answer(
                &params,
                json!({"action": "accept", "content": {"name": "x", "several": ["a"]}})
            )
            .is_ok()
        );
        assert!(
            check_answer(
                &params,
                json!({"action": "accept", "content": {"several": ["c"]}})
            )
            .is_err()
        );
        assert!(
            check_answer(
                &params,
                json!({"action": "accept", "content": {"titled": "c"}})
            )
            .is_err()
        );
        assert!(check_answer(&params, json!({"action": "cancel", "content": 7})).is_ok());
    }

    #[test]
    fn what_clients_cannot_show_is_refused_with_its_place() {
        let nested = json!({"a": {"type": "object", "properties": {}}});
        let cases = [
            json!({"requestedSchema": {}}),
            json!({"message": "m", "requestedSchema": {"type": "string"}}),
            json!({"message": "m", "requestedSchema": {"type": "object", "allOf": []}}),
            form(&json!({})),
            form(&json!([])),
            form(&nested),
            form(&json!({"a": 1})),
            form(&json!({"a": {"type": "string", "pattern": "(a+)+$"}})),
            form(&json!({"a": {"type": "string", "format": "regex"}})),
            form(&json!({"a": {"type": "number", "minLength": 1}})),
            form(&json!({"a": {"type": "array"}})),
            form(&json!({"a": {"type": "array", "items": {"type": "string"}}})),
            form(&json!({"a": {"type": "array", "items": {"$ref": "#"}}})),
            form(&json!({"a": {"type": "string", "minLength": "x"}})),
        ];
        let messages: Vec<String> = cases
            .iter()
            .map(|params| check_form(params).unwrap_err())
            .collect();
        insta::assert_snapshot!(messages.join("\n"));
        let many = (0..65)
            .map(|n| (n.to_string(), json!({"type": "string"})))
            .collect::<Map<_, _>>();
        assert_eq!(
            check_form(&form(&many.into())).unwrap_err(),
            "a form has 1 to 64 fields, not 65"
        );
    }
}
