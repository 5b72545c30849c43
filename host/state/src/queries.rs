//! Reads of the database. Each read uses a snapshot and does not wait for changes.

use redb::{ReadTransaction, StorageError};
use serde::{Deserialize, Serialize};

use crate::bounds::{MAX_PAGE_KEYS, TARGET_PAGE_BYTES};
use crate::bucket::StateBucket;
use crate::error::StateError;
use crate::payer::WorkPayer;
use crate::tables::{ENTRIES, OWNERS};

/// Start of a page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageStart {
    /// The first key.
    First,
    /// The first key after this one, which need not exist.
    After(String),
    /// The first key after skipping this many.
    Skip(u64),
}

/// Page of a list of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct KeyPage {
    /// Keys, in byte order.
    pub keys: Vec<String>,
    /// True if more keys follow.
    pub more: bool,
}

/// Memory of a page in addition to the bytes of its keys.
const PAGE_OVERHEAD_BYTES: usize = MAX_PAGE_KEYS * size_of::<String>();

/// Number of keys after which the payer is checked again.
const KEYS_PER_CHECK: usize = 256;

/// Failure of a read or a change.
#[derive(Debug)]
pub(crate) enum OperationFailure {
    /// The operation was rejected, for a reason that is reported to the caller.
    Rejected(StateError),
    /// The database failed.
    Database(redb::Error),
}

impl From<StateError> for OperationFailure {
    fn from(error: StateError) -> Self {
        Self::Rejected(error)
    }
}

macro_rules! database_errors {
    ($($error:ty),*) => {
        $(impl From<$error> for OperationFailure {
            fn from(error: $error) -> Self {
                Self::Database(error.into())
            }
        })*
    };
}
database_errors!(
    StorageError,
    redb::TableError,
    redb::TransactionError,
    redb::CommitError
);

/// Returns the number of the bucket's owner; `None` if the owner has no state.
fn owner_number(
    transaction: &ReadTransaction,
    bucket: &StateBucket,
) -> Result<Option<u64>, OperationFailure> {
    let owners = transaction.open_table(OWNERS)?;
    Ok(owners.get(bucket.owner().row())?.map(|row| row.value().0))
}

pub(crate) fn get_values(
    transaction: &ReadTransaction,
    bucket: &StateBucket,
    keys: &[String],
    payer: &dyn WorkPayer,
) -> Result<Vec<Option<Vec<u8>>>, OperationFailure> {
    let Some(owner) = owner_number(transaction, bucket)? else {
        return Ok(vec![None; keys.len()]);
    };
    let entries = transaction.open_table(ENTRIES)?;
    let mut values = Vec::with_capacity(keys.len());
    for key in keys {
        if payer.is_due() {
            return Err(StateError::Stopped.into());
        }
        let value = match entries.get((owner, bucket.name(), key.as_str()))? {
            None => None,
            Some(value) if payer.charge_memory(value.value().len()) => Some(value.value().to_vec()),
            Some(_) => return Err(StateError::Stopped.into()),
        };
        values.push(value);
    }
    Ok(values)
}

pub(crate) fn key_exists(
    transaction: &ReadTransaction,
    bucket: &StateBucket,
    key: &str,
) -> Result<bool, OperationFailure> {
    let Some(owner) = owner_number(transaction, bucket)? else {
        return Ok(false);
    };
    Ok(transaction
        .open_table(ENTRIES)?
        .get((owner, bucket.name(), key))?
        .is_some())
}

pub(crate) fn list_keys(
    transaction: &ReadTransaction,
    bucket: &StateBucket,
    start: &PageStart,
    payer: &dyn WorkPayer,
) -> Result<KeyPage, OperationFailure> {
    let Some(owner) = owner_number(transaction, bucket)? else {
        return Ok(KeyPage::default());
    };
    let entries = transaction.open_table(ENTRIES)?;
    let after = if let PageStart::After(key) = start {
        key.as_str()
    } else {
        ""
    };
    let mut skip = if let PageStart::Skip(count) = start {
        *count
    } else {
        0
    };
    let mut page = KeyPage::default();
    let mut bytes = 0;
    if !payer.charge_memory(PAGE_OVERHEAD_BYTES) {
        return Err(StateError::Stopped.into());
    }
    for (index, entry) in entries.range((owner, bucket.name(), after)..)?.enumerate() {
        if index % KEYS_PER_CHECK == 0 && payer.is_due() {
            return Err(StateError::Stopped.into());
        }
        let (key, _) = entry?;
        let (entry_owner, name, key) = key.value();
        if (entry_owner, name) != (owner, bucket.name()) {
            break;
        }
        if matches!(start, PageStart::After(after) if after == key) {
            continue;
        }
        if skip > 0 {
            skip -= 1;
            continue;
        }
        if page.keys.len() == MAX_PAGE_KEYS || bytes >= TARGET_PAGE_BYTES {
            page.more = true;
            break;
        }
        if !payer.charge_memory(key.len()) {
            return Err(StateError::Stopped.into());
        }
        bytes += key.len();
        page.keys.push(key.to_owned());
    }
    Ok(page)
}
