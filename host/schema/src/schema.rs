//! A compiled JSON Schema, and how a value violates it.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ReferencingError, ValidationError, Validator};
use serde_json::Value;
use toolbay_model::Violation;
use toolbay_model::text::{line, thousands};

use super::budget::{self, Budget};
use super::counted::{Counted, Looked};
use super::step::Step;

/// Deepest nesting of a schema. Schemas written by hand stay below ten.
const DEPTH: usize = 64;

/// Most JSON values in a schema. The largest ones of real tools have hundreds.
const VALUES: usize = 10_000;

/// Most backtracking steps of one `pattern`: enough for any reasonable pattern on kilobytes of text. A catastrophic
/// pattern stops after milliseconds.
const BACKTRACKS: usize = 100_000;

/// Largest size of all compiled patterns of a plugin together, in bytes.
const PATTERNS: usize = 16 << 20;

/// Largest size of one compiled pattern, in bytes. `\p{L}{90}` is close to it.
const PATTERN: usize = 4 << 20;

/// Bytes of a pattern's text per share of [`PATTERNS`], because each byte may add to the compiled pattern.
const SHARE: usize = 16;

/// Most violations that are reported. A model can correct this many at once.
const VIOLATIONS: usize = 10;

/// The library resolves relative references against this.
const BASE: &str = "json-schema:///";

/// The dialect of a schema without `$schema`.
const NEWEST: &str = "https://json-schema.org/draft/2020-12/schema";

/// Longest text of a violation in bytes. The value is omitted from a longer one.
const MESSAGE: usize = 300;

/// A compiled schema, together with its source for `tools/list`.
#[derive(Debug)]
pub struct Schema {
    value: Value,
    validator: Validator<Counted>,
}

/// Largest size of one compiled pattern: [`PATTERNS`] divided among all patterns of the plugin.
#[derive(Clone, Copy, Debug)]
pub struct PatternSize(usize);

impl PatternSize {
    /// For a plugin with these schemas. Skips those that are not JSON; compiling them reports the error.
    pub fn of<'a>(schemas: impl IntoIterator<Item = &'a str>) -> Self {
        let shares: usize = schemas
            .into_iter()
            .filter_map(|text| serde_json::from_str::<Value>(text).ok())
            .map(|schema| shares(&schema))
            .sum();
        Self((PATTERNS / shares.max(1)).min(PATTERN))
    }
}

/// The number of shares of all patterns in a schema.
fn shares(schema: &Value) -> usize {
    let share = |pattern: &str| 1 + pattern.len() / SHARE;
    match schema {
        Value::Array(items) => items.iter().map(shares).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| {
                let own = match (key.as_str(), value) {
                    ("pattern", Value::String(pattern)) => share(pattern),
                    ("patternProperties", Value::Object(patterns)) => {
                        patterns.keys().map(|pattern| share(pattern)).sum()
                    }
                    _ => 0,
                };
                own + shares(value)
            })
            .sum(),
        _ => 0,
    }
}

impl Schema {
    /// Compiles the schema in `text`.
    ///
    /// The default dialect is 2020-12; `$schema` can name 2019-09 or drafts 4, 6 and 7. Nothing is fetched: a `$ref` to
    /// another document is an error.
    ///
    /// # Errors
    ///
    /// What is wrong with the schema, in one line.
    pub fn compile(text: &str) -> Result<Self, String> {
        Self::compile_with(text, PatternSize::of([text]))
    }

