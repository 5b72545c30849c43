//! The files of the log, and the chain that goes through them: opened where the last server ended, appended to, begun anew
//! when one is full.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::{Mode, OFlags, fstat};
use toolbay_model::Digest;

use crate::anchor::CrossAnchor;
use crate::chain::{self, ChainLink, LONGEST, NOTHING};
use crate::claim::{SignedClaim, SignedHead};
use crate::error::AuditError;
use crate::event::{AuditEvent, LogStart};
use crate::folder::{LogFolder, files, name};
use crate::head::{self, HeadFile, HeadState};
use crate::key::{LogKey, PublicKey};
use crate::lines::LineReader;
use crate::part::LogPart;
use crate::recovery::{RecoveryReport, TornBytes};

/// How much of a file's end is read to find its last line, in bytes. What a write can have torn is shorter.
const TAIL: u64 = 8 << 20;

/// Bytes that are written at once.
const AT_ONCE: usize = 1 << 20;

/// Room in each file for the lines that end it, in bytes.
const RESERVE: u64 = 2 << 10;

/// What both parts of a log have in common.
#[derive(Debug)]
struct LogLocation {
    folder: LogFolder,
    key: LogKey,
    /// Locks the folder.
    _lock: File,
}

/// A part of the log, open for writing.
#[derive(Debug)]
pub(crate) struct PartWriter {
    place: Arc<LogLocation>,
    part: LogPart,
    head: HeadFile,
    /// The newest line of the part with rejections, which lines of the main part name.
    rejected: Option<CrossAnchor>,
    /// Largest size of a file, in bytes.
    size: u64,
    /// Most files that are kept.
    keep: usize,
    /// Number of the first line that is kept.
    oldest: u64,
    file: File,
    /// What is in the file.
    written: ChainPosition,
    /// What will be when `buffer` is written.
    ahead: ChainPosition,
    buffer: Vec<u8>,
    /// A write failed, and what it left could not be removed.
    torn: bool,
}

/// Where the chain ends.
#[derive(Clone, Copy, Debug)]
struct ChainPosition {
    /// Number of the next line.
    next: u64,
    /// Hash of the last line.
    last: Digest,
    /// Length of the file.
    length: u64,
    /// Whether the last line is a checkpoint.
    signed: bool,
}

/// A record and the time at which it was made.
pub(crate) type TimedEvent = (SystemTime, AuditEvent);

impl PartWriter {
    /// Opens both parts of the log in the folder `path`, or begins them. Writes the lines that say so. `size` is the largest size
    /// of a file, and `keep` the number of files of each part, at least 2.
    pub(crate) fn open(path: &Path, size: u64, keep: [usize; 2]) -> Result<[Self; 2], AuditError> {
        let folder = LogFolder::open(path)?;
        let lock = folder.lock()?;
        let (main, rejected) = (beginnings(&folder, LogPart::Main)?, beginnings(&folder, LogPart::Rejected)?);
        let key = LogKey::of(&folder, main.is_empty() && rejected.is_empty())?;
        let place = Arc::new(LogLocation { folder, key, _lock: lock });
        // The other part always comes first: what the main one says of it is there.
        let alone = main.is_empty() && !rejected.is_empty();
        let rejected = Self::of(&place, LogPart::Rejected, &rejected, (size, keep[1]), None, false)?;
        let main = Self::of(&place, LogPart::Main, &main, (size, keep[0]), Some(rejected.end_of()), alone)?;
        Ok([main, rejected])
    }

