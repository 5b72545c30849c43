//! Round-trip tests: WIT types of every kind, and JSON values that match them, pass through a real
//! component and back.
//!
//! The component consists of WIT and a few lines of core code. Its only function takes a record
//! that is so wide that the canonical ABI passes it by pointer. It returns the same type, so it can
//! return the pointer that it received, whatever the type.

use proptest::prelude::*;
use proptest::strategy::{BoxedStrategy, Union};
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use toolbay_model::{CallError, ContentBody, ToolOutput};
use toolbay_schema::{JsonSchema, PatternBudget};
use toolbay_testkit::wit::build_component_with_memory;

use super::schema::{MAX_EXACT_INTEGER, ValueDirection, f32_json, integer_json, type_schema};
use super::value::{from_json, to_json};
use super::wit_type::{WitInteger, WitType};
use crate::test_sandbox::{TrialComponent, sandbox};

/// Builds a component that implements `wit` with the core functions `exports`, and has memory for
/// wide values.
fn component(wit: &str, exports: &str) -> Vec<u8> {
    build_component_with_memory(wit, exports, 64)
}

/// Builds the `echo` component of a type.
fn echo(shape: &WitType) -> Vec<u8> {
    let mut types = Vec::new();
    let ty = wit_type(shape, &mut types);
    let pad = vec!["u64"; 17].join(", ");
    let wit = format!(
        "package test:echo;\ninterface api {{\n{}\nrecord wide {{ value: {ty}, pad: tuple<{pad}> }}\n\
         echo: func(wide: wide) -> wide;\n}}\nworld echo {{ export api; }}",
        types.join("\n")
    );
    component(
        &wit,
        r#"(func (export "test:echo/api#echo") (param i32) (result i32) (local.get 0))"#,
    )
}

/// Formats a type in WIT notation. Types that need a name are declared in `types`.
fn wit_type(shape: &WitType, types: &mut Vec<String>) -> String {
    let declare = |types: &mut Vec<String>, kind: &str, members: Vec<String>| {
        let name = format!("t{}", types.len());
        types.push(format!("{kind} {name} {{ {} }}", members.join(", ")));
        name
    };
    match shape {
        WitType::List(item) => format!("list<{}>", wit_type(item, types)),
        WitType::Option(inner) => format!("option<{}>", wit_type(inner, types)),
        WitType::Tuple(items) => {
            let items: Vec<String> = items.iter().map(|item| wit_type(item, types)).collect();
            format!("tuple<{}>", items.join(", "))
        }
        WitType::Result(ok, err) => {
            let mut side = |shape: &Option<Box<WitType>>| {
                shape
                    .as_ref()
                    .map_or_else(|| "_".to_owned(), |shape| wit_type(shape, types))
            };
            match (side(ok), side(err)) {
                (ok, err) if ok == "_" && err == "_" => "result".to_owned(),
                (ok, err) if err == "_" => format!("result<{ok}>"),
                (ok, err) => format!("result<{ok}, {err}>"),
            }
        }
        WitType::Record(fields) => {
            let fields = fields
                .iter()
                .map(|(name, shape)| format!("{name}: {}", wit_type(shape, types)))
                .collect();
            declare(types, "record", fields)
        }
        WitType::Variant(cases) => {
            let case = |(name, shape): &(String, Option<WitType>)| match shape {
                Some(shape) => format!("{name}({})", wit_type(shape, types)),
                None => name.clone(),
            };
            let cases = cases.iter().map(case).collect();
            declare(types, "variant", cases)
        }
        WitType::Enum(names) => declare(types, "enum", names.clone()),
        WitType::Flags(names) => declare(types, "flags", names.clone()),
        plain => plain.to_string(),
    }
}

const INTEGERS: [WitInteger; 8] = [
    WitInteger::S8,
    WitInteger::U8,
    WitInteger::S16,
    WitInteger::U16,
    WitInteger::S32,
    WitInteger::U32,
    WitInteger::S64,
    WitInteger::U64,
];

