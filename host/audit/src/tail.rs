//! Reads the newest lines of a log without reading the rest.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use crate::error::AuditError;
use crate::folder::{file_name, list_files};
use crate::merged_lines::line_time;
use crate::part::LogPart;

/// Number of bytes that are read from the end of each file.
const TAIL_BYTES: u64 = 512 << 10;

/// Maximum number of files that are read. A new file has few lines.
const MAX_TAIL_FILES: usize = 2;

/// Returns at most `max_lines` of the newest whole lines of the log in `folder`, newest first and
/// without their line ends. Only the ends of the newest files are read, so fewer lines may be
/// returned.
///
/// # Errors
///
/// Returns an error if the directory or a file cannot be read.
pub fn tail(folder: &Path, most: usize) -> Result<Vec<Vec<u8>>, AuditError> {
    let mut lines = Vec::new();
    for part in LogPart::ALL {
        lines.extend(read_part_tail(folder, part, most)?);
    }
    // The lines of each part are in order. The sort is stable, so a line without a time keeps its
    // position.
    lines.sort_by(|one, other| line_time(other).cmp(line_time(one)));
    lines.truncate(most);
    Ok(lines)
}

/// Returns the newest lines of one part, newest first.
fn read_part_tail(folder: &Path, part: LogPart, most: usize) -> Result<Vec<Vec<u8>>, AuditError> {
    let numbers =
        list_files(folder, part).map_err(|error| AuditError::from_io("read", folder, &error))?;
    let mut lines = Vec::new();
    for number in numbers.into_iter().rev().take(MAX_TAIL_FILES) {
        let path = folder.join(file_name(part, number));
        let end =
            read_file_tail(&path).map_err(|error| AuditError::from_io("read", &path, &error))?;
        lines.extend(
            end.rsplit(|byte| *byte == b'\n')
                .filter(|line| !line.is_empty())
                .map(<[u8]>::to_vec),
        );
        if lines.len() >= most {
            break;
        }
    }
    lines.truncate(most);
    Ok(lines)
}

/// Returns the whole lines at the end of a file.
fn read_file_tail(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let from = length.saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    // A line that is being written has no end yet, and the first line may be incomplete.
    let whole = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    bytes.truncate(whole);
    if from > 0 {
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

    use super::*;

    #[test]
    fn the_newest_lines_come_from_the_ends_of_the_newest_files() {
        let dir = tempfile::tempdir().unwrap();
        let read = |most| {
            let lines = tail(dir.path(), most).unwrap();
            lines
                .into_iter()
                .map(|line| String::from_utf8(line).unwrap())
                .collect::<Vec<_>>()
        };
        assert!(read(9).is_empty());
        fs::write(dir.path().join(file_name(LogPart::Main, 1)), "a\n").unwrap();
        fs::write(dir.path().join(file_name(LogPart::Main, 2)), "b\nc\n").unwrap();
        fs::write(dir.path().join(file_name(LogPart::Main, 4)), "d\nhalf").unwrap();
        assert_eq!(read(9), ["d", "c", "b"]);
        assert_eq!(read(2), ["d", "c"]);
        let long: Vec<String> = (0..200_000)
            .map(|number| format!("line {number}\n"))
            .collect();
        fs::write(dir.path().join(file_name(LogPart::Main, 9)), long.concat()).unwrap();
        let lines = read(usize::MAX);
        assert_eq!(lines[0], "line 199999");
        assert!(
            lines
                .iter()
                .all(|line| line.starts_with("line ") || line == "d"),
            "no line is cut"
        );
        tail(&dir.path().join("none"), 1).unwrap_err();
    }
}
