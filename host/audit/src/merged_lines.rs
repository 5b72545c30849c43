//! An iterator over the lines of both parts of a log in chronological order.

use std::path::Path;

use crate::chain;
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
        .position(|window| window == TIME_KEY);
    at.and_then(|at| line.get(at + TIME_KEY.len()..at + TIME_KEY.len() + TIME_BYTES))
        .unwrap_or_default()
}

/// Iterator over the lines of both parts of a log, oldest first. Skips lines that do not match
/// their own hash, because the server did not write them. Holds two lines in memory at a time.
#[derive(Debug)]
pub struct MergedLines {
    parts: [(LineReader, Option<LogLine>); 2],
    damaged: u64,
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
            damaged: 0,
        })
    }

    /// Makes the end of the log temporary, before the first line is read: after `None`, the iterator continues with the lines that
    /// were written in the meantime. Files that the server removed before they were read are skipped.
    pub fn follow(&mut self) {
        for (lines, _) in &mut self.parts {
            lines.follow();
        }
    }

    /// Returns the number of lines that were skipped.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    fn read_line(&mut self) -> Result<Option<LogLine>, AuditError> {
        for (lines, next) in &mut self.parts {
            while next.is_none() {
                let Some(line) = lines.next().transpose()? else {
                    break;
                };
                if chain::parse_line(&line.bytes).is_ok() {
                    *next = Some(line);
                } else {
                    self.damaged += 1;
                }
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
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::folder::file_name;
    use crate::part_writer::tests::record;

    #[test]
    fn lines_of_both_parts_are_in_the_order_of_their_times() {
        let dir = tempfile::tempdir().unwrap();
        let line = |at: u64, what: &str| {
            let time = SystemTime::UNIX_EPOCH + Duration::from_micros(at);
            let (_, event) = record(what);
            let line = chain::serialize_line(1, time, &event, chain::NO_PREVIOUS_HASH).0;
            String::from_utf8(line).unwrap()
        };
        let main = [
            line(1, "a"),
            line(4, "d"),
            "no line\n".to_owned(),
            line(5, "g").replace("\"g\"", "\"forged\""),
            line(5, "e"),
            line(6, "forged").trim_end().replace("\"hash\"", "\"hush\""),
        ]
        .concat();
        fs::write(dir.path().join(file_name(LogPart::Main, 1)), main).unwrap();
        let rejected = [line(2, "b"), line(3, "c"), line(9, "f")].concat();
        fs::write(dir.path().join(file_name(LogPart::Rejected, 1)), rejected).unwrap();
        let mut lines = MergedLines::open(dir.path()).unwrap();
        let mut said = Vec::new();
        for line in lines.by_ref() {
            let value: serde_json::Value = serde_json::from_slice(&line.unwrap().bytes).unwrap();
            said.push(value["reason"].as_str().unwrap().to_owned());
        }
        assert_eq!(said, ["a", "b", "c", "d", "e", "f"]);
        assert_eq!(lines.damaged(), 3);
    }
}
