//! `pattern`: the keyword, matched within the budget of a check.

use jsonschema::{Keyword, ValidationError};
use jsonschema_regex::to_rust_regex;
use serde_json::Value;

use super::automaton::Automaton;
use super::backtracking::Backtracking;
use super::budget;
use super::counted::{Counted, Looked};
use super::ecma;
use super::patterns::Patterns;

/// How long a text may be that a violation quotes, in bytes.
const QUOTED: usize = 200;

/// So many bytes of a text are copied for a violation in one step.
const COPIED: usize = 512;

/// What matches a pattern.
#[derive(Debug)]
pub(super) enum Engine {
    Automaton(Box<Automaton>),
    Backtracking(Box<Backtracking>),
}

impl Engine {
    /// Compiles a pattern of ECMA-262.
    ///
    /// # Errors
    ///
    /// It is none, or too large.
    pub(super) fn compile(source: &str, patterns: &Patterns) -> Result<Self, ()> {
        let translated = to_rust_regex(source)?;
        match regex_syntax::Parser::new().parse(&translated) {
            Ok(parsed) => Automaton::compile(&parsed, patterns).map(Box::new).map(Self::Automaton).ok_or(()),
            Err(_) => {
                Backtracking::compile(&translated, patterns.size()).map(Box::new).map(Self::Backtracking).ok_or(())
            }
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
pub(super) struct Pattern {
    source: String,
    engine: Engine,
}

impl Pattern {
    /// Compiles the value of the keyword.
    ///
    /// # Errors
    ///
    /// It is no pattern, or a pattern that is too large.
    pub(super) fn compile(value: &Value, patterns: &Patterns) -> Result<Self, ValidationError<'static>> {
        let source = value.as_str().unwrap_or_default();
        ecma::check(source).map_err(ValidationError::custom)?;
        let engine = Engine::compile(source, patterns);
        let engine = engine.map_err(|()| ValidationError::custom(format!("{value} is not a \"regex\"")))?;
        Ok(Self { source: source.to_owned(), engine })
    }
}

impl<'i> Keyword<'i, Counted> for Pattern {
    fn validate(&self, value: Looked<'i>) -> Result<(), ValidationError<'i>> {
        if self.is_valid(value) {
            return Ok(());
        }
        let text = value.0.as_str().unwrap_or_default();
        // The library copies the value for its violation.
        budget::take((text.len() / COPIED) as u64);
        let subject = if text.len() <= QUOTED { value.0.to_string() } else { "value".to_owned() };
        Err(ValidationError::custom(format!("{subject} does not match \"{}\"", self.source)))
    }

    fn is_valid(&self, value: Looked<'i>) -> bool {
        budget::look();
        value.0.as_str().is_none_or(|text| self.engine.is_match(text))
    }
}
