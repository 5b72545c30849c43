//! Consecutive lines of a log that cannot be parsed or do not match their hash.

use aws_lc_rs::digest::{Context, SHA256};

use super::report::MAX_FINDINGS;
use crate::chain;
use crate::line_reader::LogLine;

/// The name of a file, and the number of a line in it.
pub(super) type LineLocation = (String, u64);

/// Consecutive invalid lines.
pub(super) struct DamagedLines {
    /// The place and the defect of each line.
    pub(super) lines: Vec<(LineLocation, &'static str)>,
    pub(super) count: u64,
    hash: Context,
    bytes: u64,
    /// True if the last line has a line end.
    pub(super) has_line_end: bool,
    /// True if the first line can be the remains of a write.
    can_be_torn: bool,
}

impl DamagedLines {
    /// Creates a sequence without lines. `can_be_torn` is true if its first line can be the remains
    /// of a write.
    pub(super) fn new(can_be_torn: bool) -> Self {
        Self {
            lines: Vec::new(),
            count: 0,
            hash: Context::new(&SHA256),
            bytes: 0,
            has_line_end: true,
            can_be_torn,
        }
    }

    /// Adds a line with this defect.
    pub(super) fn add(&mut self, line: &LogLine, location: &LineLocation, why: &'static str) {
        if self.count > 0 {
            self.hash.update(b"\n");
            self.bytes += 1;
        }
        self.hash.update(&line.bytes);
        self.bytes += line.bytes.len() as u64;
        self.count += 1;
        self.has_line_end = line.has_line_end;
        if self.lines.len() <= MAX_FINDINGS {
            self.lines.push((location.clone(), why));
        }
    }

    /// Returns whether this is a single line that can be the remains of a write.
    pub(super) fn is_torn_line(&self) -> bool {
        self.count == 1 && self.can_be_torn
    }

    /// Returns whether these are exactly the bytes that a server found torn.
    pub(super) fn matches(&self, bytes: u64, sha256: &str) -> bool {
        self.bytes == bytes && chain::to_digest(&self.hash.clone().finish()).to_string() == sha256
    }
}
