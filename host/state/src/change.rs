//! Changes of a bucket.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::bounds::{BATCH, BATCH_KEYS, KEY, VALUE};
use crate::error::StateError;
use crate::version::ValueVersion;

/// A change of a bucket. It happens wholly or not at all, and no other change happens in the middle of it.
#[derive(Clone, Debug)]
pub enum BucketChange {
    /// Sets the values of keys. Of a key that occurs twice, the last value stays.
    Set(Vec<(String, Vec<u8>)>),
    /// Deletes keys. One that does not exist is no error.
    Delete(Vec<String>),
    /// Adds to the number that a value is, in decimal digits. A key that does not exist is 0.
    Increment {
        /// The key.
        key: String,
        /// What is added.
        delta: i128,
        /// The numbers that the value can have.
        range: RangeInclusive<i128>,
    },
    /// Sets the value of a key, if it still has this version.
    Swap {
        /// The key.
        key: String,
        /// The version that the value must have.
        expected: ValueVersion,
        /// The new value.
        value: Vec<u8>,
    },
}

/// What a change did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum ChangeOutcome {
    /// What was asked.
    Done,
    /// The number after [`BucketChange::Increment`].
    Number(i128),
    /// Nothing: [`BucketChange::Swap`] found the value in another version, which is this one.
    Conflict(ValueVersion),
}

impl BucketChange {
    /// Bytes of its keys and values.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Set(entries) => entries.iter().map(|(key, value)| key.len() + value.len()).sum(),
            Self::Delete(keys) => keys.iter().map(String::len).sum(),
            Self::Increment { key, .. } => key.len(),
            Self::Swap { key, value, .. } => key.len() + value.len(),
        }
    }

    /// # Errors
    ///
    /// More than one operation can have, or a key or value that cannot be kept.
    pub(crate) fn check(&self) -> Result<(), StateError> {
        match self {
            Self::Set(entries) => {
                batch(entries.len())?;
                entries.iter().try_for_each(|(key, value)| check_key(key).and_then(|()| check_value(value)))?;
            }
            Self::Delete(keys) => {
                batch(keys.len())?;
                keys.iter().try_for_each(|key| check_key(key))?;
            }
            Self::Increment { key, .. } => check_key(key)?,
            Self::Swap { key, value, .. } => check_key(key).and_then(|()| check_value(value))?,
        }
        if self.bytes() > BATCH { Err(StateError::Batch) } else { Ok(()) }
    }
}

/// # Errors
///
/// A key that cannot be kept.
pub(crate) fn check_key(key: &str) -> Result<(), StateError> {
    if key.len() > KEY { Err(StateError::Key(key.len())) } else { Ok(()) }
}

/// # Errors
///
/// More keys than one operation can have.
pub(crate) fn batch(keys: usize) -> Result<(), StateError> {
    if keys > BATCH_KEYS { Err(StateError::Batch) } else { Ok(()) }
}

fn check_value(value: &[u8]) -> Result<(), StateError> {
    if value.len() > VALUE { Err(StateError::Value(value.len())) } else { Ok(()) }
}
