//! The characters of a pattern, and the position in them.

/// An error in a pattern.
pub(super) struct PatternError {
    pub(super) at: usize,
    pub(super) length: usize,
    pub(super) replacement: String,
}

/// Creates an error with the text to write instead.
pub(super) fn pattern_error(at: usize, length: usize, instead: &str) -> PatternError {
    PatternError {
        at,
        length,
        replacement: instead.to_owned(),
    }
}

/// A position in a pattern.
#[derive(Default)]
pub(super) struct PatternCursor {
    chars: Vec<char>,
    pub(super) at: usize,
    /// The parts that differ in the syntax of Rust engines: the position, the length, and the
    /// replacement.
    pub(super) rewrites: Vec<(usize, usize, String)>,
}

impl PatternCursor {
    /// Creates a cursor at the beginning of a pattern.
    pub(super) fn new(source: &str) -> Self {
        Self {
            chars: source.chars().collect(),
            ..Self::default()
        }
    }

    /// Returns the characters of the pattern.
    pub(super) fn chars(&self) -> &[char] {
        &self.chars
    }

    /// Returns the character `ahead` characters after the current position.
    pub(super) fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    /// Returns whether the rest of the pattern begins with `prefix`.
    pub(super) fn rest_starts_with(&self, with: &str) -> bool {
        with.chars()
            .enumerate()
            .all(|(n, c)| self.peek(n) == Some(c))
    }

    /// Returns the characters before `end`, starting `ahead` characters after the current position;
    /// `None` if `end` is not found.
    pub(super) fn text_until(&self, ahead: usize, end: char) -> Option<String> {
        let rest = self.chars.get(self.at + ahead..)?;
        let length = rest.iter().position(|c| *c == end)?;
        rest.get(..length).map(|found| found.iter().collect())
    }

    /// Returns the characters that match, starting `ahead` characters after the current position.
    pub(super) fn text_while(&self, ahead: usize, matches: impl Fn(char) -> bool) -> String {
        self.chars
            .iter()
            .skip(self.at + ahead)
            .take_while(|c| matches(**c))
            .collect()
    }
}

/// Returns whether a group can have this name.
pub(super) fn is_group_name(name: &str) -> bool {
    let begins = |c: char| c.is_alphabetic() || c == '_' || c == '$';
    name.starts_with(begins) && name.chars().all(|c| begins(c) || c.is_alphanumeric())
}
