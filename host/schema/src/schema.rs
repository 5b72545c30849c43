//! Compiled JSON Schemas, and the violations of values.

use std::fmt::{self, Write as _};
use std::sync::{Arc, OnceLock};

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ReferencingError, ValidationError, Validator};
use serde_json::Value;
use toolbay_model::text::clean_line;
use toolbay_model::{Interrupt, SchemaViolation};

use super::branch_errors;
use super::budget::{self, CheckBudget, NameCost};
use super::conversion::{self, ValueConversion};
use super::counted_json::{CountedJson, CountedValue};
use super::example;
use super::forbidden::describe_forbidden;
use super::parse::parse_schema;
use super::pattern_budget::{self, PatternBudget};
use super::pattern_keyword::PatternKeyword;
use super::property_names::{PropertyNames, rewrite_name_patterns};
use super::step_keyword::StepKeyword;

/// Maximum nesting of a schema. Schemas written by hand stay below ten.
const MAX_SCHEMA_DEPTH: usize = 64;

/// Maximum number of backtracking steps of one pattern for names. If a match needs many, the same
/// pattern has already charged them to the budget.
const MAX_NAME_BACKTRACKS: usize = 100_000;

/// Maximum number of reported violations. A model can fix this many at once.
const MAX_VIOLATIONS: usize = 10;

/// The base URI against which the library resolves relative references.
const BASE_URI: &str = "json-schema:///";

/// The dialect of a schema without `$schema`.
const DEFAULT_DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Maximum size of the message of a violation, in bytes. A longer message omits the value.
const MAX_MESSAGE_BYTES: usize = 300;

/// Maximum size of an example, in bytes.
const MAX_EXAMPLE_BYTES: usize = 500;

/// Maximum number of values in a schema that is compiled on first use. Compiling it takes less than
/// a millisecond.
const MAX_LAZY_VALUES: usize = 500;

/// A schema that checks values, together with its text for `tools/list`.
pub struct JsonSchema {
    value: Value,
    patterns: PatternBudget,
    /// The compiled schema. It is created immediately, or by the first check if the schema is known
    /// to be valid and small.
    compiled: OnceLock<Result<CompiledSchema, String>>,
    /// A matching value as text, which is created on first use.
    example: OnceLock<Option<String>>,
}

/// A compiled schema.
struct CompiledSchema {
    validator: Validator<CountedJson>,
    names: Arc<dyn NameCost>,
}

/// The error of a check that was interrupted before it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckInterrupted;

impl JsonSchema {
    /// Compiles the schema in `text`.
    ///
    /// The default dialect is 2020-12. `$schema` can select 2019-09 or drafts 4, 6 and 7. Nothing
    /// is fetched: a `$ref` to another document is an error.
    ///
    /// # Errors
    ///
    /// The schema is invalid. The message is one line.
    pub fn compile(text: &str) -> Result<Self, String> {
        Self::compile_with(text, &PatternBudget::for_schemas([text]))
    }

    /// Compiles the schema in `text`, one of several schemas of a plugin.
    ///
    /// # Errors
    ///
    /// See [`JsonSchema::compile`].
    pub fn compile_with(text: &str, patterns: &PatternBudget) -> Result<Self, String> {
        let value = parse_object(text)?;
        check_depth(&value)?;
        pattern_budget::check_pattern_sources(&value)?;
        let checks = CompiledSchema::compile(&value, patterns)?;
        Ok(Self {
            value,
            patterns: patterns.clone(),
            compiled: OnceLock::from(Ok(checks)),
            example: OnceLock::new(),
        })
    }

    /// Creates the schema in `text`, which [`JsonSchema::compile_with`] accepted before, possibly
    /// in another process. It is compiled on first use, unless that could take long.
    ///
    /// # Errors
    ///
    /// See [`JsonSchema::compile`]. Errors occur only if `text` was not accepted before.
    pub fn load_validated(text: &str, patterns: &PatternBudget) -> Result<Self, String> {
        let value = parse_object(text)?;
        if !is_cheap_to_compile(&value) {
            return Self::compile_with(text, patterns);
        }
        Ok(Self {
            value,
            patterns: patterns.clone(),
            compiled: OnceLock::new(),
            example: OnceLock::new(),
        })
    }

