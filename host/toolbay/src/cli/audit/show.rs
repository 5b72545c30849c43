//! `toolbay audit show`: prints the matching lines of the audit log.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, SystemTime};

use clap::Args;
use serde_json::{Map, Value};
use toolbay_audit::{AuditEvent, MergedLines};
use toolbay_model::text::{clean_line, escape_json};
use toolbay_settings::toml_file::nearest;

use crate::cli::output::{complain, print};
use crate::observe::audit_line::{render_details, text_field};
use crate::observe::call_outcome::OutcomeLabel;

/// Maximum length of a printed column, in bytes.
const MAX_COLUMN_BYTES: usize = 2_000;

/// Width of the column with events: the length of the longest name.
static EVENT_WIDTH: LazyLock<usize> = LazyLock::new(|| longest(AuditEvent::NAMES));

/// Width of the column with outcomes: the length of the longest word.
static OUTCOME_WIDTH: LazyLock<usize> =
    LazyLock::new(|| longest(OutcomeLabel::all().map(OutcomeLabel::as_str)));

/// Number of lines that are written at once.
const LINES_PER_WRITE: usize = 500;

/// Number of existing lines that are printed before new ones.
const LINES_BEFORE_FOLLOWING: usize = 10;

/// Time between two looks for new lines.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(250);

/// The lines to show. A line without a requested field does not match.
#[derive(Args, Debug, Default)]
pub(in crate::cli) struct Filter {
    /// Lines about calls of this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Lines about calls of this caller, such as stdio, token:ci or ip:192.0.2.7
    #[arg(long, value_name = "NAME")]
    caller: Option<String>,
    /// Lines about this plugin and its calls
    #[arg(long, value_name = "ID")]
    plugin: Option<String>,
    /// Lines since this time, such as 2026-05-01T08:00:00Z or 2026-05-01, or from the last period
    /// of this length, such as 2h
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<SystemTime>,
    /// Lines until this time, in the same forms as --since
    #[arg(long, value_name = "TIME", value_parser = since)]
    until: Option<SystemTime>,
    /// Calls with this outcome: ok, input-required, or an error kind such as denied or fuel
    #[arg(long, value_name = "WORD", value_parser = outcome)]
    outcome: Option<String>,
    /// Lines about this kind of event, such as call, denied, approval or operator
    #[arg(long, value_name = "EVENT", value_parser = event)]
    event: Option<String>,
}

impl Filter {
    fn matches(&self, record: &Map<String, Value>) -> bool {
        let field_matches = |key: &str, expected: &Option<String>| {
            expected.as_ref().is_none_or(|wanted| {
                text_field(record, key) == toolbay_audit::truncate_name(wanted)
            })
        };
        let in_time = (self.since.is_none() && self.until.is_none())
            || humantime::parse_rfc3339(text_field(record, "time")).is_ok_and(|time| {
                self.since.is_none_or(|since| time >= since)
                    && self.until.is_none_or(|until| time <= until)
            });
        in_time
            && field_matches("tool", &self.tool)
            && field_matches("caller", &self.caller)
            && field_matches("plugin", &self.plugin)
            && field_matches("outcome", &self.outcome)
            && field_matches("event", &self.event)
    }
}

pub(super) fn run(
    folder: &Path,
    filter: &Filter,
    is_following: bool,
    json: bool,
) -> anyhow::Result<()> {
    if !json {
        print(&render_row(
            ["TIME", "EVENT", "OUTCOME", "CALLER", "PLUGIN", "TOOL"].map(str::to_owned),
            "DETAILS",
        ));
    }
    let mut lines = MatchingLines::open(folder, filter, json)?;
    if is_following {
        return lines.follow();
    }
    let mut batch = String::new();
    let mut batch_lines = 0;
    while let Some(line) = lines.next_line()? {
        batch.push_str(&line);
        batch_lines += 1;
        if batch_lines == LINES_PER_WRITE {
            print(&batch);
            batch.clear();
            batch_lines = 0;
        }
    }
    print(&batch);
    lines.complain_about_missing(folder);
    Ok(())
}

/// The lines of a log that match a filter, as they are printed.
struct MatchingLines<'a> {
    lines: MergedLines,
    filter: &'a Filter,
    is_json: bool,
    read: u64,
    shown: u64,
    unreadable: u64,
}

impl<'a> MatchingLines<'a> {
    fn open(folder: &Path, filter: &'a Filter, is_json: bool) -> anyhow::Result<Self> {
        Ok(Self {
            lines: MergedLines::open(folder)?,
            filter,
            is_json,
            read: 0,
            shown: 0,
            unreadable: 0,
        })
    }

