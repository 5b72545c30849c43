//! The files of one part of the log and the hash chain through them. Continues where the previous
//! server stopped, appends lines, and starts a new file when a file is full.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::{Mode, OFlags, fstat};
use toolbay_model::Digest;

use crate::anchor::CrossAnchor;
use crate::chain::{self, ChainLink, MAX_LINE_BYTES, NO_PREVIOUS_HASH};
use crate::claim::{SignedClaim, SignedHead};
use crate::error::AuditError;
use crate::event::{AuditEvent, LogStart};
use crate::folder::{LogFolder, file_name, list_files};
use crate::head::{self, HeadFile, HeadState};
use crate::key::{LogKey, PublicKey};
use crate::line_reader::LineReader;
use crate::part::LogPart;
use crate::recovery::{RecoveryReport, TornBytes};

/// Number of bytes at the end of a file that are searched for its last line. A torn write is
/// shorter.
const LAST_LINE_SEARCH_BYTES: u64 = 8 << 20;

/// Number of buffered bytes after which the buffer is written.
const FLUSH_THRESHOLD_BYTES: usize = 1 << 20;

/// Space reserved in each file for the lines that end it, in bytes.
const FILE_RESERVE_BYTES: u64 = 2 << 10;

/// The resources that both parts of a log share.
#[derive(Debug)]
struct SharedLogFolder {
    folder: LogFolder,
    key: LogKey,
    /// The lock of the directory.
    _lock: File,
}

/// A part of the log, open for writing.
#[derive(Debug)]
pub(crate) struct PartWriter {
    place: Arc<SharedLogFolder>,
    part: LogPart,
    head: HeadFile,
    /// The newest line of the part with rejections, which lines of the main part refer to.
    rejected: Option<CrossAnchor>,
    /// Maximum size of a file, in bytes.
    max_file_bytes: u64,
    /// Maximum number of files that are retained.
    max_files: usize,
    /// Number of the first line that is retained.
    oldest: u64,
    file: File,
    /// The end of the chain in the file.
    written: ChainPosition,
    /// The end of the chain after `buffer` is written.
    ahead: ChainPosition,
    buffer: Vec<u8>,
    /// True if a write failed and its remains could not be removed.
    torn: bool,
}

/// The end of the chain.
#[derive(Clone, Copy, Debug)]
struct ChainPosition {
    /// Number of the next line.
    next_seq: u64,
    /// Hash of the last line.
    last_hash: Digest,
    /// Length of the file.
    length: u64,
    /// True if the last line is a checkpoint.
    is_signed: bool,
}

/// An event and the time at which it was recorded.
pub(crate) type TimedEvent = (SystemTime, AuditEvent);

impl PartWriter {
    /// Opens or creates both parts of the log in the directory `path`, and writes their start
    /// lines. `max_file_bytes` is the maximum size of a file, in bytes. `keep` is the number of
    /// retained files of each part, at least 2.
    pub(crate) fn open(path: &Path, size: u64, keep: [usize; 2]) -> Result<[Self; 2], AuditError> {
        let folder = LogFolder::open(path)?;
        let lock = folder.lock()?;
        let (main, rejected) = (
            first_lines(&folder, LogPart::Main)?,
            first_lines(&folder, LogPart::Rejected)?,
        );
        let key = LogKey::load_or_create(&folder, main.is_empty() && rejected.is_empty())?;
        let place = Arc::new(SharedLogFolder {
            folder,
            key,
            _lock: lock,
        });
        // Opens the part with rejections first, because the main part refers to its newest line.
        let alone = main.is_empty() && !rejected.is_empty();
        let rejected = Self::open_part(
            &place,
            LogPart::Rejected,
            &rejected,
            (size, keep[1]),
            None,
            false,
        )?;
        let main = Self::open_part(
            &place,
            LogPart::Main,
            &main,
            (size, keep[0]),
            Some(rejected.newest_line()),
            alone,
        )?;
        Ok([main, rejected])
    }