fn names(prefix: &'static str, max_count: usize) -> impl Strategy<Value = Vec<String>> {
    (1..=max_count).prop_map(move |n| (0..n).map(|n| format!("{prefix}{n}")).collect())
}

/// Generates types of every kind.
fn shapes() -> impl Strategy<Value = WitType> {
    let leaf = prop_oneof![
        Just(WitType::Bool),
        prop::sample::select(&INTEGERS).prop_map(WitType::Integer),
        Just(WitType::Float32),
        Just(WitType::Float64),
        Just(WitType::Char),
        Just(WitType::String),
        Just(WitType::Bytes),
        names("e", 5).prop_map(WitType::Enum),
        names("f", 12).prop_map(WitType::Flags),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        prop_oneof![
            inner.clone().prop_map(|item| match item {
                WitType::Integer(WitInteger::U8) => WitType::Bytes,
                item => WitType::List(Box::new(item)),
            }),
            prop::collection::vec(inner.clone(), 1..4).prop_map(WitType::Tuple),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|shapes| {
                WitType::Record(
                    shapes
                        .into_iter()
                        .enumerate()
                        .map(|(n, shape)| (format!("m{n}"), shape))
                        .collect(),
                )
            }),
            prop::collection::vec(prop::option::of(inner.clone()), 1..4).prop_map(|shapes| {
                WitType::Variant(
                    shapes
                        .into_iter()
                        .enumerate()
                        .map(|(n, shape)| (format!("c{n}"), shape))
                        .collect(),
                )
            }),
            boxed.clone().prop_map(WitType::Option),
            (prop::option::of(boxed.clone()), prop::option::of(boxed))
                .prop_map(|(ok, err)| WitType::Result(ok, err)),
        ]
    })
}

/// Generates JSON values that match a type, in the form in which Toolbay writes them.
fn values(shape: &WitType) -> BoxedStrategy<Value> {
    match shape {
        WitType::Bool => any::<bool>().prop_map(Value::from).boxed(),
        WitType::Integer(integer) => {
            let (least, most) = integer.range();
            let edges = prop::sample::select(vec![
                least,
                most,
                0,
                MAX_EXACT_INTEGER.clamp(least, most),
                (MAX_EXACT_INTEGER + 1).clamp(least, most),
            ]);
            let written = |n: i128| {
                if (-MAX_EXACT_INTEGER..=MAX_EXACT_INTEGER).contains(&n) {
                    integer_json(n)
                } else {
                    n.to_string().into()
                }
            };
            prop_oneof![edges, least..=most].prop_map(written).boxed()
        }
        WitType::Float32 => {
            prop_oneof![prop::num::f32::NORMAL | prop::num::f32::ZERO | prop::num::f32::SUBNORMAL]
                .prop_map(f32_json)
                .boxed()
        }
        WitType::Float64 => {
            (prop::num::f64::NORMAL | prop::num::f64::ZERO | prop::num::f64::SUBNORMAL)
                .prop_map(Value::from)
                .boxed()
        }
        WitType::Char => plain(any::<char>().prop_map(String::from), "x"),
        WitType::String => plain(any::<String>(), ""),
        WitType::Bytes => prop::collection::vec(any::<u8>(), 0..40)
            .prop_map(|bytes| {
                use base64::Engine as _;
                base64::engine::general_purpose::STANDARD
                    .encode(bytes)
                    .into()
            })
            .boxed(),
        WitType::List(item) => prop::collection::vec(values(item), 0..4)
            .prop_map(Value::Array)
            .boxed(),
        WitType::Tuple(items) => items
            .iter()
            .map(values)
            .collect::<Vec<_>>()
            .prop_map(Value::Array)
            .boxed(),
        WitType::Record(fields) => {
            let shapes = fields.clone();
            fields
                .iter()
                .map(|(_, shape)| values(shape))
                .collect::<Vec<_>>()
                .prop_map(move |values| {
                    let present = |((name, shape), value): (&(String, WitType), Value)| {
                        // `none` is omitted.
                        (!(matches!(shape, WitType::Option(_)) && value.is_null()))
                            .then(|| (name.clone(), value))
                    };
                    Value::Object(shapes.iter().zip(values).filter_map(present).collect())
                })
                .boxed()
        }
        WitType::Variant(cases) => Union::new(cases.iter().cloned().map(|(name, shape)| {
            match shape {
                Some(shape) => values(&shape)
                    .prop_map(move |value| json!({name.clone(): value}))
                    .boxed(),
                None => Just(Value::from(name)).boxed(),
            }
        }))
        .boxed(),
        WitType::Enum(names) => prop::sample::select(names.clone())
            .prop_map(Value::from)
            .boxed(),
        WitType::Flags(names) => prop::sample::subsequence(names.clone(), 0..=names.len())
            .prop_map(Value::from)
            .boxed(),
        WitType::Option(inner) => {
            let wrap = inner.is_nullable();
            let some = values(inner)
                .prop_map(move |value| if wrap { json!({"some": value}) } else { value });
            prop_oneof![Just(Value::Null), some].boxed()
        }
        WitType::Result(ok, err) => {
            let side = |name: &'static str, shape: &Option<Box<WitType>>| {
                let payload = shape
                    .as_ref()
                    .map_or_else(|| Just(Value::Null).boxed(), |shape| values(shape));
                payload.prop_map(move |value| json!({name: value}))
            };
            prop_oneof![side("ok", ok), side("error", err)].boxed()
        }
    }
}

