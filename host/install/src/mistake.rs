//! Why the text of a configuration is not edited.

use toolbay_settings::toml_file::position;

/// What is wrong with the text of a configuration, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {words}")]
pub struct ConfigurationMistake {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What was wrong, and what was expected.
    pub words: String,
}

impl ConfigurationMistake {
    /// A mistake at a byte offset of `text`.
    pub(crate) fn at(text: &str, offset: usize, words: impl Into<String>) -> Self {
        let (line, column) = position(text, offset);
        Self { line, column, words: words.into() }
    }
}
