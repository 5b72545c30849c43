//! A reader of the lines in all files of a log.

use std::fs::File;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _};
use std::mem;
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
    /// If set, the end of the newest file is not the end of the log: the next line may be written later.
    is_following: bool,
}

#[derive(Debug)]
struct OpenLogFile {
    /// The number of its first line.
    first: u64,
    name: String,
    reader: BufReader<File>,
    number: u64,
    /// The beginning of a line whose end is not written yet, while the log is followed.
    unfinished: Vec<u8>,
    /// True if a later file exists, so that nothing more is written to this one.
    has_successor: bool,
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
            is_following: false,
        })
    }

    /// Makes the end of the log temporary, before the first line is read: after `None`, the iterator continues with the lines that
    /// were written in the meantime. A line without its end waits for the rest.
    pub(crate) fn follow(&mut self) {
        self.is_following = true;
    }

    /// Returns the number of files in the part.
    pub fn file_count(&self) -> usize {
        self.file_count
    }

    fn read_line(&mut self) -> Result<Option<LogLine>, AuditError> {
        loop {
            if self.open_file.is_none() && !self.open_next_file()? {
                return Ok(None);
            }
            let Some(open) = &mut self.open_file else {
                return Ok(None);
            };
            let line = open.read_line(self.is_following).map_err(|error| {
                AuditError::from_io("read", &self.folder.join(&open.name), &error)
            })?;
            if line.is_some() {
                return Ok(line);
            }
            if !self.is_following || open.has_successor {
                self.open_file = None;
                continue;
            }
            let first = open.first;
            self.list_files_after(Some(first))?;
            if self.files.is_empty() {
                return Ok(None);
            }
            // The file may have grown after its end was read and before its successor was made.
            if let Some(open) = &mut self.open_file {
                open.has_successor = true;
            }
        }
    }

    /// Opens the next file. Returns false if there is none yet.
    fn open_next_file(&mut self) -> Result<bool, AuditError> {
        if self.is_following && self.files.is_empty() {
            self.list_files_after(None)?;
        }
        while let Some(first) = self.files.pop() {
            let name = file_name(self.part, first);
            let path = self.folder.join(&name);
            let file = match open_to_read(&path) {
                Ok(file) => file,
                // The server removed it to make room.
                Err(error) if self.is_following && error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(AuditError::from_io("read", &path, &error)),
            };
            self.open_file = Some(OpenLogFile {
                first,
                name,
                reader: BufReader::with_capacity(MAX_LINE_BYTES, file),
                number: 0,
                unfinished: Vec::new(),
                has_successor: !self.files.is_empty(),
            });
            return Ok(true);
        }
        Ok(false)
    }

    /// Lists the files that begin after the line `first`.
    fn list_files_after(&mut self, first: Option<u64>) -> Result<(), AuditError> {
        self.files = list_files(&self.folder, self.part)
            .map_err(|error| AuditError::from_io("read", &self.folder, &error))?;
        self.files
            .retain(|file| first.is_none_or(|first| *file > first));
        self.files.reverse();
        Ok(())
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
    /// Reads a line. With `is_following`, a line without its end is kept until it has one.
    fn read_line(&mut self, is_following: bool) -> std::io::Result<Option<LogLine>> {
        let mut bytes = mem::take(&mut self.unfinished);
        let room = MAX_LINE_BYTES - bytes.len();
        self.reader
            .by_ref()
            .take(room as u64)
            .read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let mut has_line_end = bytes.pop_if(|last| *last == b'\n').is_some();
        if !has_line_end && bytes.len() >= MAX_LINE_BYTES {
            has_line_end = self.skip_line()?;
        }
        if !has_line_end && is_following && !self.has_successor {
            self.unfinished = bytes;
            return Ok(None);
        }
        self.number += 1;
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
    use std::io::Write as _;

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

    #[test]
    fn a_followed_log_continues_with_what_is_written_later() {
        let dir = tempfile::tempdir().unwrap();
        let path = |first| dir.path().join(file_name(LogPart::Main, first));
        let append = |first, text: &str| {
            let mut file = fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(path(first))
                .unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        let mut lines = LineReader::open(dir.path(), LogPart::Main).unwrap();
        lines.follow();
        let mut next = || {
            let line = lines.next().transpose().unwrap()?;
            Some((
                line.file,
                line.number,
                String::from_utf8(line.bytes).unwrap(),
            ))
        };
        let line = |first, number, text: &str| {
            Some((file_name(LogPart::Main, first), number, text.to_owned()))
        };
        // No file, an empty file, and a line in two halves.
        assert_eq!(next(), None);
        append(1, "");
        assert_eq!(next(), None);
        append(1, "a\nhalf");
        assert_eq!(next(), line(1, 1, "a"));
        assert_eq!(next(), None);
        append(1, " and half\n");
        assert_eq!(next(), line(1, 2, "half and half"));
        assert_eq!(next(), None);
        // The last lines of a file are read before its successor.
        append(1, "b\n");
        append(4, "c\n");
        assert_eq!(next(), line(1, 3, "b"));
        assert_eq!(next(), line(4, 1, "c"));
        assert_eq!(next(), None);
        // Files that were removed before they were read.
        append(5, "removed\n");
        append(6, "d\n");
        fs::remove_file(path(4)).unwrap();
        fs::remove_file(path(5)).unwrap();
        assert_eq!(next(), line(6, 1, "d"));
        assert_eq!(next(), None);
        // A line that never ends is truncated, and the next file follows.
        append(6, &"x".repeat(2 * MAX_LINE_BYTES));
        assert_eq!(next(), None);
        append(7, "e\n");
        assert_eq!(
            next().map(|(_, number, text)| (number, text.len())),
            Some((2, MAX_LINE_BYTES))
        );
        assert_eq!(next(), line(7, 1, "e"));
    }
}
