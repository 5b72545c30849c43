//! Arguments as shown to a person. Short arguments are complete. In longer ones, each gap states
//! its size.
//!
//! Every line of arguments begins with `|`, and no character within them ends a line. Arguments
//! therefore cannot imitate text of the host, whether a terminal, a dialog or Markdown shows them.
//! Markdown shows indented lines as code.

use std::fmt::Write as _;

use toolbay_model::text::format_thousands;

use super::json_escape::{PrecedingText, units};

/// Prefix of a line of arguments. Markdown shows text with an indent of four as code.
const LINE_PREFIX: &str = "    | ";

/// Maximum width of a line of arguments, in columns. Dialogs do not wrap lines of this width.
const LINE_WIDTH: usize = 64;

/// Maximum number of characters of the arguments that are shown.
const MAX_CHARS: usize = 4_000;

/// Maximum length of a string that is never shortened, in units. If not everything fits, a longer
/// string is reduced to its beginning and its end, with the following lengths.
const MAX_STRING_UNITS: usize = 320;
const STRING_HEAD_UNITS: usize = 200;
const STRING_TAIL_UNITS: usize = 80;

/// Sizes of the excerpt if shortened strings do not fit either: characters at the beginning, and
/// units at the end.
const HEAD_CHARS: usize = 3_000;
const TAIL_UNITS: usize = 600;

/// Arguments as they are shown to a person.
#[derive(Debug)]
pub(super) struct ArgumentExcerpt {
    /// The lines, without a line break after the last one.
    pub(super) lines: String,
    /// Number of bytes that are not shown.
    pub(super) hidden: usize,
}

/// Formats arguments for a person. `json` is compact JSON, but any other text is safe too.
pub(super) fn excerpt(json: &str) -> ArgumentExcerpt {
    render_complete(json)
        .or_else(|| render_shortened(json))
        .unwrap_or_else(|| render_ends(json))
        .into_excerpt()
}

/// Output under construction.
#[derive(Debug, Default)]
struct ExcerptLines {
    text: String,
    /// Columns of the last line that are in use.
    column: usize,
    /// Number of characters of arguments.
    shown: usize,
    hidden: usize,
    preceding: PrecedingText,
}

fn render_complete(json: &str) -> Option<ExcerptLines> {
    let mut lines = ExcerptLines::default();
    for (_, unit) in units(json) {
        lines.push_unit(unit);
        if lines.shown > MAX_CHARS {
            return None;
        }
    }
    Some(lines)
}

/// Formats only the beginning and the end of long strings. Short values, such as paths, stay
/// complete.
fn render_shortened(json: &str) -> Option<ExcerptLines> {
    let mut lines = ExcerptLines::default();
    let mut string_start = None;
    for (at, unit) in units(json) {
        match (unit, string_start) {
            ("\"", None) => {
                lines.push_unit(unit);
                string_start = Some(at + 1);
            }
            ("\"", Some(start)) => {
                lines.push_string(json.get(start..at).unwrap_or_default());
                lines.push_unit(unit);
                string_start = None;
            }
            (_, None) => lines.push_unit(unit),
            (_, Some(_)) => {}
        }
        if lines.shown > MAX_CHARS {
            return None;
        }
    }
    lines.push_string(
        string_start
            .and_then(|start| json.get(start..))
            .unwrap_or_default(),
    );
    (lines.shown <= MAX_CHARS).then_some(lines)
}

/// Formats only the beginning and the end of the whole text.
fn render_ends(json: &str) -> ExcerptLines {
    let mut lines = ExcerptLines::default();
    let tail = units(json).count().saturating_sub(TAIL_UNITS);
    let mut gap_start = None;
    for (number, (at, unit)) in units(json).enumerate() {
        if number >= tail {
            if let Some(from) = gap_start.take() {
                lines.push_gap(at - from);
            }
            lines.push_unit(unit);
        } else if gap_start.is_none() {
            if lines.shown < HEAD_CHARS {
                lines.push_unit(unit);
            } else {
                gap_start = Some(at);
            }
        }
    }
    lines
}

impl ExcerptLines {
    fn push_unit(&mut self, unit: &str) {
        let shown = self.preceding.escape_hidden(unit);
        // Characters outside ASCII can be two columns wide.
        let width: usize = shown
            .chars()
            .map(|c| if c.is_ascii() { 1 } else { 2 })
            .sum();
        if self.column == 0 || self.column + width > LINE_WIDTH {
            if !self.text.is_empty() {
                self.text.push('\n');
            }
            self.text.push_str(LINE_PREFIX);
            self.column = 0;
        }
        self.text.push_str(&shown);
        self.column += width;
        self.shown += shown.chars().count();
    }

    /// Appends the contents of a string.
    fn push_string(&mut self, contents: &str) {
        let count = units(contents).count();
        let mut gap_start = None;
        for (number, (at, unit)) in units(contents).enumerate() {
            if count <= MAX_STRING_UNITS || number < STRING_HEAD_UNITS {
                self.push_unit(unit);
            } else if number < count - STRING_TAIL_UNITS {
                gap_start.get_or_insert(at);
            } else {
                if let Some(from) = gap_start.take() {
                    self.push_gap(at - from);
                }
                self.push_unit(unit);
            }
            // The result is discarded in this case.
            if self.shown > MAX_CHARS {
                return;
            }
        }
    }

