//! Errors in the text of a configuration.

use toolbay_settings::toml_file::position;

/// Error in the text of a configuration, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {words}")]
pub struct ConfigurationMistake {
    /// Line, starting at 1.
    pub line: usize,
    /// Column in characters, starting at 1.
    pub column: usize,
    /// Description of the error and of the expected text.
    pub words: String,
}

impl ConfigurationMistake {
    /// Creates an error at a byte offset of `text`.
    pub(crate) fn at(text: &str, offset: usize, words: impl Into<String>) -> Self {
        let (line, column) = position(text, offset);
        Self {
            line,
            column,
            words: words.into(),
        }
    }
}
