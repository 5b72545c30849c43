//! A program's log. Tests wait for lines in it, and print it after a failure.

#![allow(
    clippy::panic,
    reason = "tests fail by panicking; `find` is for everybody else"
)]

use std::fmt::Write as _;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::DEADLINE;
use crate::observable_value::ObservableValue;
use crate::process::{StreamEvent, read_lines};

/// The log text of a program. It grows while the program runs. Clones share the text.
#[derive(Clone, Debug, Default)]
pub struct ProgramLog {
    state: Arc<ObservableValue<LogState>>,
}

#[derive(Debug, Default)]
struct LogState {
    text: String,
    ended: bool,
}

impl ProgramLog {
    /// Creates a log that collects all lines of `stream` on a separate thread.
    pub fn follow(stream: impl Read + Send + 'static) -> Self {
        let log = Self::default();
        read_lines(stream, log.line_handler());
        log
    }

    /// Returns a callback that appends a stream's lines to this log.
    pub fn line_handler(&self) -> impl FnMut(StreamEvent<'_>) + Send + use<> {
        let log = self.clone();
        move |heard| {
            log.state.update(|state| match heard {
                StreamEvent::Line(line, _) => {
                    state.text.push_str(&String::from_utf8_lossy(line));
                    state.text.push('\n');
                }
                StreamEvent::ReadError(error) => {
                    let _infallible = writeln!(state.text, "(the log cannot be read: {error})");
                }
                StreamEvent::End => state.ended = true,
            });
        }
    }

    /// Returns the text so far.
    pub fn text(&self) -> String {
        self.state.read(|state| state.text.clone())
    }

    /// Returns the last `lines` lines.
    pub fn tail(&self, lines: usize) -> String {
        self.state.read(|state| {
            let all: Vec<&str> = state.text.lines().collect();
            all.get(all.len().saturating_sub(lines)..)
                .unwrap_or_default()
                .join("\n")
        })
    }

    /// Waits for `count` lines that match and returns the last of these. Fails if `patience`
    /// elapses or the log ends first.
    pub fn wait_for_matching(
        &self,
        count: usize,
        patience: Duration,
        fits: impl Fn(&str) -> bool,
    ) -> Result<String> {
        let nth = |text: &str| {
            text.lines()
                .filter(|line| fits(line))
                .nth(count.saturating_sub(1))
                .map(str::to_owned)
        };
        let mut found = None;
        self.state.wait_until(patience, |state| {
            found = nth(&state.text);
            found.is_some() || state.ended
        });
        match found {
            Some(line) => Ok(line),
            None => bail!("the log has no {count} such lines:\n{}", self.text()),
        }
    }

    /// Waits until the log has ended, which means that the program has exited.
    ///
    /// # Panics
    ///
    /// Panics if that takes longer than [`DEADLINE`].
    pub fn wait_for_end(&self) {
        let ended = self.state.wait_until(DEADLINE, |state| state.ended);
        assert!(ended, "the program does not end; its log:\n{}", self.text());
    }

    /// Waits until a line contains `words` and returns the first such line.
    ///
    /// # Panics
    ///
    /// Panics if there is no such line within [`DEADLINE`].
    pub fn wait_for(&self, words: &str) -> String {
        self.wait_for_count(words, 1)
    }

    /// Waits until `count` lines contain `words` and returns the last of these.
    ///
    /// # Panics
    ///
    /// Panics if there are fewer lines within [`DEADLINE`].
    pub fn wait_for_count(&self, words: &str, count: usize) -> String {
        let found = self.wait_for_matching(count, DEADLINE, |line| line.contains(words));
        found.unwrap_or_else(|error| panic!("waited for {count} times {words:?}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn lines_are_waited_for_and_counted() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let log = ProgramLog::follow(reader);
        let waiting = std::thread::spawn({
            let log = log.clone();
            move || log.wait_for_count("two", 2)
        });
        writer
            .write_all(b"one\ntwo\nnot it\nand two more\nthree")
            .unwrap();
        assert_eq!(waiting.join().unwrap(), "and two more");
        assert_eq!(log.wait_for("one"), "one");
        drop(writer);
        log.wait_for_end();
        assert_eq!(log.tail(2), "and two more\nthree");
        let error = log
            .wait_for_matching(1, DEADLINE, |line| line == "four")
            .unwrap_err();
        assert!(error.to_string().contains("not it"), "{error}");
    }
}
