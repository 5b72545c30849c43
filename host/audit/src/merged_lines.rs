//! An iterator over the lines of both parts of a log in chronological order.

use std::path::Path;

use crate::error::AuditError;
use crate::line_reader::{LineReader, LogLine};
use crate::part::LogPart;

/// The bytes before the time of a line.
const TIME_KEY: &[u8] = br#","time":""#;

/// Length of a time, in bytes.
const TIME_BYTES: usize = "2026-05-01T08:00:00.000001Z".len();

/// Number of bytes at the start of a line that are searched for the time key.
const TIME_SEARCH_BYTES: usize = 64;

/// Returns the time of a line as text, or an empty slice. Times have a fixed length, so their texts
/// sort chronologically.
pub(crate) fn line_time(line: &[u8]) -> &[u8] {
    let start = line
        .get(..line.len().min(TIME_SEARCH_BYTES))
        .unwrap_or_default();
    let at = start
        .windows(TIME_KEY.len())
        .position(|found| found == TIME_KEY);
    at.and_then(|at| line.get(at + TIME_KEY.len()..at + TIME_KEY.len() + TIME_BYTES))
        .unwrap_or_default()
}

/// Iterator over the lines of both parts of a log, oldest first. Holds two lines in memory at a
/// time.
#[derive(Debug)]
pub struct MergedLines {
    parts: [(LineReader, Option<LogLine>); 2],
}

impl MergedLines {
    /// Reads the lines of the log in `folder`.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be read.
    pub fn open(folder: &Path) -> Result<Self, AuditError> {
        let [main, rejected] = LogPart::ALL;
        Ok(Self {
            parts: [
                (LineReader::open(folder, main)?, None),
                (LineReader::open(folder, rejected)?, None),
            ],
        })
    }

    fn read_line(&mut self) -> Result<Option<LogLine>, AuditError> {
        for (lines, next) in &mut self.parts {
            if next.is_none() {
                *next = lines.next().transpose()?;
            }
        }
        let [(_, main), (_, rejected)] = &mut self.parts;
        let later = |main: &LogLine, rejected: &LogLine| {
            line_time(&main.bytes) > line_time(&rejected.bytes)
        };
        Ok(match (&*main, &*rejected) {
            (Some(one), Some(other)) if later(one, other) => rejected.take(),
            (Some(_), _) => main.take(),
            (None, _) => rejected.take(),
        })
    }
}

impl Iterator for MergedLines {
    type Item = Result<LogLine, AuditError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read_line().transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::folder::file_name;

    #[test]
    fn lines_of_both_parts_are_in_the_order_of_their_times() {
        let dir = tempfile::tempdir().unwrap();
        let line = |at: u32, what: &str| {
            format!("{{\"seq\":1,\"time\":\"2026-05-01T08:00:00.00000{at}Z\",\"{what}\"}}\n")
        };
        let main = [
            line(1, "a"),
            line(4, "d"),
            "no line\n".to_owned(),
            line(5, "e"),
        ]
        .concat();
        fs::write(dir.path().join(file_name(LogPart::Main, 1)), main).unwrap();
        let rejected = [line(2, "b"), line(3, "c"), line(9, "f")].concat();
        fs::write(dir.path().join(file_name(LogPart::Rejected, 1)), rejected).unwrap();
        let lines = MergedLines::open(dir.path())
            .unwrap()
            .map(|line| line.unwrap().bytes);
        let said: Vec<_> = lines
            .map(|line| line[line.len().saturating_sub(3)..].to_vec())
            .collect();
        assert_eq!(
            said,
            [b"a\"}", b"b\"}", b"c\"}", b"d\"}", b"ine", b"e\"}", b"f\"}"]
        );
    }
}
