//! Bucket of an owner.

use std::sync::Arc;

use crate::bounds::MAX_BUCKET_NAME_BYTES;
use crate::error::StateError;
use crate::owner::StateOwner;

/// Name of the bucket that the empty name stands for.
const DEFAULT_NAME: &str = "default";

/// Bucket: a named set of keys. It exists while it contains keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateBucket {
    owner: StateOwner,
    name: Arc<str>,
}

impl StateBucket {
    /// Returns the owner's bucket with this name. The empty name stands for `default`.
    ///
    /// # Errors
    ///
    /// Returns [`StateError::Bucket`] if the name is longer than 64 bytes or has control
    /// characters.
    pub fn new(owner: StateOwner, name: &str) -> Result<Self, StateError> {
        if name.len() > MAX_BUCKET_NAME_BYTES || name.chars().any(char::is_control) {
            return Err(StateError::Bucket);
        }
        Ok(Self {
            owner,
            name: if name.is_empty() { DEFAULT_NAME } else { name }.into(),
        })
    }

    /// Returns the owner of the bucket.
    pub fn owner(&self) -> &StateOwner {
        &self.owner
    }

    /// Returns the name of the bucket, which is never empty.
    pub fn name(&self) -> &str {
        &self.name
    }
}
