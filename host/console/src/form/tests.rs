use serde_json::json;

use super::*;

fn form(schema: Value) -> ToolForm {
    ToolForm::from_schema(&JsonText::from(schema), false)
}

fn kinds(form: &ToolForm) -> Vec<(&str, &FieldKind, bool)> {
    form.fields
        .iter()
        .map(|field| (field.name.as_str(), &field.kind, field.required))
        .collect()
}

fn filled(values: &[(&str, &str)]) -> FieldValues {
    values
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn each_plain_property_has_a_field_of_its_kind() {
    let form = form(json!({
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "Any\u{202e} text."},
            "name": {"type": "string", "maxLength": 20, "default": "ada"},
            "count": {"type": "integer", "default": 3},
            "ratio": {"type": ["number", "null"]},
            "deep": {"type": "boolean"},
            "unit": {"enum": ["day", "week", 7]},
            "level": {"$ref": "#/$defs/level"},
            "maybe": {"anyOf": [{"$ref": "#/$defs/level"}, {"type": "null"}], "description": "Own words."},
            "tags": {"type": "array", "items": {"type": "string"}, "default": ["a", "b"]},
            "numbers": {"type": "array", "items": {"type": "integer"}},
            "at": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
            "any": {},
            "either": {"anyOf": [{"type": "string"}, {"type": "number"}]},
            "matrix": {"type": "array", "items": {"type": "array"}},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": ["text", "count"],
        "$defs": {"level": {"oneOf": [{"const": "low"}, {"const": "high"}], "description": "A level."}},
    }));
    insta::assert_debug_snapshot!(kinds(&form));
    let description_of = |name: &str| {
        form.fields
            .iter()
            .find(|field| field.name == name)
            .unwrap()
            .description
            .clone()
    };
    assert_eq!(description_of("text").unwrap(), "Any text.");
    assert_eq!(
        (
            description_of("level").unwrap(),
            description_of("maybe").unwrap()
        ),
        ("A level.".to_owned(), "Own words.".to_owned())
    );
    let defaults = form.defaults();
    assert_eq!(
        (&*defaults["f1"], &*defaults["f2"], &*defaults["f8"]),
        ("ada", "3", "a\nb")
    );
}

#[test]
fn submitted_values_become_arguments() {
    let form = form(json!({
        "properties": {
            "a": {"type": "string"},
            "b": {"type": "integer"},
            "c": {"enum": ["x", 5, null]},
            "d": {"type": "array", "items": {"type": "number"}},
            "e": {"type": "object", "properties": {"f": {"type": "boolean"}, "g": {"type": "string"}}},
            "h": {},
        },
        "required": ["a"],
    }));
    let arguments = form.parse_arguments(&filled(&[
        ("f0", "one\r\ntwo"),
        ("f1", " 18446744073709551615 "),
        ("f2", "1"),
        ("f3", "1\n\n2.5\n"),
        ("f4_0", "1"),
        ("f5", "[{\"k\": null}]"),
    ]));
    let expected = json!({"a": "one\ntwo", "b": u64::MAX, "c": 5, "d": [1, 2.5], "e": {"f": false}, "h": [{"k": null}]});
    assert_eq!(Value::Object(arguments.unwrap()), expected);
    assert_eq!(
        Value::Object(form.parse_arguments(&FieldValues::new()).unwrap()),
        json!({"a": ""})
    );
}

#[test]
fn invalid_values_are_reported_per_field() {
    let form = form(json!({"properties": {
        "a": {"type": "integer"}, "b": {"type": "number"}, "c": {"enum": ["x"]}, "d": {},
        "e": {"type": "array", "items": {"type": "number"}},
    }}));
    let values = filled(&[
        ("f0", "1.5"),
        ("f1", "many"),
        ("f2", "9"),
        ("f3", "{"),
        ("f4", "1\nx"),
    ]);
    let errors = form.parse_arguments(&values).unwrap_err();
    let messages: Vec<String> = errors
        .iter()
        .map(|(field, what)| format!("{field}: {what}"))
        .collect();
    insta::assert_snapshot!(messages.join("\n"), @r#"
    f0: expected an integer, not "1.5"
    f1: expected a number, not "many"
    f2: choose one of the list
    f3: expected JSON: EOF while parsing an object at line 1 column 1
    f4: expected a number, not "x"
    "#);
}

#[test]
fn complex_schemas_have_a_single_json_field() {
    let many: Map<String, Value> = (0..100)
        .map(|n| (n.to_string(), json!({"type": "string"})))
        .collect();
    let mut deep = json!({"type": "string"});
    for _ in 0..50 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    for schema in [
        json!({"type": "object", "anyOf": [{"required": ["a"]}]}),
        json!({"properties": many}),
        json!({"$ref": "#"}),
        json!({"$ref": "#/$defs/none"}),
        json!(true),
        json!({"properties": 7}),
    ] {
        let form = form(schema.clone());
        assert!(form.is_raw && !form.has_fields, "{schema}");
        assert_eq!(
            form.parse_arguments(&filled(&[("json", "{\"a\": 1}")]))
                .unwrap()["a"],
            1
        );
        assert!(
            form.parse_arguments(&filled(&[("json", "[1]")]))
                .unwrap_err()[0]
                .1
                .starts_with("expected a JSON object")
        );
        assert!(
            form.parse_arguments(&FieldValues::new())
                .unwrap()
                .is_empty()
        );
    }
    let form = form(deep);
    let FieldKind::Group(fields) = &form.fields[0].kind else {
        panic!("{form:?}")
    };
    let FieldKind::Group(fields) = &fields[0].kind else {
        panic!("{form:?}")
    };
    let FieldKind::Group(fields) = &fields[0].kind else {
        panic!("{form:?}")
    };
    assert_eq!(fields[0].kind, FieldKind::Json);
    // A recursive schema ends in a JSON field too.
    let circle = json!({"properties": {"next": {"$ref": "#"}}});
    let circle = ToolForm::from_schema(&JsonText::from(circle), false);
    assert!(circle.has_fields);
}

#[test]
fn a_tool_without_arguments_has_an_empty_form() {
    for schema in [
        json!({"type": "object"}),
        json!({"type": "object", "properties": {}}),
        json!({"type": "object", "additionalProperties": false}),
    ] {
        let form = form(schema);
        assert!(!form.is_raw && form.fields.is_empty());
        assert!(
            form.parse_arguments(&FieldValues::new())
                .unwrap()
                .is_empty()
        );
    }
    assert!(ToolForm::from_schema(&JsonText::from(json!({"type": "object"})), true).is_raw);
}