/// Generates a type with a matching JSON value.
fn matching() -> impl Strategy<Value = (WitType, Value)> {
    shapes().prop_flat_map(|shape| {
        let values = values(&shape);
        (Just(shape), values)
    })
}

/// Generates arbitrary JSON values of about the same size.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3i64..300).prop_map(Value::from),
        // In this range, the schema accepts whole numbers as integers, although parsing may have
        // rounded them.
        any::<f32>()
            .prop_map(|n| if (9e15..2e19).contains(&n.abs()) {
                0.5
            } else {
                n
            })
            .prop_map(Value::from),
        prop::sample::select(vec![
            "e0", "f1", "c0", "c1", "m0", "ok", "12", "-7", "a", "", "AAAA"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let key = prop::sample::select(vec![
            "m0", "m1", "m2", "c0", "c1", "c2", "ok", "error", "some",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::vec((key, inner), 0..3).prop_map(|members| Value::Object(
                members
                    .into_iter()
                    .map(|(k, v)| (k.to_owned(), v))
                    .collect()
            )),
        ]
    })
}

/// Generates text without the characters that are removed from a guest's text, and `other` instead
/// of an empty string.
fn plain(
    texts: impl Strategy<Value = String> + 'static,
    other: &'static str,
) -> BoxedStrategy<Value> {
    let plain = |text: String| toolbay_model::text::clean(&text).into_owned();
    texts
        .prop_map(plain)
        .prop_map(move |text| {
            if text.is_empty() {
                other.into()
            } else {
                text.into()
            }
        })
        .boxed()
}

fn compiled(shape: &WitType, direction: ValueDirection) -> JsonSchema {
    JsonSchema::compile(&type_schema(shape, direction, "", &|_| None).to_string()).unwrap()
}

fn read(shape: &WitType, json: &Value) -> Result<wasmtime::component::Val, String> {
    from_json(shape, json, "", &mut usize::MAX.clone())
}

