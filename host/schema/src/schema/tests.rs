//! Tests of `schema`.

use serde_json::json;

use super::compiled_schema::MAX_VIOLATIONS;
use super::violation_text::MAX_MESSAGE_BYTES;
use super::*;

fn compile_input(text: &str) -> Result<JsonSchema, String> {
    JsonSchema::compile_input(text, &PatternBudget::for_schemas([text]))
}

fn schema() -> JsonSchema {
    compile_input(
        r#"{"type":"object","required":["unit"],"additionalProperties":false,"properties":{
                "unit":{"enum":["C","F"]},"days":{"type":"integer","minimum":1},
                "at":{"type":"object","properties":{"lat":{"type":"number"}}}}}"#,
    )
    .unwrap()
}

#[test]
fn every_violation_has_its_pointer() {
    let violations = schema().violations(&json!({"unit": "K", "days": 0, "at": {"lat": "north"}}));
    let mut said: Vec<String> = violations.iter().map(ToString::to_string).collect();
    said.sort();
    assert_eq!(
        said,
        [
            "/at/lat: \"north\" is not of type \"number\"",
            "/days: 0 is less than the minimum of 1",
            "/unit: \"K\" is not one of \"C\" or \"F\"",
        ]
    );
    assert!(schema().violations(&json!({"unit": "C"})).is_empty());
}

