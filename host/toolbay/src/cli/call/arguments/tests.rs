use std::fmt::Write as _;

use serde_json::json;

use super::*;

fn read(schema: &Value, given: &[&str]) -> Result<String, String> {
    let given: Vec<String> = given.iter().map(|text| (*text).to_owned()).collect();
    let arguments = parse_arguments(&given).and_then(|given| given.into_object(schema));
    arguments
        .map(|object| Value::Object(object).to_string())
        .map_err(|error| format!("{error:#}"))
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "height": {"type": "number"},
            "metric": {"type": "boolean"},
            "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "unit": {"enum": ["celsius", "kelvin"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "numbers": {"type": "array", "items": {"type": "number"}},
            "either": {"type": ["string", "integer"]},
            "any": {},
            "image": {"type": "string", "contentEncoding": "base64"},
            "place": {"$ref": "#/$defs/place"},
            "a.b": {"type": "string"},
            "labels": {"type": "object", "additionalProperties": {"type": "integer"}}
        },
        "$defs": {"place": {"type": "object", "properties": {
            "name": {"type": "string"},
            "at": {"type": "object", "properties": {"x": {"type": "number"}}}
        }}}
    })
}

#[test]
fn values_have_the_types_of_the_schema() {
    let cases: &[(&[&str], Value)] = &[
        (&[], json!({})),
        (&[r#"{"city": 7}"#], json!({"city": 7})),
        (&["city=5"], json!({"city": "5"})),
        (&["city="], json!({"city": ""})),
        (&["city=a=b c"], json!({"city": "a=b c"})),
        (&["city={x}"], json!({"city": "{x}"})),
        (
            &["days=3", "metric=true"],
            json!({"days": 3, "metric": true}),
        ),
        (&["days=3.0"], json!({"days": 3.0})),
        (&["height=1.5e3"], json!({"height": 1500.0})),
        (&["limit=null"], json!({"limit": null})),
        (&["unit=kelvin"], json!({"unit": "kelvin"})),
        (&["tags=a"], json!({"tags": ["a"]})),
        (&["tags=a", "tags=1"], json!({"tags": ["a", "1"]})),
        (&[r#"tags=["a","b"]"#], json!({"tags": ["a", "b"]})),
        (&["numbers=1", "numbers=2.5"], json!({"numbers": [1, 2.5]})),
        (&["either=5"], json!({"either": "5"})),
        (&["either:=5"], json!({"either": 5})),
        (&["any:=[1]"], json!({"any": [1]})),
        (&["extra:=1"], json!({"extra": 1})),
        (
            &["place.name=Bern", "place.at.x=2"],
            json!({"place": {"name": "Bern", "at": {"x": 2}}}),
        ),
        (&[r#"place={"name":"x"}"#], json!({"place": {"name": "x"}})),
        (&["a.b=c"], json!({"a.b": "c"})),
        (
            &["labels.red=1", "labels.x=2"],
            json!({"labels": {"red": 1, "x": 2}}),
        ),
    ];
    for (given, expected) in cases {
        assert_eq!(
            read(&schema(), given),
            Ok(expected.to_string()),
            "{given:?}"
        );
    }
}

#[test]
fn mistakes_name_the_key_and_the_cure() {
    let mut said = String::new();
    for given in [
        &["{"][..],
        &["[]"],
        &["seven"],
        &["city=Bern", "seven"],
        &["city=Bern", "{}"],
        &["city=Bern", r#"{"a": "b=c"}"#],
        &["=5"],
        &["citty=Bern"],
        &["zzz=1"],
        &["days=three"],
        &["days=1.5"],
        &["days="],
        &["metric=yes"],
        &["limit=none"],
        &["any=5"],
        &["city=a", "city=b"],
        &["place=Bern"],
        &["place.nam=x"],
        &["city=x", "city.y=z"],
        &["numbers=1", "numbers=two"],
        &["numbers=[1", "numbers=2"],
        &["x.y:=1"],
        &["any:=five"],
        &["city=@/nonexistent/file"],
        &["days=@/dev/null"],
    ] {
        let error = read(&schema(), given).unwrap_err();
        let _ = writeln!(said, "{}\n    {error}", given.join(" "));
    }
    let closed = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let _ = writeln!(said, "{}", read(&closed, &["a:=1"]).unwrap_err());
    insta::assert_snapshot!(said);
}

#[test]
fn a_file_becomes_text_base64_or_json() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(at("text"), "two\nlines\n").unwrap();
    std::fs::write(at("binary"), b"\xff\x00").unwrap();
    std::fs::write(at("json"), "[1, 2]\n").unwrap();
    let read = |key: &str, name: &str| read(&schema(), &[&format!("{key}@{}", at(name))]);
    assert_eq!(read("city=", "text").unwrap(), r#"{"city":"two\nlines\n"}"#);
    assert_eq!(read("image=", "binary").unwrap(), r#"{"image":"/wA="}"#);
    assert_eq!(
        read("image=", "json").unwrap(),
        r#"{"image":"WzEsIDJdCg=="}"#
    );
    assert_eq!(read("any:=", "json").unwrap(), r#"{"any":[1,2]}"#);
    for (key, name, part) in [
        ("city=", "binary", "is not UTF-8 text"),
        ("days=", "text", "days must be integer, not"),
        ("any:=", "binary", "is not JSON"),
        (
            "city=",
            "missing",
            "entity not found; for a text that starts with @",
        ),
    ] {
        let error = read(key, name).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_schema_that_refers_to_itself_has_an_end() {
    let looping = json!({"$ref": "#", "properties": {"a": {"$ref": "#/properties/a"}}});
    assert!(read(&looping, &["a=1"]).unwrap_err().contains("no type"));
    let wide = json!({"properties": {"a": {"anyOf": [{"$ref": "#/properties/a"}, {"$ref": "#/properties/a"}]}}});
    assert!(read(&wide, &["a=1"]).unwrap_err().contains("no type"));
}
