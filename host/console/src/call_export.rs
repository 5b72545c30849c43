//! Finished calls as CSV and JSON Lines.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::call_note::{CallNote, TextExcerpt};
use crate::formatting::format_time_millis;

/// The columns of an export.
const COLUMNS: [&str; 13] = [
    "id",
    "time",
    "tool",
    "plugin",
    "caller",
    "outcome",
    "reason",
    "duration_ms",
    "fuel",
    "memory_bytes",
    "trace_id",
    "arguments",
    "result",
];

/// Returns the calls as CSV (RFC 4180). `shows_contents` decides whether the arguments and the
/// result of a call are included.
pub(crate) fn export_csv(
    calls: &[Arc<CallNote>],
    shows_contents: impl Fn(&CallNote) -> bool,
) -> String {
    let mut text = COLUMNS.join(",");
    text.push_str("\r\n");
    for call in calls {
        let row = columns(call, shows_contents(call)).map(|value| match value {
            Value::String(text) => csv_cell(&text),
            Value::Null => String::new(),
            other => other.to_string(),
        });
        text.push_str(&row.join(","));
        text.push_str("\r\n");
    }
    text
}

/// Returns the calls as JSON, one object a line. `shows_contents` decides whether the arguments and
/// the result of a call are included.
pub(crate) fn export_json_lines(
    calls: &[Arc<CallNote>],
    shows_contents: impl Fn(&CallNote) -> bool,
) -> String {
    let mut text = String::new();
    for call in calls {
        let object: serde_json::Map<String, Value> = COLUMNS
            .into_iter()
            .zip(columns(call, shows_contents(call)))
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        text.push_str(&Value::Object(object).to_string());
        text.push('\n');
    }
    text
}

/// Returns the values of the columns.
fn columns(call: &CallNote, shows_contents: bool) -> [Value; COLUMNS.len()] {
    let excerpt = |excerpt: &Option<TextExcerpt>| {
        excerpt
            .as_ref()
            .filter(|_| shows_contents)
            .map(|excerpt| excerpt.text.clone())
    };
    let milliseconds = (call.duration.as_secs_f64() * 1e6).round() / 1e3;
    [
        json!(call.id),
        json!(format_time_millis(call.at)),
        json!(call.tool),
        json!(call.plugin),
        json!(call.caller),
        json!(call.outcome),
        json!(call.failure_reason),
        json!(milliseconds),
        json!(call.usage.map(|usage| usage.fuel)),
        json!(call.usage.map(|usage| usage.memory)),
        json!(call.trace_id),
        json!(excerpt(&call.arguments)),
        json!(excerpt(&call.result)),
    ]
}

/// Characters with which a formula can begin.
const FORMULA_STARTS: &str = "=+-@|%＝＋－＠";

/// Characters after which a new cell begins for a program that expects another separator than a
/// comma: such a program does not see the quotes around the cell.
const OTHER_SEPARATORS: [char; 4] = [';', '\t', '\r', '\n'];

/// Returns a text as a cell. Programs for spreadsheets evaluate a cell that starts with one of
/// certain characters as a formula, which can send data elsewhere. An apostrophe before it makes it
/// a text. In many countries, such programs expect semicolons between cells, so this applies to each
/// part of the text between separators.
fn csv_cell(text: &str) -> String {
    let mut cell = String::with_capacity(text.len() + 2);
    cell.push('"');
    if text.starts_with(OTHER_SEPARATORS) {
        cell.push('\'');
    }
    // Spaces and quotes do not keep a program from seeing a formula behind them.
    let mut is_at_start = true;
    for letter in text.chars() {
        if is_at_start && FORMULA_STARTS.contains(letter) {
            cell.push('\'');
        }
        is_at_start = OTHER_SEPARATORS.contains(&letter)
            || is_at_start && (letter.is_whitespace() || letter == '"');
        cell.push(letter);
        if letter == '"' {
            cell.push('"');
        }
    }
    cell.push('"');
    cell
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_note::tests::note;

    #[test]
    fn a_text_is_never_a_formula_or_two_cells() {
        for (text, expected) in [
            ("plain", "\"plain\""),
            ("", "\"\""),
            ("a,b\n\"c\"", "\"a,b\n\"\"c\"\"\""),
            ("=1+1", "\"'=1+1\""),
            ("+1", "\"'+1\""),
            ("-1", "\"'-1\""),
            ("@SUM(A1)", "\"'@SUM(A1)\""),
            ("\t=1", "\"'\t'=1\""),
            ("\r=1", "\"'\r'=1\""),
            ("  =1", "\"  '=1\""),
            ("a;=1", "\"a;'=1\""),
            ("a\n=1", "\"a\n'=1\""),
            ("a;\"=1\"", "\"a;\"\"'=1\"\"\""),
            ("a; \t +1;-1", "\"a; \t '+1;'-1\""),
            ("1-1 = 0, [1,-2]", "\"1-1 = 0, [1,-2]\""),
            ("＝1", "\"'＝1\""),
            ("=cmd|' /C calc'!A0", "\"'=cmd|' /C calc'!A0\""),
            ("\",=1,\"", "\"\"\",=1,\"\"\""),
        ] {
            assert_eq!(csv_cell(text), expected, "{text:?}");
        }
    }

    #[test]
    fn exports_have_all_columns_and_contents_only_for_those_who_may_see_them() {
        let call = CallNote {
            arguments: Some(TextExcerpt::new("{\"a\": \"=1\"}")),
            result: Some(TextExcerpt::new(
                "=HYPERLINK(\"http://a.example\")\n\"two\"",
            )),
            trace_id: Some("ab".repeat(16)),
            ..note("=evil,\"tool\"", "fuel")
        };
        let calls = [Arc::new(call), Arc::new(note("t", "ok"))];
        let csv = export_csv(&calls, |_| true);
        insta::assert_snapshot!(csv.replace('\r', "␍"));
        let lines = export_json_lines(&calls, |_| true);
        let parsed: Vec<Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(parsed.len(), 2);
        assert_eq!(parsed[0]["tool"], "=evil,\"tool\"");
        assert_eq!(parsed[0]["arguments"], "{\"a\": \"=1\"}");
        assert_eq!(parsed[1]["arguments"], Value::Null);
        assert_eq!(parsed[1]["duration_ms"], 12.0);
        for hidden in [
            export_csv(&calls, |_| false),
            export_json_lines(&calls, |_| false),
        ] {
            assert!(!hidden.contains("HYPERLINK") && hidden.contains("evil"));
        }
    }
}
