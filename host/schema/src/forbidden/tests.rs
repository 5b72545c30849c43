//! Tests of `forbidden`.

use serde_json::json;

use super::*;
use crate::JsonSchema;

fn violation_texts(schema: &Value, value: &Value) -> Vec<String> {
    let schema = JsonSchema::compile(&schema.to_string()).unwrap();
    schema
        .violations(value)
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn forbidden_members_are_listed_with_the_allowed_ones() {
    let none = "(root): \"x\" is not allowed: this object takes no members";
    let cases = [
        (
            json!({"type": "object", "additionalProperties": false}),
            none,
        ),
        (
            json!({"type": "object", "additionalProperties": false, "properties": {}}),
            none,
        ),
        (json!({"additionalProperties": {"not": {}}}), none),
        (json!({"propertyNames": false}), none),
        (
            json!({"additionalProperties": false, "properties": {"a": {}, "b/c": {}}}),
            "(root): \"x\" is not allowed: this object takes only \"a\", \"b/c\"",
        ),
        (
            json!({"additionalProperties": {"not": {}}, "properties": {"a": {}}}),
            "(root): \"x\" is not allowed: this object takes only \"a\"",
        ),
        (
            json!({"additionalProperties": false, "properties": {"a": {}}, "patternProperties": {"^n-": {}}}),
            "(root): \"x\" is not allowed: this object takes only \"a\" and names that match \"^n-\"",
        ),
        (
            json!({"$ref": "#/$defs/none", "$defs": {"none": {"additionalProperties": false}}}),
            none,
        ),
        (
            json!({"properties": {"x": false}}),
            "/x: this member is not allowed; leave it out",
        ),
        (
            json!({"properties": {"x": {"not": {}}}}),
            "/x: this member is not allowed; leave it out",
        ),
        (
            json!({"patternProperties": {"^x": false}}),
            "/x: no member may have a name that matches \"^x\"; leave it out",
        ),
        (
            json!({"dependentSchemas": {"x": false}}),
            "(root): \"x\" is not allowed; leave it out",
        ),
        (
            json!({"if": {}, "then": false}),
            "(root): no value is allowed here",
        ),
    ];
    for (schema, expected) in cases {
        assert_eq!(
            violation_texts(&schema, &json!({"x": "y"})),
            [expected],
            "{schema}"
        );
    }
    let many: Map<String, Value> = (0..20).map(|n| (format!("m{n:02}"), json!(1))).collect();
    let message = &violation_texts(&json!({"additionalProperties": false}), &json!(many))[0];
    assert!(
        message.contains("\"m07\" and 12 more are not allowed"),
        "{message}"
    );
}

#[test]
fn an_array_with_too_many_items_has_one_message() {
    let tuple = json!([{"type": "string"}, {"type": "integer"}]);
    let cases = [
        (json!({"prefixItems": tuple, "items": false}), 2),
        (json!({"prefixItems": tuple, "items": {"not": {}}}), 2),
        (json!({"items": false}), 0),
        (json!({"prefixItems": [{}, false]}), 1),
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": tuple, "additionalItems": false}),
            2,
        ),
    ];
    for (schema, limit) in cases {
        let mut schema = json!({"properties": {"t": schema}});
        if let Some(dialect) = schema.pointer_mut("/properties/t/$schema").map(Value::take) {
            schema["$schema"] = dialect;
        }
        if let Some(members) = schema["properties"]["t"].as_object_mut() {
            members.remove("$schema");
        }
        let verb = if limit == 1 { "is" } else { "are" };
        let expected = format!("/t: has 4 items, but at most {limit} {verb} allowed");
        assert_eq!(
            violation_texts(&schema, &json!({"t": ["a", 1, 2, 3]})),
            [expected],
            "{schema}"
        );
    }
}
