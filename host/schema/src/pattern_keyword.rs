//! The keyword `pattern`, matched within the budget of a check.

use jsonschema::{Keyword, ValidationError};
use jsonschema_regex::to_rust_regex;
use serde_json::Value;
use toolbay_model::text::format_thousands;

use super::automaton::AutomatonMatcher;
use super::backtracking::{BacktrackingError, BacktrackingMatcher};
use super::budget;
use super::counted_json::{CountedJson, CountedValue};
use super::ecma::{self, EcmaPattern};
use super::pattern_budget::PatternBudget;

/// Maximum size of a text that a violation quotes, in bytes.
const MAX_QUOTED_BYTES: usize = 200;

/// Maximum length of the quoted location of an error in a pattern, in characters.
const MAX_QUOTED_LOCATION_CHARS: usize = 12;

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
    /// The pattern is invalid or too large. The message contains the location and a replacement.
    pub(super) fn compile(source: &str, patterns: &PatternBudget) -> Result<Self, String> {
        let pattern = ecma::check_pattern(source)?;
        let engine_source = pattern.engine_source.as_deref().unwrap_or(source);
        let translated = to_rust_regex(engine_source)
            .map_err(|()| unsupported_message(source, &syntax_error(engine_source)))?;
        match regex_syntax::Parser::new().parse(&translated) {
            Ok(parsed) => AutomatonMatcher::compile(&parsed, patterns)
                .map(|automaton| Self::Automaton(Box::new(automaton)))
                .ok_or_else(|| too_large_message(source, &pattern, patterns)),
            Err(error) => BacktrackingMatcher::compile(&translated, patterns.max_pattern_size())
                .map(|backtracking| Self::Backtracking(Box::new(backtracking)))
                .map_err(|fault| match fault {
                    BacktrackingError::TooLarge => too_large_message(source, &pattern, patterns),
                    // The parser without look-around describes all other errors more precisely.
                    BacktrackingError::Unsupported(why) => {
                        unsupported_message(source, &describe_parse_error(&error).unwrap_or(why))
                    }
                }),
        }
    }

    fn is_match(&self, text: &str) -> bool {
        match self {
            Self::Automaton(automaton) => automaton.is_match(text),
            Self::Backtracking(backtracking) => backtracking.is_match(text),
        }
    }
}

/// Returns the message for a pattern that needs too much memory.
fn too_large_message(source: &str, pattern: &EcmaPattern, patterns: &PatternBudget) -> String {
    let max_kib = format_thousands((patterns.max_pattern_size() >> 10) as u64);
    let replacement = match &pattern.largest_count {
        Some(count) => format!("{count}: write a smaller count, or \"+\" or \"*\" with maxLength"),
        None => "write fewer alternatives and classes".to_owned(),
    };
    let pattern = ecma::quote_pattern(source);
    format!(
        "the pattern {pattern} is too large: {replacement} (compiled, it may have {max_kib} KiB here; the patterns of a \
         plugin share 16 MiB)"
    )
}

/// Returns the message for a pattern that the engines cannot compile for another reason.
fn unsupported_message(source: &str, why: &str) -> String {
    let pattern = ecma::quote_pattern(source);
    format!(
        "the pattern {pattern} is one of ECMA-262, but Toolbay cannot compile it: {why}; write it in another way"
    )
}

/// Returns the reason for which a pattern cannot be translated.
fn syntax_error(source: &str) -> String {
    match regex_syntax::ast::parse::Parser::new().parse(source) {
        Err(error) => describe_syntax(source, error.span().start.offset, &error.kind().to_string()),
        Ok(_) => "it has a part that no engine supports".to_owned(),
    }
}

/// Returns the reason in an error of the engine without look-around; `None` if that is only the
/// look-around or a back reference.
fn describe_parse_error(error: &regex_syntax::Error) -> Option<String> {
    match error {
        regex_syntax::Error::Parse(error) => {
            let is_expected = matches!(
                error.kind(),
                regex_syntax::ast::ErrorKind::UnsupportedLookAround
                    | regex_syntax::ast::ErrorKind::UnsupportedBackreference
            );
            let why = describe_syntax(
                error.pattern(),
                error.span().start.offset,
                &error.kind().to_string(),
            );
            (!is_expected).then_some(why)
        }
        regex_syntax::Error::Translate(error) => Some(describe_syntax(
            error.pattern(),
            error.span().start.offset,
            &error.kind().to_string(),
        )),
        _ => None,
    }
}

/// Describes an error at a byte of a pattern.
fn describe_syntax(pattern: &str, offset: usize, why: &str) -> String {
    let chars_before = pattern.get(..offset).unwrap_or_default().chars().count();
    let quoted: String = pattern
        .chars()
        .skip(chars_before)
        .take(MAX_QUOTED_LOCATION_CHARS)
        .collect();
    format!("at character {}, {quoted:?}: {why}", chars_before + 1)
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
    pub(super) fn compile(
        value: &Value,
        patterns: &PatternBudget,
    ) -> Result<Self, ValidationError<'static>> {
        let source = value.as_str().unwrap_or_default();
        let engine = PatternEngine::compile(source, patterns).map_err(ValidationError::custom)?;
        Ok(Self {
            source: source.to_owned(),
            engine,
        })
    }
}

impl<'i> Keyword<'i, CountedJson> for PatternKeyword {
    fn validate(&self, value: CountedValue<'i>) -> Result<(), ValidationError<'i>> {
        if self.is_valid(value) {
            return Ok(());
        }
        let text = value.0.as_str().unwrap_or_default();
        // The library copies the value for its violation.
        budget::charge_steps((text.len() / COPIED_BYTES_PER_STEP) as u64);
        let subject = if text.len() <= MAX_QUOTED_BYTES {
            value.0.to_string()
        } else {
            "value".to_owned()
        };
        Err(ValidationError::custom(format!(
            "{subject} does not match \"{}\"",
            self.source
        )))
    }

    fn is_valid(&self, value: CountedValue<'i>) -> bool {
        budget::charge_access();
        value
            .0
            .as_str()
            .is_none_or(|text| self.engine.is_match(text))
    }
}
