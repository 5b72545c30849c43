//! Checks that a pattern conforms to ECMA-262, as JSON Schema requires: with the flag `u`, and
//! without features that only the newest editions have.
//!
//! The engine that matches patterns supports more syntax, and so do the engines in plugins'
//! languages. A client whose validator does not support it would lose the whole list of tools.

mod character_class;
mod character_escape;
mod pattern_cursor;
mod pattern_parser;
mod suggestions;

use self::pattern_parser::PatternParser;

/// Maximum length of the quoted part of a pattern, in characters.
const MAX_QUOTED_CHARS: usize = 24;

/// Checks a pattern, and returns the information that an engine needs.
///
/// # Errors
///
/// Returns the position of the mistake, and the text to write instead.
pub(super) fn check_pattern(source: &str) -> Result<EcmaPattern, String> {
    let mut parser = PatternParser::new(source);
    parser.parse().map_err(|fault| {
        let location = quote_location(parser.chars(), fault.position, fault.length);
        let pattern = quote_pattern(source);
        format!(
            "the pattern {pattern} is not a \"regex\" of ECMA-262: {location}: {}",
            fault.replacement
        )
    })?;
    let largest_count = parser
        .largest_count
        .map(|(_, at, length)| quote_location(parser.chars(), at, length));
    Ok(EcmaPattern {
        engine_source: parser.engine_source(),
        largest_count,
    })
}

/// A pattern that conforms to ECMA-262.
#[derive(Debug)]
pub(super) struct EcmaPattern {
    /// The pattern in the syntax of Rust engines; `None` if it is the same.
    pub(super) engine_source: Option<String>,
    /// The location of the largest count of repetitions, such as `at character 2, "{1,1000}"`.
    pub(super) largest_count: Option<String>,
}

/// Quotes the beginning of a pattern.
pub(super) fn quote_pattern(source: &str) -> String {
    let pattern: String = source.chars().take(2 * MAX_QUOTED_CHARS).collect();
    let ellipsis = if pattern.len() < source.len() {
        "…"
    } else {
        ""
    };
    format!("{pattern:?}{ellipsis}")
}

fn quote_location(chars: &[char], at: usize, length: usize) -> String {
    let quoted: String = chars
        .iter()
        .skip(at)
        .take(length.min(MAX_QUOTED_CHARS))
        .collect();
    if quoted.is_empty() {
        "at its end".to_owned()
    } else {
        format!("at character {}, {quoted:?}", at + 1)
    }
}

#[cfg(test)]
mod tests;
