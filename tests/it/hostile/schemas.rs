//! Plugins whose schemas would cost the host more than their text.

use std::fmt::Write as _;

use super::put;
use crate::checks::{letters, trees};
use crate::support::{Folder, TinyComponent, TinyTool};

fn input(folder: &Folder, schema: &str) {
    put(
        folder,
        TinyComponent::with_tools(vec![TinyTool {
            input: schema.into(),
            ..TinyTool::new("a")
        }])
        .build(),
    );
}

/// Writes a component that returns a value that takes long to check against its own schema.
fn output(folder: &Folder, schema: &str, structured: &str) {
    let tool = TinyTool {
        output: Some(schema.into()),
        ..TinyTool::new("a")
    };
    put(
        folder,
        TinyComponent::with_tools(vec![tool])
            .with_structured(structured)
            .build(),
    );
}

/// Returns a schema with forty levels, each of which contains the next one twice: 2^40 ways to
/// fail.
fn doubling(keyword: &str) -> String {
    let mut definitions = String::new();
    for n in 0..40 {
        let next = format!("{{\"$ref\":\"#/$defs/d{}\"}}", n + 1);
        let _ = write!(definitions, "\"d{n}\":{{\"{keyword}\":[{next},{next}]}},");
    }
    let levels = format!("{definitions}\"d40\":{{\"type\":\"string\"}}");
    format!(
        r##"{{"type":"object","properties":{{"x":{{"$ref":"#/$defs/d0"}}}},"$defs":{{{levels}}}}}"##
    )
}

/// Returns the schema of a nested list; checking each level follows 1,000 references.
fn round() -> String {
    let mut definitions = String::new();
    for n in 0..1000 {
        let _ = write!(definitions, "\"d{n}\":{{\"$ref\":\"#/$defs/d{}\"}},", n + 1);
    }
    let levels = format!("{definitions}\"d1000\":{{\"items\":{{\"$ref\":\"#/$defs/d0\"}}}}");
    format!(
        r##"{{"type":"object","properties":{{"x":{{"$ref":"#/$defs/d0"}}}},"$defs":{{{levels}}}}}"##
    )
}

/// Returns a schema whose `x` is a list, each element of which must match one of these.
fn one_of_these(schemas: impl Iterator<Item = String>) -> String {
    let schemas: Vec<String> = schemas.collect();
    format!(
        r#"{{"type":"object","properties":{{"x":{{"items":{{"anyOf":[{}]}}}}}}}}"#,
        schemas.join(",")
    )
}

/// A nested list that can be checked in two ways on each level.
const TWO_WAYS: &str = r##"{"type":"object","properties":{"x":{"$ref":"#/$defs/n"}},"$defs":{"n":{"anyOf":[
    {"type":"array","items":{"$ref":"#/$defs/n"}},{"type":"array","items":{"$ref":"#/$defs/n"},"minItems":1}]}}}"##;

