//! Report of a replay, for people and for programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use toolbay_model::text::{clean_line, format_thousands};
use toolbay_recording::{
    FigurePair, RecordedCall, RecordingHeader, ReplayChange, ReplayComparison, ReplayVerdict,
};

use super::super::output::{print, print_json};
use super::super::plugin_file::{MAX_REASON_BYTES, printable_path};
use super::figures::{
    add_figures, figure_json, format_bytes, format_figure, format_milliseconds, max_figures,
    milliseconds_json,
};

/// Maximum number of calls that are listed.
const MAX_SHOWN_CALLS: usize = 100;

/// Maximum number of printed reasons per call.
const MAX_REASONS: usize = 10;

/// Maximum length of a tool name in the table, in characters.
const MAX_NAME_CHARS: usize = 40;

/// Result of replaying one call.
#[derive(Debug)]
pub(super) enum ReplayStatus {
    /// The call ran.
    Run(ReplayComparison),
    /// The call cannot be replayed, for these reasons.
    NotReplayable(Vec<String>),
}

/// Results of replaying a recording.
#[derive(Debug, Default)]
pub(super) struct ReplayReport {
    file: String,
    /// Start time of the recording, and the version that started it.
    started: Option<(String, String)>,
    /// Number of calls that could not be recorded.
    pub(super) lost: u64,
    /// Number of calls that the options exclude.
    pub(super) skipped: u64,
    /// The plugins in the recording.
    pub(super) plugins: BTreeSet<String>,
    /// The plugins that differ from the recorded ones.
    pub(super) changed: BTreeSet<String>,
    /// The listed calls: those that differ or cannot be replayed, up to the maximum.
    calls: Vec<ListedCall>,
    tools: BTreeMap<String, ToolSums>,
}

/// A call that differs or cannot be replayed.
#[derive(Debug)]
struct ListedCall {
    line: u64,
    number: u64,
    tool: String,
    status: ReplayStatus,
}

/// Totals of all calls of a tool.
#[derive(Clone, Copy, Debug, Default)]
struct ToolSums {
    equal: u64,
    differ: u64,
    not_replayable: u64,
    /// Totals of the replayed calls: `fuel` and `wall_ns` are sums, `memory` is the maximum.
    fuel: FigurePair,
    memory: FigurePair,
    wall_ns: FigurePair,
}

impl ToolSums {
    fn add(&mut self, other: &Self) {
        self.equal += other.equal;
        self.differ += other.differ;
        self.not_replayable += other.not_replayable;
        self.fuel = add_figures(self.fuel, other.fuel);
        self.memory = max_figures(self.memory, other.memory);
        self.wall_ns = add_figures(self.wall_ns, other.wall_ns);
    }

    fn to_json(self) -> Value {
        let Self {
            equal,
            differ,
            not_replayable,
            fuel,
            memory,
            wall_ns,
        } = self;
        json!({
            "equal": equal, "differ": differ, "not_replayable": not_replayable, "fuel": figure_json(fuel),
            "peak_memory": figure_json(memory), "wall_ms": milliseconds_json(wall_ns),
        })
    }
}

impl ReplayReport {
    /// Creates an empty report about a file.
    pub(super) fn new(file: &Path) -> Self {
        Self {
            file: printable_path(file),
            ..Self::default()
        }
    }

    /// Records the header of a recording. The first one counts.
    pub(super) fn record_header(&mut self, header: &RecordingHeader) {
        let start = || {
            (
                clean_line(&header.started, MAX_NAME_CHARS),
                clean_line(&header.toolbay, MAX_NAME_CHARS),
            )
        };
        self.started.get_or_insert_with(start);
    }

