//! Reads a recording line by line.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use crate::error::RecordingError;
use crate::header::RecordingHeader;
use crate::recorded_call::RecordedCall;
use crate::recording_line::{LineError, MAX_LINE_BYTES, RecordingLine};

/// Item of a recording.
#[derive(Debug)]
pub enum RecordingItem {
    /// Header of a server.
    Header(RecordingHeader),
    /// Recorded call, with its line number.
    Call(u64, Box<RecordedCall>),
    /// Number of calls that could not be recorded.
    Lost(u64),
    /// Number of a line that is incomplete: the server was killed while it wrote the line.
    Partial(u64),
}

/// Reader of a recording. Holds at most two lines in memory.
#[derive(Debug)]
pub struct RecordingReader<R> {
    lines: R,
    /// Number of the last line that was read.
    line_number: u64,
    /// Line that was read but not returned yet.
    lookahead: Option<(u64, RecordingLine)>,
}

/// Unparsed line.
struct RawLine {
    text: Vec<u8>,
    /// True if the line end is present.
    has_line_end: bool,
}

impl RecordingReader<BufReader<File>> {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or is not a recording.
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        let read_error = |why: &dyn std::fmt::Display| {
            RecordingError(format!("cannot read {}: {why}", path.display()))
        };
        let file = File::open(path).map_err(|error| read_error(&error))?;
        if file
            .metadata()
            .map_err(|error| read_error(&error))?
            .is_dir()
        {
            return Err(read_error(&"it is a folder"));
        }
        Self::new(BufReader::new(file)).map_err(|error| read_error(&error))
    }
}

impl<R: BufRead> RecordingReader<R> {
    /// Creates a reader of lines, the first of which must be a header.
    ///
    /// # Errors
    ///
    /// Returns an error if the first line is not a header or has a newer version.
    pub fn new(lines: R) -> Result<Self, RecordingError> {
        let mut reader = Self {
            lines,
            line_number: 0,
            lookahead: None,
        };
        let not_a_recording = || RecordingError("it is not a recording of calls".to_owned());
        let first = reader
            .read_raw()?
            .ok_or_else(|| RecordingError("it is empty".to_owned()))?;
        match RecordingLine::parse(&first.text) {
            Ok(line) if line.is_header() => reader.lookahead = Some((1, line)),
            Err(LineError::UnsupportedVersion(version)) => {
                return Err(unsupported_version(1, version));
            }
            Ok(_) | Err(LineError::Malformed(_)) => return Err(not_a_recording()),
        }
        Ok(reader)
    }

    /// Returns the next item; `None` at the end.
    ///
    /// # Errors
    ///
    /// Returns the number of the invalid line, and the reason.
    #[expect(
        clippy::should_implement_trait,
        reason = "reading ends at the first error, which `Iterator` cannot express"
    )]
    pub fn next(&mut self) -> Result<Option<RecordingItem>, RecordingError> {
        if let Some((number, line)) = self.lookahead.take() {
            return Ok(Some(to_item(number, line)));
        }
        let Some(raw) = self.read_raw()? else {
            return Ok(None);
        };
        let number = self.line_number;
        let why = match RecordingLine::parse(&raw.text) {
            Ok(line) => return Ok(Some(to_item(number, line))),
            Err(LineError::UnsupportedVersion(version)) => {
                return Err(unsupported_version(number, version));
            }
            Err(LineError::Malformed(why)) => why,
        };
        // A partial line is the last line of a server.
        if !raw.has_line_end {
            return Ok(Some(RecordingItem::Partial(number)));
        }
        if let Some(next) = self.read_raw()?
            && let Ok(line) = RecordingLine::parse(&next.text)
            && line.is_header()
        {
            self.lookahead = Some((self.line_number, line));
            return Ok(Some(RecordingItem::Partial(number)));
        }
        Err(RecordingError(format!("line {number}: {why}")))
    }

    fn read_raw(&mut self) -> Result<Option<RawLine>, RecordingError> {
        let mut text = Vec::new();
        let number = self.line_number + 1;
        let read = (&mut self.lines)
            .take(MAX_LINE_BYTES as u64 + 1)
            .read_until(b'\n', &mut text);
        read.map_err(|error| RecordingError(format!("line {number}: {error}")))?;
        if text.is_empty() {
            return Ok(None);
        }
        let has_line_end = text.pop_if(|last| *last == b'\n').is_some();
        if !has_line_end && text.len() > MAX_LINE_BYTES {
            return Err(RecordingError(format!(
                "line {number}: it is longer than {} MiB",
                MAX_LINE_BYTES >> 20
            )));
        }
        self.line_number = number;
        Ok(Some(RawLine { text, has_line_end }))
    }
}