    /// Opens one part, whose files begin with these lines. `alone` says that they are missing although the other part has some.
    fn of(
        place: &Arc<LogLocation>,
        part: LogPart,
        first: &[u64],
        (size, keep): (u64, usize),
        rejected: Option<CrossAnchor>,
        alone: bool,
    ) -> Result<Self, AuditError> {
        let path = place.folder.path();
        let public = place.key.public();
        let end = PreviousEnd::of(path, part, first)?;
        let (mut recovery, oldest) = end.compare(path, part, &public)?;
        if alone && recovery.missing.is_none() {
            recovery.wrong = recovery.wrong.or(Some("its files are missing, and those with rejections are there"));
        }
        // Without a head, nobody knows which lines should be there.
        let oldest = oldest.or(first.first().copied()).unwrap_or(1);
        let start = first.last().copied().unwrap_or(1);
        let cannot = |error: io::Error| AuditError::file("write", &path.join(name(part, start)), &error);
        let file = create(&place.folder, part, start).map_err(cannot)?;
        let written = ChainPosition { next: end.next, last: end.last, length: end.length, signed: false };
        let head = HeadFile::open(&place.folder, part).map_err(cannot)?;
        let mut journal = Self {
            place: Arc::clone(place),
            part,
            head,
            rejected,
            size,
            keep,
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
        let start = LogStart { version: env!("CARGO_PKG_VERSION"), key: public.to_string(), rejected, recovery };
        journal.stage(SystemTime::now(), &AuditEvent::Start(Box::new(start)));
        let begun = journal.flush().and_then(|()| journal.keep()).and_then(|()| journal.sign(false, true));
        begun.map_err(cannot)?;
        Ok(journal)
    }

    /// Number and hash of the newest line that is written.
    pub(crate) fn end_of(&self) -> CrossAnchor {
        (self.written.next.saturating_sub(1), self.written.last)
    }

    /// Says what the newest line of the part with rejections is.
    pub(crate) fn anchor(&mut self, rejected: CrossAnchor) {
        self.rejected = Some(rejected);
    }

    /// Appends records, and signs the end. Returns how many of them are not in the file, which are the last ones, and why.
    pub(crate) fn append<'a>(
        &mut self,
        records: impl IntoIterator<Item = &'a TimedEvent, IntoIter: ExactSizeIterator>,
    ) -> Result<(), (usize, io::Error)> {
        let records = records.into_iter();
        let (mut written, mut staged, all) = (0, 0, records.len());
        for (time, event) in records {
            if !self.fits(event) {
                // A file that is full has nothing in the buffer once this is done.
                let full = self.flush().map(|()| written += staged).and_then(|()| self.rotate());
                full.map_err(|error| (all - written, error))?;
                staged = 0;
            }
            self.stage(*time, event);
            staged += 1;
            if self.buffer.len() >= AT_ONCE {
                self.flush().map_err(|error| (all - written, error))?;
                written += staged;
                staged = 0;
            }
        }
        self.flush().map_err(|error| (all - written, error))?;
        // The lines are there. Without the newest head, they are only not signed yet.
        if let Err(error) = self.sign(false, false) {
            tracing::debug!("the head of the audit log cannot be written: {error}");
        }
        Ok(())
    }

    /// Signs everything so far within the log, and waits until it is on the disk. Does nothing if nothing was added.
    pub(crate) fn checkpoint(&mut self) -> io::Result<()> {
        if !self.written.signed {
            self.add_checkpoint()?;
            self.sign(false, true)?;
        }
        Ok(())
    }

