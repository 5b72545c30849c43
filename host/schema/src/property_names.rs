//! The cost of matching member names with `patternProperties`.
//!
//! The library matches names with its own engine, which cannot be interrupted. The work is
//! therefore charged to the budget in advance: for an automaton, the worst case; for a backtracking
//! pattern, the actual work.

use serde_json::{Map, Value};

use super::backtracking::BacktrackingMatcher;
use super::budget::{self, NameCost};
use super::ecma;
use super::pattern_budget::PatternBudget;
use super::pattern_keyword::PatternEngine;

/// Bytes of a pattern that are compared with a name in one step, if the pattern is a list of names.
const SOURCE_BYTES_PER_STEP: usize = 64;

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
    pub(super) fn of(schema: &Value, patterns: &PatternBudget) -> Result<Self, String> {
        let mut names = Self::default();
        let mut open = vec![schema];
        while let Some(value) = open.pop() {
            match value {
                Value::Array(items) => open.extend(items),
                Value::Object(members) => {
                    open.extend(members.values());
                    if let Some(Value::Object(own)) = members.get("patternProperties") {
                        own.keys().try_for_each(|source| names.add(source, patterns))?;
                    }
                }
                _ => {}
            }
        }
        Ok(names)
    }

    fn add(&mut self, source: &str, patterns: &PatternBudget) -> Result<(), String> {
        ecma::check_pattern(source).map_err(|why| format!("patternProperties: {why}"))?;
        self.fixed_steps += (source.len() / SOURCE_BYTES_PER_STEP) as u64;
        // The library reports invalid patterns.
        match PatternEngine::compile(source, patterns) {
            Ok(PatternEngine::Automaton(automaton)) => {
                if let Some(size) = automaton.dense_dfa_size() {
                    return patterns.reserve_name_bytes(size);
                }
                self.state_count += automaton.state_count() as u64;
                patterns.reserve_name_bytes(PatternBudget::LARGE_NAME_BYTES)
            }
            Ok(PatternEngine::Backtracking(backtracking)) => {
                self.backtracking.push(*backtracking);
                patterns.reserve_name_bytes(PatternBudget::LARGE_NAME_BYTES)
            }
            Err(()) => Ok(()),
        }
    }

    /// Charges the cost of matching the names in the schema itself, which the library does when it
    /// compiles the schema.
    pub(super) fn charge_own_names(&self, schema: &Value) {
        let mut open = vec![schema];
        while let Some(value) = open.pop() {
            match value {
                Value::Array(items) => open.extend(items),
                Value::Object(members) => {
                    open.extend(members.values());
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
            budget::take(patterns.len() as u64 * (1 + name.len() as u64 / 8));
            self.take(name);
        }
    }
}

impl NameCost for PropertyNames {
    fn take(&self, name: &str) {
        if self.fixed_steps > 0 || self.state_count > 0 {
            budget::take(self.fixed_steps + self.state_count.saturating_mul(name.len() as u64) / STATES_PER_STEP);
        }
        for pattern in &self.backtracking {
            pattern.is_match(name);
        }
    }
}