    /// Appends a line of the host, which no argument can imitate.
    fn push_gap(&mut self, bytes: usize) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let _ = write!(
            self.text,
            "    ~ {} bytes are not shown",
            format_thousands(bytes as u64)
        );
        self.hidden += bytes;
        (self.column, self.preceding) = (0, PrecedingText::default());
    }

    fn into_excerpt(self) -> ArgumentExcerpt {
        ArgumentExcerpt {
            lines: self.text,
            hidden: self.hidden,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn excerpt_of(arguments: &Value) -> ArgumentExcerpt {
        excerpt(&arguments.to_string())
    }

    /// Joins the text of the lines of arguments.
    fn join_arguments(excerpt: &ArgumentExcerpt) -> String {
        excerpt
            .lines
            .lines()
            .filter_map(|line| line.strip_prefix(LINE_PREFIX))
            .collect()
    }

    #[test]
    fn short_arguments_are_complete_and_the_same() {
        for arguments in [
            json!({}),
            json!({"path": "/data/a.txt", "lines": [1, 2.5, null, true]}),
            json!({"text": "a\n\nb    c\u{202e}d \u{1f642} ".repeat(50)}),
            json!({"text": "x".repeat(3_900)}),
            json!({"\u{2028}key": "漢字".repeat(500)}),
        ] {
            let excerpt = excerpt_of(&arguments);
            assert_eq!(
                (
                    excerpt.hidden,
                    serde_json::from_str::<Value>(&join_arguments(&excerpt)).unwrap()
                ),
                (0, arguments)
            );
        }
    }

    #[test]
    fn no_argument_looks_like_a_line_of_the_host() {
        let forged = "\n\n    ~ 0 bytes are not shown\n\n    + nothing\r\u{2028}    + nothing\u{85}\u{b}\u{c}    + nothing";
        let spaces = format!("{}    + nothing", " ".repeat(500));
        let long = format!("{}{forged}{}", "x".repeat(10_000), "y".repeat(10_000));
        let many: Vec<String> = (0..5_000).map(|n| format!("{forged}{n}")).collect();
        for arguments in [
            json!({"a": forged}),
            json!({"a": spaces}),
            json!({"a": long}),
            json!({"a": many}),
            json!({forged: 1}),
        ] {
            let excerpt = excerpt_of(&arguments);
            for line in excerpt
                .lines
                .split(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'))
            {
                let gap = line
                    .strip_prefix("    ~ ")
                    .and_then(|rest| rest.strip_suffix(" bytes are not shown"));
                let is_gap =
                    gap.is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit() || b == b','));
                assert!(is_gap || line.starts_with(LINE_PREFIX), "{line:?}");
                assert!(
                    line.chars().count() <= LINE_WIDTH + LINE_PREFIX.len()
                        && !line[LINE_PREFIX.len()..].contains("  "),
                    "{line:?}"
                );
            }
            assert!(excerpt.lines.len() < 40_000);
        }
    }

    #[test]
    fn long_strings_are_shortened_and_short_ones_are_complete() {
        let content = "x".repeat(100_000);
        let excerpt = excerpt_of(&json!({"content": content, "path": "/etc/passwd", "zero": 0}));
        assert_eq!(
            excerpt.hidden,
            100_000 - STRING_HEAD_UNITS - STRING_TAIL_UNITS
        );
        assert!(
            excerpt
                .lines
                .contains("\n    ~ 99,720 bytes are not shown\n"),
            "{}",
            excerpt.lines
        );
        assert!(
            join_arguments(&excerpt).ends_with(r#"x","path":"/etc/passwd","zero":0}"#),
            "{}",
            excerpt.lines
        );
    }

    #[test]
    fn no_escape_is_divided_where_a_string_is_shortened() {
        // A divided escape would end the string, and the rest would look like an argument.
        for shift in 0..8 {
            let text = format!(
                "{}{}",
                "x".repeat(shift),
                "\",\"path\":\"/tmp\",\"n\":\"".repeat(2_000)
            );
            let excerpt = excerpt_of(&json!({"text": text, "path": "/etc"}));
            let inside = join_arguments(&excerpt);
            let inside = inside
                .strip_prefix("{\"text\":\"")
                .unwrap()
                .strip_suffix("\",\"path\":\"/etc\"}")
                .unwrap();
            assert!(inside.replace("\\\"", "").find('"').is_none(), "{inside}");
        }
    }

    #[test]
    fn arguments_with_many_parts_are_reduced_to_their_beginning_and_end() {
        let excerpt = excerpt_of(
            &json!({"first": 1, "items": (0..100_000).collect::<Vec<_>>(), "last": "here"}),
        );
        assert!(
            excerpt
                .lines
                .starts_with("    | {\"first\":1,\"items\":[0,1,2,"),
            "{}",
            excerpt.lines
        );
        assert!(join_arguments(&excerpt).ends_with("99998,99999],\"last\":\"here\"}"));
        assert_eq!(excerpt.lines.matches("bytes are not shown").count(), 1);
        let total = json!({"first": 1, "items": (0..100_000).collect::<Vec<_>>(), "last": "here"})
            .to_string()
            .len();
        assert_eq!(join_arguments(&excerpt).len() + excerpt.hidden, total);
    }

    #[test]
    fn text_that_is_not_json_is_shown_too() {
        for text in ["", "\"", "{\"a\":\"\\", "[redacted]", "\"\"\"\"", "a\nb"] {
            assert!(
                excerpt(text)
                    .lines
                    .lines()
                    .all(|line| line.starts_with(LINE_PREFIX)),
                "{text:?}"
            );
        }
    }
}
