//! Comparison of a recorded call with its replay.

use std::fmt::Write as _;

use serde_json::Value;
use similar::{ChangeTag, TextDiff};
use toolbay_model::text::clean_line;

use crate::outcome::RecordedOutcome;
use crate::recorded_call::{RecordedCall, RecordedUsage};

/// Number of context lines around lines that differ.
const CONTEXT_LINES: usize = 2;

/// Maximum number of displayed lines of a difference.
const MAX_LINES: usize = 40;

/// Maximum length of a displayed line of a difference, in bytes.
const MAX_LINE_BYTES: usize = 400;

/// Maximum total size of two texts that are compared line by line, in bytes. Comparing larger texts
/// could take too long.
const MAX_COMPARED_BYTES: usize = 256 << 10;

/// Outcome of replaying a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplayedCall {
    /// Result, in the form of [`RecordedOutcome::Value`].
    pub result: Value,
    /// Resource usage.
    pub usage: RecordedUsage,
    /// Operations that the recording does not contain.
    pub unrecorded: Vec<String>,
    /// Recorded operations that were not repeated.
    pub not_repeated: Vec<String>,
}

/// Differences between a recorded call and its replay.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayComparison {
    /// Verdict.
    pub verdict: ReplayVerdict,
    /// Number of instructions.
    pub fuel: FigurePair,
    /// Peak memory, in bytes.
    pub memory: FigurePair,
    /// Wall-clock time, in nanoseconds. It differs between runs.
    pub wall_ns: FigurePair,
}

/// Verdict of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplayVerdict {
    /// The result and the operations are equal.
    Equal,
    /// The result or the operations differ.
    Differs(Vec<ReplayChange>),
}

/// Difference between a recorded call and its replay.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplayChange {
    /// Difference of the results, line by line: `-` is recorded, `+` is replayed.
    Result(String),
    /// Operation that the recording does not contain.
    Unrecorded(String),
    /// Recorded operation that was not repeated.
    NotRepeated(String),
}

/// Recorded and replayed value of a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FigurePair {
    /// Recorded value.
    pub recorded: u64,
    /// Replayed value.
    pub replayed: u64,
}

/// Compares a recorded call with its replay.
pub fn compare(recorded: &RecordedCall, replayed: &ReplayedCall) -> ReplayComparison {
    let mut changes = Vec::new();
    if !recorded.result.matches(&replayed.result) {
        changes.push(ReplayChange::Result(describe_difference(
            &recorded.result,
            &replayed.result,
        )));
    }
    changes.extend(
        replayed
            .unrecorded
            .iter()
            .cloned()
            .map(ReplayChange::Unrecorded),
    );
    changes.extend(
        replayed
            .not_repeated
            .iter()
            .cloned()
            .map(ReplayChange::NotRepeated),
    );
    let verdict = if changes.is_empty() {
        ReplayVerdict::Equal
    } else {
        ReplayVerdict::Differs(changes)
    };
    let figure_pair = |part: fn(&RecordedUsage) -> u64| FigurePair {
        recorded: part(&recorded.usage),
        replayed: part(&replayed.usage),
    };
    ReplayComparison {
        verdict,
        fuel: figure_pair(|used| used.fuel),
        memory: figure_pair(|used| used.memory),
        wall_ns: figure_pair(|used| used.wall_ns),
    }
}

/// Describes the difference of two results, line by line.
fn describe_difference(recorded: &RecordedOutcome, replayed: &Value) -> String {
    let new = render_result(replayed);
    let old = match recorded {
        RecordedOutcome::Value(value) => render_result(value),
        RecordedOutcome::Sha256(_) => {
            return "- a result that was too large to be recorded\n+ another one\n".to_owned();
        }
    };
    if old.len() + new.len() > MAX_COMPARED_BYTES {
        return format!(
            "- a result of {} bytes\n+ another one of {} bytes\n",
            old.len(),
            new.len()
        );
    }
    let mut out = String::new();
    let mut count = 0_usize;
    let diff = TextDiff::from_lines(&old, &new);
    for (index, group) in diff.grouped_ops(CONTEXT_LINES).iter().enumerate() {
        if index > 0 {
            out.push_str("  …\n");
        }
        for change in group
            .iter()
            .flat_map(|operation| diff.iter_changes(operation))
        {
            count += 1;
            if count > MAX_LINES {
                continue;
            }
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            let _ = writeln!(
                out,
                "{sign} {}",
                clean_line(change.value().trim_end_matches('\n'), MAX_LINE_BYTES)
            );
        }
    }
    if count > MAX_LINES {
        let _ = writeln!(out, "  and {} lines more", count - MAX_LINES);
    }
    out
}