cases! {
    no_json: Load, "has a schema that is not JSON", |folder| input(folder, "{")
        => refused("tool \"a\": its input schema is invalid: not JSON: EOF while parsing an object at line 1 column 1");

    a_remote_schema: Load, "has a schema with a remote reference: nothing is fetched",
        |folder| input(folder, r#"{"type":"object","$ref":"http://127.0.0.1:9/schema.json"}"#)
        => refused("tool \"a\": its input schema refers to \"http://127.0.0.1:9/schema.json\", but a schema cannot refer to another \
            document; copy the definition into the schema");

    a_local_schema: Load, "has a schema that refers to a file of the host: nothing is read",
        |folder| input(folder, r#"{"type":"object","$ref":"file:///etc/passwd"}"#)
        => refused("tool \"a\": its input schema refers to \"file:///etc/passwd\", but a schema cannot refer to another \
            document; copy the definition into the schema");

    a_schema_of_itself: Load, "has a schema that refers to itself",
        |folder| input(folder, r##"{"type":"object","$ref":"#"}"##) => answers("fine");

    schemas_in_a_circle: Load, "has schemas that refer to each other",
        |folder| input(folder, r##"{"type":"object","$ref":"#/$defs/a",
            "$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##)
        => answers("fine");

    all_of_itself: Load, "has a schema that is `allOf` itself",
        |folder| input(folder, r##"{"type":"object","allOf":[{"$ref":"#"}, {"$ref":"#"}]}"##) => answers("fine");

    not_itself: Load, "has a schema that is `not` itself",
        |folder| input(folder, r##"{"type":"object","not":{"$ref":"#"}}"##)
        => fails("invalid-arguments", "The arguments do not match the tool's input schema:\n(root): does not match `not`");

    a_doubling_schema: Call, "has an input schema with 40 levels of `anyOf`, each of which contains the next twice",
        |folder| input(folder, &doubling("anyOf")) => tool("a", r#"{"x": 7}"#)
        => fails("invalid-arguments", "The arguments do not match the tool's input schema:\n(root): validation against the schema takes too long");

    a_doubling_schema_of_all: Call, "has an input schema with 40 levels of `allOf`, each of which contains the next twice",
        |folder| input(folder, &doubling("allOf")) => tool("a", r#"{"x": "fits"}"#)
        => fails("invalid-arguments", "The arguments do not match the tool's input schema:\n(root): validation against the schema takes too long");

    a_doubling_output_schema: Call, "has an output schema with 40 levels of `oneOf`, each of which contains the next twice",
        |folder| output(folder, &doubling("oneOf"), r#"{"x": 7}"#) => fails("invalid-output", "…");

    two_ways_on_each_level: Call, "has a schema that checks each level of a nested value in two ways",
        |folder| output(folder, TWO_WAYS, &format!(r#"{{"x": {}7{}}}"#, "[".repeat(100), "]".repeat(100)))
        => fails("invalid-output", "The tool returned invalid output: (root): does not match the schema (finding the exact location takes too long).");

    references_on_each_level: Call, "has a schema that follows 1,000 references on each level of a nested value",
        |folder| output(folder, &round(), &format!(r#"{{"x": {}{}}}"#, "[".repeat(100), "]".repeat(100)))
        => fails("invalid-output", "The tool returned invalid output: (root): validation against the schema takes too long.");

    many_alternatives_for_many: Call, "returns 100,000 values, each of which is checked against 4,000 alternatives",
        |folder| {
            let schema = one_of_these((0..4000).map(|n| format!("{{\"const\":{n}}}")));
            output(folder, &schema, &format!(r#"{{"x": [{}3999]}}"#, "3999,".repeat(100_000)));
        }
        => fails("invalid-output", "The tool returned invalid output: (root): validation against the schema takes too long.");

    many_values_for_many: Call, "returns 100,000 values, each of which is compared with 9,000 others",
        |folder| {
            let values: Vec<String> = (0..9000).map(|n| format!("\"{n:05}\"")).collect();
            let schema = format!(
                r#"{{"type":"object","properties":{{"x":{{"items":{{"enum":[{}]}}}}}}}}"#, values.join(","));
            output(folder, &schema, &format!(r#"{{"x": [{}"08999"]}}"#, "\"08999\",".repeat(100_000)));
        }
        => answers("fine");

    a_catastrophic_pattern: Call, "has a pattern that backtracks endlessly",
        |folder| input(folder, r#"{"type":"object","properties":{"x":{"pattern":"^(?=a)(a+)+\\1$"}}}"#)
        => tool("a", r#"{"x": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}"#)
        => fails("invalid-arguments", "The arguments do not match the tool's input schema:\n/x: …!\" does not match …");

    a_catastrophic_pattern_for_many: Call, "has a pattern that backtracks endlessly, and returns 10,000 strings for it",
        |folder| {
            let text = format!("\"{}!\",", "a".repeat(40));
            output(folder, r#"{"type":"object","properties":{"x":{"items":{"pattern":"^(?=a)(a+)+\\1$"}}}}"#,
                &format!(r#"{{"x": [{}"a"]}}"#, text.repeat(10_000)));
        }
        => fails("invalid-output", "The tool returned invalid output: (root): does not match the schema (finding the exact location takes too long).");

    a_pattern_that_must_not_fit: Call, "has a pattern under `not` that backtracks endlessly, and returns 20,000 strings for it",
        |folder| {
            let text = format!("\"{}!\",", "a".repeat(40));
            output(folder, r#"{"type":"object","properties":{"x":{"items":{"not":{"pattern":"^(?=a)(a+)+\\1$"}}}}}"#,
                &format!(r#"{{"x": [{}"a"]}}"#, text.repeat(20_000)));
        }
        => answers("fine");

    trees_that_must_differ: Call, "returns 500 kB of different trees of empty arrays, which must be unique",
        |folder| output(folder, r#"{"type":"object","properties":{"x":{"uniqueItems":true}}}"#,
            &format!(r#"{{"x": {}}}"#, trees(500_000)))
        => may_leave(40) => answers("fine");

    a_pattern_with_a_state_for_every_byte: Call,
        "has a pattern whose automaton needs a new state for every byte, and returns 1 MB for it",
        |folder| output(folder, r#"{"type":"object","properties":{"x":{"pattern":"[ab]*a[ab]{20000}[^ab]"}}}"#,
            &format!(r#"{{"x": "{}"}}"#, letters(1_000_000)))
        => may_leave(16)
        => fails("invalid-output", "The tool returned invalid output: (root): validation against the schema takes too long.");

    parts_with_a_state_for_every_byte: Call,
        "has a pattern with a lookahead that needs a new state for every byte, and returns 60 KB for it",
        |folder| output(folder, r#"{"type":"object","properties":{"x":{"pattern":"(?=[ab]*a[ab]{300}c)(?=[ab]*b[ab]{300}c)d"}}}"#,
            &format!(r#"{{"x": "{}"}}"#, letters(60_000)))
        => may_leave(16)
        => fails("invalid-output", "The tool returned invalid output: (root): validation against the schema takes too long.");

    many_large_patterns_for_names: Load, "has 17 patterns for names whose automata may become large",
        |folder| {
            let patterns: Vec<String> = (0..17).map(|n| format!("\"[ab]*a[ab]{{{}}}[^ab]\":true", 100 + n)).collect();
            input(folder, &format!(r#"{{"type":"object","patternProperties":{{{}}}}}"#, patterns.join(",")));
        }
        => refused("tool \"a\": its input schema is invalid: /patternProperties: all patterns for names need too much \
            memory; use fewer or simpler ones");

    a_huge_pattern: Load, "has a pattern whose compiled form is huge",
        |folder| input(folder, r#"{"type":"object","properties":{"x":{"pattern":"((a{1000}){1000}){1000}"}}}"#)
        => refused("tool \"a\": its input schema is invalid: /properties/x/pattern: the pattern \
            \"((a{1000}){1000}){1000}\" is too large: at character 4, \"{1000}\": write a smaller count, …");

    many_catastrophic_patterns_for_many: Call,
        "has 300 patterns that backtrack endlessly, and returns 300 strings for each of them",
        |folder| {
            let patterns = (1..300).map(|n| format!(r#"{{"pattern":"^(a|a)*\\1b{{1,{n}}}"}}"#));
            let schema = one_of_these(patterns.chain([r#"{"type":"string"}"#.to_owned()]));
            let texts: Vec<String> = (0..300).map(|n| format!("\"{}!{n}\"", "a".repeat(30))).collect();
            output(folder, &schema, &format!(r#"{{"x": [{}]}}"#, texts.join(",")));
        }
        => fails("invalid-output", "The tool returned invalid output: (root): validation against the schema takes too long.");

    many_huge_patterns: Load, "has 1,000 patterns, each of which takes several megabytes in its compiled form",
        |folder| input(folder, &one_of_these((0..1000).map(|n| format!(r#"{{"pattern":"\\p{{L}}{{{}}}"}}"#, 50 + n % 50))))
        => refused("tool \"a\": its input schema is invalid: /properties/x/items/anyOf/0/pattern: the pattern \
            \"\\\\p{L}{50}\" is too large: at character 6, \"{50}\": write a smaller count, …");

    a_name_that_acts: Load, "has a schema with an error below a name that contains a terminal escape",
        |folder| input(folder, r#"{"type":"object","properties":{"a\u001b[2J\nb":{"type":"strin"}}}"#)
        => refused(r#"tool "a": its input schema is invalid: /properties/a\nb/type: "strin" is not valid …"#);

    a_deep_schema: Load, "has a schema that is nested 100 levels deep",
        |folder| input(folder,
            &format!(r#"{{"type":"object","not":{}true{}}}"#, r#"{"not":"#.repeat(100), "}".repeat(100)))
        => refused(r#"tool "a": its input schema is nested more than 64 levels deep"#);

    a_wide_schema: Load, "has a schema of 20,000 values",
        |folder| input(folder, &format!(r#"{{"type":"object","enum":[{}0]}}"#, "0,".repeat(20_000)))
        => refused(r#"tool "a": its input schema contains more than 10,000 values"#);

    a_large_schema: Load, "has a schema of 2 MB",
        |folder| input(folder, &format!(r#"{{"type":"object","description":"{}"}}"#, "x".repeat(2_000_000)))
        => may_leave(8) => refused("its schemas are larger than 1.0 MiB in total (to allow more, raise describe.schemas)");
}
