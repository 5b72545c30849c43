//! Verification of a log. Finds every line that was changed, truncated, swapped or inserted.

use std::fmt;
use std::path::Path;

use aws_lc_rs::digest::{Context, SHA256};
use toolbay_model::Digest;

use crate::anchor::CrossAnchor;
use crate::chain::{self, ChainEvent, ChainLink, NO_PREVIOUS_HASH};
use crate::claim::{SignedClaim, SignedHead};
use crate::error::AuditError;
use crate::folder::list_files;
use crate::head::{self, HeadState};
use crate::key::{PUBLIC_KEY_FILE_NAME, PublicKey};
use crate::line_reader::{LineReader, LogLine};
use crate::part::LogPart;

/// Maximum number of reported findings. A log that was completely destroyed has a finding for each
/// line.
const MAX_FINDINGS: usize = 100;

/// Maximum number of retries if the files of a log cannot be read.
const MAX_RETRIES: u32 = 3;

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

    /// Adds the report of the other part.
    fn merge(&mut self, other: Self) {
        for finding in other.findings {
            if self.findings.len() < MAX_FINDINGS {
                self.findings.push(finding);
            } else {
                self.omitted += 1;
            }
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

/// Verifies the log in `folder` with `key`, or with the public key in the directory. `expected` is
/// the number and hash of a line that was recorded elsewhere.
///
/// # Errors
///
/// Returns an error if the directory, its public key or its files cannot be read.
pub fn verify(
    folder: &Path,
    key: Option<PublicKey>,
    expected: Option<(u64, Digest)>,
) -> Result<VerifyReport, AuditError> {
    let key = match key {
        Some(key) => key,
        None => public_key(folder)?,
    };
    let mut again = MAX_RETRIES;
    loop {
        match verify_once(folder, key, expected) {
            // A running server deletes old files.
            Err(_) if again > 0 => again -= 1,
            done => return done,
        }
    }
}

fn verify_once(
    folder: &Path,
    key: PublicKey,
    expected: Option<(u64, Digest)>,
) -> Result<VerifyReport, AuditError> {
    let (mut report, anchor) = verify_part(folder, LogPart::Main, key, expected, None)?;
    // Read the other part after the main part: a running server writes the other part first.
    let missing = head::read_head(folder, LogPart::Rejected, &key)
        .is_ok_and(|head| head == HeadState::Missing);
    let none = list_files(folder, LogPart::Rejected).is_ok_and(|files| files.is_empty());
    // Earlier versions had no second part, and their main part does not refer to it.
    if anchor.is_some() || !missing || !none {
        let (other, _) = verify_part(folder, LogPart::Rejected, key, None, anchor)?;
        report.merge(other);
    }
    Ok(report)
}

/// Verifies a part. Also returns the newest line of the other part that this part refers to.
/// `anchor` is a line of this part that the other part refers to.
fn verify_part(
    folder: &Path,
    part: LogPart,
    key: PublicKey,
    expected: Option<CrossAnchor>,
    anchor: Option<CrossAnchor>,
) -> Result<(VerifyReport, Option<CrossAnchor>), AuditError> {
    // Read the head before the lines: a running server continues to append.
    let head = head::read_head(folder, part, &key)
        .map_err(|error| AuditError::from_io("read", folder, &error))?;
    let lines = LineReader::open(folder, part)?;
    let mut verifier = ChainVerifier::new(part, key, head, [expected, anchor], lines.files());
    for line in lines {
        verifier.check_line(&line?);
    }
    let named = verifier.named;
    Ok((verifier.finish(), named))
}

fn public_key(folder: &Path) -> Result<PublicKey, AuditError> {
    let path = folder.join(PUBLIC_KEY_FILE_NAME);
    let text = std::fs::read_to_string(&path)
        .map_err(|error| AuditError::from_io("read", &path, &error))?;
    PublicKey::parse(&text)
        .ok_or_else(|| AuditError(format!("{} is not a public key", path.display())))
}

type LineLocation = (String, u64);

struct ChainVerifier {
    part: LogPart,
    report: VerifyReport,
    key: PublicKey,
    head: HeadState,
    /// A line that was recorded elsewhere, and a line that the other part refers to.
    expected: [Option<CrossAnchor>; 2],
    /// The newest line of the other part that this part refers to.
    named: Option<CrossAnchor>,
    /// Number of the first retained line, according to the log.
    oldest: u64,
    /// Number of the first existing line.
    first: Option<u64>,
    /// The last valid line of the chain.
    last: Option<ChainLink>,
    /// Invalid lines after `last`.
    damaged: Option<DamagedLines>,
    /// Hash of the line that the head refers to, and hashes of the expected lines.
    at_head: Option<Digest>,
    at_expected: [Option<Digest>; 2],
    location: LineLocation,
}

/// Consecutive invalid lines.
struct DamagedLines {
    /// The place and the defect of each line.
    lines: Vec<(LineLocation, &'static str)>,
    count: u64,
    hash: Context,
    bytes: u64,
    /// True if the last line has a line end.
    has_line_end: bool,
}

impl ChainVerifier {
    fn new(
        part: LogPart,
        key: PublicKey,
        head: HeadState,
        expected: [Option<CrossAnchor>; 2],
        files: usize,
    ) -> Self {
        let report = VerifyReport {
            files,
            key: Some(key),
            ..VerifyReport::default()
        };
        let place = (String::new(), 0);
        Self {
            part,
            report,
            key,
            head,
            expected,
            named: None,
            oldest: 1,
            first: None,
            last: None,
            damaged: None,
            at_head: None,
            at_expected: [None; 2],
            location: place,
        }
    }

    fn check_line(&mut self, line: &LogLine) {
        self.report.lines += 1;
        self.location = (line.file.clone(), line.number);
        match chain::parse_line(&line.bytes) {
            Ok(read) => self.check_link(read),
            Err(why) => {
                let empty = || DamagedLines {
                    lines: Vec::new(),
                    count: 0,
                    hash: Context::new(&SHA256),
                    bytes: 0,
                    has_line_end: true,
                };
                let damaged = self.damaged.get_or_insert_with(empty);
                if damaged.count > 0 {
                    damaged.hash.update(b"\n");
                    damaged.bytes += 1;
                }
                damaged.hash.update(&line.bytes);
                damaged.bytes += line.bytes.len() as u64;
                damaged.count += 1;
                damaged.has_line_end = line.has_line_end;
                if damaged.lines.len() <= MAX_FINDINGS {
                    damaged.lines.push((self.location.clone(), why));
                }
            }
        }
    }

    /// Checks the position of a line whose own hash is valid.
    fn check_link(&mut self, link: ChainLink) {
        let skipped = self.report_damage_before(&link);
        match &self.last {
            None => {
                self.first = Some(link.seq);
                if link.seq == 1 && link.prev != NO_PREVIOUS_HASH {
                    self.report("the first line follows another one".to_owned());
                }
            }
            Some(last) if link.seq <= last.seq => {
                let seq = link.seq;
                let what = format!(
                    "line {seq} follows line {}: it was inserted, repeated or moved",
                    last.seq
                );
                return self.report(what);
            }
            Some(last) => {
                let next = last.seq + 1 + skipped;
                if link.seq > next {
                    let what = format!("{} before this line", describe_missing(next, link.seq - 1));
                    self.report(what);
                } else if link.seq == last.seq + 1 && link.prev != last.hash {
                    let (seq, before) = (link.seq, last.seq);
                    self.report(format!(
                        "line {seq} does not follow the line {before} that is before it: one of the two was replaced"
                    ));
                }
            }
        }
        if let HeadState::Signed(head) = self.head
            && head.seq == link.seq
        {
            self.at_head = Some(link.hash);
        }
        for (expected, found) in self.expected.iter().zip(&mut self.at_expected) {
            if expected.is_some_and(|(seq, _)| seq == link.seq) {
                *found = Some(link.hash);
            }
        }
        if let Some(named) = link.rejected_anchor {
            self.check_reference(named);
        }
        self.check_event(&link);
        self.last = Some(link);
    }

    /// Reports the damaged lines before a line, unless the line itself states that they were torn.
    /// Returns how many of them were numbered lines.
    fn report_damage_before(&mut self, link: &ChainLink) -> u64 {
        let said = match &link.event {
            ChainEvent::Start { torn, .. } => torn.as_ref(),
            _ => None,
        };
        match (self.damaged.take(), said) {
            (None, None) => 0,
            (None, Some(_)) => {
                self.report("a torn line was here, and was removed".to_owned());
                0
            }
            (Some(damaged), Some(torn))
                if damaged.count == 1 && damaged.matches(torn.bytes, &torn.sha256) =>
            {
                let place = damaged.lines.into_iter().next().map(|(place, _)| place);
                let what = "is torn: the server was killed while it wrote this line".to_owned();
                self.report.notices.push(VerifyFinding {
                    location: place,
                    description: what,
                });
                0
            }
            (Some(damaged), said) => {
                let count = damaged.count;
                self.report_damage(damaged);
                // A server continues the numbering after the last valid line.
                if said.is_some() { 0 } else { count }
            }
        }
    }

    fn report_damage(&mut self, damaged: DamagedLines) {
        let told = damaged.lines.len() as u64;
        for (place, why) in damaged.lines {
            self.report_at(Some(place), why.to_owned());
        }
        self.report.omitted += damaged.count - told;
    }

    /// Checks and stores the reference of a line to the other part, whose line numbers never
    /// decrease.
    fn check_reference(&mut self, named: CrossAnchor) {
        if let Some(before) = self.named
            && (named.0 < before.0 || (named.0 == before.0 && named.1 != before.1))
        {
            let (line, noun) = (before.0, LogPart::Rejected.noun());
            self.report(format!(
                "{noun} had line {line} before this line, and another one was started since"
            ));
        }
        self.named = Some(named);
    }

    /// Checks the contents of a line that affect the chain.
    fn check_event(&mut self, link: &ChainLink) {
        match &link.event {
            ChainEvent::Start {
                missing,
                unsigned,
                wrong,
                key,
                ..
            } => {
                if *missing > 0 {
                    let (verb, lines) = (was_or_were(*missing), format_lines(*missing));
                    self.report(format!(
                        "{lines} before this one {verb} signed, and {verb} gone when the server started"
                    ));
                }
                if let Some(wrong) = wrong {
                    self.report(format!(
                        "when the server started, it found the log changed: {wrong}"
                    ));
                }
                if *unsigned > 0 {
                    let (verb, lines) = (was_or_were(*unsigned), format_lines(*unsigned));
                    self.add_notice(format!(
                        "{lines} before this one {verb} not signed: the server was killed"
                    ));
                }
                if *key != self.key.to_string() {
                    self.report("the server that wrote this has another key".to_owned());
                }
            }
            ChainEvent::Checkpoint(signature) => {
                if !self.key.verifies(
                    signature,
                    self.part,
                    SignedClaim::Checkpoint(link.seq, link.prev),
                ) {
                    self.report("the signature is not one of the lines before it".to_owned());
                }
            }
            ChainEvent::FileStart(oldest) => self.oldest = self.oldest.max(*oldest),
            ChainEvent::Lost(lines) => {
                self.report.lost = self.report.lost.saturating_add(*lines);
                let lines = self::format_lines(*lines);
                self.add_notice(format!("{lines} could not be written"));
            }
            ChainEvent::Stop | ChainEvent::Other => {}
        }
    }

    fn finish(mut self) -> VerifyReport {
        if let Some(damaged) = self.damaged.take() {
            if damaged.count == 1 && !damaged.has_line_end {
                let place = damaged.lines.into_iter().next().map(|(place, _)| place);
                let what =
                    "is torn: the server was killed while it wrote this line, or is writing it"
                        .to_owned();
                self.report.notices.push(VerifyFinding {
                    location: place,
                    description: what,
                });
            } else {
                self.report_damage(damaged);
            }
        }
        let last = self.last.take();
        let newest = last.as_ref().map_or(0, |last| last.seq);
        match self.head {
            HeadState::Missing => {
                let head = self.part.head_file_name();
                self.report_at(
                    None,
                    format!("the file `{head}`, which signs the newest line, is missing"),
                );
            }
            HeadState::Forged => {
                let head = self.part.head_file_name();
                self.report_at(
                    None,
                    format!("the file `{head}` is not signed with the key of the log"),
                );
            }
            HeadState::Signed(head) => self.compare_with_head(head, newest),
        }
        let first = self.first.unwrap_or(1);
        if first > self.oldest {
            let what = format!(
                "{} at the beginning of {}",
                describe_missing(self.oldest, first - 1),
                self.part.noun()
            );
            self.report_at(None, what);
        }
        let [expected, named] = self.expected;
        let [at_expected, at_named] = self.at_expected;
        if let Some((seq, hash)) = expected
            && at_expected != Some(hash)
        {
            let what = match at_expected {
                Some(_) => {
                    format!("line {seq} is not the expected one: it has another hash")
                }
                None if seq < first => {
                    format!("line {seq}, which is expected, is in a file that was removed")
                }
                None => format!("line {seq}, which is expected, is not in the log"),
            };
            self.report_at(None, what);
        }
        // The server deleted the lines before the first retained line, according to its head.
        if let Some((seq, hash)) = named
            && at_named != Some(hash)
            && (seq >= self.oldest || newest < seq)
        {
            let noun = self.part.noun();
            self.report_at(
                None,
                format!(
                    "{noun} does not have its line {seq} as the other lines of the log name it"
                ),
            );
        }
        self.report.newest = last.map(|last| (last.seq, last.hash));
        self.report.parts.push(PartReport {
            part: self.part,
            files: self.report.files,
            lines: self.report.lines,
            first: self.first,
            newest,
            removed: self.oldest.saturating_sub(1),
        });
        self.report
    }

    /// Compares the end of the log with the signed head.
    fn compare_with_head(&mut self, head: SignedHead, newest: u64) {
        self.oldest = head.oldest;
        if head.seq > newest {
            let noun = self.part.noun();
            self.report_at(
                None,
                format!(
                    "{} at the end of {noun}",
                    describe_missing(newest + 1, head.seq)
                ),
            );
            return;
        }
        if self.at_head != Some(head.hash) {
            self.report_at(
                None,
                format!(
                    "line {} is not the one that the server signed as its newest",
                    head.seq
                ),
            );
        }
        let unsigned = newest - head.seq;
        if unsigned > 0 && head.ended {
            self.report_at(
                None,
                format!("{} after the server had ended", format_lines(unsigned)),
            );
        } else if unsigned > 0 {
            self.report.notices.push(VerifyFinding {
                location: None,
                description: format!("the last {} not signed yet", format_lines_are(unsigned)),
            });
        }
    }

    fn report(&mut self, what: String) {
        self.report_at(Some(self.location.clone()), what);
    }

    fn report_at(&mut self, place: Option<LineLocation>, what: String) {
        if self.report.findings.len() < MAX_FINDINGS {
            self.report.findings.push(VerifyFinding {
                location: place,
                description: what,
            });
        } else {
            self.report.omitted += 1;
        }
    }

    fn add_notice(&mut self, what: String) {
        if self.report.notices.len() < MAX_FINDINGS {
            self.report.notices.push(VerifyFinding {
                location: Some(self.location.clone()),
                description: what,
            });
        }
    }
}

impl DamagedLines {
    fn matches(&self, bytes: u64, sha256: &str) -> bool {
        self.bytes == bytes && chain::to_digest(&self.hash.clone().finish()).to_string() == sha256
    }
}

fn describe_missing(from: u64, to: u64) -> String {
    if from >= to {
        format!("line {from} is missing")
    } else {
        format!("lines {from} to {to} are missing")
    }
}

fn format_lines(count: u64) -> String {
    if count == 1 {
        "1 line".to_owned()
    } else {
        format!("{count} lines")
    }
}

fn was_or_were(count: u64) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

fn format_lines_are(count: u64) -> String {
    format!(
        "{} {}",
        format_lines(count),
        if count == 1 { "is" } else { "are" }
    )
}

#[cfg(test)]
mod tests;