    /// Returns the next line with its line end, or `None` at the end of the log.
    fn next_line(&mut self) -> anyhow::Result<Option<String>> {
        for read_line in self.lines.by_ref() {
            let found = read_line?;
            let Ok(record) = serde_json::from_slice::<Map<String, Value>>(&found.bytes) else {
                self.unreadable += 1;
                continue;
            };
            self.read += 1;
            if !self.filter.matches(&record) {
                continue;
            }
            self.shown += 1;
            return Ok(Some(if self.is_json {
                format!("{}\n", escape_json(&String::from_utf8_lossy(&found.bytes)))
            } else {
                render_line(&record)
            }));
        }
        Ok(None)
    }

    /// Prints the newest lines, and then each line that is written, until the process is stopped.
    #[expect(
        clippy::disallowed_methods,
        reason = "the log can be on a file system that reports no changes"
    )]
    fn follow(&mut self) -> anyhow::Result<()> {
        self.lines.follow();
        let mut newest = VecDeque::new();
        while let Some(line) = self.next_line()? {
            if self.filter.since.is_some() {
                print(&line);
                continue;
            }
            if newest.len() == LINES_BEFORE_FOLLOWING {
                newest.pop_front();
            }
            newest.push_back(line);
        }
        for line in &newest {
            print(line);
        }
        loop {
            while let Some(line) = self.next_line()? {
                print(&line);
            }
            thread::sleep(FOLLOW_INTERVAL);
        }
    }

    /// Says on standard error that no line matched, and that lines are damaged.
    fn complain_about_missing(&self, folder: &Path) {
        if self.shown == 0 {
            complain(&match self.read {
                0 => format!("the log in {} has no lines", folder.display()),
                1 => "the only line of the log does not match".to_owned(),
                read => format!("none of the {read} lines of the log matches"),
            });
        }
        let damaged = self.lines.damaged() + self.unreadable;
        if damaged > 0 {
            let lines = if damaged == 1 {
                "1 line is damaged and was".to_owned()
            } else {
                format!("{damaged} lines are damaged and were")
            };
            complain(&format!(
                "{lines} left out; `toolbay audit verify` shows details"
            ));
        }
    }
}

/// Formats a line for people.
fn render_line(record: &Map<String, Value>) -> String {
    let time = text_field(record, "time");
    // Drop fractions of a second.
    let time = time.split_once('.').map_or(time, |(time, _)| time);
    let field = |key| text_field(record, key).to_owned();
    let columns = [
        time.to_owned(),
        field("event"),
        field("outcome"),
        field("caller"),
        field("plugin"),
        field("tool"),
    ];
    render_row(columns, &render_details(record))
}

/// Formats columns of a fixed width. Longer names exceed it, because the log is printed while it is
/// read.
fn render_row(columns: [String; 6], details: &str) -> String {
    let [time, event, outcome, caller, plugin, tool] =
        columns.map(|text| clean_line(&text, MAX_COLUMN_BYTES));
    let text = format!(
        "{time:19}  {event:event_width$}  {outcome:outcome_width$}  {caller:16}  {plugin:16}  {tool:24}  {details}",
        event_width = *EVENT_WIDTH,
        outcome_width = *OUTCOME_WIDTH,
    );
    text.trim_end().to_owned() + "\n"
}

/// Returns the length of the longest word.
fn longest(words: impl IntoIterator<Item = &'static str>) -> usize {
    words.into_iter().map(str::len).max().unwrap_or_default()
}

fn since(text: &str) -> Result<SystemTime, String> {
    if let Ok(ago) = humantime::parse_duration(text) {
        let ago: Duration = ago;
        return SystemTime::now()
            .checked_sub(ago)
            .ok_or_else(|| "that is too long ago".to_owned());
    }
    let whole = if text.contains([':', 'T', ' ']) {
        text.to_owned()
    } else {
        format!("{text} 00:00:00")
    };
    humantime::parse_rfc3339_weak(&whole).map_err(|_| {
        "expected a time, such as 2026-05-01T08:00:00Z or 2026-05-01, or a duration, such as 2h"
            .to_owned()
    })
}

fn outcome(text: &str) -> Result<String, String> {
    parse_word(
        text,
        "an outcome",
        &OutcomeLabel::all()
            .map(OutcomeLabel::as_str)
            .collect::<Vec<_>>(),
    )
}

fn event(text: &str) -> Result<String, String> {
    parse_word(text, "an event", &AuditEvent::NAMES)
}

fn parse_word(text: &str, noun: &str, known: &[&str]) -> Result<String, String> {
    if known.contains(&text) {
        return Ok(text.to_owned());
    }
    Err(match nearest(text, known) {
        Some(near) => format!("{text:?} is not {noun}; did you mean {near:?}?"),
        None => format!("{text:?} is not {noun}; they are {}", known.join(", ")),
    })
}

#[cfg(test)]
mod tests;
