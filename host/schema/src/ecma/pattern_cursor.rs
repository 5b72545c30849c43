//! The characters of a pattern, and the position in them.

/// An error in a pattern.
pub(super) struct PatternError {
    pub(super) position: usize,
    pub(super) length: usize,
    pub(super) replacement: String,
}

/// Creates an error with the text to write instead.
pub(super) fn pattern_error(position: usize, length: usize, replacement: &str) -> PatternError {
    PatternError {
        position,
        length,
        replacement: replacement.to_owned(),
    }
}

/// A position in a pattern.
#[derive(Default)]
pub(super) struct PatternCursor {
    chars: Vec<char>,
    pub(super) position: usize,
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
        self.chars.get(self.position + ahead).copied()
    }

    /// Returns whether the rest of the pattern begins with `prefix`.
    pub(super) fn rest_starts_with(&self, prefix: &str) -> bool {
        prefix
            .chars()
            .enumerate()
            .all(|(n, c)| self.peek(n) == Some(c))
    }

    /// Returns the characters before `end`, starting `ahead` characters after the current position;
    /// `None` if `end` is not found.
    pub(super) fn text_until(&self, ahead: usize, end: char) -> Option<String> {
        let rest = self.chars.get(self.position + ahead..)?;
        let length = rest.iter().position(|c| *c == end)?;
        rest.get(..length).map(|text| text.iter().collect())
    }

    /// Returns the characters that match, starting `ahead` characters after the current position.
    pub(super) fn text_while(&self, ahead: usize, matches: impl Fn(char) -> bool) -> String {
        self.chars
            .iter()
            .skip(self.position + ahead)
            .take_while(|c| matches(**c))
            .collect()
    }
}

/// Returns whether a group can have this name.
pub(super) fn is_group_name(name: &str) -> bool {
    let is_start = |c: char| c.is_alphabetic() || c == '_' || c == '$';
    name.starts_with(is_start) && name.chars().all(|c| is_start(c) || c.is_alphanumeric())
}