    /// Compiles the meta-schema, which takes a few milliseconds, so that the first schema does not
    /// have to wait for it.
    pub fn prepare_meta_schema() {
        drop(Self::compile(r#"{"type":"object"}"#));
    }

    /// Compiles an input schema. Its root must have `"type": "object"`.
    ///
    /// # Errors
    ///
    /// See [`JsonSchema::compile`].
    pub fn compile_input(text: &str, patterns: &PatternBudget) -> Result<Self, String> {
        Self::compile_with(text, patterns)?.require_object()
    }

    /// Like [`JsonSchema::load_validated`], for an input schema.
    ///
    /// # Errors
    ///
    /// See [`JsonSchema::load_validated`]. It is also an error if the root does not have `"type":
    /// "object"`.
    pub fn load_validated_input(text: &str, patterns: &PatternBudget) -> Result<Self, String> {
        Self::load_validated(text, patterns)?.require_object()
    }

    fn require_object(self) -> Result<Self, String> {
        if self.is_object() {
            Ok(self)
        } else {
            Err("its root must have \"type\": \"object\"".into())
        }
    }

    fn compiled(&self) -> Result<&CompiledSchema, &String> {
        self.compiled
            .get_or_init(|| CompiledSchema::compile(&self.value, &self.patterns))
            .as_ref()
    }

    /// Returns the schema as the plugin wrote it.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Returns whether the root has `"type": "object"`, which clients of revisions before 2026
    /// require.
    pub fn is_object(&self) -> bool {
        self.value.get("type").and_then(Value::as_str) == Some("object")
    }

    /// Returns the violations of `instance`, at most ten; empty if it matches.
    pub fn violations(&self, instance: &Value) -> Vec<SchemaViolation> {
        self.violations_with_budgets(instance, CheckBudget::CHECK, CheckBudget::LIST)
    }

    /// Converts `value` where only its form does not match: a number that was written as a string,
    /// or an object as JSON in a string. Returns the conversions; `None` if there are none, or if
    /// there would be too many. The result may still not match.
    pub fn convert(&self, value: &mut Value) -> Option<Vec<ValueConversion>> {
        conversion::convert(&self.value, value)
    }

    /// Returns a small matching value as JSON; `None` if none is found quickly, or if it would be
    /// `{}`, which is not helpful.
    pub fn example(&self) -> Option<&str> {
        let make = || {
            let example = example::generate(&self.value)?;
            let fits = self
                .matches_within(&example, CheckBudget::QUICK)
                .is_some_and(|(fits, _)| fits);
            Some(example.to_string())
                .filter(|text| fits && text.len() <= MAX_EXAMPLE_BYTES && text != "{}")
        };
        self.example.get_or_init(make).as_deref()
    }

    /// Like [`JsonSchema::violations`], within the small budget [`CheckBudget::QUICK`]; `None` if
    /// that is not enough.
    pub fn quick_violations(&self, instance: &Value) -> Option<Vec<SchemaViolation>> {
        let checks = match self.compiled() {
            Ok(checks) => checks,
            Err(why) => return Some(whole_value_violation(why)),
        };
        let fits = checks.matches(instance, CheckBudget::QUICK, &Interrupt::default())?;
        if fits {
            return Some(Vec::new());
        }
        Some(checks.list_violations(
            &self.value,
            instance,
            CheckBudget::LIST,
            &Interrupt::default(),
        ))
    }

    /// Like [`JsonSchema::violations`], until `interrupt` is due. May take seconds.
    ///
    /// # Errors
    ///
    /// The interrupt was due before the check ended.
    pub fn violations_until(
        &self,
        instance: &Value,
        interrupt: &Interrupt,
    ) -> Result<Vec<SchemaViolation>, CheckInterrupted> {
        let violations = self.check(instance, CheckBudget::CHECK, CheckBudget::LIST, interrupt);
        // A check that exceeded its budget may have been interrupted.
        if !violations.is_empty() && interrupt.is_due() {
            Err(CheckInterrupted)
        } else {
            Ok(violations)
        }
    }

    /// Returns whether `instance` matches, and the number of steps that the check took; `None` if
    /// `budget` was not enough.
    pub fn matches_within(&self, instance: &Value, budget: CheckBudget) -> Option<(bool, u64)> {
        let fits = self
            .compiled()
            .ok()?
            .matches(instance, budget, &Interrupt::default())?;
        Some((fits, budget.steps.saturating_sub(budget::steps_left())))
    }

    /// Like [`JsonSchema::violations`], with one budget for deciding whether `instance` matches and
    /// one for listing the violations.
    pub fn violations_with_budgets(
        &self,
        instance: &Value,
        check: CheckBudget,
        list: CheckBudget,
    ) -> Vec<SchemaViolation> {
        self.check(instance, check, list, &Interrupt::default())
    }

    fn check(
        &self,
        instance: &Value,
        check: CheckBudget,
        list: CheckBudget,
        interrupt: &Interrupt,
    ) -> Vec<SchemaViolation> {
        let checks = match self.compiled() {
            Ok(checks) => checks,
            // The schema was valid when it was first compiled, so this is a bug in the server.
            Err(why) => return whole_value_violation(why),
        };
        match checks.matches(instance, check, interrupt) {
            Some(true) => Vec::new(),
            Some(false) => checks.list_violations(&self.value, instance, list, interrupt),
            None => whole_value_violation("validation against the schema takes too long"),
        }
    }
}

impl CompiledSchema {
    fn compile(value: &Value, patterns: &PatternBudget) -> Result<Self, String> {
        let names = PropertyNames::of(value, patterns)?;
        let names: Arc<dyn NameCost> = {
            let names = Arc::new(names);
            let own = Arc::clone(&names);
            let cost: Arc<dyn NameCost> = names;
            budget::run_within(CheckBudget::CHECK, &Interrupt::default(), &cost, || {
                own.charge_own_names(value)
            })
            .ok_or("its patternProperties take too long for its own properties")?;
            cost
        };
        let for_names = PatternOptions::fancy_regex()
            .backtrack_limit(MAX_NAME_BACKTRACKS)
            .size_limit(patterns.max_pattern_bytes())
            .dfa_size_limit(patterns.max_pattern_bytes());
        let of_plugin = patterns.clone();
        let options = jsonschema::options_for::<CountedJson>()
            .offline()
            .with_pattern_options(for_names)
            .with_keyword("pattern", move |_, value, _| {
                Ok(Box::new(PatternKeyword::compile(value, &of_plugin)?))
            })
            .with_keyword(budget::STEP_KEYWORD, |_, _, _| Ok(Box::new(StepKeyword)));
        let siblings_count = !matches!(
            Draft::default().detect(value),
            Draft::Draft4 | Draft::Draft6 | Draft::Draft7
        );
        let mut plain = value.clone();
        rewrite_name_patterns(&mut plain);
        let stepped = budget::with_steps(&plain, siblings_count);
        let validator = options.build(&stepped).map_err(|error| {
            // Report the error for the schema without steps, as the plugin wrote it.
            let error = if stepped == plain {
                error
            } else {
                options.build(&plain).err().unwrap_or(error)
            };
            let place = violation_pointer(&error);
            if place.is_empty() {
                describe(&error)
            } else {
                format!("{place}: {}", describe(&error))
            }
        })?;
        Ok(Self { validator, names })
    }

    /// Returns whether `instance` matches; `None` if `budget` was not enough.
    fn matches(
        &self,
        instance: &Value,
        budget: CheckBudget,
        interrupt: &Interrupt,
    ) -> Option<bool> {
        self.run_within(budget, interrupt, || {
            self.validator.is_valid(CountedValue(instance))
        })
    }

    /// Lists the violations of `instance`, which does not match `schema`.
    fn list_violations(
        &self,
        schema: &Value,
        instance: &Value,
        budget: CheckBudget,
        interrupt: &Interrupt,
    ) -> Vec<SchemaViolation> {
        let listed = || {
            let mut violations: Vec<SchemaViolation> = Vec::new();
            for error in self
                .validator
                .iter_errors(CountedValue(instance))
                .take(MAX_VIOLATIONS)
            {
                branch_errors::report_intended(&error, &mut |error| {
                    let violation =
                        describe_forbidden(schema, instance, error).unwrap_or_else(|| {
                            SchemaViolation {
                                pointer: violation_pointer(error),
                                message: describe(error),
                            }
                        });
                    // Each item beyond the end of a tuple is an error of the whole array.
                    if !violations.contains(&violation) {
                        violations.push(violation);
                    }
                });
            }
            violations.truncate(MAX_VIOLATIONS);
            violations
        };
        self.run_within(budget, interrupt, listed)
            .unwrap_or_else(|| {
                whole_value_violation(
                    "does not match the schema (finding the exact location takes too long)",
                )
            })
    }

    fn run_within<T>(
        &self,
        budget: CheckBudget,
        interrupt: &Interrupt,
        check: impl FnOnce() -> T,
    ) -> Option<T> {
        budget::run_within(budget, interrupt, &self.names, check)
    }
}

impl fmt::Debug for JsonSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JsonSchema").field(&self.value).finish()
    }
}

