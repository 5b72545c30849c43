//! The record of used states, in memory and in files. Each state is recorded until it would expire
//! anyway, so that no state lets a call enter a plugin twice, even after a restart.
//!
//! There is one file for the states that expire within the same ten minutes. It grows by a fixed
//! number of bytes per record and is removed as a whole. Servers that use the same directory share
//! the files. If the tally shows that a file has lost a record, the secret of the states is
//! replaced, and no state that was issued before is accepted.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use toolbay_private::{KEY_BYTES, PrivateFolder};

use super::record_folder::{LockedTally, RecordFolder};
use super::record_tally::{PeriodTally, RecordTally};
use super::state_identity::StateIdentity;
use super::state_lifetime::{STATE_LIFETIME, StateId, as_millis};

/// Maximum number of records of one period: 1 MiB of a file, and about as much memory. That is 109
/// entries per second.
pub(super) const MAX_PERIOD_RECORDS: usize = 1 << 16;

/// One caller can use at most the maximum number of records of a period, divided by this.
const CALLER_SHARE_DIVISOR: usize = 4;

/// First byte of a record: an id was used, or restored.
const REDEEMED_MARK: u8 = b'+';
const RESTORED_MARK: u8 = b'-';

/// Size of a record, in bytes.
const RECORD_BYTES: usize = 1 + size_of::<StateId>();

/// The record of used states.
pub(super) struct UsedStates {
    /// The directory of the files; `None` keeps the record in memory only.
    folder: Option<RecordFolder>,
    /// The key and identity that seal states. Replaced while `periods` is locked.
    identity: ArcSwap<StateIdentity>,
    /// The periods by number. The lock is held while the files are locked, read and written, on a
    /// thread that may block.
    periods: Mutex<BTreeMap<u64, ExpiryPeriod>>,
}

/// The used states that expire within the same ten minutes.
#[derive(Default)]
struct ExpiryPeriod {
    ids: HashSet<StateId>,
    /// Number of entries that each caller used on this server.
    uses_by_caller: HashMap<Box<str>, usize>,
    /// The records so far, of this server and of others.
    tally: PeriodTally,
}

/// The right to one entry, which a state grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryTicket {
    pub(super) id: StateId,
    pub(super) expires: u64,
    /// The identity with which the state was unsealed.
    pub(super) epoch: u64,
}

/// The reason that an entry cannot be used.
#[derive(Debug)]
pub(crate) enum TicketRefused {
    /// The entry was used before.
    Used,
    /// The record has no capacity for another entry.
    Full,
    /// The record was lost, so it is unknown whether the entry was used before.
    Lost,
    /// The record cannot be written.
    Unwritten(io::Error),
}

impl fmt::Display for TicketRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Used => f.write_str("it was used before"),
            Self::Full => f.write_str("too many request states were used within 10 minutes"),
            Self::Lost => f.write_str("the record of used request states was lost"),
            Self::Unwritten(error) => write!(
                f,
                "the record of used request states cannot be written: {error}"
            ),
        }
    }
}

impl From<io::Error> for TicketRefused {
    fn from(error: io::Error) -> Self {
        Self::Unwritten(error)
    }
}

impl UsedStates {
    /// Creates a record in memory for the states of this identity.
    pub(super) fn in_memory(identity: StateIdentity) -> Self {
        Self {
            folder: None,
            identity: ArcSwap::from_pointee(identity),
            periods: Mutex::default(),
        }
    }

