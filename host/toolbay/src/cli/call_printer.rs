//! Prints what a plugin reports during a call to standard error: progress, log messages, output,
//! and denials with the lines of the grant that would allow the access.
//!
//! Each line of a guest's text has a prefix, so that no text of a guest looks like one of this
//! program's messages.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use parking_lot::Mutex;
use toolbay_model::{CallObserver, DenialKind, LogLevel, ProgressUpdate};

use super::output::note;
use super::stack_frames::{StackFrames, is_source_lookup};

/// Maximum number of lines of a guest that are printed during a call. `limits.log` and
/// `limits.stdio` bound their size.
const MAX_GUEST_LINES: usize = 1_000;

/// Maximum number of different denials that are printed during a call.
const MAX_DENIALS: usize = 20;

/// Observer that prints what a plugin reports.
pub(super) struct CallPrinter {
    /// The plugin's id, which is the name of its grant.
    plugin: String,
    frames: StackFrames,
    printed: Mutex<PrintedTexts>,
}

/// The texts that were printed during a call. A call that asks questions runs again from the start:
/// what it reports again is not printed again.
#[derive(Default)]
struct PrintedTexts {
    /// The texts of all runs, in order.
    texts: Vec<GuestText>,
    /// Number of texts that the current run has reported again. `None` if the run has reported
    /// something else than the run before it.
    repeated: Option<usize>,
    lines: usize,
    denials: BTreeSet<String>,
}

/// A text of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GuestText {
    label: &'static str,
    text: String,
}

impl CallPrinter {
    /// Creates the observer of a call of this plugin. `frames` finds the author's files.
    pub(super) fn new(plugin: &str, frames: StackFrames) -> Self {
        Self {
            plugin: plugin.to_owned(),
            frames,
            printed: Mutex::default(),
        }
    }

    /// Prepares for another run of the same call.
    pub(super) fn begin_next_run(&self) {
        self.printed.lock().repeated = Some(0);
    }

    fn print(&self, label: &'static str, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        let text = GuestText {
            label,
            text: text.trim_end().to_owned(),
        };
        let Some(lines) = self.printed.lock().add(text, &self.frames) else {
            return;
        };
        note(&lines);
    }
}

impl PrintedTexts {
    /// Adds a text, and returns the lines to print. Returns `None` if an earlier run reported the
    /// same, or if too many lines were printed.
    fn add(&mut self, text: GuestText, frames: &StackFrames) -> Option<String> {
        if let Some(count) = self.repeated {
            if self.texts.get(count) == Some(&text) {
                self.repeated = Some(count + 1);
                return None;
            }
            self.texts.truncate(count);
            self.repeated = None;
        }
        let remaining = MAX_GUEST_LINES.checked_sub(self.lines)?;
        let label = text.label;
        let mut lines: Vec<String> = text
            .text
            .lines()
            .take(remaining)
            .flat_map(|line| frames.map_line(line))
            .map(|line| format!("{label} | {line}"))
            .collect();
        let left_out = text.text.lines().count().saturating_sub(remaining);
        self.lines += text.text.lines().count().min(remaining);
        if left_out > 0 {
            self.lines = MAX_GUEST_LINES + 1;
            lines.push(format!(
                "{label} | … (only {MAX_GUEST_LINES} lines are shown)"
            ));
        }
        self.texts.push(text);
        Some(lines.join("\n"))
    }
}

impl CallObserver for CallPrinter {
    fn log(&self, level: LogLevel, message: &str) {
        self.print(label(level), message);
    }

    fn progress(&self, progress: ProgressUpdate) {
        let total = progress
            .total
            .map(|total| format!("/{total}"))
            .unwrap_or_default();
        let message = progress
            .message
            .map(|message| format!(": {message}"))
            .unwrap_or_default();
        note(&format!("progress: {}{total}{message}", progress.progress));
    }

    fn denied(&self, kind: DenialKind, what: &str, remedy: Option<&str>) {
        // An interpreter looks for the source of each line of a stack.
        if kind == DenialKind::File && is_source_lookup(what) {
            return;
        }
        let denials = &mut self.printed.lock().denials;
        if denials.len() < MAX_DENIALS && denials.insert(what.to_owned()) {
            note(&denial_text(&self.plugin, what, remedy));
        }
    }

    fn guest_output(&self, stdout: &str, stderr: &str) {
        self.print("stdout", stdout);
        self.print("stderr", stderr);
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Describes a denial, with the lines to add to the grant.
fn denial_text(plugin: &str, what: &str, remedy: Option<&str>) -> String {
    let mut text = format!("denied: {what}");
    if let Some(remedy) = remedy {
        let _ = write!(
            text,
            "\n    To allow it, add to [permissions] in {plugin}.toml:"
        );
        for line in remedy.lines() {
            text.push_str("\n        ");
            text.push_str(line);
        }
    }
    text
}

/// Returns the label of the lines of a log message.
fn label(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Notice => "notice",
        LogLevel::Warning => "warning",
        LogLevel::Error => "error",
        LogLevel::Critical => "critical",
        LogLevel::Alert => "alert",
        LogLevel::Emergency => "emergency",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(label: &'static str, text: &str) -> GuestText {
        GuestText {
            label,
            text: text.to_owned(),
        }
    }

    #[test]
    fn each_line_of_a_guest_has_the_label() {
        let mut printed = PrintedTexts::default();
        let lines = printed.add(
            text("info", "one\ntoolbay: done\n\nthree"),
            &StackFrames::default(),
        );
        assert_eq!(
            lines.unwrap(),
            "info | one\ninfo | toolbay: done\ninfo | \ninfo | three"
        );
    }

    #[test]
    fn another_run_prints_only_what_is_new() {
        let frames = StackFrames::default();
        let mut printed = PrintedTexts::default();
        let add = |printed: &mut PrintedTexts, said: &str| {
            printed.add(text("info", said), &frames).is_some()
        };
        assert!(add(&mut printed, "a") && add(&mut printed, "b"));
        printed.repeated = Some(0);
        assert!(!add(&mut printed, "a") && !add(&mut printed, "b"));
        assert!(add(&mut printed, "c") && add(&mut printed, "a"));
        // A run that differs is printed from there.
        printed.repeated = Some(0);
        assert!(!add(&mut printed, "a") && add(&mut printed, "x") && add(&mut printed, "b"));
        printed.repeated = Some(0);
        assert!(["a", "x", "b"].iter().all(|said| !add(&mut printed, said)));
    }

    #[test]
    fn a_flood_is_cut() {
        let frames = StackFrames::default();
        let mut printed = PrintedTexts::default();
        let flood = printed.add(text("stdout", &"x\n".repeat(5_000)), &frames);
        let flood = flood.unwrap();
        assert_eq!(flood.lines().count(), MAX_GUEST_LINES + 1);
        assert!(flood.ends_with("stdout | … (only 1000 lines are shown)"));
        assert_eq!(printed.add(text("info", "more"), &frames), None);
    }

    #[test]
    fn a_denial_has_each_line_of_its_remedy() {
        assert_eq!(
            denial_text(
                "web",
                "No.",
                Some("http = [\"https://a.example\"]\nprivate_networks = [\"10.0.0.0/8\"]")
            ),
            "denied: No.\n    To allow it, add to [permissions] in web.toml:\n        http = \
             [\"https://a.example\"]\n        private_networks = [\"10.0.0.0/8\"]"
        );
        assert_eq!(denial_text("web", "No.", None), "denied: No.");
    }
}
