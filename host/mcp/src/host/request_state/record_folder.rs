//! The directory of the record of used states: the files of its periods, its tally, and the secret
//! that belongs to it.
//!
//! The lock of the tally also protects the other files. A record is written before the tally that
//! counts it, so a crash in between leaves a record that no tally counts, of an entry that did not
//! happen.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

use rustix::fs::{FlockOperation, flock};
use toolbay_private::{KEY_BYTES, PrivateFolder};

use super::record_tally::{RecordTally, TALLY_BYTES};
use super::state_identity::StateIdentity;

/// Name of the file with the key.
const KEY_FILE: &str = "key";

/// Name of the file with the id of the servers that share a record, for servers that get their key
/// from elsewhere.
const SERVER_FILE: &str = "server";

/// Name of the file with the tally.
const TALLY_FILE: &str = "record";

/// Prefix of the name of the file of each period. The number of the period follows.
const FILE_PREFIX: &str = "used-";

/// The effect of a replaced secret, for the log.
const REPLACED_SECRET_EFFECT: &str = "calls that wait for answers cannot be continued";

/// The directory of a record.
pub(super) struct RecordFolder {
    folder: PrivateFolder,
    /// The key, if it comes from elsewhere and cannot be replaced.
    shared_key: Option<[u8; KEY_BYTES]>,
}

/// The tally, locked until it is dropped.
pub(super) struct LockedTally(File);

impl RecordFolder {
    pub(super) fn new(folder: PrivateFolder, shared_key: Option<[u8; KEY_BYTES]>) -> Self {
        Self { folder, shared_key }
    }

    /// Waits for other servers and locks the record.
    pub(super) fn lock(&self) -> io::Result<LockedTally> {
        loop {
            let file = self.folder.open_or_create(TALLY_FILE)?;
            flock(&file, FlockOperation::LockExclusive)?;
            // The file may have been removed before it was locked.
            if file.metadata()?.nlink() > 0 {
                return Ok(LockedTally(file));
            }
        }
    }

    /// Returns whether there is a secret. If there is one, there must also be a record.
    pub(super) fn has_secret(&self) -> io::Result<bool> {
        Ok(self
            .folder
            .file_names()?
            .iter()
            .any(|name| name == self.secret_file()))
    }

    /// Reads the secret, or creates it, and returns the identity of the servers that have it.
    pub(super) fn load_identity(&self) -> io::Result<StateIdentity> {
        self.identity(
            self.folder
                .load_or_create_key(self.secret_file(), REPLACED_SECRET_EFFECT)?,
        )
    }

    /// Replaces the secret, and with it the record. States that were issued until `now` are not
    /// accepted any more. Logs this.
    pub(super) fn renew(&self, locked: &LockedTally, now: u64) -> io::Result<StateIdentity> {
        let consequence = if self.shared_key.is_some() {
            "request states that were issued until now are refused"
        } else {
            "a new key replaces the old one"
        };
        tracing::warn!(
            "the record of used request states in {} is missing, shorter than it was, or damaged: so that no answer \
             counts twice, {consequence}, and {REPLACED_SECRET_EFFECT}",
            self.folder.path.display()
        );
        let identity = self.identity(self.folder.replace_key(self.secret_file())?)?;
        // A new key does not open old states, but a shared key does.
        let not_before = if self.shared_key.is_some() {
            now.saturating_add(1)
        } else {
            0
        };
        for name in self
            .folder
            .file_names()?
            .iter()
            .filter(|name| name.starts_with(FILE_PREFIX))
        {
            // The new tally does not count a file that cannot be removed.
            self.folder.remove(name).ok();
        }
        locked.write(
            &RecordTally {
                not_before,
                ..RecordTally::default()
            },
            &identity,
        )?;
        Ok(StateIdentity {
            not_before,
            ..identity
        })
    }

    fn identity(&self, secret: [u8; KEY_BYTES]) -> io::Result<StateIdentity> {
        match &self.shared_key {
            Some(key) => StateIdentity::with_shared_key(key, secret),
            None => StateIdentity::with_own_key(secret),
        }
    }

    const fn secret_file(&self) -> &'static str {
        if self.shared_key.is_some() {
            SERVER_FILE
        } else {
            KEY_FILE
        }
    }

    /// Opens the file of a period for reading and appending.
    pub(super) fn open_period(&self, number: u64) -> io::Result<File> {
        self.folder
            .open_to_append(&format!("{FILE_PREFIX}{number}"))
    }

    /// Removes the files of expired periods.
    pub(super) fn remove_expired(&self, current: u64) {
        let names = self.folder.file_names().unwrap_or_default();
        let number = |name: &String| name.strip_prefix(FILE_PREFIX)?.parse::<u64>().ok();
        for name in names
            .iter()
            .filter(|name| number(name).is_some_and(|number| number < current))
        {
            // Another server may have removed it already.
            self.folder.remove(name).ok();
        }
    }
}

impl LockedTally {
    /// Reads the tally; `None` if it does not belong to this identity, or is damaged.
    pub(super) fn read(&self, identity: &StateIdentity) -> io::Result<Option<RecordTally>> {
        let mut file = &self.0;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        // A longer file is damaged too.
        file.take(TALLY_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        Ok(RecordTally::decode(&bytes, &identity.secret))
    }

    /// Writes the tally.
    pub(super) fn write(&self, tally: &RecordTally, identity: &StateIdentity) -> io::Result<()> {
        let too_many_periods =
            || io::Error::other("the record has too many periods: was the clock set back?");
        let bytes = tally
            .encode(&identity.secret)
            .ok_or_else(too_many_periods)?;
        self.0.write_all_at(&bytes, 0)?;
        self.0.set_len(TALLY_BYTES as u64)?;
        self.0.sync_data()
    }
}