    /// Compiles the schema in `text`, one of several schemas of a plugin.
    ///
    /// # Errors
    ///
    /// As [`Schema::compile`].
    pub fn compile_with(text: &str, patterns: PatternSize) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
        if !value.is_object() {
            return Err("must be a JSON object".into());
        }
        measure(&value)?;
        let patterns =
            PatternOptions::fancy_regex().backtrack_limit(BACKTRACKS).size_limit(patterns.0).dfa_size_limit(patterns.0);
        let options = jsonschema::options_for::<Counted>()
            .offline()
            .with_pattern_options(patterns)
            .with_keyword(budget::STEP, |_, _, _| Ok(Box::new(Step)));
        let siblings_count = !matches!(Draft::default().detect(&value), Draft::Draft4 | Draft::Draft6 | Draft::Draft7);
        let stepped = budget::with_steps(&value, siblings_count);
        let validator = options.build(&stepped).map_err(|error| {
            // Report the error for the schema as the plugin wrote it.
            let error = if stepped == value { error } else { options.build(&value).err().unwrap_or(error) };
            let place = place(&error);
            if place.is_empty() { describe(&error) } else { format!("{place}: {}", describe(&error)) }
        })?;
        Ok(Self { value, validator })
    }

    /// Compiles an input schema. Its root must have `"type": "object"`.
    ///
    /// # Errors
    ///
    /// As [`Schema::compile`].
    pub fn compile_input(text: &str, patterns: PatternSize) -> Result<Self, String> {
        let schema = Self::compile_with(text, patterns)?;
        if schema.is_object() { Ok(schema) } else { Err("its root must have \"type\": \"object\"".into()) }
    }

    /// The schema as the plugin wrote it.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Whether the root has `"type": "object"`, which clients of revisions before 2026 require.
    pub fn is_object(&self) -> bool {
        self.value.get("type").and_then(Value::as_str) == Some("object")
    }

    /// The violations of `instance`, at most ten; empty if it matches.
    pub fn violations(&self, instance: &Value) -> Vec<Violation> {
        self.violations_within(instance, Budget::CHECK, Budget::LIST)
    }

    /// Whether `instance` matches, and how many steps the check took; `None` if `budget` did not suffice.
    pub fn fits(&self, instance: &Value, budget: Budget) -> Option<(bool, u64)> {
        let fits = budget::within(budget, || self.validator.is_valid(Looked(instance)))?;
        Some((fits, budget.steps.saturating_sub(budget::left())))
    }

    /// As [`Schema::violations`], with one budget for deciding whether `instance` matches and one for listing the
    /// violations.
    pub fn violations_within(&self, instance: &Value, check: Budget, list: Budget) -> Vec<Violation> {
        let whole = |message: &str| vec![Violation { pointer: String::new(), message: message.to_owned() }];
        match budget::within(check, || self.validator.is_valid(Looked(instance))) {
            Some(true) => return Vec::new(),
            Some(false) => {}
            None => return whole("validation against the schema takes too long"),
        }
        let listed = || {
            let errors = self.validator.iter_errors(Looked(instance)).take(VIOLATIONS);
            errors.map(|error| Violation { pointer: place(&error), message: describe(&error) }).collect()
        };
        budget::within(list, listed)
            .unwrap_or_else(|| whole("does not match the schema (finding the exact location takes too long)"))
    }
}

/// Refuses schemas that are costly because of their size alone.
fn measure(schema: &Value) -> Result<(), String> {
    let mut values = 0;
    let mut open = vec![(schema, 1)];
    while let Some((value, depth)) = open.pop() {
        values += 1;
        if values > VALUES {
            return Err(format!("contains more than {} values", thousands(VALUES as u64)));
        }
        if depth > DEPTH {
            return Err(format!("is nested more than {DEPTH} levels deep"));
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => open.extend(members.values().map(|member| (member, depth + 1))),
            _ => {}
        }
    }
    Ok(())
}

/// Describes the error. Omits the value if it is long.
fn describe(error: &ValidationError<'_>) -> String {
    if let ValidationErrorKind::Referencing(error) = error.kind() {
        return line(&describe_reference(error), 2 * MESSAGE);
    }
    let message = error.to_string();
    if message.contains(budget::STEP) {
        // The message quotes the schema, which contains our own keyword.
        return format!("does not match `{}`", error.kind().keyword());
    }
    // Omit a long value.
    let message = if message.len() <= MESSAGE { message } else { error.masked().to_string() };
    line(&message, MESSAGE)
}

/// Describes an invalid reference to another part of the schema, or an unknown dialect.
fn describe_reference(error: &ReferencingError) -> String {
    let shown = |text: &str| line(text, MESSAGE);
    match error {
        ReferencingError::Unretrievable { uri, .. } => format!(
            "refers to {:?}, but a schema cannot refer to another document; copy the definition into the schema",
            shown(uri.strip_prefix(BASE).unwrap_or(uri))
        ),
        ReferencingError::PointerToNowhere { pointer } => {
            format!("refers to {:?}, which does not exist", shown(&format!("#{pointer}")))
        }
        ReferencingError::NoSuchAnchor { anchor } => {
            format!("refers to {:?}, which does not exist", shown(&format!("#{anchor}")))
        }
        ReferencingError::UnknownSpecification { specification } => format!(
            "has the unknown dialect {:?} in $schema; leave $schema out, or use {NEWEST:?}",
            shown(specification)
        ),
        error => error.to_string(),
    }
}

