//! State that outlives a call, in key-value buckets. Requires the feature `keyvalue` and a grant of
//! the operator.
//!
//! ```
//! # use toolbay_plugin::prelude::*;
//! use toolbay_plugin::keyvalue;
//!
//! # fn main() -> Result<()> {
//! let notes = keyvalue::open("notes")?;
//! notes.set("milk", "buy some")?;
//! assert_eq!(notes.get_text("milk")?.as_deref(), Some("buy some"));
//! # Ok(()) }
//! ```
//!
//! The grant must have `[permissions.state]`. In native tests, the state is in memory, and each
//! thread has its own state.

mod error;
#[cfg(target_family = "wasm")]
mod host;
#[cfg(not(target_family = "wasm"))]
mod memory;

pub use error::Error;
#[cfg(target_family = "wasm")]
use host as store;
#[cfg(not(target_family = "wasm"))]
use memory as store;

/// A bucket of keys and their values.
#[derive(Debug)]
pub struct Bucket(store::Bucket);

/// Opens a bucket of the plugin. The empty name stands for the bucket `default`.
///
/// # Errors
///
/// Returns [`Error::Denied`] if the grant has no `[permissions.state]`.
pub fn open(name: &str) -> Result<Bucket, Error> {
    store::open(name).map(Bucket)
}

/// Every method fails with [`Error::Other`] if the host cannot perform the operation, for example
/// because a quota is exhausted.
impl Bucket {
    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        self.0.get(key)
    }

    /// Returns the value of a key as text. Bytes that are not UTF-8 become `U+FFFD`.
    pub fn get_text(&self, key: &str) -> Result<Option<String>, Error> {
        Ok(self
            .get(key)?
            .map(|value| String::from_utf8_lossy(&value).into_owned()))
    }

    /// Sets the value of a key.
    pub fn set(&self, key: &str, value: impl AsRef<[u8]>) -> Result<(), Error> {
        self.0.set(key, value.as_ref())
    }

    /// Removes a key, if it exists.
    pub fn delete(&self, key: &str) -> Result<(), Error> {
        self.0.delete(key)
    }

    /// Returns whether a key has a value.
    pub fn exists(&self, key: &str) -> Result<bool, Error> {
        self.0.exists(key)
    }

    /// Adds `by` to the number that a key has, which is 0 at first, and returns the sum. The
    /// operation is atomic: no concurrent call is lost.
    pub fn increment(&self, key: &str, by: u64) -> Result<u64, Error> {
        self.0.increment(key, by)
    }

    /// Returns all keys, in no particular order.
    pub fn keys(&self) -> Result<Vec<String>, Error> {
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let (mut keys, next) = self.0.list_keys(cursor)?;
            all.append(&mut keys);
            if next.is_none() {
                return Ok(all);
            }
            cursor = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_keeps_what_it_is_given() {
        let bucket = open("a").unwrap();
        assert_eq!(bucket.get("x").unwrap(), None);
        bucket.set("x", "é").unwrap();
        bucket.set("y", [1, 2]).unwrap();
        assert_eq!(
            open("a").unwrap().get_text("x").unwrap().as_deref(),
            Some("é")
        );
        assert_eq!(bucket.get("y").unwrap(), Some(vec![1, 2]));
        bucket.delete("y").unwrap();
        assert!(bucket.exists("x").unwrap() && !bucket.exists("y").unwrap());
        assert_eq!(
            (
                bucket.increment("n", 2).unwrap(),
                bucket.increment("n", 2).unwrap()
            ),
            (2, 4)
        );
        assert_eq!(bucket.keys().unwrap(), ["n", "x"]);
        assert!(open("b").unwrap().keys().unwrap().is_empty());
    }

    #[test]
    fn what_is_no_number_is_not_counted() {
        let bucket = open("c").unwrap();
        bucket.set("x", "many").unwrap();
        let error = bucket.increment("x", 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "The state cannot be used: the value of x is no number."
        );
    }
}
