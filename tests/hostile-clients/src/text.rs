//! The bytes that a client sends, stored so that megabytes can be shown on one line.

use std::fmt;

/// A part of a text.
#[derive(Clone, Debug)]
enum Part {
    Bytes(Vec<u8>),
    /// A text, and how often it is repeated.
    Repeated(String, usize),
    /// Each number below the last field, between a prefix and a suffix.
    Numbered(&'static str, &'static str, usize),
    /// The ID of the last session that the server created.
    Session,
}

/// A byte string, built from parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text {
    parts: Vec<Part>,
}

impl Text {
    pub(crate) fn new(bytes: impl AsRef<[u8]>) -> Self {
        Self {
            parts: vec![Part::Bytes(bytes.as_ref().to_vec())],
        }
    }

    pub(crate) fn repeated(text: &str, times: usize) -> Self {
        Self {
            parts: vec![Part::Repeated(text.to_owned(), times)],
        }
    }

    pub(crate) fn numbered(before: &'static str, after: &'static str, count: usize) -> Self {
        Self {
            parts: vec![Part::Numbered(before, after, count)],
        }
    }

    /// Returns the ID of the last session that the server created, as a placeholder.
    pub(crate) fn session() -> Self {
        Self {
            parts: vec![Part::Session],
        }
    }

    /// Adds bytes.
    #[must_use]
    pub(crate) fn and(mut self, bytes: impl AsRef<[u8]>) -> Self {
        match self.parts.last_mut() {
            Some(Part::Bytes(last)) => last.extend_from_slice(bytes.as_ref()),
            _ => self.parts.push(Part::Bytes(bytes.as_ref().to_vec())),
        }
        self
    }

    /// Adds a text.
    #[must_use]
    pub(crate) fn then(mut self, text: Self) -> Self {
        for part in text.parts {
            match part {
                Part::Bytes(bytes) => self = self.and(bytes),
                part => self.parts.push(part),
            }
        }
        self
    }

    /// Returns the bytes. `session` replaces the session placeholder.
    pub(crate) fn bytes(&self, session: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in &self.parts {
            match part {
                Part::Bytes(part) => bytes.extend_from_slice(part),
                Part::Repeated(text, times) => bytes.extend(text.repeat(*times).bytes()),
                Part::Numbered(before, after, count) => {
                    for number in 0..*count {
                        bytes.extend_from_slice(format!("{before}{number}{after}").as_bytes());
                    }
                }
                Part::Session => bytes.extend_from_slice(session.as_bytes()),
            }
        }
        bytes
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                Part::Bytes(bytes) => write!(f, "{}", bytes.escape_ascii())?,
                Part::Repeated(text, times) => write!(f, "«{} × {times}»", text.escape_default())?,
                Part::Numbered(before, after, count) => {
                    write!(f, "«{before}0…{}{after}»", count.saturating_sub(1))?;
                }
                Part::Session => f.write_str("«session»")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_written_and_shown() {
        let text = Text::new("a\n")
            .and("b")
            .then(Text::repeated("[0],", 3))
            .then(Text::numbered("\"", "\":0,", 2));
        let text = text.then(Text::session()).then(Text::new("c").and(b"\xff"));
        assert_eq!(text.bytes("7"), b"a\nb[0],[0],[0],\"0\":0,\"1\":0,7c\xff");
        assert_eq!(
            text.to_string(),
            r#"a\nb«[0], × 3»«"0…1":0,»«session»c\xff"#
        );
    }
}