/// The place of the mistake. Its names come from a stranger.
fn place(error: &ValidationError<'_>) -> String {
    line(error.instance_path().as_str(), MESSAGE)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn compile_input(text: &str) -> Result<Schema, String> {
        Schema::compile_input(text, PatternSize::of([text]))
    }

    fn schema() -> Schema {
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
        let list = Schema::compile(r#"{"items":{"type":"integer"}}"#).unwrap();
        let long = "x".repeat(100_000);
        let violations = list.violations(&json!(vec![long; 50]));
        assert_eq!(violations.len(), VIOLATIONS);
        assert!(violations.iter().all(|v| v.message.len() <= MESSAGE), "{violations:?}");
    }

    #[test]
    fn bad_schemas_are_refused_with_a_reason() {
        let cases = [
            ("{", "not JSON"),
            ("[]", "must be a JSON object"),
            (r#"{"type":"strin"}"#, "strin"),
            (r#"{"type":"string"}"#, "its root must have \"type\": \"object\""),
            (
                r#"{"type":"object","$ref":"https://example.com/x.json"}"#,
                "refers to \"https://example.com/x.json\", but a schema cannot",
            ),
            (
                r#"{"type":"object","properties":{"a":{"$ref":"other.json#/a"}}}"#,
                "refers to \"other.json#/a\", but a schema cannot",
            ),
            (r##"{"type":"object","$ref":"#/nowhere"}"##, "refers to \"#/nowhere\", which does not exist"),
            (r##"{"type":"object","$ref":"#nowhere"}"##, "refers to \"#nowhere\", which does not exist"),
            (
                r#"{"type":"object","$schema":"https://example.com/meta"}"#,
                "has the unknown dialect \"https://example.com/meta\" in $schema",
            ),
            (r#"{"type":"object","properties":{"a":{"pattern":"("}}}"#, "("),
        ];
        for (text, expected) in cases {
            let error = compile_input(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn names_in_messages_have_no_control_characters() {
        let error = Schema::compile(r#"{"properties":{"a\u001b[2J\nb":{"type":"strin"}}}"#).unwrap_err();
        assert!(error.starts_with("/properties/a\\nb/type: \"strin\""), "{error}");
        let schema = Schema::compile(r#"{"properties":{"a":true},"additionalProperties":false}"#).unwrap();
        let violations = schema.violations(&json!({"a": 1, "\u{202e}a\nb\u{7}": 1}));
        assert_eq!(violations[0].to_string(), "(root): Additional properties are not allowed ('a\\nb' was unexpected)");
        let schema = Schema::compile(r#"{"additionalProperties":{"type":"string"}}"#).unwrap();
        let violations = schema.violations(&json!({"k".repeat(100_000): 1}));
        assert_eq!(violations[0].pointer.len(), MESSAGE);
    }

    #[test]
    fn huge_and_deep_schemas_are_refused() {
        let wide = json!({"enum": vec![0; VALUES + 1]}).to_string();
        assert_eq!(Schema::compile(&wide).unwrap_err(), "contains more than 10,000 values");
        let deep = format!("{}{{}}{}", r#"{"not":"#.repeat(DEPTH), "}".repeat(DEPTH));
        assert_eq!(Schema::compile(&deep).unwrap_err(), "is nested more than 64 levels deep");
    }

    /// Forty levels, each of which refers to the next one twice.
    fn doubling(keyword: &str) -> Schema {
        let levels: serde_json::Map<String, Value> = (0..40)
            .map(|n| {
                let next = json!({"$ref": format!("#/$defs/l{}", n + 1)});
                (format!("l{n}"), json!({keyword: [next, next]}))
            })
            .chain([("l40".to_owned(), json!({"type": "string"}))])
            .collect();
        Schema::compile(&json!({"$defs": levels, "$ref": "#/$defs/l0"}).to_string()).unwrap()
    }

    #[test]
    fn a_check_that_would_take_years_stops_early() {
        for keyword in ["anyOf", "oneOf"] {
            let violations = doubling(keyword).violations(&json!(7));
            assert_eq!(violations[0].to_string(), "(root): validation against the schema takes too long", "{keyword}");
        }
        assert_eq!(doubling("allOf").violations(&json!("text")).len(), 1);
    }

    #[test]
    fn counting_steps_does_not_change_which_values_match() {
        let drafts = ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"];
        let cases = [
            // A tree, a property that is called like a keyword, and data that looks like a reference.
            (
                json!({"definitions": {"tree": {"type": "object", "additionalProperties": false, "properties": {
                "left": {"$ref": "#/definitions/tree"}, "$ref": {"type": "integer"},
                "default": {"$ref": "#/definitions/tree"}, "is": {"const": {"$ref": "#/definitions/tree"}}}}},
                "$ref": "#/definitions/tree"}),
                vec![json!({"left": {"$ref": 1}}), json!({"is": {"$ref": "#/definitions/tree"}})],
                vec![json!({"left": {"$ref": "x"}}), json!({"default": {"no": 1}}), json!({"is": {}})],
            ),
            // A pointer into an `allOf` beside a reference.
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
                let schema = Schema::compile(&schema.to_string()).unwrap();
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
    fn siblings_of_a_reference_count_only_since_2019() {
        let beside = |draft: &str| {
            let schema = json!({"$schema": draft, "definitions": {"a": {"type": "string"}},
                "properties": {"x": {"$ref": "#/definitions/a", "maxLength": 1}}});
            Schema::compile(&schema.to_string()).unwrap().violations(&json!({"x": "long"})).len()
        };
        assert_eq!(beside("https://json-schema.org/draft/2020-12/schema"), 1);
        assert_eq!(beside("http://json-schema.org/draft-07/schema#"), 0);
    }

    #[test]
    fn a_catastrophic_pattern_stops_early() {
        let schema = Schema::compile(r#"{"pattern":"^(?=a)(a+)+\\1$"}"#).unwrap();
        let violations = schema.violations(&json!("a".repeat(60) + "!"));
        assert_eq!(violations.len(), 1);
    }

    /// Lists in lists; each level passes through `length` references.
    fn round(length: usize) -> Schema {
        let levels: serde_json::Map<String, Value> = (0..length)
            .map(|n| (format!("l{n}"), json!({"$ref": format!("#/$defs/l{}", n + 1)})))
            .chain([(format!("l{length}"), json!({"items": {"$ref": "#/$defs/l0"}}))])
            .collect();
        Schema::compile(&json!({"$defs": levels, "$ref": "#/$defs/l0"}).to_string()).unwrap()
    }

    #[test]
    fn references_do_not_use_up_the_stack() {
        let mut value = json!(7);
        for _ in 0..120 {
            value = json!([value]);
        }
        assert_eq!(round(3).violations(&value), []);
        let violations = round(1000).violations(&value);
        assert_eq!(violations[0].to_string(), "(root): validation against the schema takes too long");
    }

    #[test]
    fn thousands_of_alternatives_for_thousands_of_values_stop_early() {
        let alternatives: Vec<Value> = (0..4000).map(|n| json!({"const": n})).collect();
        let schema = Schema::compile(&json!({"items": {"anyOf": alternatives}}).to_string()).unwrap();
        assert_eq!(schema.violations(&json!([3999, 3998])), []);
        let violations = schema.violations(&json!(vec![3999; 100_000]));
        assert_eq!(violations[0].to_string(), "(root): validation against the schema takes too long");
    }

    #[test]
    fn many_catastrophic_patterns_stop_early() {
        let pattern = |n: usize| format!("^(a|a)*\\1b{{1,{}}}", n + 1);
        let text = |n: usize| "a".repeat(30) + &format!("!{n}");
        let patterns: Vec<Value> = (0..300).map(|n| json!({"pattern": pattern(n)})).collect();
        let texts: Vec<String> = (0..300).map(text).collect();
        let values = Schema::compile(&json!({"items": {"not": {"anyOf": patterns}}}).to_string()).unwrap();
        let violations = values.violations(&json!(texts));
        assert_eq!(violations[0].to_string(), "(root): validation against the schema takes too long");
        let patterns: serde_json::Map<String, Value> = (0..300).map(|n| (pattern(n), json!(true))).collect();
        let texts: serde_json::Map<String, Value> = (0..300).map(|n| (text(n), json!(1))).collect();
        let names = Schema::compile(&json!({"patternProperties": patterns}).to_string()).unwrap();
        let violations = names.violations(&json!(texts));
        assert_eq!(violations[0].to_string(), "(root): validation against the schema takes too long");
    }

    #[test]
    fn all_patterns_of_a_plugin_share_one_limit() {
        let letters = |count: usize| json!({"pattern": format!("^\\p{{L}}{{{count}}}$")});
        let compile = |patterns: Vec<Value>| Schema::compile(&json!({"anyOf": patterns}).to_string());
        assert_eq!(compile(vec![letters(80)]).unwrap().violations(&json!("é".repeat(80))), []);
        let error = compile((0..1000).map(|n| letters(20 + n % 60)).collect()).unwrap_err();
        assert_eq!(error, "/anyOf/0/pattern: \"^\\\\p{L}{20}$\" is not a \"regex\"");
        let plain = (0..1000).map(|n| json!({"pattern": format!("^[a-z][a-z0-9-]{{0,{}}}$", 20 + n % 40)}));
        assert_eq!(compile(plain.collect()).unwrap().violations(&json!("a-b")), []);
    }
}
