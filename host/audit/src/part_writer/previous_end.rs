//! The end of a part of the log as the previous server left it: its last valid line, and how it
//! differs from the signed head.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use toolbay_model::Digest;

use crate::chain::{self, ChainLink, MAX_LINE_BYTES, NO_PREVIOUS_HASH};
use crate::error::AuditError;
use crate::folder::{file_name, open_to_read};
use crate::head::{self, HeadState};
use crate::key::PublicKey;
use crate::line_reader::LineReader;
use crate::part::LogPart;
use crate::recovery::{RecoveryReport, TornBytes};

/// Number of bytes at the end of a file that are searched for its last line. A torn write is
/// shorter.
const LAST_LINE_SEARCH_BYTES: u64 = 8 << 20;

/// The end of a log that another server wrote.
pub(super) struct PreviousEnd {
    pub(super) next_seq: u64,
    pub(super) last_hash: Digest,
    /// Length of the last file.
    pub(super) length: u64,
    /// True if the last byte of the last file is not a line end.
    pub(super) is_torn: bool,
    /// The bytes after the last valid line of the last file, if there are any.
    torn: Option<TornBytes>,
}

impl PreviousEnd {
    /// Finds the end of a part of the log in `folder`. `first` contains the first line numbers of
    /// its files.
    pub(super) fn find(folder: &Path, part: LogPart, first: &[u64]) -> Result<Self, AuditError> {
        let mut end = Self {
            next_seq: 1,
            last_hash: NO_PREVIOUS_HASH,
            length: 0,
            is_torn: false,
            torn: None,
        };
        for (index, first) in first.iter().rev().enumerate() {
            let path = folder.join(file_name(part, *first));
            let read_error = |error: io::Error| AuditError::from_io("read", &path, &error);
            let mut file = open_to_read(&path).map_err(read_error)?;
            let length = file.metadata().map_err(read_error)?.len();
            let search_start = length.saturating_sub(LAST_LINE_SEARCH_BYTES);
            file.seek(SeekFrom::Start(search_start))
                .map_err(read_error)?;
            let mut tail = Vec::new();
            file.take(LAST_LINE_SEARCH_BYTES)
                .read_to_end(&mut tail)
                .map_err(read_error)?;
            let (link, rest) = find_last_line(&tail);
            if index == 0 {
                end.length = length;
                end.is_torn = tail.last().is_some_and(|last| *last != b'\n');
                let torn = rest.strip_suffix(b"\n").unwrap_or(rest);
                let sha256 = chain::hash(torn).to_string();
                end.torn = (!rest.is_empty()).then_some(TornBytes {
                    bytes: torn.len() as u64,
                    sha256,
                });
            }
            if let Some(link) = link {
                (end.next_seq, end.last_hash) = (link.seq.saturating_add(1), link.hash);
                return Ok(end);
            }
            if search_start > 0 || index > 0 {
                break;
            }
        }
        if first.is_empty() || (first == [1] && end.length < MAX_LINE_BYTES as u64) {
            return Ok(end);
        }
        Err(AuditError(format!(
            "the audit log in {} cannot be continued after its last line; `toolbay audit verify` shows the reason; \
             move its files to another folder to begin a new one",
            folder.display()
        )))
    }

    /// Compares the end with the signed head. Returns the differences, and the first retained line
    /// if a signed head states it.
    pub(super) fn compare_with_head(
        &self,
        folder: &Path,
        part: LogPart,
        key: &PublicKey,
    ) -> Result<(RecoveryReport, Option<u64>), AuditError> {
        let mut recovery = RecoveryReport {
            torn: self.torn.clone(),
            ..RecoveryReport::default()
        };
        let last = self.next_seq.saturating_sub(1);
        let head_state = head::read_head(folder, part, key)
            .map_err(|error| AuditError::from_io("read", folder, &error))?;
        let head = match head_state {
            HeadState::Signed(head) => head,
            HeadState::Forged => {
                recovery.wrong = Some("the signature of its head does not match its key");
                return Ok((recovery, None));
            }
            HeadState::Missing => {
                recovery.wrong = (last > 0).then_some("its head is missing");
                return Ok((recovery, None));
            }
        };
        if head.seq > last {
            recovery.missing = Some(head.seq - last);
            return Ok((recovery, Some(head.oldest)));
        }
        let hash = match head.seq {
            seq if seq == last => Some(self.last_hash),
            // The first server was killed before it signed a line.
            0 => Some(NO_PREVIOUS_HASH),
            seq => line_hash(folder, part, seq)?,
        };
        if hash != Some(head.hash) {
            recovery.wrong = Some("the newest signed line was replaced");
        } else if head.seq < last && head.ended {
            recovery.wrong = Some("lines were added after the server had ended");
        }
        recovery.unsigned = Some(last - head.seq).filter(|unsigned| *unsigned > 0);
        Ok((recovery, Some(head.oldest)))
    }
}

/// Returns the hash of the line `seq`.
fn line_hash(folder: &Path, part: LogPart, seq: u64) -> Result<Option<Digest>, AuditError> {
    for line in LineReader::open_at(folder, part, seq)? {
        match chain::parse_line(&line?.bytes) {
            Ok(link) if link.seq == seq => return Ok(Some(link.hash)),
            _ => {}
        }
    }
    Ok(None)
}

/// Returns the last valid line and the bytes after it.
pub(super) fn find_last_line(tail: &[u8]) -> (Option<ChainLink>, &[u8]) {
    let mut end = tail.len();
    // The last line may be complete except for its line end.
    let last_line_start = tail
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |last| last + 1);
    if let Ok(link) = tail
        .get(last_line_start..)
        .map_or(Err(""), chain::parse_line)
    {
        return (Some(link), &[]);
    }
    // Search backward. Each iteration checks the line that ends at `end`.
    while let Some(line_end) = tail
        .get(..end)
        .and_then(|text| text.iter().rposition(|byte| *byte == b'\n'))
    {
        let start = tail
            .get(..line_end)
            .and_then(|text| text.iter().rposition(|byte| *byte == b'\n'));
        let line = tail
            .get(start.map_or(0, |start| start + 1)..line_end)
            .unwrap_or_default();
        if let Ok(link) = chain::parse_line(line) {
            return (Some(link), tail.get(line_end + 1..).unwrap_or_default());
        }
        end = line_end;
    }
    (None, tail)
}
