//! What keeps the state of plugins.

use std::fmt::Debug;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::bucket::Bucket;
use crate::change::{Change, Changed};
use crate::error::Error;
use crate::payer::Payer;
use crate::quota::Quota;
use crate::reading::{Page, Start};

/// The answer to an operation. Dropping it gives the operation up: a change then happens wholly or not at all.
pub type Answer<T> = BoxFuture<'static, Result<T, Error>>;

/// What keeps the state of plugins. Its futures run on any Tokio runtime with a timer, and never block its threads.
///
/// Whoever was told that a change is done finds it in every later read, and after the process was killed.
pub trait Store: Debug + Send + Sync {
    /// Makes everything ready that the first operation would, to find out whether that is possible.
    fn open(&self) -> Answer<()>;

    /// The values of keys, in the same order; `None` for each key that does not exist.
    fn get(&self, bucket: &Bucket, keys: Vec<String>, payer: Arc<dyn Payer>) -> Answer<Vec<Option<Vec<u8>>>>;

    /// Whether a key exists.
    fn exists(&self, bucket: &Bucket, key: String, payer: Arc<dyn Payer>) -> Answer<bool>;

    /// A page of the bucket's keys, in the order of their bytes.
    fn keys(&self, bucket: &Bucket, start: Start, payer: Arc<dyn Payer>) -> Answer<Page>;

    /// Changes the bucket, within the quota of its owner. What makes an owner's state smaller is always allowed.
    fn change(&self, bucket: &Bucket, quota: Quota, change: Change, payer: Arc<dyn Payer>) -> Answer<Changed>;
}
