//! A bucket of an owner.

use std::sync::Arc;

use crate::bounds::BUCKET;
use crate::error::StateError;
use crate::owner::StateOwner;

/// The bucket that the empty name stands for.
const DEFAULT: &str = "default";

/// A bucket: a set of keys with a name. It exists as long as it has keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateBucket {
    owner: StateOwner,
    name: Arc<str>,
}

impl StateBucket {
    /// The owner's bucket with this name. The empty name stands for `default`.
    ///
    /// # Errors
    ///
    /// [`StateError::Bucket`]: the name is longer than 64 bytes or has control characters.
    pub fn new(owner: StateOwner, name: &str) -> Result<Self, StateError> {
        if name.len() > BUCKET || name.chars().any(char::is_control) {
            return Err(StateError::Bucket);
        }
        Ok(Self { owner, name: if name.is_empty() { DEFAULT } else { name }.into() })
    }

    /// Whose it is.
    pub fn owner(&self) -> &StateOwner {
        &self.owner
    }

    /// Its name, never empty.
    pub fn name(&self) -> &str {
        &self.name
    }
}
