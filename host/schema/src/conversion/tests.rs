//! Tests of `conversion`.

use serde_json::json;

use super::*;
use crate::JsonSchema;

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer"}, "x": {"type": "number"}, "yes": {"type": "boolean"}, "text": {"type": "string"},
            "list": {"type": "array", "items": {"type": "integer"}},
            "names": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
            "place": {"$ref": "#/$defs/place"},
            "shape": {"oneOf": [
                {"type": "object", "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}},
                 "required": ["kind"], "additionalProperties": false},
                {"type": "object", "properties": {"kind": {"const": "box"}, "w": {"type": "integer"}},
                 "required": ["kind"], "additionalProperties": false},
            ]},
            "wide": {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^[0-9]{1,20}$"}]},
        },
        "required": ["n"],
        "additionalProperties": false,
        "$defs": {"place": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]}},
    })
}

fn converted(value: Value) -> Result<(Value, Vec<String>), Value> {
    let schema = JsonSchema::compile(&schema().to_string()).unwrap();
    let mut value = value;
    match schema.convert(&mut value) {
        Some(done) => Ok((value, done.iter().map(ToString::to_string).collect())),
        None => Err(value),
    }
}

#[test]
fn unambiguous_values_are_converted() {
    let cases = [
        (json!({"n": "5"}), json!({"n": 5}), vec!["/n: number"]),
        (json!({"n": " -7 "}), json!({"n": -7}), vec!["/n: number"]),
        (
            json!({"n": 1, "x": "2.5", "yes": "true"}),
            json!({"n": 1, "x": 2.5, "yes": true}),
            vec!["/x: number", "/yes: boolean"],
        ),
        (
            json!({"n": 1, "yes": "False"}),
            json!({"n": 1, "yes": false}),
            vec!["/yes: boolean"],
        ),
        (
            json!({"n": 1, "list": "[1,2]"}),
            json!({"n": 1, "list": [1, 2]}),
            vec!["/list: json"],
        ),
        (
            json!({"n": 1, "list": ["1", 2]}),
            json!({"n": 1, "list": [1, 2]}),
            vec!["/list/0: number"],
        ),
        (
            json!({"n": 1, "list": 3}),
            json!({"n": 1, "list": [3]}),
            vec!["/list: list"],
        ),
        (
            json!({"n": 1, "list": "3"}),
            json!({"n": 1, "list": [3]}),
            vec!["/list: list", "/list/0: number"],
        ),
        (
            json!({"n": 1, "names": "a"}),
            json!({"n": 1, "names": ["a"]}),
            vec!["/names: list"],
        ),
        (
            json!({"n": 1, "names": "null"}),
            json!({"n": 1}),
            vec!["/names: absent"],
        ),
        (
            json!({"n": 1, "x": "null", "yes": null}),
            json!({"n": 1}),
            vec!["/x: absent", "/yes: absent"],
        ),
        (
            json!({"n": 1, "place": "{\"lat\": \"1\"}"}),
            json!({"n": 1, "place": {"lat": 1}}),
            vec!["/place: json", "/place/lat: number"],
        ),
        (
            json!({"n": 1, "sessionId": "s", "toolCallId": 1}),
            json!({"n": 1}),
            vec!["/sessionId: dropped", "/toolCallId: dropped"],
        ),
        (
            json!({"n": 1, "shape": {"kind": "circle", "r": "2"}}),
            json!({"n": 1, "shape": {"kind": "circle", "r": 2}}),
            vec!["/shape/r: number"],
        ),
        (
            json!({"n": 1, "shape": "{\"kind\":\"box\",\"w\":\"2\"}"}),
            json!({"n": 1, "shape": {"kind": "box", "w": 2}}),
            vec!["/shape: json", "/shape/w: number"],
        ),
    ];
    for (written, meant, done) in cases {
        assert_eq!(
            converted(written.clone()),
            Ok((meant, done.into_iter().map(str::to_owned).collect())),
            "{written}"
        );
    }
}

#[test]
fn valid_and_ambiguous_values_are_unchanged() {
    for value in [
        json!({"n": 5, "text": "5", "wide": "7"}),
        json!({"n": 1, "text": "null"}),
        json!({"n": "five"}),
        json!({"n": "1.5"}),
        json!({"n": "null"}),
        json!({"n": "123456789012345678901234567890"}),
        json!({"n": 1, "x": "0.12345678901234567890"}),
        json!({"n": 1, "text": 7}),
        json!({"n": 1, "list": "one"}),
        json!({"n": 1, "list": {"a": 1}}),
        json!({"n": 1, "yes": "yes"}),
        json!({"n": true}),
        // A misspelled name of the schema.
        json!({"n": 1, "Text": "a"}),
        json!({"n": 1, "lists": [1]}),
        json!({"n": 1, "list": vec!["1"; 101]}),
    ] {
        assert!(
            converted(value.clone()).is_err(),
            "{value} {:?}",
            converted(value.clone())
        );
    }
}

#[test]
fn all_texts_together_are_bounded() {
    let lists = json!({"type": "object", "properties": {
            "a": {"type": "array"}, "b": {"type": "array"}}, "additionalProperties": false});
    let lists = JsonSchema::compile(&lists.to_string()).unwrap();
    let text = |values: usize| format!("[{}0]", "0,".repeat(values));
    assert_eq!(
        lists
            .convert(&mut json!({"a": text(4_000), "b": text(4_000)}))
            .map(|done| done.len()),
        Some(2)
    );
    assert_eq!(
        lists
            .convert(&mut json!({"a": text(6_000), "b": text(6_000)}))
            .map(|done| done.len()),
        Some(1)
    );
    assert!(
        lists
            .convert(&mut json!({"a": format!("[\"{}\"]", "x".repeat(MAX_EMBEDDED_BYTES))}))
            .is_none()
    );
}

#[test]
fn conversions_are_fast_for_every_schema() {
    let mut definitions = Map::new();
    for n in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        definitions.insert(
            format!("d{n}"),
            json!({"anyOf": [next, next], "allOf": [next, next]}),
        );
    }
    definitions.insert("d40".into(), json!({"type": "integer"}));
    let schema = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions});
    let schema = JsonSchema::compile(&schema.to_string()).unwrap();
    assert!(schema.convert(&mut json!({"x": "5"})).is_none());
    let schema =
        JsonSchema::compile(r##"{"properties":{"x":{"$ref":"#"}},"allOf":[{"$ref":"#"}]}"##)
            .unwrap();
    assert!(
        schema
            .convert(&mut json!({"x": {"x": {"x": "5"}}}))
            .is_none()
    );
}
