//! The cost of matching member names with `patternProperties`.
//!
//! The library matches names with its own engine, which cannot be interrupted. The work is
//! therefore charged to the budget in advance: for an automaton, the worst case; for a backtracking
//! pattern, the actual work.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use toolbay_model::text::clean_line;

use super::backtracking::BacktrackingMatcher;
use super::budget::{self, NameCost};
use super::ecma;
use super::keywords::for_each_subschema_mut;
use super::pattern_budget::PatternBudget;
use super::pattern_keyword::PatternEngine;

/// Bytes of a pattern that are compared with a name in one step, if the pattern is a list of names.
const SOURCE_BYTES_PER_STEP: usize = 64;

/// Maximum size of the location of a pattern in a message, in bytes.
const MAX_POINTER_BYTES: usize = 200;

/// States of an automaton that process one byte in one step.
const STATES_PER_STEP: u64 = 4;

/// The cost of matching a name.
#[derive(Debug, Default)]
pub(super) struct PropertyNames {
    /// Number of steps for each name, regardless of its length.
    fixed_steps: u64,
    /// Number of states that may be visited for each byte.
    state_count: u64,
    backtracking: Vec<BacktrackingMatcher>,
}

impl PropertyNames {
    /// Collects the patterns for names in a schema.
    ///
    /// # Errors
    ///
    /// A pattern does not conform to ECMA-262, or the plugin has too many patterns that need much
    /// memory.
    pub(super) fn from_schema(schema: &Value, patterns: &PatternBudget) -> Result<Self, String> {
        let mut names = Self::default();
        names.collect(schema, &mut String::new(), patterns)?;
        Ok(names)
    }

    /// Collects the patterns in the part of a schema at `pointer`.
    fn collect(
        &mut self,
        value: &Value,
        pointer: &mut String,
        patterns: &PatternBudget,
    ) -> Result<(), String> {
        let length = pointer.len();
        match value {
            Value::Array(items) => {
                for (number, item) in items.iter().enumerate() {
                    let _ = write!(pointer, "/{number}");
                    self.collect(item, pointer, patterns)?;
                    pointer.truncate(length);
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    pointer.push('/');
                    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                    if let (Value::Object(own), "patternProperties") = (member, name.as_str()) {
                        for source in own.keys() {
                            self.add(source, patterns).map_err(|why| {
                                format!("{}: {why}", clean_line(pointer, MAX_POINTER_BYTES))
                            })?;
                        }
                    }
                    self.collect(member, pointer, patterns)?;
                    pointer.truncate(length);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn add(&mut self, source: &str, patterns: &PatternBudget) -> Result<(), String> {
        let engine = PatternEngine::compile(source, patterns)?;
        self.fixed_steps += (source.len() / SOURCE_BYTES_PER_STEP) as u64;
        let size = match engine {
            PatternEngine::Automaton(automaton) => {
                automaton.dense_dfa_size().unwrap_or_else(|| {
                    self.state_count += automaton.state_count() as u64;
                    PatternBudget::LARGE_NAME_BYTES
                })
            }
            PatternEngine::Backtracking(backtracking) => {
                self.backtracking.push(*backtracking);
                PatternBudget::LARGE_NAME_BYTES
            }
        };
        patterns.reserve_name_bytes(size)
    }

    /// Charges the cost of matching the names in the schema itself, which the library does when it
    /// compiles the schema.
    pub(super) fn charge_own_names(&self, schema: &Value) {
        let mut pending = vec![schema];
        while let Some(value) = pending.pop() {
            match value {
                Value::Array(items) => pending.extend(items),
                Value::Object(members) => {
                    pending.extend(members.values());
                    if let (Some(Value::Object(names)), Some(Value::Object(patterns))) =
                        (members.get("properties"), members.get("patternProperties"))
                    {
                        self.charge_names(names, patterns);
                    }
                }
                _ => {}
            }
        }
    }

    fn charge_names(&self, names: &Map<String, Value>, patterns: &Map<String, Value>) {
        for name in names.keys() {
            budget::charge_text(name);
            budget::charge_steps(patterns.len() as u64 * (1 + name.len() as u64 / 8));
            self.charge(name);
        }
    }
}

/// Rewrites the patterns for names that the library's engine does not compile as they are.
pub(super) fn rewrite_name_patterns(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    if let Some(Value::Object(patterns)) = members.get_mut("patternProperties") {
        let sources: Vec<String> = patterns.keys().cloned().collect();
        for source in sources {
            let Some(mut rewritten) = ecma::check_pattern(&source)
                .ok()
                .and_then(|pattern| pattern.engine_source)
            else {
                continue;
            };
            while patterns.contains_key(&rewritten) {
                rewritten = format!("(?:{rewritten})");
            }
            if let Some(schema) = patterns.remove(&source) {
                patterns.insert(rewritten, schema);
            }
        }
    }
    for_each_subschema_mut(members, &mut |_, schema| rewrite_name_patterns(schema));
}

impl NameCost for PropertyNames {
    fn charge(&self, name: &str) {
        if self.fixed_steps > 0 || self.state_count > 0 {
            budget::charge_steps(
                self.fixed_steps
                    + self.state_count.saturating_mul(name.len() as u64) / STATES_PER_STEP,
            );
        }
        for pattern in &self.backtracking {
            pattern.is_match(name);
        }
    }
}