    /// Ends the log: its last lines are that and a signature.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.stage(SystemTime::now(), &AuditEvent::Stop {});
        self.add_checkpoint()?;
        self.sign(true, true)
    }

    fn add_checkpoint(&mut self) -> io::Result<()> {
        let signature = self.place.key.sign(self.part, SignedClaim::Checkpoint(self.ahead.next, self.ahead.last));
        self.stage(SystemTime::now(), &AuditEvent::Checkpoint { signature, rejected: self.rejected });
        self.flush()
    }

    /// Whether a record has room in the file.
    fn fits(&self, event: &AuditEvent) -> bool {
        // The strings of a record can double in JSON.
        self.ahead.length + u64::from(event.weight()) * 2 + RESERVE <= self.size
    }

    /// Puts a line into the buffer.
    fn stage(&mut self, time: SystemTime, event: &AuditEvent) {
        let (line, hash) = chain::write(self.ahead.next, time, event, self.ahead.last);
        self.buffer.extend_from_slice(&line);
        self.ahead = ChainPosition {
            next: self.ahead.next + 1,
            last: hash,
            length: self.ahead.length + line.len() as u64,
            signed: matches!(event, AuditEvent::Checkpoint { .. }),
        };
    }

    /// Writes what is in the buffer: all of it, or nothing.
    fn flush(&mut self) -> io::Result<()> {
        let written = self.repair().and_then(|()| self.file.write_all(&self.buffer));
        self.buffer.clear();
        self.buffer.shrink_to(AT_ONCE);
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

    /// Removes what a failed write left.
    fn repair(&mut self) -> io::Result<()> {
        if self.torn {
            self.file.set_len(self.written.length)?;
            self.torn = false;
        }
        Ok(())
    }

    /// Begins a new file, and deletes the oldest ones. The old one ends with a signature.
    fn rotate(&mut self) -> io::Result<()> {
        if !self.written.signed {
            self.add_checkpoint()?;
        }
        self.file.sync_data()?;
        let file = create(&self.place.folder, self.part, self.written.next)?;
        let old = (std::mem::replace(&mut self.file, file), self.written);
        self.written.length = 0;
        self.ahead = self.written;
        self.keep().inspect_err(|_| {
            // The old file goes on until there is room for another.
            let first = self.written.next;
            (self.file, self.written) = old;
            self.ahead = self.written;
            drop(self.place.folder.remove(self.part, first));
        })
    }

    /// Says which lines are kept, if the file is new, and deletes the files with the others.
    fn keep(&mut self) -> io::Result<()> {
        let mut first = files(self.place.folder.path(), self.part)?;
        let excess = first.len().saturating_sub(self.keep);
        let kept = if excess > 0 { first.get(excess).copied() } else { None };
        let oldest = kept.unwrap_or_default().max(self.oldest);
        if self.written.length == 0 || excess > 0 {
            self.stage(SystemTime::now(), &AuditEvent::File { oldest, rejected: self.rejected });
            self.flush()?;
            self.oldest = oldest;
            // Before a file is deleted, the head says so: a file that is missing otherwise was deleted by somebody else.
            self.sign(false, true)?;
        }
        for first in first.drain(..excess) {
            // A file that could not be deleted now is one of too many again when the next one begins.
            if let Err(error) = self.place.folder.remove(self.part, first) {
                tracing::warn!("cannot delete {} of the audit log: {error}", name(self.part, first));
            }
        }
        Ok(())
    }

    /// Signs the newest line in the head. With `sync`, waits until line and head are on the disk.
    fn sign(&mut self, ended: bool, sync: bool) -> io::Result<()> {
        if sync {
            self.file.sync_data()?;
        }
        let head = SignedHead {
            seq: self.written.next.saturating_sub(1),
            hash: self.written.last,
            oldest: self.oldest,
            ended,
        };
        self.head.write(head, &self.place.key)?;
        if sync {
            self.head.sync()?;
        }
        Ok(())
    }

    /// Begins a new file if somebody deleted the one that is written to.
    pub(crate) fn replace_if_deleted(&mut self) -> io::Result<()> {
        if fstat(&self.file)?.st_nlink > 0 {
            return Ok(());
        }
        tracing::error!("the file of the audit log was deleted while the server was writing to it; a new one follows");
        self.file = create(&self.place.folder, self.part, self.written.next)?;
        self.written.length = 0;
        self.ahead = self.written;
        self.torn = false;
        self.keep()
    }

    /// Writes to this file instead.
    #[cfg(test)]
    fn redirect(&mut self, file: File) -> File {
        std::mem::replace(&mut self.file, file)
    }
}

/// The numbers of the first lines of the files of a part. Removes one that a server made and did not write to before it was
/// killed.
fn beginnings(folder: &LogFolder, part: LogPart) -> Result<Vec<u64>, AuditError> {
    let path = folder.path();
    let cannot = |error: io::Error| AuditError::file("read", path, &error);
    let mut first = files(path, part).map_err(cannot)?;
    while let Some(last) = first.last().copied()
        && std::fs::metadata(path.join(name(part, last))).is_ok_and(|found| found.len() == 0)
    {
        folder.remove(part, last).map_err(cannot)?;
        first.pop();
    }
    Ok(first)
}