    /// Opens the record in this directory and the identity that belongs to it. If a part of the
    /// record is lost, creates a new identity.
    pub(super) fn open(
        folder: PrivateFolder,
        shared_key: Option<[u8; KEY_BYTES]>,
        now: u64,
    ) -> io::Result<Self> {
        let folder = RecordFolder::new(folder, shared_key);
        let locked = folder.lock()?;
        let is_new = !folder.has_secret()?;
        let mut identity = folder.load_identity()?;
        let mut periods = BTreeMap::new();
        if is_new {
            // States of an earlier secret are not accepted anyway.
            locked.write(&RecordTally::default(), &identity)?;
        } else if let Some(tally) = locked.read(&identity)?
            && let Some(stored_periods) = read_periods(&folder, &tally, period_number(now))?
        {
            identity.not_before = tally.not_before;
            periods = stored_periods;
        } else {
            identity = folder.renew(&locked, now)?;
        }
        let identity = ArcSwap::from_pointee(identity);
        let periods = Mutex::new(periods);
        Ok(Self {
            folder: Some(folder),
            identity,
            periods,
        })
    }

    /// Returns the current identity.
    pub(super) fn identity(&self) -> Arc<StateIdentity> {
        self.identity.load_full()
    }

    /// Returns whether its methods do file I/O.
    pub(super) fn does_blocking_io(&self) -> bool {
        self.folder.is_some()
    }

    /// Uses the entry of a state for `caller`, and records it.
    pub(super) fn redeem(
        &self,
        ticket: EntryTicket,
        caller: &str,
        now: u64,
    ) -> Result<(), TicketRefused> {
        self.with_period(ticket, now, |period, file| {
            if period.ids.contains(&ticket.id) {
                return Err(TicketRefused::Used);
            }
            if period.tally.records >= MAX_PERIOD_RECORDS
                || period
                    .uses_by_caller
                    .get(caller)
                    .is_some_and(|uses| *uses >= MAX_PERIOD_RECORDS / CALLER_SHARE_DIVISOR)
            {
                return Err(TicketRefused::Full);
            }
            period.append_record(file, REDEEMED_MARK, ticket.id)?;
            *period.uses_by_caller.entry(caller.into()).or_default() += 1;
            Ok(())
        })
    }

    /// Makes a ticket valid again, because its call never entered the plugin. The use still counts
    /// for the caller, because its record remains.
    pub(super) fn restore(&self, ticket: EntryTicket, now: u64) -> Result<(), TicketRefused> {
        self.with_period(ticket, now, |period, file| {
            if period.tally.records < MAX_PERIOD_RECORDS {
                period.append_record(file, RESTORED_MARK, ticket.id)
            } else {
                Ok(())
            }
        })
    }

    /// Runs `work` on the period of a state and its file, under the lock that excludes other
    /// servers.
    fn with_period(
        &self,
        ticket: EntryTicket,
        now: u64,
        work: impl FnOnce(&mut ExpiryPeriod, Option<&mut File>) -> Result<(), TicketRefused>,
    ) -> Result<(), TicketRefused> {
        let number = period_number(ticket.expires);
        let current = period_number(now);
        let mut periods = self.periods.lock();
        let identity = self.identity.load_full();
        if ticket.epoch != identity.epoch {
            return Err(TicketRefused::Lost);
        }
        if periods
            .first_key_value()
            .is_some_and(|(first, _)| *first < current)
        {
            *periods = periods.split_off(&current);
        }
        let Some(folder) = &self.folder else {
            return work(periods.entry(number).or_default(), None);
        };
        let locked = folder.lock()?;
        let Some(mut tally) = locked.read(&identity)? else {
            return self.replace_identity(folder, &locked, &identity, &mut periods, now);
        };
        if !periods.contains_key(&number) {
            folder.remove_expired(current);
        }
        let expected = tally.periods.get(&number).copied().unwrap_or_default();
        let mut file = folder.open_period(number)?;
        let period = periods.entry(number).or_default();
        if !period.read_new_records(&mut file, expected)? {
            return self.replace_identity(folder, &locked, &identity, &mut periods, now);
        }
        let outcome = work(period, Some(&mut file));
        if period.tally != expected {
            tally.periods = tally.periods.split_off(&current);
            tally.periods.insert(number, period.tally);
            locked.write(&tally, &identity)?;
        }
        outcome
    }

