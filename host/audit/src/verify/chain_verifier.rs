//! Checks the lines of one part of a log, one after the other, and its end against the signed head.

use toolbay_model::Digest;

use super::count_words::{describe_missing, format_lines, format_lines_are, was_or_were};
use super::damaged_lines::{DamagedLines, LineLocation};
use super::report::{PartReport, VerifyFinding, VerifyReport};
use crate::anchor::CrossAnchor;
use crate::chain::{self, ChainEvent, ChainLink, NO_PREVIOUS_HASH, NextLine};
use crate::claim::{SignedClaim, SignedHead};
use crate::head::HeadState;
use crate::key::PublicKey;
use crate::line_reader::LogLine;
use crate::part::LogPart;

/// The state of the verification of a part, up to its current line.
pub(super) struct ChainVerifier {
    part: LogPart,
    report: VerifyReport,
    key: PublicKey,
    head: HeadState,
    /// A line that was recorded elsewhere, and a line that the other part refers to.
    expected: [Option<CrossAnchor>; 2],
    /// The newest line of the other part that this part refers to.
    pub(super) other_anchor: Option<CrossAnchor>,
    /// Number of the first retained line, according to the log.
    oldest: u64,
    /// Number of the first existing line.
    first: Option<u64>,
    /// The last valid line of the chain.
    last: Option<ChainLink>,
    /// True if a server stopped with the last valid line.
    has_stopped: bool,
    /// Invalid lines after `last`.
    damaged: Option<DamagedLines>,
    /// Hash of the line that the head refers to, and hashes of the expected lines.
    at_head: Option<Digest>,
    at_expected: [Option<Digest>; 2],
    location: LineLocation,
}

impl ChainVerifier {
    pub(super) fn new(
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
        let location = (String::new(), 0);
        Self {
            part,
            report,
            key,
            head,
            expected,
            other_anchor: None,
            oldest: 1,
            first: None,
            last: None,
            has_stopped: false,
            damaged: None,
            at_head: None,
            at_expected: [None; 2],
            location,
        }
    }

    pub(super) fn check_line(&mut self, line: &LogLine) {
        self.report.lines += 1;
        self.location = (line.file.clone(), line.number);
        match chain::parse_line(&line.bytes) {
            Ok(parsed) => self.check_link(parsed),
            Err(why) => {
                let next = self.next_line();
                self.damaged
                    .get_or_insert_with(|| DamagedLines::new(next.can_begin_with(&line.bytes)))
                    .add(line, &self.location, why);
            }
        }
    }