/// Returns a violation of the whole value.
fn whole_value_violation(message: &str) -> Vec<SchemaViolation> {
    vec![SchemaViolation {
        pointer: String::new(),
        message: message.to_owned(),
    }]
}

/// Parses the JSON object in `text`.
fn parse_object(text: &str) -> Result<Value, String> {
    let value = parse_schema(text)?;
    if value.is_object() {
        Ok(value)
    } else {
        Err("must be a JSON object".into())
    }
}

/// Returns whether compiling a valid schema takes negligible time: it is small and has no pattern.
/// A pattern of a few characters can take long.
fn is_cheap_to_compile(schema: &Value) -> bool {
    let (mut open, mut seen) = (vec![schema], 0_usize);
    while let Some(value) = open.pop() {
        seen += 1;
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) if members.keys().any(|key| key.starts_with("pattern")) => {
                return false;
            }
            Value::Object(members) => open.extend(members.values()),
            _ => {}
        }
        if seen + open.len() > MAX_LAZY_VALUES {
            return false;
        }
    }
    true
}

/// Rejects schemas that are nested too deeply.
fn check_depth(schema: &Value) -> Result<(), String> {
    let mut open = vec![(schema, 1)];
    while let Some((value, depth)) = open.pop() {
        if depth > MAX_SCHEMA_DEPTH {
            return Err(format!(
                "is nested more than {MAX_SCHEMA_DEPTH} levels deep"
            ));
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => {
                open.extend(members.values().map(|member| (member, depth + 1)))
            }
            _ => {}
        }
    }
    Ok(())
}

