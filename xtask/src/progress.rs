//! Shows the progress of a build to the user.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use anstream::print;
use toolbay_testkit::build::BuildProgress;

/// Interval between two lines if the output is not a terminal. On a terminal, a line overwrites the
/// previous one.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// The display of a build's progress.
pub(crate) struct BuildProgressDisplay {
    what: &'static str,
    /// A remark that is shown once, with the first line.
    remark: &'static str,
    terminal: bool,
    start_time: Instant,
    last_line_time: Option<Instant>,
}

impl BuildProgressDisplay {
    /// Creates the display at the beginning of a build of `what`. If the build takes long, `remark`
    /// is shown once.
    pub(crate) fn new(what: &'static str, remark: &'static str) -> Self {
        Self {
            what,
            remark,
            terminal: std::io::stdout().is_terminal(),
            start_time: Instant::now(),
            last_line_time: None,
        }
    }

    /// Shows the progress if enough time has passed since the last line.
    pub(crate) fn update(&mut self, progress: BuildProgress) {
        if let Some(text) = self.next_line(progress, Instant::now()) {
            print!("{text}");
            // An error of the output does not stop the build.
            drop(std::io::stdout().flush());
        }
    }

    /// Clears the line on the terminal, after the end of the build.
    pub(crate) fn clear(&self) {
        if self.terminal && self.last_line_time.is_some() {
            print!("\r\x1b[K");
        }
    }

    fn next_line(&mut self, progress: BuildProgress, now: Instant) -> Option<String> {
        let BuildProgress { done, total } = progress;
        // Cargo counts crates that are up to date immediately, so the first line is delayed.
        let waited = now.saturating_duration_since(self.last_line_time.unwrap_or(self.start_time));
        let pause = match (self.terminal, self.last_line_time) {
            (_, None) => Duration::from_secs(1),
            (true, Some(_)) => Duration::ZERO,
            (false, Some(_)) => LINE_INTERVAL,
        };
        if waited < pause || total == 0 {
            return None;
        }
        let first = self.last_line_time.is_none();
        self.last_line_time = Some(now);
        let left = total.saturating_sub(done);
        let line = format!(
            "compiled {done} of {total} crates of {}, {left} to go",
            self.what
        );
        let remark = if first && !self.remark.is_empty() {
            format!("{}\n", self.remark)
        } else {
            String::new()
        };
        Some(match (self.terminal, first) {
            (true, true) => format!("{remark}{line}"),
            (true, false) => format!("\r\x1b[K{line}"),
            (false, _) => format!("{remark}{line}\n"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_stay_are_few() {
        let mut shown = BuildProgressDisplay {
            terminal: false,
            ..BuildProgressDisplay::new("the server", "This takes a while.")
        };
        let began = shown.start_time;
        let seconds = Duration::from_secs;
        let mut at = |after: u64, done| {
            shown.next_line(BuildProgress { done, total: 310 }, began + seconds(after))
        };
        assert_eq!(at(0, 100), None, "what is up to date");
        let first = at(2, 120).unwrap();
        assert_eq!(
            first,
            "This takes a while.\ncompiled 120 of 310 crates of the server, 190 to go\n"
        );
        assert_eq!(at(9, 121), None);
        assert_eq!(
            at(12, 130).unwrap(),
            "compiled 130 of 310 crates of the server, 180 to go\n"
        );
    }

    #[test]
    fn on_a_terminal_one_line_is_written_over() {
        let mut shown = BuildProgressDisplay {
            terminal: true,
            ..BuildProgressDisplay::new("the server", "This takes a while.")
        };
        let now = shown.start_time + Duration::from_secs(2);
        assert!(
            shown
                .next_line(BuildProgress { done: 1, total: 3 }, now)
                .unwrap()
                .ends_with("compiled 1 of 3 crates of the server, 2 to go")
        );
        let next = shown
            .next_line(BuildProgress { done: 2, total: 3 }, now)
            .unwrap();
        assert_eq!(
            next,
            "\r\x1b[Kcompiled 2 of 3 crates of the server, 1 to go"
        );
    }
}