proptest! {
    #[test]
    fn matching_values_are_accepted_and_come_back_equal((shape, json) in matching()) {
        for direction in [ValueDirection::Input, ValueDirection::Output] {
            prop_assert_eq!(compiled(&shape, direction).violations(&json), vec![], "{} {:?}", shape, direction);
        }
        let val = read(&shape, &json).map_err(TestCaseError::fail)?;
        prop_assert_eq!(to_json(&shape, &val), Some(json));
    }

    #[test]
    fn the_schema_and_the_conversion_agree((shape, json) in (shapes(), any_json())) {
        let violations = compiled(&shape, ValueDirection::Input).violations(&json);
        let read = read(&shape, &json);
        prop_assert_eq!(violations.is_empty(), read.is_ok(), "{} {} {:?} {:?}", shape, json, violations, read);
        if let Err(why) = read {
            prop_assert!(why.starts_with('/') || why.starts_with("(root): "), "{}", why);
        }
    }
}

#[test]
fn numbers_out_of_range_are_rejected_with_a_pointer() {
    let list = WitType::Tuple(vec![
        WitType::Integer(WitInteger::U64),
        WitType::Integer(WitInteger::S8),
    ]);
    let refused = |json: Value| read(&list, &json).unwrap_err();
    assert_eq!(
        refused(json!(["18446744073709551616", 0])),
        "/0: expected an integer from 0 to 18446744073709551615"
    );
    assert_eq!(
        refused(json!([1e19, 0])),
        "/0: expected an integer from 0 to 18446744073709551615, written in digits only"
    );
    // The parsed number differs from the written one.
    for rounded in [
        "9007199254740993.0",
        "9007199254740992.0",
        "1e16",
        "-9223372036854775809",
    ] {
        let rounded: Value = serde_json::from_str(&format!("[{rounded}, {rounded}]")).unwrap();
        let why = refused(rounded.clone());
        assert!(
            why.ends_with(", written in digits only"),
            "{rounded}: {why}"
        );
    }
    assert_eq!(
        refused(json!([0, 128])),
        "/1: expected an integer from -128 to 127"
    );
    assert!(
        read(&list, &json!([1.0, -1e2])).is_ok(),
        "JSON Schema takes these for integers"
    );
}

#[test]
fn arguments_with_too_many_values_are_rejected() {
    let list = WitType::List(Box::new(WitType::Bool));
    assert!(from_json(&list, &json!([true, true]), "", &mut 3).is_ok());
    let why = from_json(&list, &json!([true, true]), "", &mut 2).unwrap_err();
    assert_eq!(
        why,
        "/1: too many values (to allow more, raise limits.transfer)"
    );
    assert!(from_json(&WitType::Bytes, &json!("AAAA"), "", &mut 3).is_err());
}

#[test]
fn every_type_makes_the_round_trip_through_a_guest() {
    let sandbox = sandbox();
    let mut runner = TestRunner::new(Config {
        cases: 48,
        ..Config::default()
    });
    runner
        .run(&matching(), |(shape, json)| {
            let loaded = TrialComponent::new(&sandbox, echo(&shape))
                .map_err(|error| TestCaseError::fail(error.to_string()))?;
            let argument = json!({"wide": {"value": json, "pad": vec![0; 17]}});
            let tool = loaded.tool("echo");
            let input =
                JsonSchema::compile_input(&tool.input_schema, &PatternBudget::for_schemas([]))
                    .unwrap();
            prop_assert_eq!(input.violations(&argument), vec![]);
            let output = loaded
                .call("echo", &argument)
                .map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
            let structured = output.structured.unwrap();
            let schema = JsonSchema::compile(tool.output_schema.as_deref().unwrap()).unwrap();
            prop_assert_eq!(schema.violations(&structured), vec![]);
            // A field that is `none` is omitted.
            let missing = matches!(shape, WitType::Option(_)) && json.is_null();
            prop_assert_eq!(
                structured.get("value").cloned().unwrap_or(Value::Null),
                json,
                "{}",
                shape
            );
            prop_assert_eq!(structured.get("value").is_none(), missing);
            Ok(())
        })
        .unwrap();
}

