//! The relevant parts of a server's log.

use std::collections::{BTreeMap, VecDeque};

/// Number of recent lines to show after a failure.
const TAIL: usize = 30;

/// The last lines of a server's log, and counters of all lines.
#[derive(Debug, Default)]
pub(crate) struct Log {
    tail: VecDeque<String>,
    /// Number of rejected files, by plugin.
    refused: BTreeMap<String, u64>,
    /// Number of loaded files, by plugin.
    loaded: BTreeMap<String, u64>,
    /// Error lines, which no plugin may cause.
    pub(crate) errors: Vec<String>,
}

impl Log {
    pub(crate) fn take(&mut self, line: &str) {
        if let Some(plugin) = plugin_of(line) {
            if line.contains("WARN refused") {
                *self.refused.entry(plugin.to_owned()).or_default() += 1;
            } else if line.contains("INFO loaded") {
                *self.loaded.entry(plugin.to_owned()).or_default() += 1;
            }
        }
        if line.contains("ERROR ") {
            self.errors.push(line.to_owned());
        }
        self.tail.push_back(line.to_owned());
        if self.tail.len() > TAIL {
            self.tail.pop_front();
        }
    }

    /// Returns how many files of this plugin were rejected.
    pub(crate) fn refused(&self, plugin: &str) -> u64 {
        self.refused.get(plugin).copied().unwrap_or_default()
    }

    /// Returns how many files of this plugin were loaded.
    pub(crate) fn loaded(&self, plugin: &str) -> u64 {
        self.loaded.get(plugin).copied().unwrap_or_default()
    }

    /// Returns the last lines.
    pub(crate) fn tail(&self) -> Vec<String> {
        self.tail.iter().cloned().collect()
    }
}

/// Returns the plugin that a line names.
fn plugin_of(line: &str) -> Option<&str> {
    line.split_once("plugin=\"")?
        .1
        .split_once('"')
        .map(|(plugin, _)| plugin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_by_what_they_say() {
        let mut log = Log::default();
        log.take(r#"2026-01-01T00:00:00Z  WARN refused; the previous version stays in service: no plugin="a""#);
        log.take(r#"2026-01-01T00:00:00Z  WARN refused: no plugin="a""#);
        log.take(r#"2026-01-01T00:00:00Z  INFO loaded plugin="b" tools=3 digest=00"#);
        log.take("2026-01-01T00:00:00Z ERROR the sky has fallen");
        assert_eq!(
            (
                log.refused("a"),
                log.refused("b"),
                log.loaded("a"),
                log.loaded("b")
            ),
            (2, 0, 0, 1)
        );
        assert_eq!(log.errors.len(), 1);
        (0..100).for_each(|n| log.take(&n.to_string()));
        assert_eq!(log.tail().len(), TAIL);
        assert_eq!(log.tail().last().unwrap(), "99");
    }
}
