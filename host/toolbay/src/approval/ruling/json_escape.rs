//! Escapes JSON text for a person who decides about it. Every character is visible, and none can
//! disguise the text.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Maximum number of consecutive combining characters. More of them would cover the lines above and
/// below.
const MAX_COMBINING_MARKS: usize = 2;

/// Splits JSON text into units: a character, or an indivisible escape such as `\n` or `\u001f`.
pub(super) fn units(json: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = json.get(at..).filter(|rest| !rest.is_empty())?;
        let length = match rest.as_bytes() {
            [b'\\', b'u', ..] => 6,
            [b'\\', _, ..] => 2,
            _ => 1,
        };
        let start = at;
        let end = rest.ceil_char_boundary(length);
        at += end;
        Some((start, rest.get(..end)?))
    })
}

/// State after the preceding unit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PrecedingText {
    is_space: bool,
    combining_marks: usize,
}

impl PrecedingText {
    /// Returns the unit as it is shown. Invisible and misleading characters are escaped, which
    /// leaves the JSON value unchanged. A space after a space is escaped too: enough spaces could
    /// move the following text to where a new line could begin.
    pub(super) fn escape_hidden<'a>(&mut self, unit: &'a str) -> Cow<'a, str> {
        let mut chars = unit.chars();
        let (Some(c), None) = (chars.next(), chars.next()) else {
            *self = Self::default();
            return Cow::Borrowed(unit);
        };
        let marks = if is_combining_mark(c) {
            self.combining_marks + 1
        } else {
            0
        };
        let must_escape =
            is_deceptive(c) || marks > MAX_COMBINING_MARKS || (c == ' ' && self.is_space);
        *self = Self {
            is_space: c == ' ',
            combining_marks: marks,
        };
        if must_escape {
            Cow::Owned(json_escape(c))
        } else {
            Cow::Borrowed(unit)
        }
    }
}

/// Returns the first `max_chars` characters of `text` on one line, escaped by
/// [`PrecedingText::escape_hidden`]. An ellipsis replaces the rest.
pub(super) fn visible_line(text: &str, max_chars: usize) -> String {
    let mut line = String::new();
    let mut preceding = PrecedingText::default();
    for (count, c) in text.chars().enumerate() {
        if count == max_chars {
            line.push('…');
            break;
        }
        line.push_str(&preceding.escape_hidden(c.encode_utf8(&mut [0; 4])));
    }
    line
}

/// Returns the character as a JSON escape.
fn json_escape(c: char) -> String {
    let mut escape = String::new();
    for unit in c.encode_utf16(&mut [0; 2]) {
        let _ = write!(escape, "\\u{unit:04x}");
    }
    escape
}

/// Returns whether a character is a combining character that common fonts have.
fn is_combining_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

/// Returns whether a character is invisible, looks like a space, ends a line or reorders others.
fn is_deceptive(c: char) -> bool {
    let is_other_space = c.is_whitespace() && c != ' ';
    c.is_control()
        || is_other_space
        || matches!(c,
            // Soft hyphen, joiners, fillers, vowel separators, and direction marks and controls.
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{2800}' | '\u{3164}' | '\u{ffa0}'
            // Variation selectors, a byte order mark, annotations, format characters of notations,
            // tags.
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{13430}'..='\u{1345f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
            // Private use: their appearance is unknown.
            | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(json: &str) -> String {
        let mut preceding = PrecedingText::default();
        units(json)
            .map(|(_, unit)| preceding.escape_hidden(unit).into_owned())
            .collect()
    }

    #[test]
    fn invisible_characters_are_escaped_and_the_json_value_is_unchanged() {
        for (text, expected) in [
            (
                "plain text, é, 漢字, עברית, 🙂",
                r#""plain text, é, 漢字, עברית, 🙂""#,
            ),
            ("a\nb\tc\r", r#""a\nb\tc\r""#),
            ("a\u{1b}[2Jb", r#""a\u001b[2Jb""#),
            ("a\u{7f}\u{9b}", r#""a\u007f\u009b""#),
            ("evil\u{202e}gpj.exe", r#""evil\u202egpj.exe""#),
            (
                "a\u{200b}b\u{2066}c\u{feff}d",
                r#""a\u200bb\u2066c\ufeffd""#,
            ),
            ("a\u{2028}b\u{2029}c\u{85}d", r#""a\u2028b\u2029c\u0085d""#),
            (
                "a\u{a0}b\u{3000}c\u{3164}d\u{2800}e",
                r#""a\u00a0b\u3000c\u3164d\u2800e""#,
            ),
            (
                "\u{e0041}\u{e0101}\u{f0000}",
                r#""\udb40\udc41\udb40\udd01\udb80\udc00""#,
            ),
            ("a    b", "\"a \\u0020\\u0020\\u0020b\""),
            (
                "e\u{301}\u{302}\u{303}\u{304}",
                "\"e\u{301}\u{302}\\u0303\\u0304\"",
            ),
            ("\"\\", r#""\"\\""#),
        ] {
            let json = serde_json::to_string(text).unwrap();
            let shown = shown(&json);
            assert_eq!(shown, expected, "{text:?}");
            assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
        }
    }

    #[test]
    fn an_escape_is_one_unit_and_a_broken_one_is_accepted() {
        let all = |json| units(json).map(|(_, unit)| unit).collect::<Vec<_>>();
        assert_eq!(
            all(r#"a\"\\\u00e9é"#),
            ["a", r#"\""#, r"\\", r"\u00e9", "é"]
        );
        for broken in ["\\", "\\u", "\\u00", "\\é", "\\u0é0", "\\🙂"] {
            assert_eq!(all(broken).concat(), broken);
        }
    }

    #[test]
    fn a_name_is_one_line() {
        assert_eq!(visible_line("a\nb\u{202e}", 10), r"a\u000ab\u202e");
        assert_eq!(visible_line("abcdef", 3), "abc…");
    }
}
