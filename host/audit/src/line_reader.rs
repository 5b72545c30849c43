//! A reader of the lines in all files of a log.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use crate::chain::MAX_LINE_BYTES;
use crate::error::AuditError;
use crate::folder::{file_name, list_files, open_to_read};
use crate::part::LogPart;

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Name of the file.
    pub file: String,
    /// Number of the line in the file, starting at 1.
    pub number: u64,
    /// The line without its line end. A line that is too long for a log is truncated to 128 KiB.
    pub bytes: Vec<u8>,
    /// True if the line ends with a line end.
    pub has_line_end: bool,
}

/// Iterator over the lines in all files of a part of a log, oldest first. Holds one line in memory
/// at a time.
#[derive(Debug)]
pub struct LineReader {
    folder: PathBuf,
    part: LogPart,
    /// The first line numbers of the remaining files, the next one last.
    files: Vec<u64>,
    open_file: Option<OpenLogFile>,
    file_count: usize,
}

#[derive(Debug)]
struct OpenLogFile {
    name: String,
    reader: BufReader<File>,
    number: u64,
}

impl LineReader {
    /// Opens one part of the log in `folder` for reading.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be read.
    pub fn open(folder: &Path, part: LogPart) -> Result<Self, AuditError> {
        Self::open_at(folder, part, 0)
    }

    /// Reads the lines from the start of the file that contains the line `seq`.
    pub(crate) fn open_at(folder: &Path, part: LogPart, seq: u64) -> Result<Self, AuditError> {
        let mut files = list_files(folder, part)
            .map_err(|error| AuditError::from_io("read", folder, &error))?;
        let count = files.len();
        let start_index = files
            .iter()
            .rposition(|first| *first <= seq)
            .unwrap_or_default();
        files.drain(..start_index);
        files.reverse();
        Ok(Self {
            folder: folder.to_owned(),
            part,
            files,
            open_file: None,
            file_count: count,
        })
    }

    /// Returns the number of files in the part.
    pub fn file_count(&self) -> usize {
        self.file_count
    }

    fn read_line(&mut self) -> Result<Option<LogLine>, AuditError> {
        loop {
            if self.open_file.is_none() {
                let Some(first) = self.files.pop() else {
                    return Ok(None);
                };
                let name = file_name(self.part, first);
                let path = self.folder.join(&name);
                let file = open_to_read(&path)
                    .map_err(|error| AuditError::from_io("read", &path, &error))?;
                self.open_file = Some(OpenLogFile {
                    name,
                    reader: BufReader::with_capacity(MAX_LINE_BYTES, file),
                    number: 0,
                });
            }
            let Some(open) = &mut self.open_file else {
                return Ok(None);
            };
            match open.read_line().map_err(|error| {
                AuditError::from_io("read", &self.folder.join(&open.name), &error)
            })? {
                Some(line) => return Ok(Some(line)),
                None => self.open_file = None,
            }
        }
    }
}

impl Iterator for LineReader {
    type Item = Result<LogLine, AuditError>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.read_line().transpose();
        if matches!(line, Some(Err(_))) {
            // Stop after the first error.
            self.files.clear();
            self.open_file = None;
        }
        line
    }
}

impl OpenLogFile {
    fn read_line(&mut self) -> std::io::Result<Option<LogLine>> {
        let mut bytes = Vec::new();
        self.reader
            .by_ref()
            .take(MAX_LINE_BYTES as u64)
            .read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        let mut has_line_end = bytes.pop_if(|last| *last == b'\n').is_some();
        if !has_line_end && bytes.len() >= MAX_LINE_BYTES {
            has_line_end = self.skip_line()?;
        }
        Ok(Some(LogLine {
            file: self.name.clone(),
            number: self.number,
            bytes,
            has_line_end,
        }))
    }

    /// Skips the rest of a line. Returns whether the line had an end.
    fn skip_line(&mut self) -> std::io::Result<bool> {
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(false);
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(buffer.len(), |end| end + 1);
            self.reader.consume(length);
            if end.is_some() {
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn lines_of_all_files_are_read_and_long_lines_truncated() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(
            dir.path().join(file_name(LogPart::Main, 1)),
            format!("a\n{}\nb\n", "x".repeat(3 * MAX_LINE_BYTES)),
        )
        .unwrap();
        fs::write(dir.path().join(file_name(LogPart::Main, 4)), "").unwrap();
        fs::write(dir.path().join(file_name(LogPart::Main, 5)), "c\n\nd").unwrap();
        let lines = |seq| {
            LineReader::open_at(dir.path(), LogPart::Main, seq)
                .unwrap()
                .map(Result::unwrap)
        };
        let all: Vec<_> = lines(0)
            .map(|line| (line.number, line.bytes.len(), line.has_line_end))
            .collect();
        assert_eq!(
            all,
            [
                (1, 1, true),
                (2, MAX_LINE_BYTES, true),
                (3, 1, true),
                (1, 1, true),
                (2, 0, true),
                (3, 1, false)
            ]
        );
        assert_eq!(lines(4).next().unwrap().bytes, b"c");
        assert_eq!(lines(3).next().unwrap().bytes, b"a");
    }
}