/// Describes the error. Omits the value if it is long.
fn describe(error: &ValidationError<'_>) -> String {
    if let ValidationErrorKind::Referencing(error) = error.kind() {
        return clean_line(&describe_reference(error), 2 * MAX_MESSAGE_BYTES);
    }
    let (message, whole) = truncated_message(error);
    // A long value is not quoted.
    let message = if whole {
        message
    } else {
        truncated_message(&error.masked()).0
    };
    if message.contains(budget::STEP_KEYWORD) {
        // The message quotes the schema, which contains the step keyword.
        return format!("does not match `{}`", error.kind().keyword());
    }
    clean_line(&message, MAX_MESSAGE_BYTES)
}

/// Describes an invalid reference to another part of the schema, or an unknown dialect.
fn describe_reference(error: &ReferencingError) -> String {
    let shown = |text: &str| clean_line(text, MAX_MESSAGE_BYTES);
    match error {
        ReferencingError::Unretrievable { uri, .. } => format!(
            "refers to {:?}, but a schema cannot refer to another document; copy the definition into the schema",
            shown(uri.strip_prefix(BASE_URI).unwrap_or(uri))
        ),
        ReferencingError::PointerToNowhere { pointer } => {
            format!(
                "refers to {:?}, which does not exist",
                shown(&format!("#{pointer}"))
            )
        }
        ReferencingError::NoSuchAnchor { anchor } => {
            format!(
                "refers to {:?}, which does not exist",
                shown(&format!("#{anchor}"))
            )
        }
        ReferencingError::UnknownSpecification { specification } => format!(
            "has the unknown dialect {:?} in $schema; leave $schema out, or use {DEFAULT_DIALECT:?}",
            shown(specification)
        ),
        error => error.to_string(),
    }
}

/// Returns the beginning of a message, and whether it is complete. The rest is not formatted,
/// because it may quote a megabyte.
fn truncated_message(words: &impl fmt::Display) -> (String, bool) {
    let mut written = MessageBuffer(String::new());
    let whole = write!(written, "{words}").is_ok();
    (written.0, whole)
}

/// A buffer for a message. Its capacity is slightly more than the maximum size of a message, so
/// that a longer one can be detected.
struct MessageBuffer(String);

impl fmt::Write for MessageBuffer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = text.floor_char_boundary((MAX_MESSAGE_BYTES + 8).saturating_sub(self.0.len()));
        self.0.push_str(text.get(..room).unwrap_or_default());
        if self.0.len() > MAX_MESSAGE_BYTES {
            Err(fmt::Error)
        } else {
            Ok(())
        }
    }
}

