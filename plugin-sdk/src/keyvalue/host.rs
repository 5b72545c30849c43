//! Buckets of the host.

use super::error::Error;
use bindings::wasi::keyvalue::{atomics, store};

mod bindings {
    #![allow(
        missing_docs,
        unreachable_pub,
        unsafe_code,
        clippy::pedantic,
        clippy::allow_attributes_without_reason,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unwrap_used,
        reason = "this module is generated; lifting and lowering values needs `unsafe`"
    )]

    wit_bindgen::generate!({ path: "src/keyvalue/wit", world: "keyvalue", generate_all });
}

#[derive(Debug)]
pub(super) struct Bucket(store::Bucket);

pub(super) fn open(name: &str) -> Result<Bucket, Error> {
    Ok(Bucket(store::open(name)?))
}

impl Bucket {
    pub(super) fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.0.get(key)?)
    }

    pub(super) fn set(&self, key: &str, value: &[u8]) -> Result<(), Error> {
        Ok(self.0.set(key, value)?)
    }

    pub(super) fn delete(&self, key: &str) -> Result<(), Error> {
        Ok(self.0.delete(key)?)
    }

    pub(super) fn exists(&self, key: &str) -> Result<bool, Error> {
        Ok(self.0.exists(key)?)
    }

    pub(super) fn increment(&self, key: &str, by: u64) -> Result<u64, Error> {
        Ok(atomics::increment(&self.0, key, by)?)
    }

    pub(super) fn list_keys(
        &self,
        cursor: Option<u64>,
    ) -> Result<(Vec<String>, Option<u64>), Error> {
        let page = self.0.list_keys(cursor)?;
        Ok((page.keys, page.cursor))
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::AccessDenied => Self::Denied,
            store::Error::NoSuchStore => Self::NoSuchBucket,
            store::Error::Other(what) => Self::Other(what),
        }
    }
}
