//! Tests of `portable`.

use super::*;
use crate::{JsonSchema, client_schema};

fn portable_properties(properties: &Value) -> Value {
    portable_schema(&client_schema(
        &json!({"type": "object", "properties": properties, "additionalProperties": false}),
    ))["properties"]
        .clone()
}

#[test]
fn each_construct_has_a_portable_form() {
    let said = portable_properties(&json!({
        "any": true,
        "none": false,
        "const": {"const": "a"},
        "default": {"type": "integer", "default": 3, "exclusiveMinimum": 0, "multipleOf": 2},
        "described": {"oneOf": [{"const": "s", "description": "Small"}, {"const": "l", "description": "Large"}]},
        "either": {"oneOf": [{"type": "string"}, {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": false}]},
        "email": {"type": "string", "format": "email"},
        "map": {"type": "object", "additionalProperties": {"type": "number"}},
        "mixed": {"enum": ["a", 1, null]},
        "all": {"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {"type": "string"}}}]},
        "nullable": {"type": ["string", "null"], "maxLength": 3},
        "numbers": {"enum": [1, 2]},
        "optional": {"enum": ["a", null]},
        "set": {"type": "array", "items": {"type": "string"}, "uniqueItems": true},
        "tuple": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": false, "minItems": 2},
        "when": {"type": "string", "format": "date-time", "contentEncoding": "x", "examples": ["y"]},
    }));
    insta::assert_snapshot!(format!("{said:#}"));
}

#[test]
fn an_uncommon_pattern_is_described_in_the_description() {
    let said = portable_properties(&json!({
        "code": {"type": "string", "pattern": "^[A-Z]{3}$"},
        "look": {"type": "string", "description": "A code.", "pattern": "^(?!A)[A-Z]$"},
        "name": {"type": "string", "pattern": "^\\p{Lu}"},
    }));
    assert_eq!(said["code"]["pattern"], "^[A-Z]{3}$");
    assert_eq!(
        said["look"],
        json!({"type": "string", "description": "A code. Pattern: ^(?!A)[A-Z]$"})
    );
    assert_eq!(
        said["name"],
        json!({"type": "string", "description": "Pattern: ^\\p{Lu}"})
    );
}

#[test]
fn references_are_inlined_to_a_limited_depth() {
    let node = json!({"type": "object", "properties": {"name": {"type": "string"}, "child": {"$ref": "#/$defs/node"}}, "required": ["name"]});
    let schema = json!({"type": "object", "properties": {
            "node": {"$ref": "#/$defs/node", "description": "The first."}, "other": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}});
    insta::assert_snapshot!(format!("{:#}", portable_schema(&schema)));
}

#[test]
fn a_schema_does_not_grow_without_bound() {
    let mut definitions = Map::new();
    for n in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        definitions.insert(
            format!("d{n}"),
            json!({"type": "object", "properties": {"a": next, "b": next}}),
        );
    }
    definitions.insert("d40".into(), json!({"type": "integer"}));
    let schema = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions});
    let grown = count_values(&portable_schema(&schema));
    assert!(
        grown < 20 * (count_values(&schema) + GROWTH_ALLOWANCE),
        "{grown}"
    );
}

#[test]
fn values_that_match_the_original_schema_match_the_portable_one() {
    let own = json!({
        "type": "object", "required": ["t"], "additionalProperties": false,
        "properties": {
            "t": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": false},
            "e": {"oneOf": [{"const": "s"}, {"const": "l"}]}, "n": {"type": ["integer", "null"], "exclusiveMinimum": 0},
            "m": {"type": "object", "additionalProperties": {"type": "number"}}, "any": true,
            "f": {"enum": [1, "a", null]}, "r": {"$ref": "#/$defs/r"},
        },
        "$defs": {"r": {"type": "object", "properties": {"r": {"$ref": "#/$defs/r"}}}},
    });
    let ours = JsonSchema::compile(&own.to_string()).unwrap();
    let theirs = JsonSchema::compile(&portable_schema(&client_schema(&own)).to_string()).unwrap();
    for value in [
        json!({"t": ["a", 1], "e": "s", "n": 1, "m": {"x": 1.5}, "any": [true], "f": 1, "r": {"r": {"r": {}}}}),
        json!({"t": [], "n": null, "any": {"x": 1}, "f": "a"}),
        json!({"t": ["a"], "any": null, "f": null}),
    ] {
        assert_eq!(ours.violations(&value), [], "{value}");
        let said = theirs.violations(&value);
        assert!(
            said.is_empty() || value["any"].is_array(),
            "{value} {said:?}"
        );
    }
}
