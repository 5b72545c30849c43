//! Shows the progress of long operations: as a bar on a terminal, as lines elsewhere.
//!
//! The output goes to standard error. Operations that finish within a moment print nothing.

use std::ffi::OsStr;
use std::io::{IsTerminal as _, stderr};
use std::pin::pin;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tracing::Level;

use super::output::complain;

/// Time before progress is shown.
pub(super) const DISPLAY_DELAY: Duration = Duration::from_secs(1);

/// Interval between updates of a bar.
const TICK_INTERVAL: Duration = Duration::from_millis(120);

/// Template for operations with a known number of steps.
const COUNTED_TEMPLATE: &str = "{spinner} compiling {pos} of {len} [{bar:24}] {elapsed} {wide_msg}";

/// Template for operations of unknown length.
const UNCOUNTED_TEMPLATE: &str = "{spinner} {elapsed} {wide_msg}";

/// Display of progress.
#[derive(Debug)]
pub(super) enum Progress {
    /// A line that is updated in place.
    Bar(ProgressBar),
    /// Separate lines, each of which is printed once.
    Lines {
        /// The last printed line.
        last_line: String,
    },
}

impl Progress {
    /// Creates a display, with a step count if `total` is known.
    pub(super) fn new(total: Option<usize>) -> Self {
        let term = std::env::var_os("TERM");
        // Log lines would break up a bar.
        let is_logging = tracing::enabled!(Level::ERROR);
        if !can_show_bar(stderr().is_terminal(), term.as_deref(), is_logging) {
            return Self::Lines {
                last_line: String::new(),
            };
        }
        let length = total.map(|total| total as u64);
        let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
        let template = if total.is_some() {
            COUNTED_TEMPLATE
        } else {
            UNCOUNTED_TEMPLATE
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.enable_steady_tick(TICK_INTERVAL);
        Self::Bar(bar)
    }

    /// Reports that `done` of `total` steps are finished. A bar shows `names`, which are in
    /// progress. Elsewhere, `line` is printed.
    pub(super) fn show(&mut self, done: usize, total: usize, names: &str, line: String) {
        match self {
            Self::Bar(bar) => {
                bar.set_length(total as u64);
                bar.set_position(done as u64);
                bar.set_message(names.to_owned());
            }
            Self::Lines { last_line: said } if *said != line => {
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
            // The next output must start at the beginning of the line.
            bar.finish_and_clear();
        }
    }
}

/// Returns whether a terminal can update a line in place, and nothing else writes to it.
fn can_show_bar(is_terminal: bool, term: Option<&OsStr>, is_logging: bool) -> bool {
    is_terminal && !is_logging && term.is_some_and(|term| !term.is_empty() && term != "dumb")
}

/// Waits for an operation of unknown length. If it takes long, describes it: with `message` next to
/// a bar, or with a separate `line`.
pub(super) async fn with_progress<T>(
    message: &str,
    line: &str,
    work: impl Future<Output = T>,
) -> T {
    let mut work = pin!(work);
    if let Ok(output) = tokio::time::timeout(DISPLAY_DELAY, work.as_mut()).await {
        return output;
    }
    let mut progress = Progress::new(None);
    progress.show(0, 0, message, line.to_owned());
    work.await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_requires_a_terminal_without_other_output() {
        let xterm = Some(OsStr::new("xterm-256color"));
        assert!(can_show_bar(true, xterm, false));
        assert!(!can_show_bar(false, xterm, false));
        assert!(!can_show_bar(true, xterm, true));
        for term in [None, Some(OsStr::new("")), Some(OsStr::new("dumb"))] {
            assert!(!can_show_bar(true, term, false), "{term:?}");
        }
    }

    #[test]
    fn templates_are_valid() {
        for template in [COUNTED_TEMPLATE, UNCOUNTED_TEMPLATE] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