fn to_item(number: u64, line: RecordingLine) -> RecordingItem {
    match line {
        RecordingLine::Recording(header) => RecordingItem::Header(header),
        RecordingLine::Call(call) => RecordingItem::Call(number, call),
        RecordingLine::Lost { calls } => RecordingItem::Lost(calls),
    }
}

fn unsupported_version(number: u64, version: u64) -> RecordingError {
    RecordingError(format!(
        "line {number}: it was recorded in version {version} of the format, which is newer than this program"
    ))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::recorded_call::tests::call;

    const HEADER: &str = r#"{"recording":{"version":1,"toolbay":"0.2.0","started":"2026-01-02T03:04:05Z","salt":"ab"}}"#;

    /// Returns a word for each item of the text, and the error that ends it.
    fn read(text: impl AsRef<[u8]>) -> (Vec<String>, Option<String>) {
        let mut reader = match RecordingReader::new(text.as_ref()) {
            Ok(reader) => reader,
            Err(error) => return (Vec::new(), Some(error.to_string())),
        };
        let mut items = Vec::new();
        loop {
            match reader.next() {
                Ok(None) => return (items, None),
                Ok(Some(RecordingItem::Header(_))) => items.push("header".to_owned()),
                Ok(Some(RecordingItem::Call(line, call))) => {
                    items.push(format!("call {} at {line}", call.number));
                }
                Ok(Some(RecordingItem::Lost(calls))) => items.push(format!("lost {calls}")),
                Ok(Some(RecordingItem::Partial(line))) => items.push(format!("half {line}")),
                Err(error) => return (items, Some(error.to_string())),
            }
        }
    }

    fn line(number: u64) -> String {
        String::from_utf8(
            RecordingLine::Call(Box::new(call(number)))
                .to_bytes()
                .unwrap(),
        )
        .unwrap()
    }

    /// Returns a call as JSON, modified by `change`.
    fn changed(change: impl FnOnce(&mut Value)) -> String {
        let mut value: Value = serde_json::from_str(&line(1)).unwrap();
        change(&mut value["call"]);
        value.to_string()
    }

    #[test]
    fn calls_are_read_as_they_were_written() {
        let text = format!(
            "{HEADER}\n{}{{\"lost\":{{\"calls\":2}}}}\n{HEADER}\n{}",
            line(1),
            line(7)
        );
        assert_eq!(
            read(text),
            (
                ["header", "call 1 at 2", "lost 2", "header", "call 7 at 5"]
                    .map(str::to_owned)
                    .into(),
                None
            )
        );
    }

    #[test]
    fn partial_last_line_of_a_server_is_skipped() {
        let complete_line = line(1);
        for length in [1, 2, complete_line.len() / 2, complete_line.len() - 2] {
            let half = &complete_line[..length];
            let (items, error) = read(format!("{HEADER}\n{}{half}", line(3)));
            assert_eq!(
                (items[2..].concat(), error),
                ("half 3".to_owned(), None),
                "{length}"
            );
            // The next server ends the line and continues.
            let (items, error) = read(format!("{HEADER}\n{half}\n{HEADER}\n{}", line(4)));
            assert_eq!(
                (items[1..].join(", "), error),
                ("half 2, header, call 4 at 4".to_owned(), None),
                "{length}"
            );
        }
        // A line that lacks only its line end is complete.
        assert_eq!(
            read(format!("{HEADER}\n{}", complete_line.trim_end())).0[1],
            "call 1 at 2"
        );
        assert_eq!(read(HEADER).0, ["header"]);
    }

    #[test]
    fn invalid_recordings_are_errors_with_a_line_number() {
        let after = |text: &str| format!("{HEADER}\n{}{text}\n{}", line(1), line(2));
        let deep = "[".repeat(100_000);
        let nested = changed(|call| call["result"] = json!({"value": null})).replace("null", &deep);
        let mut wide = String::from("{\"call\":[");
        while wide.len() < 16 << 20 {
            let _ = write!(wide, "[[]],");
        }
        let invalid_recordings = [
            (
                "a call without anything",
                "{\"call\":{}}".to_owned(),
                "missing field",
            ),
            ("no JSON", "calls".to_owned(), "expected value"),
            ("an empty line", String::new(), "EOF"),
            (
                "an unknown line",
                "{\"cull\":{}}".to_owned(),
                "unknown variant `cull`",
            ),
            (
                "a number of the wrong type",
                changed(|call| call["number"] = json!("1")),
                "invalid type",
            ),
            (
                "a negative number",
                changed(|call| call["number"] = json!(-1)),
                "invalid value",
            ),
            (
                "a number that is too large",
                changed(|call| call["usage"]["fuel"] = json!(1e300)),
                "invalid type",
            ),
            (
                "an unknown key",
                changed(|call| call["extra"] = json!(1)),
                "unknown field `extra`",
            ),
            (
                "an unknown reason",
                changed(|call| call["missing"] = json!(["mood"])),
                "unknown variant `mood`",
            ),
            (
                "a seed that is none",
                changed(|call| call["answers"]["seed"] = json!("ab")),
                "64 hexadecimal digits",
            ),
            (
                "a clock that is none",
                changed(|call| call["answers"]["clock"] = json!("!")),
                "packed and in base64",
            ),
            (
                "a clock that claims to be endless",
                changed(|call| call["answers"]["clock"] = json!("//////////8B")),
                "packed and in base64",
            ),
            (
                "bytes that are none",
                changed(|call| {
                    call["answers"]["operations"] =
                        json!([{"what": "x", "answer": {"state": {"base64": "!"}}}]);
                }),
                "Invalid symbol",
            ),
            ("deep nesting", deep, "expected value"),
            ("deep nesting in a call", nested, "recursion limit"),
            ("too many values", wide, "too many values"),
            (
                "a header without a version",
                "{\"recording\":{}}".to_owned(),
                "missing field",
            ),
            (
                "a header of version 0",
                HEADER.replace(":1", ":0"),
                "version 0",
            ),
            (
                "a newer header",
                "{\"recording\":{\"version\":2,\"new\":[]}}".to_owned(),
                "version 2 of the format",
            ),
        ];
        for (what, text, expected) in invalid_recordings {
            let (items, error) = read(after(&text));
            let error = error.unwrap_or_else(|| panic!("{what}: {items:?}"));
            assert!(
                error.starts_with("line 3: ") && error.contains(expected),
                "{what}: {error}"
            );
            assert_eq!(items, ["header", "call 1 at 2"], "{what}");
        }
        let invalid = [HEADER.as_bytes(), b"\n\xff\xff\n", line(2).as_bytes()].concat();
        assert!(read(invalid).1.unwrap().contains("line 2: it is not UTF-8"));
        let long = [HEADER.as_bytes(), b"\n", &vec![b'x'; MAX_LINE_BYTES + 2]].concat();
        assert!(
            read(long)
                .1
                .unwrap()
                .contains("line 2: it is longer than 64 MiB")
        );
    }

    #[test]
    fn recording_must_begin_with_a_header() {
        for text in [
            "",
            "\n",
            "{}",
            "precious\n",
            &line(1),
            "{\"lost\":{\"calls\":1}}\n",
        ] {
            let (items, error) = read(text);
            assert!(items.is_empty() && error.is_some(), "{text}");
        }
        let newer = "{\"recording\":{\"version\":99}}\n";
        assert!(
            read(newer)
                .1
                .unwrap()
                .contains("version 99 of the format, which is newer")
        );
    }

    proptest! {
        #[test]
        fn changed_recordings_are_read_without_panic(
            at in 0_usize..2_000, by in any::<Vec<u8>>(), cut in 0_usize..50
        ) {
            let mut text = format!("{HEADER}\n{}{}", line(1), line(2)).into_bytes();
            let at = at.min(text.len());
            let end = (at + cut).min(text.len());
            text.splice(at..end, by);
            let (items, _) = read(text);
            prop_assert!(items.len() < 100);
        }
    }
}
