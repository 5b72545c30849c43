//! Reads the newest lines of a log without reading the rest.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use crate::chain;
use crate::error::AuditError;
use crate::folder::{file_name, list_files, open_to_read};
use crate::merged_lines::line_time;
use crate::part::LogPart;

/// Number of bytes that are read from the end of each file.
const TAIL_BYTES: u64 = 512 << 10;

/// Maximum number of files that are read. A new file has few lines.
const MAX_TAIL_FILES: usize = 2;

/// Returns at most `max_lines` of the newest whole lines of the log in `folder`, newest first and
/// without their line ends. Lines that do not match their own hash are left out, because the server
/// did not write them. Only the ends of the newest files are read, so fewer lines may be returned.
///
/// # Errors
///
/// Returns an error if the directory or a file cannot be read.
pub fn tail(folder: &Path, max_lines: usize) -> Result<Vec<Vec<u8>>, AuditError> {
    let mut lines = Vec::new();
    for part in LogPart::ALL {
        lines.extend(read_part_tail(folder, part, max_lines)?);
    }
    // The lines of each part are in order. The sort is stable, so a line without a time keeps its
    // position.
    lines.sort_by(|one, other| line_time(other).cmp(line_time(one)));
    lines.truncate(max_lines);
    Ok(lines)
}

/// Returns the newest lines of one part, newest first.
fn read_part_tail(
    folder: &Path,
    part: LogPart,
    max_lines: usize,
) -> Result<Vec<Vec<u8>>, AuditError> {
    let numbers =
        list_files(folder, part).map_err(|error| AuditError::from_io("read", folder, &error))?;
    let mut lines = Vec::new();
    for number in numbers.into_iter().rev().take(MAX_TAIL_FILES) {
        let path = folder.join(file_name(part, number));
        let end =
            read_file_tail(&path).map_err(|error| AuditError::from_io("read", &path, &error))?;
        lines.extend(
            end.rsplit(|byte| *byte == b'\n')
                .filter(|line| chain::parse_line(line).is_ok())
                .map(<[u8]>::to_vec),
        );
        if lines.len() >= max_lines {
            break;
        }
    }
    lines.truncate(max_lines);
    Ok(lines)
}

/// Returns the whole lines at the end of a file.
fn read_file_tail(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open_to_read(path)?;
    let length = file.metadata()?.len();
    let start = length.saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    // A line that is being written has no end yet, and the first line may be incomplete.
    let complete_bytes = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    bytes.truncate(complete_bytes);
    if start > 0 {
        let first = bytes
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(bytes.len(), |at| at + 1);
        bytes.drain(..first);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::SystemTime;

    use super::*;
    use crate::part_writer::tests::record;

    fn line(what: impl Into<String>) -> String {
        let (_, event) = record(what);
        let time = SystemTime::UNIX_EPOCH;
        let line = chain::serialize_line(1, time, &event, chain::NO_PREVIOUS_HASH).0;
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn the_newest_lines_come_from_the_ends_of_the_newest_files() {
        let dir = tempfile::tempdir().unwrap();
        let write = |first, text: String| {
            fs::write(dir.path().join(file_name(LogPart::Main, first)), text).unwrap();
        };
        let read_tail = |max_lines| {
            let lines = tail(dir.path(), max_lines).unwrap();
            lines
                .iter()
                .map(|line| serde_json::from_slice::<serde_json::Value>(line).unwrap())
                .map(|line| line["reason"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert!(read_tail(9).is_empty());
        let forged = line("z").replace("\"z\"", "\"forged\"");
        write(1, line("a"));
        write(2, line("b") + &line("c"));
        write(
            4,
            line("d") + &forged + "{\"event\":\"stop\"}\n" + line("half").trim_end(),
        );
        assert_eq!(read_tail(9), ["d", "c", "b"]);
        assert_eq!(read_tail(2), ["d", "c"]);
        write(9, (0..5_000).map(|n| line(format!("line {n}"))).collect());
        let lines = read_tail(usize::MAX);
        assert_eq!(lines[0], "line 4999");
        assert!(
            lines.len() < 5_000
                && lines
                    .iter()
                    .all(|line| line.starts_with("line ") || line == "d"),
            "no line is cut"
        );
        tail(&dir.path().join("none"), 1).unwrap_err();
    }
}