#[test]
fn at_most_ten_violations_and_none_quotes_a_long_value() {
    let list = JsonSchema::compile(r#"{"items":{"type":"integer"}}"#).unwrap();
    let long = "x".repeat(100_000);
    let violations = list.violations(&json!(vec![long; 50]));
    assert_eq!(violations.len(), MAX_VIOLATIONS);
    assert!(
        violations
            .iter()
            .all(|v| v.message.len() <= MAX_MESSAGE_BYTES),
        "{violations:?}"
    );
}

#[test]
fn bad_schemas_are_refused_with_a_reason() {
    let cases = [
        ("{", "not JSON"),
        ("[]", "must be a JSON object"),
        (r#"{"type":"strin"}"#, "strin"),
        (
            r#"{"type":"string"}"#,
            "its root must have \"type\": \"object\"",
        ),
        (
            r#"{"type":"object","$ref":"https://example.com/x.json"}"#,
            "refers to \"https://example.com/x.json\", but a schema cannot",
        ),
        (
            r#"{"type":"object","properties":{"a":{"$ref":"other.json#/a"}}}"#,
            "refers to \"other.json#/a\", but a schema cannot",
        ),
        (
            r##"{"type":"object","$ref":"#/nowhere"}"##,
            "refers to \"#/nowhere\", which does not exist",
        ),
        (
            r##"{"type":"object","$ref":"#nowhere"}"##,
            "refers to \"#nowhere\", which does not exist",
        ),
        (
            r#"{"type":"object","$schema":"https://example.com/meta"}"#,
            "has the unknown dialect \"https://example.com/meta\" in $schema",
        ),
        (
            r#"{"type":"object","properties":{"a":{"pattern":"("}}}"#,
            "(",
        ),
    ];
    for (text, expected) in cases {
        let error = compile_input(text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn names_in_messages_have_no_control_characters() {
    let error =
        JsonSchema::compile(r#"{"properties":{"a\u001b[2J\nb":{"type":"strin"}}}"#).unwrap_err();
    assert!(
        error.starts_with("/properties/a\\nb/type: \"strin\""),
        "{error}"
    );
    let schema =
        JsonSchema::compile(r#"{"properties":{"a":true},"additionalProperties":false}"#).unwrap();
    let violations = schema.violations(&json!({"a": 1, "\u{202e}a\nb\u{7}": 1}));
    assert_eq!(
        violations[0].to_string(),
        "(root): \"a\\nb\" is not allowed: this object takes only \"a\""
    );
    let schema = JsonSchema::compile(r#"{"additionalProperties":{"type":"string"}}"#).unwrap();
    let violations = schema.violations(&json!({"k".repeat(100_000): 1}));
    assert_eq!(violations[0].pointer.len(), MAX_MESSAGE_BYTES);
}

#[test]
fn huge_and_deep_schemas_are_refused() {
    let wide = json!({"enum": vec![0; 10_001]}).to_string();
    assert_eq!(
        JsonSchema::compile(&wide).unwrap_err(),
        "contains more than 10,000 values"
    );
    let deep = format!(
        "{}{{}}{}",
        r#"{"not":"#.repeat(MAX_SCHEMA_DEPTH),
        "}".repeat(MAX_SCHEMA_DEPTH)
    );
    assert_eq!(
        JsonSchema::compile(&deep).unwrap_err(),
        "is nested more than 64 levels deep"
    );
}

/// Forty levels, each of which refers to the next one twice.
fn doubling(keyword: &str) -> JsonSchema {
    let levels: serde_json::Map<String, Value> = (0..40)
        .map(|n| {
            let next = json!({"$ref": format!("#/$defs/l{}", n + 1)});
            (format!("l{n}"), json!({keyword: [next, next]}))
        })
        .chain([("l40".to_owned(), json!({"type": "string"}))])
        .collect();
    JsonSchema::compile(&json!({"$defs": levels, "$ref": "#/$defs/l0"}).to_string()).unwrap()
}

#[test]
fn a_check_that_would_take_years_stops_early() {
    for keyword in ["anyOf", "oneOf"] {
        let violations = doubling(keyword).violations(&json!(7));
        assert_eq!(
            violations[0].to_string(),
            "(root): validation against the schema takes too long",
            "{keyword}"
        );
    }
    assert_eq!(doubling("allOf").violations(&json!("text")).len(), 1);
}

#[test]
fn counting_steps_does_not_change_which_values_match() {
    let drafts = [
        "https://json-schema.org/draft/2020-12/schema",
        "http://json-schema.org/draft-07/schema#",
    ];
    let cases = [
        // A tree, a property with the name of a keyword, and data that looks like a reference.
        (
            json!({"definitions": {"tree": {"type": "object", "additionalProperties": false, "properties": {
                "left": {"$ref": "#/definitions/tree"}, "$ref": {"type": "integer"},
                "default": {"$ref": "#/definitions/tree"}, "is": {"const": {"$ref": "#/definitions/tree"}}}}},
                "$ref": "#/definitions/tree"}),
            vec![
                json!({"left": {"$ref": 1}}),
                json!({"is": {"$ref": "#/definitions/tree"}}),
            ],
            vec![
                json!({"left": {"$ref": "x"}}),
                json!({"default": {"no": 1}}),
                json!({"is": {}}),
            ],
        ),
        // A pointer into an `allOf` next to a reference.
        (
            json!({"definitions": {"a": {"allOf": [{"type": "string"}]}}, "properties": {
                "x": {"$ref": "#/definitions/a"}, "y": {"$ref": "#/definitions/a/allOf/0"}}}),
            vec![json!({"x": "s", "y": "s"})],
            vec![json!({"x": 1}), json!({"y": 1})],
        ),
    ];
    for draft in drafts {
        for (schema, fits, does_not) in &cases {
            let mut schema = schema.clone();
            schema["$schema"] = draft.into();
            let schema = JsonSchema::compile(&schema.to_string()).unwrap();
            for value in fits {
                assert_eq!(schema.violations(value), [], "{draft} {value}");
            }
            for value in does_not {
                assert_ne!(schema.violations(value), [], "{draft} {value}");
            }
        }
    }
}

#[test]
fn siblings_of_a_reference_apply_only_since_2019() {
    let beside = |draft: &str| {
        let schema = json!({"$schema": draft, "definitions": {"a": {"type": "string"}},
                "properties": {"x": {"$ref": "#/definitions/a", "maxLength": 1}}});
        JsonSchema::compile(&schema.to_string())
            .unwrap()
            .violations(&json!({"x": "long"}))
            .len()
    };
    assert_eq!(beside("https://json-schema.org/draft/2020-12/schema"), 1);
    assert_eq!(beside("http://json-schema.org/draft-07/schema#"), 0);
}

#[test]
fn a_catastrophic_pattern_stops_early() {
    let schema = JsonSchema::compile(r#"{"pattern":"^(?=a)(a+)+\\1$"}"#).unwrap();
    let violations = schema.violations(&json!("a".repeat(60) + "!"));
    assert_eq!(violations.len(), 1);
}

/// Lists in lists; each level passes through `length` references.
fn round(length: usize) -> JsonSchema {
    let levels: serde_json::Map<String, Value> = (0..length)
        .map(|n| {
            (
                format!("l{n}"),
                json!({"$ref": format!("#/$defs/l{}", n + 1)}),
            )
        })
        .chain([(
            format!("l{length}"),
            json!({"items": {"$ref": "#/$defs/l0"}}),
        )])
        .collect();
    JsonSchema::compile(&json!({"$defs": levels, "$ref": "#/$defs/l0"}).to_string()).unwrap()
}

#[test]
fn references_do_not_use_up_the_stack() {
    let mut value = json!(7);
    for _ in 0..120 {
        value = json!([value]);
    }
    assert_eq!(round(3).violations(&value), []);
    let violations = round(1000).violations(&value);
    assert_eq!(
        violations[0].to_string(),
        "(root): validation against the schema takes too long"
    );
}

#[test]
fn thousands_of_alternatives_for_thousands_of_values_stop_early() {
    let alternatives: Vec<Value> = (0..4000).map(|n| json!({"const": n})).collect();
    let schema =
        JsonSchema::compile(&json!({"items": {"anyOf": alternatives}}).to_string()).unwrap();
    assert_eq!(schema.violations(&json!([3999, 3998])), []);
    let violations = schema.violations(&json!(vec![3999; 100_000]));
    assert_eq!(
        violations[0].to_string(),
        "(root): validation against the schema takes too long"
    );
}

#[test]
fn many_catastrophic_patterns_stop_early() {
    let pattern = |n: usize| format!("^(a|a)*\\1b{{1,{}}}", n + 1);
    let text = |n: usize| "a".repeat(30) + &format!("!{n}");
    let patterns: Vec<Value> = (0..300).map(|n| json!({"pattern": pattern(n)})).collect();
    let texts: Vec<String> = (0..300).map(text).collect();
    let values =
        JsonSchema::compile(&json!({"items": {"not": {"anyOf": patterns}}}).to_string()).unwrap();
    let violations = values.violations(&json!(texts));
    assert_eq!(
        violations[0].to_string(),
        "(root): validation against the schema takes too long"
    );
    let patterns: serde_json::Map<String, Value> =
        (0..15).map(|n| (pattern(n), json!(true))).collect();
    let texts: serde_json::Map<String, Value> = (0..300).map(|n| (text(n), json!(1))).collect();
    let names = JsonSchema::compile(&json!({"patternProperties": patterns}).to_string()).unwrap();
    let violations = names.violations(&json!(texts));
    assert_eq!(
        violations[0].to_string(),
        "(root): validation against the schema takes too long"
    );
}

const TOO_LONG: &str = "(root): validation against the schema takes too long";

#[test]
fn unique_items_are_found_in_linear_time() {
    // All trees of ten empty arrays: 4,862 values without text, in a list of 58,344 values.
    let mut trees: Vec<Vec<Value>> = vec![vec![]];
    for size in 1..=10 {
        let mut own = Vec::new();
        for first in 0..size {
            // The first child has `first` arrays below it, and the others have the rest.
            for child in if first == 0 {
                vec![json!([])]
            } else {
                trees[first].clone()
            } {
                let rest = size - first - 1;
                let others = if rest == 0 {
                    vec![json!([])]
                } else {
                    trees[rest].clone()
                };
                for other in others {
                    let mut items = vec![child.clone()];
                    items.extend(other.as_array().unwrap().iter().cloned());
                    own.push(Value::Array(items));
                }
            }
        }
        trees.push(own);
    }
    let trees: Vec<Value> = trees.into_iter().flatten().collect();
    let unique = JsonSchema::compile(r#"{"uniqueItems":true}"#).unwrap();
    let many: Value = (0..6)
        .map(|n| json!([n]))
        .chain(trees.iter().cloned())
        .collect();
    let (fits, steps) = unique.matches_within(&many, CheckBudget::CHECK).unwrap();
    assert!(fits && steps < 300_000, "{steps} for {} trees", trees.len());
    let twice: Value = trees.iter().chain([&json!([[[]]])]).cloned().collect();
    assert_eq!(unique.violations(&twice).len(), 1);
    // The library handles up to sixteen items differently.
    let few: Value = trees.iter().take(12).cloned().collect();
    assert_eq!(unique.violations(&few), []);
}

#[test]
fn comparisons_are_charged() {
    let long: Vec<u32> = (0..9000).collect();
    let schema = JsonSchema::compile(&json!({"items": {"const": long}}).to_string()).unwrap();
    assert_eq!(schema.violations(&json!([long, long])), []);
    let (_, steps) = schema
        .matches_within(&json!([long, long]), CheckBudget::CHECK)
        .unwrap();
    assert!(steps > 18_000, "{steps}");
}

#[test]
fn a_pattern_is_charged_for_the_work_of_its_automaton() {
    let schema = JsonSchema::compile(r#"{"pattern":"[ab]*a[ab]{20000}[^ab]"}"#).unwrap();
    let letter = |n: u32| {
        if n.wrapping_mul(2_654_435_761) & 1 << 20 == 0 {
            'a'
        } else {
            'b'
        }
    };
    let text: String = (0..1_u32 << 20).map(letter).collect();
    let begun = std::time::Instant::now();
    assert_eq!(schema.violations(&json!(text))[0].to_string(), TOO_LONG);
    assert!(
        begun.elapsed() < std::time::Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    // Matched from the end, the pattern needs few states.
    let schema = JsonSchema::compile(r#"{"pattern":"[ab]*a[ab]{20000}$"}"#).unwrap();
    assert_eq!(schema.violations(&json!("a".repeat(1 << 20))), []);
    assert_eq!(
        schema.violations(&json!("b".repeat(1 << 20)))[0].to_string(),
        "(root): does not match the schema (finding the exact location takes too long)"
    );
    // A text that needs few states may be long.
    let lines = JsonSchema::compile(r#"{"pattern":"^([a-z]{1,64} ){1,}$"}"#).unwrap();
    assert_eq!(lines.violations(&json!("word ".repeat(1 << 18))), []);
    let plain = JsonSchema::compile(r#"{"pattern":"^[a-z]*$"}"#).unwrap();
    let said = plain.violations(&json!("a".repeat(1_000_000) + "!"))[0].to_string();
    assert_eq!(said, "(root): value does not match \"^[a-z]*$\"");
    let letters = json!({"items": {"pattern": r"^[\p{L} .'-]{1,80}$"}});
    let letters = JsonSchema::compile(&letters.to_string()).unwrap();
    let names: Vec<String> = (0..2000)
        .map(|n| {
            format!(
                "Zoë Ångström-Ødegård der {}. Große",
                ["Erste", "Zweite"][n % 2]
            )
        })
        .collect();
    let violations = letters.violations(&json!(names));
    assert_eq!(violations, []);
}

#[test]
fn patterns_match_like_those_of_the_library() {
    let cases = [
        ("^a|b$", "xb", true),
        ("a|b$", "ax", true),
        ("(a|é)$", "xé", true),
        ("(a|é)$", "éx", false),
        ("(^a|b)c$", "xac", false),
        ("(^a|b)c$", "xbc", true),
        (r"\bé?a$", "é a", true),
        (r"x\b.{2}$", "x é", true),
        ("^(get|put)$", "put", true),
        ("^(get|put)$", "puts", false),
        ("^/", "/api", true),
        (r"^\S*$", "a b", false),
        (r"^\d{4}-\d\d$", "2026-01", true),
        (r"^\d$", "٣", false),
        (r"\bword\b", "a word.", true),
        (r"\bword\b", "swords", false),
        (r"^\w+$", "é", false),
        ("^.$", "é", true),
        ("^.$", "\n", false),
        ("^$", "", true),
        ("", "any", true),
        (r"^\cA$", "\u{1}", true),
        ("^(?!eo:)", "eo:x", false),
        ("^(?!eo:)", "proj", true),
        (r"^(\w+) \1$", "mirror mirror", true),
        (r"^(?=.*[A-Z])(?=.*\d).{8,64}$", "passw0rD", true),
        (r"^(?=.*[A-Z])(?=.*\d).{8,64}$", "password", false),
        (r"(?<=a)é", "aé", true),
        (r"^\p{Lu}", "Été", true),
    ];
    for (pattern, text, fits) in cases {
        let ours = JsonSchema::compile(&json!({"pattern": pattern}).to_string()).unwrap();
        assert_eq!(
            ours.violations(&json!(text)).is_empty(),
            fits,
            "{pattern} {text}"
        );
        let theirs = jsonschema::options()
            .build(&json!({"pattern": pattern}))
            .unwrap();
        assert_eq!(theirs.is_valid(&json!(text)), fits, "{pattern} {text}");
        // Names are matched by another engine.
        let names = json!({"patternProperties": {pattern: false}});
        let names = JsonSchema::compile(&names.to_string()).unwrap();
        assert_eq!(
            !names.violations(&json!({text: 1})).is_empty(),
            fits,
            "{pattern} {text}"
        );
        let names =
            JsonSchema::compile(&json!({"propertyNames": {"pattern": pattern}}).to_string())
                .unwrap();
        assert_eq!(
            names.violations(&json!({text: 1})).is_empty(),
            fits,
            "{pattern} {text}"
        );
    }
    let schema = JsonSchema::compile(r#"{"properties":{"a":{"pattern":"^[a-z]{1,3}$"}}}"#).unwrap();
    assert_eq!(
        schema.violations(&json!({"a": "\"A"}))[0].to_string(),
        r#"/a: "\"A" does not match "^[a-z]{1,3}$""#
    );
    let long = schema.violations(&json!({"a": "A".repeat(100_000)}));
    assert_eq!(
        long[0].to_string(),
        r#"/a: value does not match "^[a-z]{1,3}$""#
    );
}

#[test]
fn patterns_that_are_rewritten_for_rust_engines_match() {
    let cases = [
        (r"^(?<year>\d{4})-\k<year>$", "2026-2026", true),
        (r"^(?<year>\d{4})-\k<year>$", "2026-2027", false),
        (r"^(x)(?<a>.)\k<a>1$", "xbb1", true),
        (r"^(?<a>.)\1$", "ab", false),
        ("^[^]$", "\n", true),
        ("[]", "a", false),
        (r"^\0[\b]$", "\0\u{8}", true),
        (r"^\ud83d\ude00$", "😀", true),
    ];
    for (pattern, text, fits) in cases {
        let values = JsonSchema::compile(&json!({"pattern": pattern}).to_string()).unwrap();
        assert_eq!(
            values.violations(&json!(text)).is_empty(),
            fits,
            "{pattern} {text:?}"
        );
        let names = json!({"patternProperties": {pattern: false}});
        let names = JsonSchema::compile(&names.to_string()).unwrap();
        assert_eq!(
            !names.violations(&json!({text: 1})).is_empty(),
            fits,
            "{pattern} {text:?}"
        );
    }
    // Two patterns that are rewritten to the same one both apply.
    let own = json!({r"^(?<a>x)\k<a>": {"type": "string"}, r"^(?<b>x)\k<b>": {"maxLength": 1}});
    let twice = json!({"patternProperties": own});
    let twice = JsonSchema::compile(&twice.to_string()).unwrap();
    assert_eq!(
        (
            twice.violations(&json!({"xx": 1})).len(),
            twice.violations(&json!({"xx": "ab"})).len()
        ),
        (1, 1)
    );
}

#[test]
fn a_pattern_that_is_too_large_is_rejected_with_its_location() {
    let count = "the pattern \"a{1,100000}\" is too large: at character 2, \"{1,100000}\": write a smaller count, or \
            \"+\" or \"*\" with maxLength (compiled, it may have 4,096 KiB here; the patterns of a plugin share 16 MiB)";
    let cases = [
        (
            json!({"properties": {"a": {"pattern": "a{1,100000}"}}}),
            "/properties/a/pattern",
        ),
        (
            json!({"items": {"patternProperties": {"a{1,100000}": {}}}}),
            "/items/patternProperties",
        ),
    ];
    for (schema, place) in cases {
        assert_eq!(
            JsonSchema::compile(&schema.to_string()).unwrap_err(),
            format!("{place}: {count}")
        );
    }
    let error = JsonSchema::compile(r#"{"items":{"patternProperties":{"(?i)x":{}}}}"#).unwrap_err();
    assert!(
        error.starts_with("/items/patternProperties: the pattern \"(?i)x\" is not a"),
        "{error}"
    );
}

#[test]
fn parts_of_a_pattern_with_lookaround_are_bounded() {
    let parts = "(?=[ab]*a[ab]{900}c)".repeat(10);
    let patterns = [
        format!("^{parts}"),
        r"^(a+)\1\1\1b".to_owned(),
        r"^(?:(((((((((a)))))))))|\1)*$".to_owned(),
        r"(?=a)(?:[ab]*a[ab]{900}c|.)*d".to_owned(),
    ];
    for pattern in patterns {
        let Ok(schema) = JsonSchema::compile(&json!({"items": {"pattern": pattern}}).to_string())
        else {
            continue;
        };
        for length in [100, 1_000, 10_000, 60_000, 1 << 20] {
            let begun = std::time::Instant::now();
            schema.violations(&json!(["ab".repeat(length / 2), "a".repeat(length)]));
            assert!(
                begun.elapsed() < std::time::Duration::from_secs(20),
                "{pattern} {length} {:?}",
                begun.elapsed()
            );
        }
    }
}

#[test]
fn patterns_for_names_are_charged() {
    let text = "ab".repeat(1 << 19);
    for pattern in ["[ab]*a[ab]{20000}[^ab]", "^(?=a)(a+|b)+c"] {
        let schema =
            JsonSchema::compile(&json!({"patternProperties": {pattern: false}}).to_string())
                .unwrap();
        assert_eq!(
            schema.violations(&json!({&text: 1}))[0].to_string(),
            TOO_LONG,
            "{pattern}"
        );
        let schema = json!({"patternProperties": {pattern: false}, "additionalProperties": false});
        let schema = JsonSchema::compile(&schema.to_string()).unwrap();
        assert_eq!(
            schema.violations(&json!({&text: 1}))[0].to_string(),
            TOO_LONG,
            "{pattern}"
        );
        let own = json!({"properties": {&text: true}, "patternProperties": {pattern: false}, "additionalProperties": false});
        let error = JsonSchema::compile(&own.to_string()).unwrap_err();
        assert_eq!(
            error, "its patternProperties take too long for its own properties",
            "{pattern}"
        );
    }
    let plain =
        json!({"patternProperties": {"^x-[a-z0-9-]{1,64}$": {"type": "integer"}, "^_": true}});
    let names: serde_json::Map<String, Value> = (0..50_000)
        .map(|n| (format!("x-name-{n}"), json!(n)))
        .collect();
    assert_eq!(
        JsonSchema::compile(&plain.to_string())
            .unwrap()
            .violations(&json!(names)),
        []
    );
}

#[test]
fn automata_for_names_share_one_budget() {
    let large = |n: usize| (format!("[ab]*a[ab]{{{}}}[^ab]", 100 + n), json!(true));
    let schema = |count| json!({"patternProperties": (0..count).map(large).collect::<serde_json::Map<_, _>>()});
    assert!(JsonSchema::compile(&schema(16).to_string()).is_ok());
    let error = JsonSchema::compile(&schema(17).to_string()).unwrap_err();
    let expected = "/patternProperties: all patterns for names need too much memory; use fewer or simpler ones";
    assert_eq!(error, expected);
}

#[test]
fn automata_share_their_cache_budget() {
    let patterns: Vec<Value> = (0..100)
        .map(|n| json!({"not": {"pattern": format!("[ab]*a[ab]{{{}}}c", 300 + n)}}))
        .collect();
    let text = json!({"allOf": patterns}).to_string();
    let shared = PatternBudget::for_schemas([text.as_str()]);
    let schema = JsonSchema::compile_with(&text, &shared).unwrap();
    let random: String = (0..400_u32)
        .map(|n| {
            if n.wrapping_mul(2_654_435_761) & 1 << 20 == 0 {
                'a'
            } else {
                'b'
            }
        })
        .collect();
    schema.violations(&json!(random));
    let kept = shared.cached_bytes().used();
    assert!(
        (1..=PatternBudget::MAX_CACHED_BYTES).contains(&kept),
        "{kept}"
    );
    drop(schema);
    assert_eq!(shared.cached_bytes().used(), 0);
}

#[test]
fn formats_are_checked_in_linear_time() {
    let formats = [
        "date",
        "date-time",
        "duration",
        "email",
        "hostname",
        "idn-email",
        "idn-hostname",
        "ipv4",
        "ipv6",
        "iri",
        "iri-reference",
        "json-pointer",
        "regex",
        "relative-json-pointer",
        "time",
        "uri",
        "uri-reference",
        "uri-template",
        "uuid",
    ];
    let parts = [
        "a", "a.", "a@", "1", ":", "/~0", "(", "(?<a>b)", "[", "\\cA", "{a}", "xn--", "é", "-",
        "P1Y", "%61", "?a", "\"", "\\",
    ];
    for format in formats {
        let schema =
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "format": format});
        let schema = JsonSchema::compile(&schema.to_string()).unwrap();
        for part in parts {
            for text in [
                part.repeat(1_000_000 / part.len()),
                format!("a@{}", part.repeat(500_000 / part.len())),
            ] {
                let begun = std::time::Instant::now();
                schema.violations(&json!(text));
                assert!(
                    begun.elapsed() < std::time::Duration::from_secs(5),
                    "{format} {part} {:?}",
                    begun.elapsed()
                );
            }
        }
    }
}

#[test]
fn an_interrupt_ends_a_check() {
    let schema = doubling("anyOf");
    let due = Interrupt::with_deadline(std::time::Instant::now());
    assert_eq!(
        schema.violations_until(&json!(7), &due),
        Err(CheckInterrupted)
    );
    assert_eq!(schema.quick_violations(&json!(7)), None);
    let raised = Interrupt::default();
    let seen = raised.clone();
    let check = std::thread::spawn(move || schema.violations_until(&json!(7), &seen));
    raised.raise();
    assert_eq!(check.join().unwrap(), Err(CheckInterrupted));
    let small = JsonSchema::compile(r#"{"type":"integer"}"#).unwrap();
    assert_eq!(
        small.violations_until(&json!(7), &Interrupt::default()),
        Ok(vec![])
    );
    assert_eq!(small.quick_violations(&json!("x")).unwrap().len(), 1);
}

#[test]
fn quoted_values_are_charged() {
    let alternatives: Vec<Value> = (0..1000)
        .map(|n| json!({"items": {"type": "array", "minItems": n + 3}, "unevaluatedItems": false}))
        .collect();
    let schema =
        JsonSchema::compile(&json!({"anyOf": alternatives, "unevaluatedItems": false}).to_string())
            .unwrap();
    let violations = schema.violations(&json!(vec!["x".repeat(1000); 1000]));
    assert!(
        violations
            .iter()
            .all(|violation| violation.message.len() <= MAX_MESSAGE_BYTES)
    );
}

#[test]
fn all_patterns_of_a_plugin_share_one_limit() {
    let letters = |count: usize| json!({"pattern": format!("^\\p{{L}}{{{count}}}$")});
    let compile =
        |patterns: Vec<Value>| JsonSchema::compile(&json!({"anyOf": patterns}).to_string());
    assert_eq!(
        compile(vec![letters(80)])
            .unwrap()
            .violations(&json!("é".repeat(80))),
        []
    );
    let error = compile((0..1000).map(|n| letters(20 + n % 60)).collect()).unwrap_err();
    let expected = "/anyOf/0/pattern: the pattern \"^\\\\p{L}{20}$\" is too large: at character 7, \"{20}\": write a \
            smaller count, or \"+\" or \"*\" with maxLength (compiled, it may have ";
    assert!(
        error.starts_with(expected) && error.ends_with("share 16 MiB)"),
        "{error}"
    );
    let plain =
        (0..1000).map(|n| json!({"pattern": format!("^[a-z][a-z0-9-]{{0,{}}}$", 20 + n % 40)}));
    assert_eq!(
        compile(plain.collect()).unwrap().violations(&json!("a-b")),
        []
    );
}
