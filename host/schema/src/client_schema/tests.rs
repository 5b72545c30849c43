//! Tests of `client_schema`.

use super::*;
use crate::JsonSchema;

#[test]
fn a_tuple_has_max_items_instead_of_false_items() {
    let pair = json!({"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": false});
    assert_eq!(
        client_schema(&json!({"properties": {"a": pair}}))["properties"]["a"]["maxItems"],
        2
    );
    assert_eq!(
        client_schema(&pair),
        json!({"prefixItems": [{"type": "string"}, {"type": "integer"}], "maxItems": 2})
    );
    assert_eq!(
        client_schema(&json!({"items": false, "maxItems": 7})),
        json!({"maxItems": 0})
    );
    let short = json!({"prefixItems": [{}, {}], "items": false, "maxItems": 1});
    assert_eq!(client_schema(&short)["maxItems"], 1);
    // Draft 7 does not support `prefixItems`, so no item is allowed.
    let old = json!({"$schema": "http://json-schema.org/draft-07/schema#", "prefixItems": [{}], "items": false});
    assert_eq!(client_schema(&old)["maxItems"], 0);
}

#[test]
fn schemas_are_objects_wherever_validators_require_it() {
    let schema = json!({
        "type": "object", "additionalProperties": false,
        "properties": {"any": true, "none": false, "list": {"type": "array", "items": true}, "not": {"not": false}},
        "$defs": {"x": true}, "anyOf": [true, {"properties": {"deep": true}}],
        "default": {"properties": {"kept": true}},
    });
    assert_eq!(
        client_schema(&schema),
        json!({
            "type": "object", "additionalProperties": false,
            "properties": {
                "any": {}, "none": {"not": {}}, "list": {"type": "array", "items": {}}, "not": {"not": {"not": {}}},
            },
            "$defs": {"x": {}}, "anyOf": [{}, {"properties": {"deep": {}}}],
            "default": {"properties": {"kept": true}},
        })
    );
}

#[test]
fn described_constants_have_their_type_and_values_too() {
    let size = json!({"oneOf": [{"const": "s", "description": "Small"}, {"type": "string", "enum": ["m", "l"]}]});
    let said = client_schema(&json!({"properties": {"size": size}}));
    assert_eq!(said["properties"]["size"]["enum"], json!(["s", "m", "l"]));
    assert_eq!(said["properties"]["size"]["type"], "string");
    let small = json!({"const": "s", "description": "Small", "type": "string"});
    assert_eq!(
        said["properties"]["size"]["oneOf"],
        json!([small, {"type": "string", "enum": ["m", "l"]}])
    );
    let mixed = client_schema(&json!({"anyOf": [{"const": 1}, {"const": "a"}]}));
    assert_eq!(
        (&mixed["enum"], mixed.get("type")),
        (&json!([1, "a"]), None)
    );
    let other = json!({"oneOf": [{"const": "s", "type": "string"}, {"type": "integer"}]});
    assert_eq!(client_schema(&other), other);
}

#[test]
fn constants_of_one_type_have_that_type() {
    assert_eq!(
        client_schema(&json!({"const": "x"})),
        json!({"const": "x", "type": "string"})
    );
    assert_eq!(
        client_schema(&json!({"enum": [1, 2]})),
        json!({"enum": [1, 2], "type": "integer"})
    );
    for kept in [
        json!({"enum": [1, "a"]}),
        json!({"enum": [1, 2.5]}),
        json!({"const": 1, "type": "number"}),
    ] {
        assert_eq!(client_schema(&kept), kept);
    }
}

#[test]
fn targets_of_references_are_at_the_top() {
    let tree = json!({
        "type": "object",
        "properties": {
            "tree": {"type": "object", "properties": {"child": {"$ref": "#/properties/tree"}}},
            "again": {"$ref": "#"}, "old": {"$ref": "#/definitions/a~1b"}, "named": {"$ref": "#here"},
            "top": {"$ref": "#/$defs/top"},
        },
        "definitions": {"a/b": {"type": "string"}},
        "$defs": {"top": {"$anchor": "here", "type": "integer"}, "tree": {"type": "null"}},
    });
    let said = client_schema(&tree);
    let of = |name: &str| {
        said["properties"][name]["$ref"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        said["properties"]["tree"]["properties"]["child"]["$ref"],
        "#/$defs/tree_2"
    );
    assert_eq!(
        said["$defs"]["tree_2"]["properties"]["child"]["$ref"],
        "#/$defs/tree_2"
    );
    assert_eq!(
        (of("again").as_str(), of("old").as_str()),
        ("#/$defs/root", "#/$defs/a_b")
    );
    assert_eq!(
        (of("named").as_str(), of("top").as_str()),
        ("#/$defs/here", "#/$defs/top")
    );
    assert!(said.get("definitions").is_none());
    let fits = |schema: &Value, value: &Value| {
        JsonSchema::compile(&schema.to_string())
            .unwrap()
            .violations(value)
            .is_empty()
    };
    for (value, expected) in [
        (
            json!({"tree": {"child": {"child": {}}}, "again": {"named": 5}, "old": "x"}),
            true,
        ),
        (json!({"tree": {"child": {"child": 1}}}), false),
        (json!({"again": {"again": {"named": "5"}}}), false),
        (json!({"old": 5}), false),
    ] {
        assert_eq!(
            (fits(&tree, &value), fits(&said, &value)),
            (expected, expected),
            "{value}"
        );
    }
}

#[test]
fn a_schema_with_position_dependent_references_is_unchanged() {
    for schema in [
        json!({"properties": {"a": {"$id": "https://x/", "$ref": "#/properties/b"}}}),
        json!({"$dynamicRef": "#/properties/a", "properties": {"a": {"$ref": "#/properties/b"}, "b": {}}}),
    ] {
        assert_eq!(client_schema(&schema), schema);
    }
}

#[test]
fn a_schema_that_would_grow_too_much_is_unchanged() {
    let mut deep = json!({"type": "object"});
    let mut places = vec![String::from("#/properties/deep")];
    for _ in 0..20 {
        let wide: Map<String, Value> = (0..100)
            .map(|n| (format!("p{n}"), json!({"type": "string"})))
            .collect();
        deep = json!({"properties": {"a": deep, "wide": {"properties": wide}}});
        places.push(format!("{}/properties/a", places.last().unwrap()));
    }
    let references: Vec<Value> = places.iter().map(|place| json!({"$ref": place})).collect();
    let schema = json!({"properties": {"deep": deep}, "anyOf": references});
    assert_eq!(client_schema(&schema), schema);
}