/// Opens the file that begins with the line `first` for appending.
fn create(folder: &LogFolder, part: LogPart, first: u64) -> io::Result<File> {
    folder.create(&name(part, first), OFlags::APPEND, Mode::RUSR | Mode::WUSR)
}

/// Where a log ends that another server wrote.
struct PreviousEnd {
    next: u64,
    last: Digest,
    /// Length of its last file.
    length: u64,
    /// Whether the last file does not end with a line end.
    is_torn: bool,
    torn: Option<TornBytes>,
}

impl PreviousEnd {
    /// The end of a part of the log in `folder`, whose files begin with these lines.
    fn of(folder: &Path, part: LogPart, first: &[u64]) -> Result<Self, AuditError> {
        let mut end = Self { next: 1, last: NOTHING, length: 0, is_torn: false, torn: None };
        for (back, first) in first.iter().rev().enumerate() {
            let path = folder.join(name(part, *first));
            let cannot = |error: io::Error| AuditError::file("read", &path, &error);
            let mut file = File::open(&path).map_err(cannot)?;
            let length = file.metadata().map_err(cannot)?.len();
            let from = length.saturating_sub(TAIL);
            file.seek(SeekFrom::Start(from)).map_err(cannot)?;
            let mut tail = Vec::new();
            file.take(TAIL).read_to_end(&mut tail).map_err(cannot)?;
            let (link, rest) = last_line(&tail);
            if back == 0 {
                end.length = length;
                end.is_torn = tail.last().is_some_and(|last| *last != b'\n');
                let torn = rest.strip_suffix(b"\n").unwrap_or(rest);
                let sha256 = chain::hash(torn).to_string();
                end.torn = (!rest.is_empty()).then_some(TornBytes { bytes: torn.len() as u64, sha256 });
            }
            if let Some(link) = link {
                (end.next, end.last) = (link.seq.saturating_add(1), link.hash);
                return Ok(end);
            }
            if from > 0 || back > 0 {
                break;
            }
        }
        if first.is_empty() || (first == [1] && end.length < LONGEST as u64) {
            return Ok(end);
        }
        Err(AuditError(format!(
            "the audit log in {} does not end with a line that it can be continued after; `toolbay audit verify` says \
             more; move its files to another folder to begin a new one",
            folder.display()
        )))
    }