#[test]
fn results_become_failures_and_names_are_unique() {
    let wit = "package a:b@1.2.3;
        interface one { same: func() -> string; only-here: func(); }
        interface two { same: func() -> u8; }
        world w {
            export one;
            export two;
            export init: func();
            export fails: func(n: u8) -> result<u8, string>;
            export empty: func() -> result<_, u8>;
            export nan: func() -> f64;
        }";
    let text = r#"(data (i32.const 16) "\20\00\00\00\02\00\00\00") (data (i32.const 32) "hi")
        (func (export "a:b/one@1.2.3#same") (result i32) (i32.const 16))
        (func (export "a:b/one@1.2.3#only-here"))
        (func (export "a:b/two@1.2.3#same") (result i32) (i32.const 7))
        (func (export "init"))
        (data (i32.const 64) "\01\00\00\00\20\00\00\00\02\00\00\00")
        (func (export "fails") (param i32) (result i32) (i32.const 64))
        (data (i32.const 80) "\01\09")
        (func (export "empty") (result i32) (i32.const 80))
        (func (export "nan") (result f64) (f64.const nan))"#;
    let loaded = TrialComponent::new(&sandbox(), component(wit, text)).unwrap();
    let names: Vec<&str> = loaded
        .description
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(
        names,
        ["empty", "fails", "nan", "one_same", "only-here", "two_same"]
    );
    let none = json!({});
    let first_text =
        |output: ToolOutput| match output.content.into_iter().next().map(|block| block.body) {
            Some(ContentBody::Text(text)) => Ok(text),
            other => Err(format!("{other:?}")),
        };
    assert_eq!(
        first_text(loaded.call("one_same", &none).unwrap()),
        Ok("hi".into())
    );
    assert_eq!(
        loaded.call("two_same", &none).unwrap().structured,
        Some(json!({"result": 7}))
    );
    assert_eq!(
        loaded.call("only-here", &none).unwrap(),
        ToolOutput::default()
    );
    assert_eq!(
        loaded.call("fails", &json!({"n": 1})).unwrap_err(),
        CallError::Failed("hi".into())
    );
    assert_eq!(
        loaded.call("empty", &none).unwrap_err(),
        CallError::Failed("9".into())
    );
    assert_eq!(
        loaded.call("nan", &none).unwrap().structured,
        Some(json!({"result": "NaN"}))
    );
    let misfit = loaded.call("fails", &json!({"n": 300})).unwrap_err();
    assert_eq!(
        misfit,
        CallError::InvalidArguments("/n: expected an integer from 0 to 255".into())
    );
    assert_eq!(
        loaded.tool("fails").description.as_deref(),
        Some("fails: func(n: u8) -> result<u8, string>")
    );
}

#[test]
fn functions_that_cannot_be_tools_are_left_out_with_a_reason() {
    let wit = "package a:b;
        interface shop { resource basket { constructor(); add: func(); } empty: func(basket: own<basket>); open: func(); }
        world w { export shop; }";
    let exports = r#"
        (func (export "a:b/shop#[constructor]basket") (result i32) (i32.const 0))
        (func (export "a:b/shop#[method]basket.add") (param i32))
        (func (export "a:b/shop#empty") (param i32))
        (func (export "a:b/shop#open"))"#;
    let loaded = TrialComponent::new(&sandbox(), component(wit, exports)).unwrap();
    let names: Vec<&str> = loaded
        .description
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(names, ["open"]);
    assert_eq!(
        loaded.description.remarks,
        [
            "function a:b/shop#[constructor]basket is not offered: it is a method of a resource",
            "function a:b/shop#[method]basket.add is not offered: it is a method of a resource",
            "function a:b/shop#empty is not offered: a parameter or its result is a resource",
        ]
    );
}

