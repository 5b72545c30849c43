//! The states that were used: each is remembered until it would expire anyway, in memory and in a file, so that no state
//! is good for a second entry, also after a restart.
//!
//! There is one file for the states that expire within the same ten minutes. It only grows, by a fixed number of bytes an
//! entry, and is removed as a whole. Servers that use the same folder share the files.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};
use toolbay_private::PrivateFolder;

use super::life::{STATE_LIFETIME, StateId, as_millis};

/// The most records of one period: 1 MiB of a file, and about as much memory. That is 109 entries a second.
pub(super) const MAX_PERIOD_RECORDS: usize = 1 << 16;

/// So many callers can take what is there for all.
const CALLER_SHARE_DIVISOR: usize = 4;

/// The beginning of the name of each file. Its period follows.
const FILE_PREFIX: &str = "used-";

/// What a record begins with: an id was used, or given back.
const REDEEMED_MARK: u8 = b'+';
const RESTORED_MARK: u8 = b'-';

/// Bytes of a record.
const RECORD_BYTES: usize = 1 + size_of::<StateId>();

/// The states that were used.
#[derive(Default)]
pub(super) struct UsedStates {
    /// Where they are written; `None` remembers them in memory only.
    folder: Option<PrivateFolder>,
    /// By when they expire. Held while a file is locked, read and written, on a thread that may block.
    periods: Mutex<BTreeMap<u64, ExpiryPeriod>>,
}

/// Those that expire within the same ten minutes.
#[derive(Default)]
struct ExpiryPeriod {
    ids: HashSet<StateId>,
    /// How many entries each caller took of this server.
    by: HashMap<Box<str>, usize>,
    /// Records so far, of this server and of others.
    records: usize,
    file: Option<File>,
}

/// Why an entry cannot be taken.
#[derive(Debug)]
pub(crate) enum TicketRefused {
    /// It was taken before.
    Used,
    /// So many entries are remembered that there is no room for another.
    Full,
    /// It cannot be written down.
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
    /// Those that are written in this folder.
    pub(super) fn in_folder(folder: PrivateFolder) -> Self {
        Self { folder: Some(folder), ..Self::default() }
    }

    /// Whether its methods wait for files.
    pub(super) fn does_blocking_io(&self) -> bool {
        self.folder.is_some()
    }

    /// Takes the entry of a state for `caller`, and writes that down.
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

    /// Gives an entry back that was not begun. It still counts for its caller: it has a record.
    pub(super) fn restore(&self, id: StateId, expires: u64, now: u64) -> Result<(), TicketRefused> {
        self.with_period(expires, now, |period| {
            if period.records < MAX_PERIOD_RECORDS { period.append_record(RESTORED_MARK, id) } else { Ok(()) }
        })
    }

    /// Does something with the period of a state, while no other server writes it down.
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

/// Removes the files of periods that are over.
fn remove_expired_files(folder: &PrivateFolder, current: u64) {
    let names = folder.names().unwrap_or_default();
    let over =
        |name: &String| name.strip_prefix(FILE_PREFIX).and_then(|n| n.parse().ok()).is_some_and(|n: u64| n < current);
    for name in names.iter().filter(|name| over(name)) {
        // Another server may have been faster.
        folder.remove(name).ok();
    }
}

impl ExpiryPeriod {
    /// Reads what other servers, or this one in an earlier life, have written since this was last called.
    fn read_new_records(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.seek(SeekFrom::Start((self.records * RECORD_BYTES) as u64))?;
        let mut new = Vec::new();
        (&*file)
            .take(((MAX_PERIOD_RECORDS - self.records.min(MAX_PERIOD_RECORDS)) * RECORD_BYTES) as u64)
            .read_to_end(&mut new)?;
        let torn = new.len() % RECORD_BYTES;
        if torn > 0 {
            // The machine stopped while this was written. It is no id of a state, and neither is what fills it up.
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

/// The exclusive use of a file among servers.
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
