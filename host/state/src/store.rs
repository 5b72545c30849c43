//! What keeps the state of plugins.

use std::fmt::Debug;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::bucket::StateBucket;
use crate::change::{BucketChange, ChangeOutcome};
use crate::error::StateError;
use crate::payer::WorkPayer;
use crate::quota::StateQuota;
use crate::reading::{KeyPage, PageStart};

/// The answer to an operation. Dropping it gives the operation up: a change then happens wholly or not at all.
pub type StateFuture<T> = BoxFuture<'static, Result<T, StateError>>;

/// What keeps the state of plugins. Its futures run on any Tokio runtime with a timer, and never block its threads.
///
/// Whoever was told that a change is done finds it in every later read, and after the process was killed.
pub trait StateStore: Debug + Send + Sync {
    /// Makes everything ready that the first operation would, to find out whether that is possible.
    fn open(&self) -> StateFuture<()>;

    /// The values of keys, in the same order; `None` for each key that does not exist.
    fn get(
        &self,
        bucket: &StateBucket,
        keys: Vec<String>,
        payer: Arc<dyn WorkPayer>,
    ) -> StateFuture<Vec<Option<Vec<u8>>>>;

    /// Whether a key exists.
    fn exists(&self, bucket: &StateBucket, key: String, payer: Arc<dyn WorkPayer>) -> StateFuture<bool>;

    /// A page of the bucket's keys, in the order of their bytes.
    fn keys(&self, bucket: &StateBucket, start: PageStart, payer: Arc<dyn WorkPayer>) -> StateFuture<KeyPage>;

    /// Changes the bucket, within the quota of its owner. What makes an owner's state smaller is always allowed.
    fn change(
        &self,
        bucket: &StateBucket,
        quota: StateQuota,
        change: BucketChange,
        payer: Arc<dyn WorkPayer>,
    ) -> StateFuture<ChangeOutcome>;
}