    /// Opens one part. `first` contains the first line numbers of its files. `alone` is true if the
    /// part has no files although the other part has some.
    fn open_part(
        place: &Arc<SharedLogFolder>,
        part: LogPart,
        first: &[u64],
        (size, keep): (u64, usize),
        rejected: Option<CrossAnchor>,
        alone: bool,
    ) -> Result<Self, AuditError> {
        let path = place.folder.path();
        let public = place.key.public_key();
        let end = PreviousEnd::find(path, part, first)?;
        let (mut recovery, oldest) = end.compare_with_head(path, part, &public)?;
        if alone && recovery.missing.is_none() {
            recovery.wrong = recovery.wrong.or(Some(
                "its files are missing, but those with rejections exist",
            ));
        }
        // Without a head, the expected lines are unknown.
        let oldest = oldest.or(first.first().copied()).unwrap_or(1);
        let start = first.last().copied().unwrap_or(1);
        let cannot = |error: io::Error| {
            AuditError::from_io("write", &path.join(file_name(part, start)), &error)
        };
        let file = open_for_append(&place.folder, part, start).map_err(cannot)?;
        let written = ChainPosition {
            next_seq: end.next_seq,
            last_hash: end.last_hash,
            length: end.length,
            is_signed: false,
        };
        let head = HeadFile::open(&place.folder, part).map_err(cannot)?;
        let mut journal = Self {
            place: Arc::clone(place),
            part,
            head,
            rejected,
            max_file_bytes: size,
            max_files: keep,
            oldest,
            file,
            written,
            ahead: written,
            buffer: Vec::new(),
            torn: false,
        };
        if end.is_torn {
            journal.buffer.push(b'\n');
            journal.ahead.length += 1;
        }
        let start = LogStart {
            version: env!("CARGO_PKG_VERSION"),
            key: public.to_string(),
            rejected,
            recovery,
        };
        journal.stage(SystemTime::now(), &AuditEvent::Start(Box::new(start)));
        let begun = journal
            .flush()
            .and_then(|()| journal.apply_retention())
            .and_then(|()| journal.write_head(false, true));
        begun.map_err(cannot)?;
        Ok(journal)
    }

    /// Returns the number and hash of the newest line that is written.
    pub(crate) fn newest_line(&self) -> CrossAnchor {
        (
            self.written.next_seq.saturating_sub(1),
            self.written.last_hash,
        )
    }

    /// Sets the newest line of the part with rejections.
    pub(crate) fn set_rejected_anchor(&mut self, rejected: CrossAnchor) {
        self.rejected = Some(rejected);
    }