/// Renders a result as lines: text as it is, everything else as JSON.
fn render_result(result: &Value) -> String {
    let mut out = String::new();
    let Some(members) = result.as_object() else {
        return format!("{result}\n");
    };
    for (name, value) in members {
        match (name.as_str(), value) {
            ("content", Value::Array(blocks)) => {
                for block in blocks {
                    out += &render_block(block);
                }
            }
            (name, Value::String(text)) => {
                let _ = writeln!(out, "{name}: {text}");
            }
            (name, value) => {
                let _ = writeln!(
                    out,
                    "{name}: {}",
                    serde_json::to_string_pretty(value).unwrap_or_default()
                );
            }
        }
    }
    out
}

fn render_block(block: &Value) -> String {
    match (block.get("type").and_then(Value::as_str), block.get("text")) {
        (Some("text"), Some(Value::String(text)))
            if block.as_object().is_some_and(|members| members.len() == 2) =>
        {
            format!("{text}\n")
        }
        _ => format!("{block}\n"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::recorded_call::tests::call;

    fn text(text: &str) -> Value {
        json!({"content": [{"type": "text", "text": text}], "structured": {"sum": 1}})
    }

    fn compared(old: Value, new: Value) -> ReplayVerdict {
        let recorded = RecordedCall {
            result: RecordedOutcome::Value(old),
            ..call(1)
        };
        compare(
            &recorded,
            &ReplayedCall {
                result: new,
                ..ReplayedCall::default()
            },
        )
        .verdict
    }

    #[test]
    fn equal_results_are_equal_regardless_of_usage() {
        let recorded = call(1);
        let RecordedOutcome::Value(result) = recorded.result.clone() else {
            panic!()
        };
        let usage = RecordedUsage {
            fuel: 11,
            memory: 0,
            wall_ns: 0,
        };
        let comparison = compare(
            &recorded,
            &ReplayedCall {
                result,
                usage,
                ..ReplayedCall::default()
            },
        );
        assert_eq!(comparison.verdict, ReplayVerdict::Equal);
        assert_eq!(
            comparison.fuel,
            FigurePair {
                recorded: 10,
                replayed: 11
            }
        );
    }

    #[test]
    fn a_difference_shows_the_lines_that_differ() {
        let ReplayVerdict::Differs(changes) =
            compared(text("a\nb\nc\nd\ne"), text("a\nb\nc\nD\ne"))
        else {
            panic!()
        };
        assert_eq!(
            changes,
            [ReplayChange::Result(
                "  b\n  c\n- d\n+ D\n  e\n  structured: {\n".to_owned()
            )]
        );
    }

    #[test]
    fn operations_are_compared() {
        let mut replayed = ReplayedCall {
            unrecorded: vec!["GET /a".to_owned()],
            ..ReplayedCall::default()
        };
        replayed.not_repeated.push("POST /b".to_owned());
        let recorded = RecordedCall {
            result: RecordedOutcome::Value(Value::Null),
            ..call(1)
        };
        let ReplayVerdict::Differs(changes) = compare(&recorded, &replayed).verdict else {
            panic!()
        };
        assert_eq!(
            changes,
            [
                ReplayChange::Unrecorded("GET /a".to_owned()),
                ReplayChange::NotRepeated("POST /b".to_owned())
            ]
        );
    }

    #[test]
    fn large_differences_are_short() {
        let many = |word: &str| {
            (0..1_000)
                .map(|n| format!("{word}{n}\n"))
                .collect::<Vec<_>>()
                .concat()
        };
        for (old, new) in [
            (many("a"), many("b")),
            ("x".repeat(1 << 20), "y".repeat(1 << 20)),
            ("x".repeat(9_000), many("c")),
        ] {
            let ReplayVerdict::Differs(changes) = compared(text(&old), text(&new)) else {
                panic!()
            };
            let [ReplayChange::Result(difference)] = &changes[..] else {
                panic!()
            };
            assert!(
                difference.lines().count() <= MAX_LINES + 2
                    && difference.len() < MAX_LINES * (MAX_LINE_BYTES + 4),
                "{difference}"
            );
        }
    }
}
