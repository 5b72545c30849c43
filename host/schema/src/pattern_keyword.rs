//! The keyword `pattern`, matched within the budget of a check.

use jsonschema::{Keyword, ValidationError};
use jsonschema_regex::to_rust_regex;
use serde_json::Value;

use super::automaton::AutomatonMatcher;
use super::backtracking::BacktrackingMatcher;
use super::budget;
use super::counted_json::{CountedJson, CountedValue};
use super::ecma;
use super::pattern_budget::PatternBudget;

/// Maximum size of a text that a violation quotes, in bytes.
const MAX_QUOTED_BYTES: usize = 200;

/// Bytes of a text that are copied for a violation in one step.
const COPIED_BYTES_PER_STEP: usize = 512;

/// The engine that matches a pattern.
#[derive(Debug)]
pub(super) enum PatternEngine {
    Automaton(Box<AutomatonMatcher>),
    Backtracking(Box<BacktrackingMatcher>),
}

impl PatternEngine {
    /// Compiles a pattern of ECMA-262.
    ///
    /// # Errors
    ///
    /// The pattern is invalid or too large.
    pub(super) fn compile(source: &str, patterns: &PatternBudget) -> Result<Self, ()> {
        let translated = to_rust_regex(source)?;
        match regex_syntax::Parser::new().parse(&translated) {
            Ok(parsed) => AutomatonMatcher::compile(&parsed, patterns).map(Box::new).map(Self::Automaton).ok_or(()),
            Err(_) => BacktrackingMatcher::compile(&translated, patterns.max_pattern_bytes())
                .map(Box::new)
                .map(Self::Backtracking)
                .ok_or(()),
        }
    }

    fn is_match(&self, text: &str) -> bool {
        match self {
            Self::Automaton(automaton) => automaton.is_match(text),
            Self::Backtracking(backtracking) => backtracking.is_match(text),
        }
    }
}

/// The keyword `pattern`.
pub(super) struct PatternKeyword {
    source: String,
    engine: PatternEngine,
}

impl PatternKeyword {
    /// Compiles the value of the keyword.
    ///
    /// # Errors
    ///
    /// The value is not a valid pattern, or the pattern is too large.
    pub(super) fn compile(value: &Value, patterns: &PatternBudget) -> Result<Self, ValidationError<'static>> {
        let source = value.as_str().unwrap_or_default();
        ecma::check_pattern(source).map_err(ValidationError::custom)?;
        let engine = PatternEngine::compile(source, patterns);
        let engine = engine.map_err(|()| ValidationError::custom(format!("{value} is not a \"regex\"")))?;
        Ok(Self { source: source.to_owned(), engine })
    }
}

impl<'i> Keyword<'i, CountedJson> for PatternKeyword {
    fn validate(&self, value: CountedValue<'i>) -> Result<(), ValidationError<'i>> {
        if self.is_valid(value) {
            return Ok(());
        }
        let text = value.0.as_str().unwrap_or_default();
        // The library copies the value for its violation.
        budget::take((text.len() / COPIED_BYTES_PER_STEP) as u64);
        let subject = if text.len() <= MAX_QUOTED_BYTES { value.0.to_string() } else { "value".to_owned() };
        Err(ValidationError::custom(format!("{subject} does not match \"{}\"", self.source)))
    }

    fn is_valid(&self, value: CountedValue<'i>) -> bool {
        budget::charge_access();
        value.0.as_str().is_none_or(|text| self.engine.is_match(text))
    }
}
