//! The files of one part of the log and the hash chain through them. Continues where the previous
//! server stopped, appends lines, and starts a new file when a file is full.

mod previous_end;

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::{Mode, OFlags, fstat};
use toolbay_model::Digest;

use crate::anchor::CrossAnchor;
use crate::chain;
use crate::claim::{SignedClaim, SignedHead};
use crate::error::AuditError;
use crate::event::{AuditEvent, LogStart};
use crate::folder::{LogFolder, file_name, list_files};
use crate::head::HeadFile;
use crate::key::LogKey;
use crate::part::LogPart;

use self::previous_end::PreviousEnd;

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
    shared: Arc<SharedLogFolder>,
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
    written_end: ChainPosition,
    /// The end of the chain after `buffer` is written.
    staged_end: ChainPosition,
    buffer: Vec<u8>,
    /// True if a write failed and its remains could not be removed.
    is_torn: bool,
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
    /// lines. `max_file_bytes` is the maximum size of a file, in bytes. `max_files` is the number
    /// of retained files of each part, at least 2.
    pub(crate) fn open(
        path: &Path,
        max_file_bytes: u64,
        max_files: [usize; 2],
    ) -> Result<[Self; 2], AuditError> {
        let folder = LogFolder::open(path)?;
        let lock = folder.lock()?;
        let main = first_lines(&folder, LogPart::Main)?;
        let rejected = first_lines(&folder, LogPart::Rejected)?;
        let had_key = LogKey::exists(&folder);
        let key = LogKey::load_or_create(&folder, main.is_empty() && rejected.is_empty())?;
        let shared = Arc::new(SharedLogFolder {
            folder,
            key,
            _lock: lock,
        });
        // Opens the part with rejections first, because the main part refers to its newest line.
        let lost = match (main.is_empty(), rejected.is_empty()) {
            (true, false) => Some("its files are missing, but those with rejections exist"),
            (true, true) if had_key => {
                Some("its files and its head are missing, but its key exists")
            }
            _ => None,
        };
        let rejected = Self::open_part(
            &shared,
            LogPart::Rejected,
            &rejected,
            (max_file_bytes, max_files[1]),
            None,
            None,
        )?;
        let main = Self::open_part(
            &shared,
            LogPart::Main,
            &main,
            (max_file_bytes, max_files[0]),
            Some(rejected.newest_line()),
            lost,
        )?;
        Ok([main, rejected])
    }

    /// Opens one part. `first` contains the first line numbers of its files. `lost` is the evidence
    /// of missing files if the part has neither files nor a valid head.
    fn open_part(
        place: &Arc<SharedLogFolder>,
        part: LogPart,
        first: &[u64],
        (size, keep): (u64, usize),
        rejected: Option<CrossAnchor>,
        lost: Option<&'static str>,
    ) -> Result<Self, AuditError> {
        let path = place.folder.path();
        let public_key = place.key.public_key();
        let end = PreviousEnd::find(path, part, first)?;
        let (mut recovery, oldest) = end.compare_with_head(path, part, &public_key)?;
        // A log without lines has a valid head since its key was created.
        if oldest.is_none() {
            recovery.wrong = recovery.wrong.or(lost);
        }
        if let Some(why) = recovery.describe_change() {
            tracing::warn!(
                "{} in {} differs from what the last server signed: {why}; `toolbay audit verify` reports this from now on",
                part.noun(),
                path.display()
            );
        }
        // Without a head, the expected lines are unknown.
        let oldest = oldest.or(first.first().copied()).unwrap_or(1);
        let log_start = first.last().copied().unwrap_or(1);
        let cannot = |error: io::Error| {
            AuditError::from_io("write", &path.join(file_name(part, log_start)), &error)
        };
        let file = open_for_append(&place.folder, part, log_start).map_err(cannot)?;
        let written = ChainPosition {
            next_seq: end.next_seq,
            last_hash: end.last_hash,
            length: end.length,
            is_signed: false,
        };
        let head = HeadFile::open(&place.folder, part).map_err(cannot)?;
        let mut journal = Self {
            shared: Arc::clone(place),
            part,
            head,
            rejected,
            max_file_bytes: size,
            max_files: keep,
            oldest,
            file,
            written_end: written,
            staged_end: written,
            buffer: Vec::new(),
            is_torn: false,
        };
        let start = LogStart {
            version: env!("CARGO_PKG_VERSION"),
            key: public_key.to_string(),
            rejected,
            recovery,
        };
        journal.write_start(start, end.is_torn).map_err(cannot)?;
        Ok(journal)
    }

    /// Writes the start line, after the end of a line that a previous server left torn.
    fn write_start(&mut self, start: LogStart, is_torn: bool) -> io::Result<()> {
        if is_torn {
            self.buffer.push(b'\n');
            self.staged_end.length += 1;
        }
        self.stage(SystemTime::now(), &AuditEvent::Start(Box::new(start)));
        self.flush()?;
        self.apply_retention()?;
        self.write_head(false, true)
    }

    /// Returns the number and hash of the newest line that is written.
    pub(crate) fn newest_line(&self) -> CrossAnchor {
        (
            self.written_end.next_seq.saturating_sub(1),
            self.written_end.last_hash,
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
        let mut written = 0;
        let mut staged = 0;
        let all = records.len();
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
        if !self.written_end.is_signed {
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
        let signature = self.shared.key.sign(
            self.part,
            SignedClaim::Checkpoint(self.staged_end.next_seq, self.staged_end.last_hash),
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
        self.staged_end.length + u64::from(event.max_bytes()) * 2 + FILE_RESERVE_BYTES
            <= self.max_file_bytes
    }

    /// Appends a line to the buffer.
    fn stage(&mut self, time: SystemTime, event: &AuditEvent) {
        let (line, hash) = chain::serialize_line(
            self.staged_end.next_seq,
            time,
            event,
            self.staged_end.last_hash,
        );
        self.buffer.extend_from_slice(&line);
        self.staged_end = ChainPosition {
            next_seq: self.staged_end.next_seq + 1,
            last_hash: hash,
            length: self.staged_end.length + line.len() as u64,
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
                self.written_end = self.staged_end;
                Ok(())
            }
            Err(error) => {
                self.staged_end = self.written_end;
                self.is_torn = true;
                drop(self.repair());
                Err(error)
            }
        }
    }

    /// Removes the remains of a failed write.
    fn repair(&mut self) -> io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.written_end.length)?;
            self.is_torn = false;
        }
        Ok(())
    }

    /// Ends the current file with a signature, starts a new file, and deletes the oldest ones.
    fn rotate(&mut self) -> io::Result<()> {
        if !self.written_end.is_signed {
            self.add_checkpoint()?;
        }
        self.file.sync_data()?;
        let file = open_for_append(&self.shared.folder, self.part, self.written_end.next_seq)?;
        let old = (
            std::mem::replace(&mut self.file, file),
            self.written_end,
            self.oldest,
        );
        let first_lines = self.written_end.next_seq;
        self.written_end.length = 0;
        self.staged_end = self.written_end;
        self.apply_retention().inspect_err(|_| {
            // The old file stays in use until another one can begin. The new one may already have a
            // line: its number is used again in the old file.
            (self.file, self.written_end, self.oldest) = old;
            self.staged_end = self.written_end;
            drop(self.shared.folder.remove_file(self.part, first_lines));
        })
    }

    /// Records the first retained line if the file is new, and deletes the files before that line.
    fn apply_retention(&mut self) -> io::Result<()> {
        let mut first = list_files(self.shared.folder.path(), self.part)?;
        let excess = first.len().saturating_sub(self.max_files);
        let kept = if excess > 0 {
            first.get(excess).copied()
        } else {
            None
        };
        let oldest = kept.unwrap_or_default().max(self.oldest);
        if self.written_end.length == 0 || excess > 0 {
            self.stage(
                SystemTime::now(),
                &AuditEvent::Rotate {
                    oldest,
                    rejected: self.rejected,
                },
            );
            self.flush()?;
            self.oldest = oldest;
            // Update the head before deleting a file, so that any other missing file is evidence of
            // tampering.
            self.write_head(false, true)?;
        }
        for first in first.drain(..excess) {
            // A file that cannot be deleted now is deleted when the next file starts.
            if let Err(error) = self.shared.folder.remove_file(self.part, first) {
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
            seq: self.written_end.next_seq.saturating_sub(1),
            hash: self.written_end.last_hash,
            oldest: self.oldest,
            ended,
        };
        self.head.write(head, &self.shared.key)?;
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
        self.file = open_for_append(&self.shared.folder, self.part, self.written_end.next_seq)?;
        self.written_end.length = 0;
        self.staged_end = self.written_end;
        self.is_torn = false;
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

#[cfg(test)]
pub(crate) mod tests;
