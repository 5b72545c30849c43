//! Changes of a bucket.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::bounds::{MAX_KEY_BYTES, MAX_OPERATION_BYTES, MAX_OPERATION_KEYS, MAX_VALUE_BYTES};
use crate::error::StateError;
use crate::value_version::ValueVersion;

/// Atomic change of a bucket.
#[derive(Clone, Debug)]
pub enum BucketChange {
    /// Sets the values of keys. For a repeated key, the last value applies.
    Set(Vec<(String, Vec<u8>)>),
    /// Deletes keys. Ignores keys that do not exist.
    Delete(Vec<String>),
    /// Adds to a value, which is a number in decimal digits. A key that does not exist counts as 0.
    Increment {
        /// Key.
        key: String,
        /// Number to add.
        delta: i128,
        /// Valid range of the result.
        range: RangeInclusive<i128>,
    },
    /// Sets the value of a key if its current value has the expected version.
    Swap {
        /// Key.
        key: String,
        /// Expected version of the current value.
        expected: ValueVersion,
        /// New value.
        value: Vec<u8>,
    },
}

/// Outcome of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum ChangeOutcome {
    /// The change was applied.
    Done,
    /// Number after [`BucketChange::Increment`].
    Number(i128),
    /// [`BucketChange::Swap`] was not applied, because the current value has this other version.
    Conflict(ValueVersion),
}

impl BucketChange {
    /// Returns the total size of the keys and values, in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Set(entries) => entries
                .iter()
                .map(|(key, value)| key.len() + value.len())
                .sum(),
            Self::Delete(keys) => keys.iter().map(String::len).sum(),
            Self::Increment { key, .. } => key.len(),
            Self::Swap { key, value, .. } => key.len() + value.len(),
        }
    }

    /// Checks the bounds of the operation, its keys and its values.
    ///
    /// # Errors
    ///
    /// Returns an error if the operation is too large, or if a key or value is invalid.
    pub(crate) fn check(&self) -> Result<(), StateError> {
        match self {
            Self::Set(entries) => {
                check_key_count(entries.len())?;
                entries.iter().try_for_each(|(key, value)| {
                    check_key(key).and_then(|()| check_value(value))
                })?;
            }
            Self::Delete(keys) => {
                check_key_count(keys.len())?;
                keys.iter().try_for_each(|key| check_key(key))?;
            }
            Self::Increment { key, .. } => check_key(key)?,
            Self::Swap { key, value, .. } => check_key(key).and_then(|()| check_value(value))?,
        }
        if self.bytes() > MAX_OPERATION_BYTES {
            Err(StateError::Batch)
        } else {
            Ok(())
        }
    }
}

/// Checks the length of a key.
///
/// # Errors
///
/// Returns an error if the key is too long.
pub(crate) fn check_key(key: &str) -> Result<(), StateError> {
    if key.len() > MAX_KEY_BYTES {
        Err(StateError::Key(key.len()))
    } else {
        Ok(())
    }
}

/// Checks the number of keys of an operation.
///
/// # Errors
///
/// Returns an error if there are too many keys.
pub(crate) fn check_key_count(keys: usize) -> Result<(), StateError> {
    if keys > MAX_OPERATION_KEYS {
        Err(StateError::Batch)
    } else {
        Ok(())
    }
}

fn check_value(value: &[u8]) -> Result<(), StateError> {
    if value.len() > MAX_VALUE_BYTES {
        Err(StateError::Value(value.len()))
    } else {
        Ok(())
    }
}