    /// Returns what a server would write after the last valid line.
    fn next_line(&self) -> NextLine {
        let last = self.last.as_ref();
        NextLine {
            seq: last.map_or(1, |last| last.seq.saturating_add(1)),
            prev: last.map_or(NO_PREVIOUS_HASH, |last| last.hash),
            is_start: self.has_stopped,
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
                let description = format!(
                    "line {seq} follows line {}: it was inserted, repeated or moved",
                    last.seq
                );
                return self.report(description);
            }
            Some(last) => {
                let next = last.seq + 1 + skipped;
                if link.seq > next {
                    let what = format!("{} before this line", describe_missing(next, link.seq - 1));
                    self.report(what);
                } else if link.seq == last.seq + 1 && link.prev != last.hash {
                    let seq = link.seq;
                    let before = last.seq;
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
        // A server ends with a stop line and a checkpoint.
        let after_stop = self
            .last
            .as_ref()
            .is_some_and(|last| last.event == ChainEvent::Stop);
        self.has_stopped = after_stop && matches!(link.event, ChainEvent::Checkpoint(_));
        self.last = Some(link);
    }

    /// Reports the damaged lines before a line, unless the line itself states that they were torn.
    /// Returns how many of them were numbered lines.
    fn report_damage_before(&mut self, link: &ChainLink) -> u64 {
        let recorded = match &link.event {
            ChainEvent::Start { torn, .. } => torn.as_ref(),
            _ => None,
        };
        match (self.damaged.take(), recorded) {
            (None, None) => 0,
            (None, Some(_)) => {
                self.report("a torn line was here, and was removed".to_owned());
                0
            }
            (Some(damaged), Some(torn))
                if damaged.is_torn_line() && damaged.matches(torn.bytes, &torn.sha256) =>
            {
                let location = damaged.lines.into_iter().next().map(|(place, _)| place);
                let what = "is torn: the server was killed while it wrote this line".to_owned();
                self.report.add_notice(VerifyFinding {
                    location,
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
        if let Some(before) = self.other_anchor
            && (named.0 < before.0 || (named.0 == before.0 && named.1 != before.1))
        {
            let line = before.0;
            let noun = LogPart::Rejected.noun();
            self.report(format!(
                "{noun} had line {line} before this line, and was replaced since"
            ));
        }
        self.other_anchor = Some(named);
    }

    /// Checks the contents of a line that affect the chain.
    fn check_event(&mut self, link: &ChainLink) {
        match &link.event {
            ChainEvent::Start {
                missing,
                unsigned,
                defect: clause,
                key,
                ..
            } => {
                if *missing > 0 {
                    let verb = was_or_were(*missing);
                    let lines = format_lines(*missing);
                    self.report(format!(
                        "{lines} before this one {verb} signed, and {verb} missing when the server started"
                    ));
                }
                if let Some(wrong) = clause {
                    self.report(format!(
                        "when the server started, it found the log changed: {wrong}"
                    ));
                }
                if *unsigned > 0 {
                    let verb = was_or_were(*unsigned);
                    let lines = format_lines(*unsigned);
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
                    self.report("the signature does not match the lines before it".to_owned());
                }
            }
            ChainEvent::FileStart(oldest) => self.oldest = self.oldest.max(*oldest),
            ChainEvent::Lost(lines) => {
                self.report.lost = self.report.lost.saturating_add(*lines);
                let lines = format_lines(*lines);
                self.add_notice(format!("{lines} could not be written"));
            }
            ChainEvent::Stop | ChainEvent::Other => {}
        }
    }

    /// Checks the end of the part and the lines that must exist. Returns the report.
    pub(super) fn finish(mut self) -> VerifyReport {
        self.finish_damage();
        let last = self.last.take();
        let newest = last.as_ref().map_or(0, |last| last.seq);
        self.check_head(newest);
        let first = self.first.unwrap_or(1);
        if first > self.oldest {
            let description = format!(
                "{} at the beginning of {}",
                describe_missing(self.oldest, first - 1),
                self.part.noun()
            );
            self.report_at(None, description);
        }
        self.check_expected(first, newest);
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

    /// Reports the damaged lines at the end, unless the only one may still be written.
    fn finish_damage(&mut self) {
        if let Some(damaged) = self.damaged.take() {
            if damaged.is_torn_line() && !damaged.has_line_end {
                let place = damaged.lines.into_iter().next().map(|(place, _)| place);
                let what =
                    "is torn: the server was killed while it wrote this line, or is writing it"
                        .to_owned();
                self.report.add_notice(VerifyFinding {
                    location: place,
                    description: what,
                });
            } else {
                self.report_damage(damaged);
            }
        }
    }

    /// Checks the signed head.
    fn check_head(&mut self, newest: u64) {
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
    }

    /// Checks the line that was recorded elsewhere, and the line that the other part refers to.
    fn check_expected(&mut self, first: u64, newest: u64) {
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
                format!("line {seq} of {noun} does not match the hash in other lines of the log"),
            );
        }
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
        // The head of a log without lines names none.
        if head.seq > 0 && self.at_head != Some(head.hash) {
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

    fn report(&mut self, description: String) {
        self.report_at(Some(self.location.clone()), description);
    }

    fn report_at(&mut self, place: Option<LineLocation>, what: String) {
        self.report.add_finding(VerifyFinding {
            location: place,
            description: what,
        });
    }

    fn add_notice(&mut self, what: String) {
        self.report.add_notice(VerifyFinding {
            location: Some(self.location.clone()),
            description: what,
        });
    }
}
