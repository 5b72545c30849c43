//! Compiled JSON Schemas, and the violations of values.

mod compiled_schema;
mod violation_text;

use std::fmt;
use std::sync::OnceLock;

use serde_json::Value;
use toolbay_model::{Interrupt, SchemaViolation};

use self::compiled_schema::CompiledSchema;
use self::violation_text::whole_value_violation;
use super::budget::{self, CheckBudget};
use super::conversion::{self, ValueConversion};
use super::example;
use super::parse::parse_schema;
use super::pattern_budget::{self, PatternBudget};

/// Maximum nesting of a schema. Schemas written by hand stay below ten.
const MAX_SCHEMA_DEPTH: usize = 64;

/// Maximum size of an example, in bytes.
const MAX_EXAMPLE_BYTES: usize = 500;

/// Maximum number of values in a schema that is compiled on first use. Compiling it takes less than
/// a millisecond.
const MAX_LAZY_VALUES: usize = 500;

/// A schema that checks values, together with its text for `tools/list`.
pub struct JsonSchema {
    value: Value,
    patterns: PatternBudget,
    /// The compiled schema. It is created immediately, or by the first check if the schema is small
    /// and was validated before.
    compiled: OnceLock<Result<CompiledSchema, String>>,
    /// A matching value as text, which is created on first use.
    example: OnceLock<Option<String>>,
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
        let compiled = CompiledSchema::compile(&value, patterns)?;
        Ok(Self {
            value,
            patterns: patterns.clone(),
            compiled: OnceLock::from(Ok(compiled)),
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
        let generate = || {
            let example = example::generate(&self.value)?;
            let is_valid = self
                .matches_within(&example, CheckBudget::QUICK)
                .is_some_and(|(is_match, _)| is_match);
            Some(example.to_string())
                .filter(|text| is_valid && text.len() <= MAX_EXAMPLE_BYTES && text != "{}")
        };
        self.example.get_or_init(generate).as_deref()
    }

    /// Like [`JsonSchema::violations`], within the small budget [`CheckBudget::QUICK`]; `None` if
    /// that is not enough.
    pub fn quick_violations(&self, instance: &Value) -> Option<Vec<SchemaViolation>> {
        let compiled = match self.compiled() {
            Ok(compiled) => compiled,
            Err(why) => return Some(whole_value_violation(why)),
        };
        let is_match = compiled.matches(instance, CheckBudget::QUICK, &Interrupt::default())?;
        if is_match {
            return Some(Vec::new());
        }
        Some(compiled.list_violations(
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
        let is_match = self
            .compiled()
            .ok()?
            .matches(instance, budget, &Interrupt::default())?;
        Some((is_match, budget.steps.saturating_sub(budget::steps_left())))
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
        let compiled = match self.compiled() {
            Ok(compiled) => compiled,
            // The schema was valid when it was first compiled, so this is a bug in the server.
            Err(why) => return whole_value_violation(why),
        };
        match compiled.matches(instance, check, interrupt) {
            Some(true) => Vec::new(),
            Some(false) => compiled.list_violations(&self.value, instance, list, interrupt),
            None => whole_value_violation("validation against the schema takes too long"),
        }
    }
}

impl fmt::Debug for JsonSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JsonSchema").field(&self.value).finish()
    }
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
    let mut pending = vec![schema];
    let mut visited = 0_usize;
    while let Some(value) = pending.pop() {
        visited += 1;
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(members) if members.keys().any(|key| key.starts_with("pattern")) => {
                return false;
            }
            Value::Object(members) => pending.extend(members.values()),
            _ => {}
        }
        if visited + pending.len() > MAX_LAZY_VALUES {
            return false;
        }
    }
    true
}

/// Rejects schemas that are nested too deeply.
fn check_depth(schema: &Value) -> Result<(), String> {
    let mut pending = vec![(schema, 1)];
    while let Some((value, depth)) = pending.pop() {
        if depth > MAX_SCHEMA_DEPTH {
            return Err(format!(
                "is nested more than {MAX_SCHEMA_DEPTH} levels deep"
            ));
        }
        match value {
            Value::Array(items) => pending.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => {
                pending.extend(members.values().map(|member| (member, depth + 1)));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