    /// Adds a call, which is in line `line` of the recording.
    pub(super) fn add(&mut self, line: u64, call: &RecordedCall, status: ReplayStatus) {
        let mut sums = ToolSums::default();
        let is_listed = match &status {
            ReplayStatus::Run(ReplayComparison {
                verdict,
                fuel,
                memory,
                wall_ns,
            }) => {
                let equal = *verdict == ReplayVerdict::Equal;
                sums = ToolSums {
                    fuel: *fuel,
                    memory: *memory,
                    wall_ns: *wall_ns,
                    ..sums
                };
                if equal {
                    sums.equal = 1;
                } else {
                    sums.differ = 1;
                }
                !equal
            }
            ReplayStatus::NotReplayable(_) => {
                sums.not_replayable = 1;
                true
            }
        };
        self.tools
            .entry(clean_line(&call.tool, MAX_REASON_BYTES))
            .or_default()
            .add(&sums);
        if is_listed && self.calls.len() < MAX_SHOWN_CALLS {
            self.calls.push(ListedCall {
                line,
                number: call.number,
                tool: clean_line(&call.tool, MAX_REASON_BYTES),
                status,
            });
        }
    }

    /// Returns the number of calls.
    pub(super) fn count(&self) -> u64 {
        let ToolSums {
            equal,
            differ,
            not_replayable,
            ..
        } = self.total();
        equal + differ + not_replayable
    }

    /// Returns whether calls were replayed, and all of them had equal results.
    pub(super) fn is_equal(&self) -> bool {
        let sums = self.total();
        sums.equal > 0 && sums.differ == 0
    }

    pub(super) fn print(&self) {
        print(&self.to_text());
    }

    pub(super) fn print_json(&self) -> anyhow::Result<()> {
        Ok(print_json(&self.to_json())?)
    }

    fn total(&self) -> ToolSums {
        let mut total = ToolSums::default();
        self.tools.values().for_each(|tool| total.add(tool));
        total
    }

    /// Returns the number of calls that differ or cannot be replayed, but are not listed.
    fn hidden_calls(&self) -> u64 {
        let sums = self.total();
        (sums.differ + sums.not_replayable).saturating_sub(self.calls.len() as u64)
    }

    fn to_text(&self) -> String {
        let mut out = String::new();
        if let Some((started, version)) = &self.started {
            let _ = writeln!(
                out,
                "{}: recorded from {started} by toolbay {version}",
                self.file
            );
        }
        for id in &self.changed {
            let _ = writeln!(
                out,
                "the plugin {:?} is not the one that was recorded",
                clean_line(id, MAX_REASON_BYTES)
            );
        }
        self.calls.iter().for_each(|call| call.write_text(&mut out));
        let more = self.hidden_calls();
        if more > 0 {
            let _ = writeln!(
                out,
                "\nand {} more calls that differ or are not replayable",
                format_thousands(more)
            );
        }
        out.push('\n');
        self.write_table(&mut out);
        let ToolSums {
            equal,
            differ,
            not_replayable,
            ..
        } = self.total();
        let [equal, differ, not_replayable] = [equal, differ, not_replayable].map(format_thousands);
        let _ = write!(
            out,
            "\n{equal} equal, {differ} different, {not_replayable} not replayable"
        );
        for (count, label) in [
            (self.skipped, "skipped"),
            (self.lost, "lost while recording"),
        ] {
            if count > 0 {
                let _ = write!(out, ", {} {label}", format_thousands(count));
            }
        }
        out.push('\n');
        out
    }