/// Returns the location of the error. Names in it are untrusted.
fn violation_pointer(error: &ValidationError<'_>) -> String {
    clean_line(error.instance_path().as_str(), MAX_MESSAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        let violations =
            schema().violations(&json!({"unit": "K", "days": 0, "at": {"lat": "north"}}));
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
        let error = JsonSchema::compile(r#"{"properties":{"a\u001b[2J\nb":{"type":"strin"}}}"#)
            .unwrap_err();
        assert!(
            error.starts_with("/properties/a\\nb/type: \"strin\""),
            "{error}"
        );
        let schema =
            JsonSchema::compile(r#"{"properties":{"a":true},"additionalProperties":false}"#)
                .unwrap();
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
    fn siblings_of_a_reference_count_only_since_2019() {
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
            JsonSchema::compile(&json!({"items": {"not": {"anyOf": patterns}}}).to_string())
                .unwrap();
        let violations = values.violations(&json!(texts));
        assert_eq!(
            violations[0].to_string(),
            "(root): validation against the schema takes too long"
        );
        let patterns: serde_json::Map<String, Value> =
            (0..15).map(|n| (pattern(n), json!(true))).collect();
        let texts: serde_json::Map<String, Value> = (0..300).map(|n| (text(n), json!(1))).collect();
        let names =
            JsonSchema::compile(&json!({"patternProperties": patterns}).to_string()).unwrap();
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
    fn what_is_compared_is_counted() {
        let long: Vec<u32> = (0..9000).collect();
        let schema = JsonSchema::compile(&json!({"items": {"const": long}}).to_string()).unwrap();
        assert_eq!(schema.violations(&json!([long, long])), []);
        let (_, steps) = schema
            .matches_within(&json!([long, long]), CheckBudget::CHECK)
            .unwrap();
        assert!(steps > 18_000, "{steps}");
    }

    #[test]
    fn a_pattern_is_paid_for_by_what_its_automaton_takes() {
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
    fn patterns_mean_what_they_did() {
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
        let schema =
            JsonSchema::compile(r#"{"properties":{"a":{"pattern":"^[a-z]{1,3}$"}}}"#).unwrap();
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
    fn what_engines_for_rust_write_in_another_way_matches() {
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
        // Two patterns that are rewritten to the same one both count.
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
    fn a_pattern_that_is_too_large_is_refused_with_its_place() {
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
        let error =
            JsonSchema::compile(r#"{"items":{"patternProperties":{"(?i)x":{}}}}"#).unwrap_err();
        assert!(
            error.starts_with("/items/patternProperties: the pattern \"(?i)x\" is not a"),
            "{error}"
        );
    }

    #[test]
    fn parts_of_a_pattern_that_looks_around_are_bounded() {
        let parts = "(?=[ab]*a[ab]{900}c)".repeat(10);
        let patterns = [
            format!("^{parts}"),
            r"^(a+)\1\1\1b".to_owned(),
            r"^(?:(((((((((a)))))))))|\1)*$".to_owned(),
            r"(?=a)(?:[ab]*a[ab]{900}c|.)*d".to_owned(),
        ];
        for pattern in patterns {
            let Ok(schema) =
                JsonSchema::compile(&json!({"items": {"pattern": pattern}}).to_string())
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
    fn names_pay_for_patterns_too() {
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
            let schema =
                json!({"patternProperties": {pattern: false}, "additionalProperties": false});
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
    fn automata_for_names_share_what_they_may_keep() {
        let large = |n: usize| (format!("[ab]*a[ab]{{{}}}[^ab]", 100 + n), json!(true));
        let schema = |count| json!({"patternProperties": (0..count).map(large).collect::<serde_json::Map<_, _>>()});
        assert!(JsonSchema::compile(&schema(16).to_string()).is_ok());
        let error = JsonSchema::compile(&schema(17).to_string()).unwrap_err();
        let expected = "/patternProperties: all patterns for names need too much memory; use fewer or simpler ones";
        assert_eq!(error, expected);
    }

    #[test]
    fn automata_share_what_they_keep() {
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
        let kept = shared
            .cached_bytes()
            .load(std::sync::atomic::Ordering::Relaxed);
        assert!(
            (1..=PatternBudget::MAX_CACHED_BYTES).contains(&kept),
            "{kept}"
        );
        drop(schema);
        assert_eq!(
            shared
                .cached_bytes()
                .load(std::sync::atomic::Ordering::Relaxed),
            0
        );
    }

    #[test]
    fn formats_are_read_in_linear_time() {
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
    fn what_violations_quote_is_counted() {
        let alternatives: Vec<Value> = (0..1000)
            .map(|n| json!({"items": {"type": "array", "minItems": n + 3}, "unevaluatedItems": false}))
            .collect();
        let schema = JsonSchema::compile(
            &json!({"anyOf": alternatives, "unevaluatedItems": false}).to_string(),
        )
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
}