    /// How the end differs from what was signed last, and the first line that is kept, if that is signed.
    fn compare(
        &self,
        folder: &Path,
        part: LogPart,
        key: &PublicKey,
    ) -> Result<(RecoveryReport, Option<u64>), AuditError> {
        let mut recovery = RecoveryReport { torn: self.torn.clone(), ..RecoveryReport::default() };
        let last = self.next.saturating_sub(1);
        let found = head::read(folder, part, key).map_err(|error| AuditError::file("read", folder, &error))?;
        let head = match found {
            HeadState::Signed(head) => head,
            HeadState::Forged => {
                recovery.wrong = Some("its head is not signed with its key");
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
        let hash = if head.seq == last { Some(self.last) } else { hash_of(folder, part, head.seq)? };
        if hash != Some(head.hash) {
            recovery.wrong = Some("the newest line that was signed is another one now");
        } else if head.seq < last && head.ended {
            recovery.wrong = Some("lines were added after the server had ended");
        }
        recovery.unsigned = Some(last - head.seq).filter(|unsigned| *unsigned > 0);
        Ok((recovery, Some(head.oldest)))
    }
}

/// The hash of the line `seq`.
fn hash_of(folder: &Path, part: LogPart, seq: u64) -> Result<Option<Digest>, AuditError> {
    for line in LineReader::after(folder, part, seq)? {
        match chain::read(&line?.bytes) {
            Ok(link) if link.seq == seq => return Ok(Some(link.hash)),
            _ => {}
        }
    }
    Ok(None)
}

/// The last line that is one, and what follows it.
fn last_line(tail: &[u8]) -> (Option<ChainLink>, &[u8]) {
    let mut end = tail.len();
    // The last line may be whole but for its end.
    let after = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    if let Ok(link) = tail.get(after..).map_or(Err(""), chain::read) {
        return (Some(link), &[]);
    }
    // From the back: each round looks at one line, whose end is at `end`.
    while let Some(stop) = tail.get(..end).and_then(|text| text.iter().rposition(|byte| *byte == b'\n')) {
        let start = tail.get(..stop).and_then(|text| text.iter().rposition(|byte| *byte == b'\n'));
        let line = tail.get(start.map_or(0, |start| start + 1)..stop).unwrap_or_default();
        if let Ok(link) = chain::read(line) {
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

    /// A record with this text.
    pub(crate) fn record(what: impl Into<String>) -> TimedEvent {
        let plugin = PluginRecord { plugin: "p".into(), ..PluginRecord::default() };
        (SystemTime::now(), AuditEvent::Refused { plugin, why: what.into() })
    }

    /// A log with small files.
    pub(crate) fn open_both(path: &Path) -> [PartWriter; 2] {
        PartWriter::open(path, 16 << 10, [3, 3]).unwrap()
    }

    /// The main part of a log with small files; the other one ends, and its lock with the main one.
    pub(crate) fn open(path: &Path) -> PartWriter {
        let [main, mut rejected] = open_both(path);
        rejected.end().unwrap();
        main
    }

    /// What `verify` says of an intact log.
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
                journal.append(&[record(format!("{n}")), record("x".repeat(100))]).unwrap();
                lines += 2;
            }
            journal.checkpoint().unwrap();
            journal.checkpoint().unwrap();
            journal.end().unwrap();
        }
        let report = intact(dir.path());
        // Those of the main part, and the one of the other.
        assert_eq!((report.files, notices(&report)), (3 + 1, vec![]));
        // Three starts and ends, checkpoints, and the beginnings and ends of files.
        let (newest, _) = report.newest.unwrap();
        assert!(newest > lines + 3 * 3 && report.lines < newest, "{report:?}");
        for file in files(dir.path(), LogPart::Main).unwrap() {
            assert!(dir.path().join(name(LogPart::Main, file)).metadata().unwrap().len() <= 16 << 10);
        }
    }

    #[test]
    fn a_server_that_is_killed_leaves_a_log_that_another_one_continues() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = open(dir.path());
        journal.append(&[record("one")]).unwrap();
        // Written, and not signed.
        journal.stage(SystemTime::now(), &record("two").1);
        journal.flush().unwrap();
        // A part of a line.
        journal.file.write_all(b"{\"seq\":4,\"ti").unwrap();
        drop(journal);
        let file = name(LogPart::Main, 1);
        let report = intact(dir.path());
        let torn = format!("{file}:4: is torn: the server was killed while it wrote this line, or is writing it");
        assert_eq!(notices(&report), [torn, "the last 1 line is not signed yet".to_owned()]);
        open(dir.path()).end().unwrap();
        let report = intact(dir.path());
        let told = [
            format!("{file}:4: is torn: the server was killed while it wrote this line"),
            format!("{file}:5: 1 line before this one was not signed: the server was killed"),
        ];
        assert_eq!(notices(&report), told);
        assert_eq!(report.newest.unwrap().0, 6, "two lines, the start before and after, the end and its signature");
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
            let (count, error) = journal.append(&[record("two"), record("three")]).unwrap_err();
            assert_eq!(count, 2, "{error}");
        }
        journal.redirect(good);
        // As if a part of it had found room.
        (&journal.file).write_all(b"{\"seq\":3,").unwrap();
        journal.append(&[record("four")]).unwrap();
        journal.end().unwrap();
        assert_eq!(intact(dir.path()).newest.unwrap().0, 5);
    }

    #[test]
    fn a_file_that_is_deleted_while_it_is_written_to_is_missed() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = open(dir.path());
        journal.append(&[record("one")]).unwrap();
        journal.replace_if_deleted().unwrap();
        std::fs::remove_file(dir.path().join(name(LogPart::Main, 1))).unwrap();
        journal.replace_if_deleted().unwrap();
        journal.append(&[record("two")]).unwrap();
        journal.end().unwrap();
        let report = verify(dir.path(), None, None).unwrap();
        let found: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
        assert_eq!(found, ["lines 1 to 2 are missing at the beginning of the log"]);
    }

    #[test]
    fn a_log_that_was_changed_before_a_start_stays_changed() {
        type Change = fn(&Path);
        let log = |dir: &Path| dir.join(name(LogPart::Main, 1));
        let changes: [(Change, &str); 5] = [
            (
                |dir| {
                    let text = std::fs::read_to_string(dir.join(name(LogPart::Main, 1))).unwrap();
                    let cut: Vec<&str> = text.lines().take(3).collect();
                    std::fs::write(dir.join(name(LogPart::Main, 1)), cut.join("\n") + "\n").unwrap();
                },
                ":4: 3 lines before this one were signed, and were gone when the server started",
            ),
            (
                |dir| std::fs::remove_file(dir.join("head")).unwrap(),
                ":7: when the server started, it found the log changed: its head is missing",
            ),
            (
                |dir| std::fs::write(dir.join("head"), "{}").unwrap(),
                ":7: when the server started, it found the log changed: its head is not signed with its key",
            ),
            (
                |dir| {
                    let text = std::fs::read(dir.join(name(LogPart::Main, 1))).unwrap();
                    let last = last_line(&text).0.unwrap();
                    let (line, _) = chain::write(last.seq + 1, SystemTime::now(), &record("forged").1, last.hash);
                    std::fs::write(dir.join(name(LogPart::Main, 1)), [text, line].concat()).unwrap();
                },
                ":8: when the server started, it found the log changed: lines were added after the server had ended",
            ),
            (
                |dir| {
                    let text = std::fs::read_to_string(dir.join(name(LogPart::Main, 1))).unwrap();
                    let kept: Vec<&str> = text.lines().take(5).collect();
                    let before = chain::read(kept[4].as_bytes()).unwrap();
                    let (line, _) = chain::write(6, SystemTime::now(), &record("forged").1, before.hash);
                    let line = String::from_utf8(line).unwrap();
                    std::fs::write(dir.join(name(LogPart::Main, 1)), kept.join("\n") + "\n" + &line).unwrap();
                },
                ":7: when the server started, it found the log changed: the newest line that was signed is another one now",
            ),
        ];
        for (change, said) in changes {
            let dir = tempfile::tempdir().unwrap();
            let mut journal = open(dir.path());
            journal.append(&[record("one"), record("two"), record("three")]).unwrap();
            journal.end().unwrap();
            drop(journal);
            change(dir.path());
            assert!(!verify(dir.path(), None, None).unwrap().is_intact(), "{said}");
            open(dir.path()).end().unwrap();
            let report = verify(dir.path(), None, None).unwrap();
            let found: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
            assert_eq!(found, [format!("{}{said}", name(LogPart::Main, 1))]);
            assert!(log(dir.path()).exists());
        }
    }

    #[test]
    fn a_log_of_something_else_is_not_continued() {
        let dir = tempfile::tempdir().unwrap();
        open(dir.path()).end().unwrap();
        std::fs::write(dir.path().join(name(LogPart::Main, 9)), "what is this?\n".repeat(9)).unwrap();
        std::fs::write(dir.path().join(name(LogPart::Main, 10)), "what is this?\n".repeat(9)).unwrap();
        let error = PartWriter::open(dir.path(), 1 << 20, [2, 2]).unwrap_err().to_string();
        assert!(error.contains("does not end with a line that it can be continued after"), "{error}");
    }
}
