//! Buckets in memory, for native tests.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::error::Error;

type BucketValues = BTreeMap<String, Vec<u8>>;

thread_local! {
    /// The buckets of a test. Each test runs on its own thread.
    static BUCKETS: RefCell<BTreeMap<String, BucketValues>> = const { RefCell::new(BTreeMap::new()) };
}

#[derive(Debug)]
pub(super) struct Bucket(String);

#[allow(
    clippy::unnecessary_wraps,
    reason = "it has the signature of the host's"
)]
pub(super) fn open(name: &str) -> Result<Bucket, Error> {
    Ok(Bucket(name.to_owned()))
}

#[allow(
    clippy::unnecessary_wraps,
    reason = "they have the signatures of the host's"
)]
impl Bucket {
    fn with_values<T>(&self, act: impl FnOnce(&mut BucketValues) -> T) -> T {
        BUCKETS.with_borrow_mut(|buckets| act(buckets.entry(self.0.clone()).or_default()))
    }

    pub(super) fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.with_values(|values| values.get(key).cloned()))
    }

    pub(super) fn set(&self, key: &str, value: &[u8]) -> Result<(), Error> {
        self.with_values(|values| values.insert(key.to_owned(), value.to_vec()));
        Ok(())
    }

    pub(super) fn delete(&self, key: &str) -> Result<(), Error> {
        self.with_values(|values| values.remove(key));
        Ok(())
    }

    pub(super) fn exists(&self, key: &str) -> Result<bool, Error> {
        Ok(self.with_values(|values| values.contains_key(key)))
    }

    pub(super) fn increment(&self, key: &str, by: u64) -> Result<u64, Error> {
        self.with_values(|values| {
            let number = |value: &Vec<u8>| std::str::from_utf8(value).ok()?.parse::<u64>().ok();
            let before = values.get(key).map_or(Some(0), number);
            let sum = before.and_then(|before| before.checked_add(by));
            let sum =
                sum.ok_or_else(|| Error::Other(format!("the value of {key} is no number")))?;
            values.insert(key.to_owned(), sum.to_string().into_bytes());
            Ok(sum)
        })
    }

    pub(super) fn list_keys(&self, _: Option<u64>) -> Result<(Vec<String>, Option<u64>), Error> {
        Ok((
            self.with_values(|values| values.keys().cloned().collect()),
            None,
        ))
    }
}