    /// Appends records and signs the new end.
    ///
    /// On failure, returns the number of records that were not written, which are the last ones,
    /// and the error.
    pub(crate) fn append<'a>(
        &mut self,
        records: impl IntoIterator<Item = &'a TimedEvent, IntoIter: ExactSizeIterator>,
    ) -> Result<(), (usize, io::Error)> {
        let records = records.into_iter();
        let (mut written, mut staged, all) = (0, 0, records.len());
        for (time, event) in records {
            if !self.has_space_for(event) {
                // After rotation, the buffer is empty.
                let full = self
                    .flush()
                    .map(|()| written += staged)
                    .and_then(|()| self.rotate());
                full.map_err(|error| (all - written, error))?;
                staged = 0;
            }
            self.stage(*time, event);
            staged += 1;
            if self.buffer.len() >= FLUSH_THRESHOLD_BYTES {
                self.flush().map_err(|error| (all - written, error))?;
                written += staged;
                staged = 0;
            }
        }
        self.flush().map_err(|error| (all - written, error))?;
        // The lines are written. Without a new head, they are only not signed yet.
        if let Err(error) = self.write_head(false, false) {
            tracing::debug!("the head of the audit log cannot be written: {error}");
        }
        Ok(())
    }

    /// Signs all lines with a checkpoint in the log, and waits until they are on the disk. Does
    /// nothing if no lines were added.
    pub(crate) fn checkpoint(&mut self) -> io::Result<()> {
        if !self.written.is_signed {
            self.add_checkpoint()?;
            self.write_head(false, true)?;
        }
        Ok(())
    }

    /// Ends the log with a stop line and a signature.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.stage(SystemTime::now(), &AuditEvent::Stop {});
        self.add_checkpoint()?;
        self.write_head(true, true)
    }

    fn add_checkpoint(&mut self) -> io::Result<()> {
        let signature = self.place.key.sign(
            self.part,
            SignedClaim::Checkpoint(self.ahead.next_seq, self.ahead.last_hash),
        );
        self.stage(
            SystemTime::now(),
            &AuditEvent::Checkpoint {
                signature,
                rejected: self.rejected,
            },
        );
        self.flush()
    }

    /// Returns whether the file has space for an event.
    fn has_space_for(&self, event: &AuditEvent) -> bool {
        // JSON escaping can double the size of strings.
        self.ahead.length + u64::from(event.max_bytes()) * 2 + FILE_RESERVE_BYTES
            <= self.max_file_bytes
    }

    /// Appends a line to the buffer.
    fn stage(&mut self, time: SystemTime, event: &AuditEvent) {
        let (line, hash) =
            chain::serialize_line(self.ahead.next_seq, time, event, self.ahead.last_hash);
        self.buffer.extend_from_slice(&line);
        self.ahead = ChainPosition {
            next_seq: self.ahead.next_seq + 1,
            last_hash: hash,
            length: self.ahead.length + line.len() as u64,
            is_signed: matches!(event, AuditEvent::Checkpoint { .. }),
        };
    }

    /// Writes the whole buffer, or nothing.
    fn flush(&mut self) -> io::Result<()> {
        let written = self
            .repair()
            .and_then(|()| self.file.write_all(&self.buffer));
        self.buffer.clear();
        self.buffer.shrink_to(FLUSH_THRESHOLD_BYTES);
        match written {
            Ok(()) => {
                self.written = self.ahead;
                Ok(())
            }
            Err(error) => {
                self.ahead = self.written;
                self.torn = true;
                drop(self.repair());
                Err(error)
            }
        }
    }

    /// Removes the remains of a failed write.
    fn repair(&mut self) -> io::Result<()> {
        if self.torn {
            self.file.set_len(self.written.length)?;
            self.torn = false;
        }
        Ok(())
    }

    /// Ends the current file with a signature, starts a new file, and deletes the oldest ones.
    fn rotate(&mut self) -> io::Result<()> {
        if !self.written.is_signed {
            self.add_checkpoint()?;
        }
        self.file.sync_data()?;
        let file = open_for_append(&self.place.folder, self.part, self.written.next_seq)?;
        let old = (
            std::mem::replace(&mut self.file, file),
            self.written,
            self.oldest,
        );
        let first = self.written.next_seq;
        self.written.length = 0;
        self.ahead = self.written;
        self.apply_retention().inspect_err(|_| {
            // The old file stays in use until another one can begin. The new one may already have a
            // line: its number is used again in the old file.
            (self.file, self.written, self.oldest) = old;
            self.ahead = self.written;
            drop(self.place.folder.remove_file(self.part, first));
        })
    }

    /// Records the first retained line if the file is new, and deletes the files before that line.
    fn apply_retention(&mut self) -> io::Result<()> {
        let mut first = list_files(self.place.folder.path(), self.part)?;
        let excess = first.len().saturating_sub(self.max_files);
        let kept = if excess > 0 {
            first.get(excess).copied()
        } else {
            None
        };
        let oldest = kept.unwrap_or_default().max(self.oldest);
        if self.written.length == 0 || excess > 0 {
            self.stage(
                SystemTime::now(),
                &AuditEvent::Rotate {
                    oldest,
                    rejected: self.rejected,
                },
            );
            self.flush()?;
            self.oldest = oldest;
            // Update the head before deleting a file. Any other missing file was deleted by someone
            // else.
            self.write_head(false, true)?;
        }
        for first in first.drain(..excess) {
            // A file that cannot be deleted now is deleted when the next file starts.
            if let Err(error) = self.place.folder.remove_file(self.part, first) {
                tracing::warn!(
                    "cannot delete {} of the audit log: {error}",
                    file_name(self.part, first)
                );
            }
        }
        Ok(())
    }

    /// Signs the newest line in the head. If `sync` is set, waits until the line and the head are
    /// on the disk.
    fn write_head(&mut self, ended: bool, sync: bool) -> io::Result<()> {
        if sync {
            self.file.sync_data()?;
        }
        let head = SignedHead {
            seq: self.written.next_seq.saturating_sub(1),
            hash: self.written.last_hash,
            oldest: self.oldest,
            ended,
        };
        self.head.write(head, &self.place.key)?;
        if sync {
            self.head.sync()?;
        }
        Ok(())
    }

    /// Starts a new file if the current one was deleted.
    pub(crate) fn replace_if_deleted(&mut self) -> io::Result<()> {
        if fstat(&self.file)?.st_nlink > 0 {
            return Ok(());
        }
        tracing::error!(
            "the file of the audit log was deleted while the server was writing to it; a new one follows"
        );
        self.file = open_for_append(&self.place.folder, self.part, self.written.next_seq)?;
        self.written.length = 0;
        self.ahead = self.written;
        self.torn = false;
        self.apply_retention()
    }

    /// Replaces the file that is written to.
    #[cfg(test)]
    fn redirect(&mut self, file: File) -> File {
        std::mem::replace(&mut self.file, file)
    }
}