    /// Appends a table with a line for each tool.
    fn write_table(&self, out: &mut String) {
        let head = [
            "tool",
            "equal",
            "different",
            "not replayable",
            "fuel",
            "peak memory",
            "time",
        ]
        .map(str::to_owned);
        let row = |(name, sums): (&String, &ToolSums)| {
            let ToolSums {
                equal,
                differ,
                not_replayable,
                fuel,
                memory,
                wall_ns,
            } = *sums;
            [
                clean_line(name, MAX_NAME_CHARS),
                format_thousands(equal),
                format_thousands(differ),
                format_thousands(not_replayable),
                format_figure(fuel, format_thousands),
                format_figure(memory, format_bytes),
                format_figure(wall_ns, format_milliseconds),
            ]
        };
        let rows: Vec<_> = [head]
            .into_iter()
            .chain(self.tools.iter().map(row))
            .collect();
        let width = |column: usize| {
            rows.iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or_default()
        };
        let widths: Vec<usize> = (0..7).map(width).collect();
        for row in &rows {
            let cells = row
                .iter()
                .zip(&widths)
                .enumerate()
                .map(|(column, (cell, width))| match column {
                    1..=3 => format!("{cell:>width$}"),
                    _ => format!("{cell:<width$}"),
                });
            let _ = writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
    }

    fn to_json(&self) -> Value {
        let tools: BTreeMap<&String, Value> = self
            .tools
            .iter()
            .map(|(name, sums)| (name, sums.to_json()))
            .collect();
        let sums = self.total();
        json!({
            "file": self.file,
            "recorded": self.started.as_ref().map(|(started, _)| started),
            "toolbay": self.started.as_ref().map(|(_, version)| version),
            "changed_plugins": self.changed,
            "calls": self.calls.iter().map(ListedCall::to_json).collect::<Vec<_>>(),
            "more_calls": self.hidden_calls(),
            "tools": tools,
            "equal": sums.equal,
            "differ": sums.differ,
            "not_replayable": sums.not_replayable,
            "skipped": self.skipped,
            "lost": self.lost,
        })
    }
}

impl ListedCall {
    fn write_text(&self, out: &mut String) {
        let Self {
            line: at,
            number,
            tool,
            status,
        } = self;
        let _ = write!(out, "\nline {at}, call {number}: {tool}  ");
        match status {
            ReplayStatus::NotReplayable(why) => {
                let why: Vec<String> = why
                    .iter()
                    .take(MAX_REASONS)
                    .map(|why| clean_line(why, MAX_REASON_BYTES))
                    .collect();
                let _ = writeln!(out, "not replayable: {}", why.join("; "));
            }
            ReplayStatus::Run(ReplayComparison {
                verdict,
                fuel,
                memory,
                wall_ns,
            }) => {
                out.push_str("different\n");
                if let ReplayVerdict::Differs(changes) = verdict {
                    for change in changes {
                        write_change(change, out);
                    }
                }
                let _ = writeln!(
                    out,
                    "    fuel         {}",
                    format_figure(*fuel, format_thousands)
                );
                let _ = writeln!(
                    out,
                    "    peak memory  {}",
                    format_figure(*memory, format_bytes)
                );
                let _ = writeln!(
                    out,
                    "    time         {}",
                    format_figure(*wall_ns, format_milliseconds)
                );
            }
        }
    }

    fn to_json(&self) -> Value {
        let mut call = json!({"line": self.line, "call": self.number, "tool": self.tool});
        let more = match &self.status {
            ReplayStatus::NotReplayable(why) => {
                let reasons: Vec<String> = why
                    .iter()
                    .take(MAX_REASONS)
                    .map(|why| clean_line(why, MAX_REASON_BYTES))
                    .collect();
                json!({"status": "not-replayable", "reasons": reasons})
            }
            ReplayStatus::Run(ReplayComparison {
                verdict,
                fuel,
                memory,
                wall_ns,
            }) => {
                let changes = match verdict {
                    ReplayVerdict::Equal => Vec::new(),
                    ReplayVerdict::Differs(changes) => changes
                        .iter()
                        .map(|change| match change {
                            ReplayChange::Result(difference) => json!({"result": difference}),
                            ReplayChange::Unrecorded(what) => {
                                json!({"did": clean_line(what, MAX_REASON_BYTES)})
                            }
                            ReplayChange::NotRepeated(what) => {
                                json!({"did_not": clean_line(what, MAX_REASON_BYTES)})
                            }
                        })
                        .collect(),
                };
                json!({
                    "status": "differs", "changes": changes, "fuel": figure_json(*fuel), "peak_memory": figure_json(*memory),
                    "wall_ms": milliseconds_json(*wall_ns),
                })
            }
        };
        if let (Some(call), Value::Object(more)) = (call.as_object_mut(), more) {
            call.extend(more);
        }
        call
    }
}

fn write_change(change: &ReplayChange, out: &mut String) {
    match change {
        ReplayChange::Result(difference) => {
            for line in difference.lines() {
                let _ = writeln!(out, "    {line}");
            }
        }
        ReplayChange::Unrecorded(what) => {
            let _ = writeln!(
                out,
                "    did, but not when it was recorded: {}",
                clean_line(what, MAX_REASON_BYTES)
            );
        }
        ReplayChange::NotRepeated(what) => {
            let _ = writeln!(
                out,
                "    did when it was recorded, but not now: {}",
                clean_line(what, MAX_REASON_BYTES)
            );
        }
    }
}
