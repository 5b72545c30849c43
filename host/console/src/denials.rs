//! Operations that grants denied to plugins, and the grant lines that would allow them.

use std::collections::VecDeque;
use std::time::SystemTime;

use toolbay_model::text::clean_line;

/// Maximum number of distinct denials. The least recent one is evicted.
const MAX_DENIALS: usize = 200;

/// Maximum length of a name, sentence or line, in bytes. Plugins supply parts of them.
const MAX_TEXT_BYTES: usize = 500;

/// An operation that was denied to a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenialNote {
    /// Time of the denial.
    pub at: SystemTime,
    /// The plugin.
    pub plugin: String,
    /// The tool that was called.
    pub tool: String,
    /// The denied operation, as a sentence.
    pub operation: String,
    /// The lines of `[permissions]` that would allow the operation; `None` if no line would.
    pub remedy: Option<String>,
}

/// The denied operations.
#[derive(Clone, Debug, Default)]
pub(crate) struct DenialLog {
    /// The denials, newest last, and the number of times that each occurred.
    denials: VecDeque<(DenialNote, u64)>,
    /// Number of denials since the server started.
    pub(crate) count: u64,
}

impl DenialLog {
    /// Adds a denial. Merges it with a previous denial of the same operation for the same plugin.
    pub(crate) fn add(&mut self, denial: DenialNote) {
        self.count += 1;
        let is_same = |(existing, _): &(DenialNote, u64)| {
            existing.plugin == denial.plugin && existing.operation == denial.operation
        };
        let times = self
            .denials
            .iter()
            .position(is_same)
            .and_then(|at| self.denials.remove(at))
            .map_or(0, |(_, times)| times);
        if self.denials.len() >= MAX_DENIALS {
            self.denials.pop_front();
        }
        self.denials.push_back((denial, times + 1));
    }

    /// Returns the number of stored denials of a plugin.
    pub(crate) fn count_of(&self, plugin: &str) -> u64 {
        let denials = self.denials.iter();
        denials
            .filter(|(denial, _)| denial.plugin == plugin)
            .map(|(_, times)| times)
            .sum()
    }

    /// Returns the denials and their counts, newest first.
    pub(crate) fn newest(&self) -> impl Iterator<Item = &(DenialNote, u64)> {
        self.denials.iter().rev()
    }
}

impl DenialNote {
    pub(crate) fn truncate_texts(self) -> Self {
        let truncate = |text: String| clean_line(&text, MAX_TEXT_BYTES);
        let truncate_lines = |lines: String| {
            lines
                .lines()
                .map(|line| clean_line(line, MAX_TEXT_BYTES))
                .collect::<Vec<_>>()
                .join("\n")
        };
        Self {
            plugin: truncate(self.plugin),
            tool: truncate(self.tool),
            operation: truncate(self.operation),
            remedy: self.remedy.map(truncate_lines),
            ..self
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Creates a denial of a request of a plugin.
    pub(crate) fn denial(plugin: &str, operation: &str) -> DenialNote {
        DenialNote {
            at: SystemTime::UNIX_EPOCH,
            plugin: plugin.to_owned(),
            tool: "fetch".to_owned(),
            operation: operation.to_owned(),
            remedy: Some("http = [\"https://a.example\"]".to_owned()),
        }
    }

    #[test]
    fn equal_denials_are_merged_and_their_number_is_bounded() {
        let mut denials = DenialLog::default();
        for (plugin, what) in [("a", "x"), ("b", "x"), ("a", "x"), ("a", "y")] {
            denials.add(denial(plugin, what));
        }
        let counted: Vec<_> = denials
            .newest()
            .map(|(one, times)| (&*one.plugin, &*one.operation, *times))
            .collect();
        assert_eq!(counted, [("a", "y", 1), ("a", "x", 2), ("b", "x", 1)]);
        assert_eq!((denials.count_of("a"), denials.count_of("c")), (3, 0));
        for number in 0..1_000 {
            denials.add(denial("a", &format!("{number}{}", "z".repeat(5_000))).truncate_texts());
        }
        assert_eq!(
            (denials.newest().count(), denials.count),
            (MAX_DENIALS, 1_004)
        );
        assert!(
            denials
                .newest()
                .all(|(one, _)| one.operation.len() <= MAX_TEXT_BYTES)
        );
    }
}
