//! The result of a verification: findings, and counts of files and lines.

use std::fmt;

use toolbay_model::Digest;

use crate::key::PublicKey;
use crate::part::LogPart;

/// Maximum number of reported findings. A log that was completely destroyed has a finding for each
/// line.
pub(super) const MAX_FINDINGS: usize = 100;

/// A difference from the log that the server wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyFinding {
    /// The file and the number of the line in it; `None` if the finding applies to the whole log.
    pub location: Option<(String, u64)>,
    /// The difference, as a clause.
    pub description: String,
}

/// The result of verifying a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Differences from the log that the server wrote: at most 100.
    pub findings: Vec<VerifyFinding>,
    /// Number of further findings.
    pub omitted: u64,
    /// Notable facts that are not evidence of tampering.
    pub notices: Vec<VerifyFinding>,
    /// Number of files of the log.
    pub files: usize,
    /// Number of lines in the files.
    pub lines: u64,
    /// Number of lines that the server could not write, according to the log.
    pub lost: u64,
    /// Number and hash of the newest line of the main part, whose checkpoints refer to the newest
    /// line of the other part.
    pub newest: Option<(u64, Digest)>,
    /// The key that verified the signatures.
    pub key: Option<PublicKey>,
    /// The parts of the log. There is only one part if an earlier version wrote the log.
    pub parts: Vec<PartReport>,
}

/// The result of verifying a part of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartReport {
    /// The part.
    pub part: LogPart,
    /// Number of files.
    pub files: usize,
    /// Number of lines in the files.
    pub lines: u64,
    /// Number of the first existing line; `None` if there is no line.
    pub first: Option<u64>,
    /// Number of the newest line; 0 if there is none.
    pub newest: u64,
    /// Number of the newest line that the server itself deleted to limit the number of files; 0 if
    /// it deleted none.
    pub removed: u64,
}

impl VerifyReport {
    /// Returns whether the log is as the server wrote it.
    pub fn is_intact(&self) -> bool {
        self.findings.is_empty()
    }

    /// Adds a finding, or counts it if there are too many.
    pub(super) fn add_finding(&mut self, finding: VerifyFinding) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        } else {
            self.omitted += 1;
        }
    }

    /// Adds a notice, unless there are too many.
    pub(super) fn add_notice(&mut self, notice: VerifyFinding) {
        if self.notices.len() < MAX_FINDINGS {
            self.notices.push(notice);
        }
    }

    /// Adds the report of the other part.
    pub(super) fn merge(&mut self, other: Self) {
        for finding in other.findings {
            self.add_finding(finding);
        }
        self.omitted += other.omitted;
        self.notices.extend(other.notices);
        self.files += other.files;
        self.lines += other.lines;
        self.lost = self.lost.saturating_add(other.lost);
        self.parts.extend(other.parts);
    }
}

impl fmt::Display for VerifyFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((file, number)) = &self.location {
            write!(f, "{file}:{number}: ")?;
        }
        f.write_str(&self.description)
    }
}
