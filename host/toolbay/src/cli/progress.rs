//! Shows how far long work is: a bar on a terminal, lines elsewhere.
//!
//! Only on standard error, and only after a moment: what is over by then needs no words.

use std::ffi::OsStr;
use std::io::{IsTerminal as _, stderr};
use std::pin::pin;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tracing::Level;

use super::output::complain;

/// How long work may take without a word.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// How often a bar moves.
const TICK: Duration = Duration::from_millis(120);

/// Work that is counted.
const COUNTED: &str = "{spinner} compiling {pos} of {len} [{bar:24}] {elapsed} {wide_msg}";

/// Work of which nobody knows how much is left.
const UNCOUNTED: &str = "{spinner} {elapsed} {wide_msg}";

/// How progress is shown.
#[derive(Debug)]
pub(super) enum Progress {
    /// As a line that changes.
    Bar(ProgressBar),
    /// As lines, each of which is said once.
    Lines {
        /// The last one.
        said: String,
    },
}

impl Progress {
    /// Progress that is counted, if `total` is known.
    pub(super) fn new(total: Option<usize>) -> Self {
        let term = std::env::var_os("TERM");
        // The lines of the log would tear a bar apart.
        let logs = tracing::enabled!(Level::ERROR);
        if !is_bar(stderr().is_terminal(), term.as_deref(), logs) {
            return Self::Lines { said: String::new() };
        }
        let length = total.map(|total| total as u64);
        let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
        let template = if total.is_some() { COUNTED } else { UNCOUNTED };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.enable_steady_tick(TICK);
        Self::Bar(bar)
    }

    /// Says that `done` of `total` are done, and on which the work goes on; `line` says the same on a line of its own.
    pub(super) fn show(&mut self, done: usize, total: usize, names: &str, line: String) {
        match self {
            Self::Bar(bar) => {
                bar.set_length(total as u64);
                bar.set_position(done as u64);
                bar.set_message(names.to_owned());
            }
            Self::Lines { said } if *said != line => {
                complain(&line);
                *said = line;
            }
            Self::Lines { .. } => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Self::Bar(bar) = self {
            // What is printed next begins at the start of the line.
            bar.finish_and_clear();
        }
    }
}

/// Whether there is a terminal that can show a line that changes, and nothing else writes to it.
fn is_bar(is_terminal: bool, term: Option<&OsStr>, logs: bool) -> bool {
    is_terminal && !logs && term.is_some_and(|term| !term.is_empty() && term != "dumb")
}

/// Waits for work of which nobody knows how long it takes. If it takes long, says what it is: `what` beside a bar, `line` on a
/// line of its own.
pub(super) async fn shown<T>(what: &str, line: &str, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    if let Ok(done) = tokio::time::timeout(PATIENCE, work.as_mut()).await {
        return done;
    }
    let mut progress = Progress::new(None);
    progress.show(0, 0, what, line.to_owned());
    work.await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_for_terminals_that_nothing_else_writes_to() {
        let xterm = Some(OsStr::new("xterm-256color"));
        assert!(is_bar(true, xterm, false));
        assert!(!is_bar(false, xterm, false));
        assert!(!is_bar(true, xterm, true));
        for term in [None, Some(OsStr::new("")), Some(OsStr::new("dumb"))] {
            assert!(!is_bar(true, term, false), "{term:?}");
        }
    }

    #[test]
    fn templates_are_valid() {
        for template in [COUNTED, UNCOUNTED] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