    /// Adopts the identity that another server has created after it found that the record was lost,
    /// or creates a new one. Until this succeeds, every state is refused.
    fn replace_identity(
        &self,
        folder: &RecordFolder,
        locked: &LockedTally,
        previous: &StateIdentity,
        periods: &mut BTreeMap<u64, ExpiryPeriod>,
        now: u64,
    ) -> Result<(), TicketRefused> {
        let stored = folder.load_identity()?;
        let mut identity = match locked.read(&stored)? {
            Some(tally) if stored.secret != previous.secret => StateIdentity {
                not_before: tally.not_before,
                ..stored
            },
            _ => folder.renew(locked, now)?,
        };
        identity.epoch = previous.epoch + 1;
        periods.clear();
        self.identity.store(Arc::new(identity));
        Err(TicketRefused::Lost)
    }
}

/// Reads the periods that have not ended; `None` if one of them has lost a record.
fn read_periods(
    folder: &RecordFolder,
    tally: &RecordTally,
    current: u64,
) -> io::Result<Option<BTreeMap<u64, ExpiryPeriod>>> {
    let mut periods = BTreeMap::new();
    for (number, expected) in tally.periods.range(current..) {
        let mut period = ExpiryPeriod::default();
        if !period.read_new_records(&mut folder.open_period(*number)?, *expected)? {
            return Ok(None);
        }
        periods.insert(*number, period);
    }
    Ok(Some(periods))
}

/// Returns the number of the period of this time, in milliseconds of Unix time.
fn period_number(time: u64) -> u64 {
    time / as_millis(STATE_LIFETIME)
}

impl ExpiryPeriod {
    /// Reads the records that other servers, or this one before a restart, have added since the
    /// last call. Returns whether the file has the records that were read before and those that the
    /// tally expects.
    fn read_new_records(&mut self, file: &mut File, expected: PeriodTally) -> io::Result<bool> {
        let min_records = self.tally.records.max(expected.records);
        if file.metadata()?.len() < (min_records * RECORD_BYTES) as u64 {
            return Ok(false);
        }
        file.seek(SeekFrom::Start((self.tally.records * RECORD_BYTES) as u64))?;
        let mut new_records = Vec::new();
        let max_new_bytes =
            (MAX_PERIOD_RECORDS - self.tally.records.min(MAX_PERIOD_RECORDS)) * RECORD_BYTES;
        Read::by_ref(file)
            .take(max_new_bytes as u64)
            .read_to_end(&mut new_records)?;
        let torn_bytes = new_records.len() % RECORD_BYTES;
        if torn_bytes > 0 {
            // The machine stopped during this write. The torn record is filled up with zeros, so no
            // state has its id.
            let filling = vec![0; RECORD_BYTES - torn_bytes];
            file.write_all(&filling)?;
            new_records.extend(filling);
        }
        // The chains can be compared only after as many records as the tally has. After a crash,
        // the file can have further records that the tally does not count yet. They are applied
        // too.
        let is_expected =
            |tally: PeriodTally| tally.records != expected.records || tally == expected;
        let mut intact = is_expected(self.tally);
        for record in new_records.as_chunks::<RECORD_BYTES>().0 {
            self.apply_record(record);
            intact &= is_expected(self.tally);
        }
        Ok(intact)
    }

    fn append_record(
        &mut self,
        file: Option<&mut File>,
        kind: u8,
        id: StateId,
    ) -> Result<(), TicketRefused> {
        let mut record = [kind; RECORD_BYTES];
        if let Some(id_bytes) = record.last_chunk_mut() {
            *id_bytes = id;
        }
        if let Some(file) = file {
            file.write_all(&record)?;
            file.sync_data()?;
        }
        self.apply_record(&record);
        Ok(())
    }

    fn apply_record(&mut self, record: &[u8; RECORD_BYTES]) {
        self.tally.add(record);
        let [kind, id @ ..] = *record;
        match kind {
            REDEEMED_MARK => drop(self.ids.insert(id)),
            RESTORED_MARK => drop(self.ids.remove(&id)),
            _ => {}
        }
    }
}