/// Returns the numbers of the first lines of the files of a part. Removes a trailing empty file of
/// a server that was killed before it wrote to it.
fn first_lines(folder: &LogFolder, part: LogPart) -> Result<Vec<u64>, AuditError> {
    let path = folder.path();
    let cannot = |error: io::Error| AuditError::from_io("read", path, &error);
    let mut first = list_files(path, part).map_err(cannot)?;
    while let Some(last) = first.last().copied()
        && std::fs::metadata(path.join(file_name(part, last))).is_ok_and(|found| found.len() == 0)
    {
        folder.remove_file(part, last).map_err(cannot)?;
        first.pop();
    }
    Ok(first)
}

/// Opens the file that begins with the line `first` for appending.
fn open_for_append(folder: &LogFolder, part: LogPart, first: u64) -> io::Result<File> {
    folder.create(
        &file_name(part, first),
        OFlags::APPEND,
        Mode::RUSR | Mode::WUSR,
    )
}

/// The end of a log that another server wrote.
struct PreviousEnd {
    next_seq: u64,
    last_hash: Digest,
    /// Length of the last file.
    length: u64,
    /// True if the last file does not end with a line end.
    is_torn: bool,
    torn: Option<TornBytes>,
}

impl PreviousEnd {
    /// Finds the end of a part of the log in `folder`. `first` contains the first line numbers of
    /// its files.
    fn find(folder: &Path, part: LogPart, first: &[u64]) -> Result<Self, AuditError> {
        let mut end = Self {
            next_seq: 1,
            last_hash: NO_PREVIOUS_HASH,
            length: 0,
            is_torn: false,
            torn: None,
        };
        for (back, first) in first.iter().rev().enumerate() {
            let path = folder.join(file_name(part, *first));
            let cannot = |error: io::Error| AuditError::from_io("read", &path, &error);
            let mut file = File::open(&path).map_err(cannot)?;
            let length = file.metadata().map_err(cannot)?.len();
            let from = length.saturating_sub(LAST_LINE_SEARCH_BYTES);
            file.seek(SeekFrom::Start(from)).map_err(cannot)?;
            let mut tail = Vec::new();
            file.take(LAST_LINE_SEARCH_BYTES)
                .read_to_end(&mut tail)
                .map_err(cannot)?;
            let (link, rest) = find_last_line(&tail);
            if back == 0 {
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
            if from > 0 || back > 0 {
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
    fn compare_with_head(
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
        let found = head::read_head(folder, part, key)
            .map_err(|error| AuditError::from_io("read", folder, &error))?;
        let head = match found {
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
        let hash = if head.seq == last {
            Some(self.last_hash)
        } else {
            line_hash(folder, part, head.seq)?
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
fn find_last_line(tail: &[u8]) -> (Option<ChainLink>, &[u8]) {
    let mut end = tail.len();
    // The last line may be complete except for its line end.
    let after = tail
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |last| last + 1);
    if let Ok(link) = tail.get(after..).map_or(Err(""), chain::parse_line) {
        return (Some(link), &[]);
    }
    // Search backward. Each iteration checks the line that ends at `end`.
    while let Some(stop) = tail
        .get(..end)
        .and_then(|text| text.iter().rposition(|byte| *byte == b'\n'))
    {
        let start = tail
            .get(..stop)
            .and_then(|text| text.iter().rposition(|byte| *byte == b'\n'));
        let line = tail
            .get(start.map_or(0, |start| start + 1)..stop)
            .unwrap_or_default();
        if let Ok(link) = chain::parse_line(line) {
            return (Some(link), tail.get(stop + 1..).unwrap_or_default());
        }
        end = stop;
    }
    (None, tail)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::event::PluginRecord;
    use crate::verify::{VerifyReport, verify};

    /// Creates an event with this text.
    pub(crate) fn record(what: impl Into<String>) -> TimedEvent {
        let plugin = PluginRecord {
            plugin: "p".into(),
            ..PluginRecord::default()
        };
        (
            SystemTime::now(),
            AuditEvent::Refused {
                plugin,
                reason: what.into(),
            },
        )
    }

    /// Opens a log with small files.
    pub(crate) fn open_both(path: &Path) -> [PartWriter; 2] {
        PartWriter::open(path, 16 << 10, [3, 3]).unwrap()
    }

    /// Opens the main part of a log with small files. Ends the other part; the lock is held by the
    /// main part.
    pub(crate) fn open(path: &Path) -> PartWriter {
        let [main, mut rejected] = open_both(path);
        rejected.end().unwrap();
        main
    }

    /// Verifies an intact log and returns the report.
    fn intact(path: &Path) -> VerifyReport {
        let report = verify(path, None, None).unwrap();
        assert_eq!(report.findings, [], "{report:?}");
        report
    }

    fn notices(report: &VerifyReport) -> Vec<String> {
        report.notices.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_chain_goes_on_over_servers_and_files() {
        let dir = tempfile::tempdir().unwrap();
        let mut lines = 0;
        for _ in 0..3 {
            let mut journal = open(dir.path());
            for n in 0..40 {
                journal
                    .append(&[record(format!("{n}")), record("x".repeat(100))])
                    .unwrap();
                lines += 2;
            }
            journal.checkpoint().unwrap();
            journal.checkpoint().unwrap();
            journal.end().unwrap();
        }
        let report = intact(dir.path());
        // The file lines of the main part and the one of the other part.
        assert_eq!((report.files, notices(&report)), (3 + 1, vec![]));
        // Three starts and stops, checkpoints, and the first and last lines of files.
        let (newest, _) = report.newest.unwrap();
        assert!(
            newest > lines + 3 * 3 && report.lines < newest,
            "{report:?}"
        );
        for file in list_files(dir.path(), LogPart::Main).unwrap() {
            assert!(
                dir.path()
                    .join(file_name(LogPart::Main, file))
                    .metadata()
                    .unwrap()
                    .len()
                    <= 16 << 10
            );
        }
    }

    #[test]
    fn a_server_that_is_killed_leaves_a_log_that_another_one_continues() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = open(dir.path());
        journal.append(&[record("one")]).unwrap();
        // Written but not signed.
        journal.stage(SystemTime::now(), &record("two").1);
        journal.flush().unwrap();
        // An incomplete line.
        journal.file.write_all(b"{\"seq\":4,\"ti").unwrap();
        drop(journal);
        let file = file_name(LogPart::Main, 1);
        let report = intact(dir.path());
        let torn = format!(
            "{file}:4: is torn: the server was killed while it wrote this line, or is writing it"
        );
        assert_eq!(
            notices(&report),
            [torn, "the last 1 line is not signed yet".to_owned()]
        );
        open(dir.path()).end().unwrap();
        let report = intact(dir.path());
        let told = [
            format!("{file}:4: is torn: the server was killed while it wrote this line"),
            format!("{file}:5: 1 line before this one was not signed: the server was killed"),
        ];
        assert_eq!(notices(&report), told);
        assert_eq!(
            report.newest.unwrap().0,
            6,
            "two lines, the start before and after, the end and its signature"
        );
    }

    #[test]
    fn a_line_without_its_end_counts() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = open(dir.path());
        journal.append(&[record("one")]).unwrap();
        let length = journal.written.length;
        journal.file.set_len(length - 1).unwrap();
        drop(journal);
        assert_eq!(notices(&intact(dir.path())), [""; 0]);
        open(dir.path()).end().unwrap();
        assert_eq!(notices(&intact(dir.path())), [""; 0]);
    }

    #[test]
    fn a_full_disk_leaves_no_part_of_a_line_and_the_chain_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = open(dir.path());
        journal.append(&[record("one")]).unwrap();
        let good = journal.redirect(File::options().write(true).open("/dev/full").unwrap());
        for _ in 0..3 {
            let (count, error) = journal
                .append(&[record("two"), record("three")])
                .unwrap_err();
            assert_eq!(count, 2, "{error}");
        }
        journal.redirect(good);
        // As if a part of the line had been written.
        (&journal.file).write_all(b"{\"seq\":3,").unwrap();
        journal.append(&[record("four")]).unwrap();
        journal.end().unwrap();
        assert_eq!(intact(dir.path()).newest.unwrap().0, 5);
    }

    #[test]
    fn a_new_file_that_cannot_be_signed_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = open(dir.path());
        journal.append(&[record("one")]).unwrap();
        let good = journal.head.redirect(File::open("/dev/null").unwrap());
        for _ in 0..3 {
            journal.rotate().unwrap_err();
            assert_eq!(list_files(dir.path(), LogPart::Main).unwrap(), [1]);
        }
        journal.head.redirect(good);
        journal.append(&[record("two")]).unwrap();
        journal.rotate().unwrap();
        journal.append(&[record("three")]).unwrap();
        journal.end().unwrap();
        assert_eq!(notices(&intact(dir.path())), [""; 0]);
    }

    #[test]
    fn a_file_that_is_deleted_while_it_is_written_to_is_missed() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = open(dir.path());
        journal.append(&[record("one")]).unwrap();
        journal.replace_if_deleted().unwrap();
        std::fs::remove_file(dir.path().join(file_name(LogPart::Main, 1))).unwrap();
        journal.replace_if_deleted().unwrap();
        journal.append(&[record("two")]).unwrap();
        journal.end().unwrap();
        let report = verify(dir.path(), None, None).unwrap();
        let found: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            ["lines 1 to 2 are missing at the beginning of the log"]
        );
    }

    #[test]
    fn a_log_that_was_changed_before_a_start_stays_changed() {
        type Change = fn(&Path);
        let log = |dir: &Path| dir.join(file_name(LogPart::Main, 1));
        let changes: [(Change, &str); 5] = [
            (
                |dir| {
                    let text =
                        std::fs::read_to_string(dir.join(file_name(LogPart::Main, 1))).unwrap();
                    let cut: Vec<&str> = text.lines().take(3).collect();
                    std::fs::write(dir.join(file_name(LogPart::Main, 1)), cut.join("\n") + "\n")
                        .unwrap();
                },
                ":4: 3 lines before this one were signed, and were gone when the server started",
            ),
            (
                |dir| std::fs::remove_file(dir.join("head")).unwrap(),
                ":7: when the server started, it found the log changed: its head is missing",
            ),
            (
                |dir| std::fs::write(dir.join("head"), "{}").unwrap(),
                ":7: when the server started, it found the log changed: the signature of its head does not match its key",
            ),
            (
                |dir| {
                    let text = std::fs::read(dir.join(file_name(LogPart::Main, 1))).unwrap();
                    let last = find_last_line(&text).0.unwrap();
                    let (line, _) = chain::serialize_line(
                        last.seq + 1,
                        SystemTime::now(),
                        &record("forged").1,
                        last.hash,
                    );
                    std::fs::write(dir.join(file_name(LogPart::Main, 1)), [text, line].concat())
                        .unwrap();
                },
                ":8: when the server started, it found the log changed: lines were added after the server had ended",
            ),
            (
                |dir| {
                    let text =
                        std::fs::read_to_string(dir.join(file_name(LogPart::Main, 1))).unwrap();
                    let kept: Vec<&str> = text.lines().take(5).collect();
                    let before = chain::parse_line(kept[4].as_bytes()).unwrap();
                    let (line, _) = chain::serialize_line(
                        6,
                        SystemTime::now(),
                        &record("forged").1,
                        before.hash,
                    );
                    let line = String::from_utf8(line).unwrap();
                    std::fs::write(
                        dir.join(file_name(LogPart::Main, 1)),
                        kept.join("\n") + "\n" + &line,
                    )
                    .unwrap();
                },
                ":7: when the server started, it found the log changed: the newest signed line was replaced",
            ),
        ];
        for (change, said) in changes {
            let dir = tempfile::tempdir().unwrap();
            let mut journal = open(dir.path());
            journal
                .append(&[record("one"), record("two"), record("three")])
                .unwrap();
            journal.end().unwrap();
            drop(journal);
            change(dir.path());
            assert!(
                !verify(dir.path(), None, None).unwrap().is_intact(),
                "{said}"
            );
            open(dir.path()).end().unwrap();
            let report = verify(dir.path(), None, None).unwrap();
            let found: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
            assert_eq!(found, [format!("{}{said}", file_name(LogPart::Main, 1))]);
            assert!(log(dir.path()).exists());
        }
    }

    #[test]
    fn a_log_of_something_else_is_not_continued() {
        let dir = tempfile::tempdir().unwrap();
        open(dir.path()).end().unwrap();
        std::fs::write(
            dir.path().join(file_name(LogPart::Main, 9)),
            "what is this?\n".repeat(9),
        )
        .unwrap();
        std::fs::write(
            dir.path().join(file_name(LogPart::Main, 10)),
            "what is this?\n".repeat(9),
        )
        .unwrap();
        let error = PartWriter::open(dir.path(), 1 << 20, [2, 2])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("cannot be continued after its last line"),
            "{error}"
        );
    }
}
