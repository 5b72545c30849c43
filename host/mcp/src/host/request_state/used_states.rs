//! The record of used states, in memory and in files. Each state is recorded until it would expire
//! anyway, so that no state is valid for a second entry, even after a restart.
//!
//! There is one file for the states that expire within the same ten minutes. It grows by a fixed
//! number of bytes per entry and is removed as a whole. Servers that use the same directory share
//! the files.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};
use toolbay_private::PrivateFolder;

use super::state_lifetime::{STATE_LIFETIME, StateId, as_millis};

/// Maximum number of records of one period: 1 MiB of a file, and about as much memory. That is 109
/// entries per second.
pub(super) const MAX_PERIOD_RECORDS: usize = 1 << 16;

/// One caller can use the total divided by this.
const CALLER_SHARE_DIVISOR: usize = 4;

/// Prefix of the name of each file. The number of its period follows.
const FILE_PREFIX: &str = "used-";

/// First byte of a record: an id was used, or restored.
const REDEEMED_MARK: u8 = b'+';
const RESTORED_MARK: u8 = b'-';

/// Size of a record, in bytes.
const RECORD_BYTES: usize = 1 + size_of::<StateId>();

/// The record of used states.
#[derive(Default)]
pub(super) struct UsedStates {
    /// The directory of the files; `None` keeps the record in memory only.
    folder: Option<PrivateFolder>,
    /// The periods by number. The lock is held while a file is locked, read and written, on a
    /// thread that may block.
    periods: Mutex<BTreeMap<u64, ExpiryPeriod>>,
}

/// The used states that expire within the same ten minutes.
#[derive(Default)]
struct ExpiryPeriod {
    ids: HashSet<StateId>,
    /// Number of entries that each caller used on this server.
    by: HashMap<Box<str>, usize>,
    /// Number of records so far, of this server and of others.
    records: usize,
    file: Option<File>,
}

/// The reason that an entry cannot be used.
#[derive(Debug)]
pub(crate) enum TicketRefused {
    /// The entry was used before.
    Used,
    /// The record has no capacity for another entry.
    Full,
    /// The record cannot be written.
    Unwritten(io::Error),
}

impl fmt::Display for TicketRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Used => f.write_str("it was used before"),
            Self::Full => f.write_str("too many request states were used within 10 minutes"),
            Self::Unwritten(error) => write!(f, "the record of used request states cannot be written: {error}"),
        }
    }
}

impl From<io::Error> for TicketRefused {
    fn from(error: io::Error) -> Self {
        Self::Unwritten(error)
    }
}

impl UsedStates {
    /// Creates a record that is stored in this directory.
    pub(super) fn in_folder(folder: PrivateFolder) -> Self {
        Self { folder: Some(folder), ..Self::default() }
    }

    /// Returns whether its methods do file I/O.
    pub(super) fn does_blocking_io(&self) -> bool {
        self.folder.is_some()
    }

    /// Uses the entry of a state for `caller`, and records it.
    pub(super) fn redeem(&self, id: StateId, expires: u64, caller: &str, now: u64) -> Result<(), TicketRefused> {
        self.with_period(expires, now, |period| {
            if period.ids.contains(&id) {
                return Err(TicketRefused::Used);
            }
            if period.records >= MAX_PERIOD_RECORDS
                || period.by.get(caller).is_some_and(|taken| *taken >= MAX_PERIOD_RECORDS / CALLER_SHARE_DIVISOR)
            {
                return Err(TicketRefused::Full);
            }
            period.append_record(REDEEMED_MARK, id)?;
            *period.by.entry(caller.into()).or_default() += 1;
            Ok(())
        })
    }

    /// Restores an entry that was not started. It still counts for its caller, because it has a
    /// record.
    pub(super) fn restore(&self, id: StateId, expires: u64, now: u64) -> Result<(), TicketRefused> {
        self.with_period(expires, now, |period| {
            if period.records < MAX_PERIOD_RECORDS { period.append_record(RESTORED_MARK, id) } else { Ok(()) }
        })
    }

    /// Runs `work` on the period of a state, under the lock that excludes other servers.
    fn with_period<T>(
        &self,
        expires: u64,
        now: u64,
        work: impl FnOnce(&mut ExpiryPeriod) -> Result<T, TicketRefused>,
    ) -> Result<T, TicketRefused> {
        let (number, current) = (expires / as_millis(STATE_LIFETIME), now / as_millis(STATE_LIFETIME));
        let mut periods = self.periods.lock().unwrap_or_else(PoisonError::into_inner);
        if periods.first_key_value().is_some_and(|(first, _)| *first < current) {
            *periods = periods.split_off(&current);
        }
        let period = match periods.entry(number) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let file = self.folder.as_ref().map(|folder| {
                    remove_expired_files(folder, current);
                    folder.open_to_append(&format!("{FILE_PREFIX}{number}"))
                });
                new.insert(ExpiryPeriod { file: file.transpose()?, ..ExpiryPeriod::default() })
            }
        };
        let lock = period.file.as_ref().map(FileLock::acquire).transpose()?;
        period.read_new_records()?;
        let done = work(period);
        drop(lock);
        done
    }
}

/// Removes the files of expired periods.
fn remove_expired_files(folder: &PrivateFolder, current: u64) {
    let names = folder.file_names().unwrap_or_default();
    let over =
        |name: &String| name.strip_prefix(FILE_PREFIX).and_then(|n| n.parse().ok()).is_some_and(|n: u64| n < current);
    for name in names.iter().filter(|name| over(name)) {
        // Another server may have removed it already.
        folder.remove(name).ok();
    }
}

impl ExpiryPeriod {
    /// Reads the records that other servers, or this one before a restart, have added since the
    /// last call.
    fn read_new_records(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.seek(SeekFrom::Start((self.records * RECORD_BYTES) as u64))?;
        let mut new = Vec::new();
        (&*file)
            .take(((MAX_PERIOD_RECORDS - self.records.min(MAX_PERIOD_RECORDS)) * RECORD_BYTES) as u64)
            .read_to_end(&mut new)?;
        let torn = new.len() % RECORD_BYTES;
        if torn > 0 {
            // The machine stopped during this write. The torn record, filled up with zeros, is not
            // the id of a state.
            let filling = vec![0; RECORD_BYTES - torn];
            file.write_all(&filling)?;
            new.extend(filling);
        }
        for record in new.as_chunks::<RECORD_BYTES>().0 {
            let [kind, id @ ..] = *record;
            self.apply_record(kind, id);
        }
        Ok(())
    }

    fn append_record(&mut self, kind: u8, id: StateId) -> Result<(), TicketRefused> {
        if let Some(file) = &mut self.file {
            let mut record = [kind; RECORD_BYTES];
            if let Some(place) = record.last_chunk_mut() {
                *place = id;
            }
            file.write_all(&record)?;
            file.sync_data()?;
        }
        self.apply_record(kind, id);
        Ok(())
    }

    fn apply_record(&mut self, kind: u8, id: StateId) {
        self.records += 1;
        match kind {
            REDEEMED_MARK => drop(self.ids.insert(id)),
            RESTORED_MARK => drop(self.ids.remove(&id)),
            _ => {}
        }
    }
}

/// An exclusive lock on a file that several servers use.
struct FileLock(File);

impl FileLock {
    fn acquire(file: &File) -> io::Result<Self> {
        let file = file.try_clone()?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(Self(file))
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        flock(&self.0, FlockOperation::Unlock).ok();
    }
}
