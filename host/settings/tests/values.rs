//! Tests setting values in TOML, and the messages about invalid ones.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde::Deserialize;

use toolbay_settings::toml_file::parse;

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "only read")]
struct Keys {
    #[serde(deserialize_with = "toolbay_model::setting::positive")]
    count: u32,
    #[serde(default, deserialize_with = "toolbay_model::setting::positive")]
    size: Option<bytesize::ByteSize>,
    #[serde(default, deserialize_with = "toolbay_model::setting::positive")]
    time: Option<std::time::Duration>,
    #[serde(default, deserialize_with = "toolbay_model::setting::any")]
    may_be_none: Option<bytesize::ByteSize>,
}

#[test]
fn valid_values_are_read() {
    for text in [
        "",
        "size = 1",
        "size = \"1KiB\"",
        "time = \"1ms\"",
        "may_be_none = 0",
        "may_be_none = \"0\"",
    ] {
        parse::<Keys>("a.toml", &format!("count = 1\n{text}")).unwrap();
    }
}

#[test]
fn invalid_values_are_reported() {
    let values = [
        "0",
        "-1",
        "5_000_000_000",
        "1.5",
        "\"a lot\"",
        "true",
        "[1]",
        "{ a = 1 }",
    ];
    let mut said = String::new();
    for value in values {
        said += &parse::<Keys>("a.toml", &format!("count = {value}")).unwrap_err();
        said.push('\n');
    }
    for (key, value) in [
        ("size", "0"),
        ("size", "-1"),
        ("size", "\"0B\""),
        ("size", "\"lots\""),
        ("size", "true"),
    ] {
        said += &parse::<Keys>("a.toml", &format!("count = 1\n{key} = {value}")).unwrap_err();
        said.push('\n');
    }
    for value in ["\"0s\"", "\"soon\"", "30"] {
        said += &parse::<Keys>("a.toml", &format!("count = 1\ntime = {value}")).unwrap_err();
        said.push('\n');
    }
    insta::assert_snapshot!(said, @r#"
    a.toml:1:9: count: expected an integer of at least 1, not 0
    a.toml:1:9: count: expected an integer of at least 1, not -1
    a.toml:1:9: count: expected an integer of at least 1, not 5000000000
    a.toml:1:9: count: expected an integer of at least 1, not 1.5
    a.toml:1:9: count: expected an integer of at least 1, not "a lot"
    a.toml:1:9: count: expected an integer of at least 1, not true
    a.toml:1:9: count: expected an integer of at least 1, not a list
    a.toml:1:9: count: expected an integer of at least 1, not a table
    a.toml:2:8: size: expected a size above 0, such as "64MiB", not 0
    a.toml:2:8: size: expected a size above 0, such as "64MiB", not -1
    a.toml:2:8: size: expected a size above 0, such as "64MiB", not "0B"
    a.toml:2:8: size: expected a size above 0, such as "64MiB", not "lots"
    a.toml:2:8: size: expected a size above 0, such as "64MiB", not true
    a.toml:2:8: time: expected a duration above 0, such as "30s", not "0s"
    a.toml:2:8: time: expected a duration above 0, such as "30s", not "soon"
    a.toml:2:8: time: expected a duration above 0, such as "30s", not 30
    "#);
}
