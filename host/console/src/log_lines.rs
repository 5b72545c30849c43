//! The newest lines of the log.

use std::collections::VecDeque;

use toolbay_model::text::clean;

use crate::login_token::LOGIN_PATH_PREFIX;

/// Maximum number of stored lines.
const MAX_LINES: usize = 1_000;

/// Maximum total size of the stored lines, in bytes.
const MAX_TOTAL_BYTES: usize = 512 << 10;

/// Maximum length of a line, in bytes.
const MAX_LINE_BYTES: usize = 4_000;

/// A bounded buffer of log lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogLines {
    lines: VecDeque<String>,
    bytes: usize,
}

impl LogLines {
    /// Adds lines. Skips lines with a login address.
    pub(crate) fn add(&mut self, text: &str) {
        for raw_line in text
            .lines()
            .filter(|line| !line.contains(LOGIN_PATH_PREFIX))
        {
            // Remove terminal colors.
            let line = toolbay_model::text::clean_line(&clean(raw_line), MAX_LINE_BYTES);
            self.bytes += line.len();
            self.lines.push_back(line);
        }
        while self.lines.len() > MAX_LINES || self.bytes > MAX_TOTAL_BYTES {
            self.bytes -= self.lines.pop_front().map_or(self.bytes, |line| line.len());
        }
    }

    /// Returns the lines, newest first.
    pub(crate) fn newest(&self) -> impl Iterator<Item = &String> {
        self.lines.iter().rev()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_and_without_colours() {
        let mut log = LogLines::default();
        log.add("\u{1b}[2m2026\u{1b}[0m  \u{1b}[32mINFO\u{1b}[0m one\ntwo\n");
        log.add("the console opens once at http://127.0.0.1:1/console/login#secret\n");
        assert_eq!(log.newest().collect::<Vec<_>>(), ["two", "2026  INFO one"]);
        for _ in 0..2_000 {
            log.add(&"x".repeat(10_000));
        }
        assert!(
            log.bytes <= MAX_TOTAL_BYTES && log.newest().all(|line| line.len() <= MAX_LINE_BYTES)
        );
        assert_eq!(log.bytes, log.newest().map(String::len).sum::<usize>());
        for number in 0..2_000 {
            log.add(&number.to_string());
        }
        assert_eq!(
            (log.newest().count(), log.newest().next().unwrap().as_str()),
            (MAX_LINES, "1999")
        );
    }
}