#[test]
fn an_import_of_types_only_needs_no_provider() {
    let wit = "package trinity:api;
        interface types { record message { text: string } }
        interface more { use types.{message}; variant reply { one(message), none } }
        interface messaging { use types.{message}; use more.{reply}; on-msg: func(content: string) -> list<message>;
            last: func() -> reply; }
        world w { export messaging; }";
    let exports = r#"(data (i32.const 16) "\20\00\00\00\01\00\00\00") (data (i32.const 32) "\30\00\00\00\02\00\00\00")
        (data (i32.const 48) "hi") (data (i32.const 64) "\01")
        (func (export "trinity:api/messaging#on-msg") (param i32 i32) (result i32) (i32.const 16))
        (func (export "trinity:api/messaging#last") (result i32) (i32.const 64))"#;
    let loaded = TrialComponent::new(&sandbox(), component(wit, exports)).unwrap();
    let answer = loaded.call("on-msg", &json!({"content": "x"})).unwrap();
    assert_eq!(answer.structured, Some(json!({"result": [{"text": "hi"}]})));
    assert_eq!(
        loaded.call("last", &json!({})).unwrap().structured,
        Some(json!({"result": "none"}))
    );
}

#[test]
fn a_resource_of_the_host_under_another_name_is_provided() {
    let wit = "package a:b;
        interface shapes { use wasi:io/error@0.2.6.{error}; type fault = error; }
        interface api { use shapes.{fault}; ready: func() -> u8; broken: func() -> option<fault>; }
        world w { import wasi:io/error@0.2.6; export api; }
        package wasi:io@0.2.6 { interface error { resource error { to-debug-string: func() -> string; } } }";
    let exports = r#"(func (export "a:b/api#ready") (result i32) (i32.const 7))
        (func (export "a:b/api#broken") (result i32) (i32.const 16))"#;
    let loaded = TrialComponent::new(&sandbox(), component(wit, exports)).unwrap();
    assert_eq!(
        loaded.call("ready", &json!({})).unwrap().structured,
        Some(json!({"result": 7}))
    );
    let own = wit.replace(
        "use wasi:io/error@0.2.6.{error}; type fault = error;",
        "resource fault { constructor(); }",
    );
    let refused = TrialComponent::new(&sandbox(), component(&own, exports))
        .err()
        .unwrap()
        .to_string();
    assert!(refused.contains("a:b/shapes"), "{refused}");
}

#[test]
fn types_whose_size_doubles_at_each_level_are_refused() {
    let types: Vec<String> = (1..13)
        .map(|n| format!("type t{n} = tuple<t{}, t{}>;", n - 1, n - 1))
        .collect();
    let wit = format!(
        "package a:b; interface i {{ type t0 = u8; {} f: func(x: list<t12>); g: func(); }} world w {{ export i; }}",
        types.join(" ")
    );
    let exports = r#"(func (export "a:b/i#f") (param i32 i32)) (func (export "a:b/i#g"))"#;
    let loaded = TrialComponent::new(&sandbox(), component(&wit, exports)).unwrap();
    assert_eq!(
        loaded.description.remarks,
        ["function a:b/i#f is not offered: its signature has more than 1000 types"]
    );
}

#[test]
fn a_control_character_is_replaced_by_a_visible_one() {
    let converted = |c| to_json(&WitType::Char, &wasmtime::component::Val::Char(c)).unwrap();
    assert_eq!(
        ["a", "\u{fffd}", "\u{fffd}", "\n"],
        ['a', '\0', '\u{202e}', '\r'].map(converted)
    );
}

#[test]
fn the_refusal_of_a_component_without_functions_names_its_exports() {
    let refused = |wat: &str| {
        TrialComponent::new(&sandbox(), wat::parse_str(wat).unwrap())
            .err()
            .unwrap()
            .to_string()
    };
    assert_eq!(
        refused("(component)"),
        "exports no tools, prompts or resources of toolbay:plugin, and no function that can be a tool; it exports nothing \
         (is `export!(…)` missing?)"
    );
}
