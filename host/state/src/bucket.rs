//! A bucket of an owner.

use std::sync::Arc;

use crate::bounds::BUCKET;
use crate::error::Error;
use crate::owner::Owner;

/// The bucket that the empty name stands for.
const DEFAULT: &str = "default";

/// A bucket: a set of keys with a name. It exists as long as it has keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    owner: Owner,
    name: Arc<str>,
}

impl Bucket {
    /// The owner's bucket with this name. The empty name stands for `default`.
    ///
    /// # Errors
    ///
    /// [`Error::Bucket`]: the name is longer than 64 bytes or has control characters.
    pub fn new(owner: Owner, name: &str) -> Result<Self, Error> {
        if name.len() > BUCKET || name.chars().any(char::is_control) {
            return Err(Error::Bucket);
        }
        Ok(Self { owner, name: if name.is_empty() { DEFAULT } else { name }.into() })
    }

    /// Whose it is.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Its name, never empty.
    pub fn name(&self) -> &str {
        &self.name
    }
}
