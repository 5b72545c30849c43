//! Interface of state stores.

use std::fmt::Debug;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::bucket::StateBucket;
use crate::change::{BucketChange, ChangeOutcome};
use crate::error::StateError;
use crate::payer::WorkPayer;
use crate::queries::{KeyPage, PageStart};
use crate::quota::{QuotaUsage, StateQuota};

/// Result of an operation. Dropping the future abandons the operation: a change is then applied
/// completely or not at all.
pub type StateFuture<T> = BoxFuture<'static, Result<T, StateError>>;

/// Function that selects entries by key and value.
pub type EntryPredicate = Arc<dyn Fn(&str, &[u8]) -> bool + Send + Sync>;

/// Store for the state of plugins. Its futures run on any Tokio runtime with a timer, and never
/// block its threads.
///
/// After a change completes, every later read observes it, even if the process was killed in
/// between.
pub trait StateStore: Debug + Send + Sync {
    /// Prepares the store like the first operation would, to check that it is usable.
    fn open(&self) -> StateFuture<()>;

    /// Returns the values of keys, in the same order; `None` for each key that does not exist.
    fn get(
        &self,
        bucket: &StateBucket,
        keys: Vec<String>,
        payer: Arc<dyn WorkPayer>,
    ) -> StateFuture<Vec<Option<Vec<u8>>>>;

    /// Returns whether a key exists.
    fn exists(
        &self,
        bucket: &StateBucket,
        key: String,
        payer: Arc<dyn WorkPayer>,
    ) -> StateFuture<bool>;

    /// Returns a page of the bucket's keys, in byte order.
    fn keys(
        &self,
        bucket: &StateBucket,
        start: PageStart,
        payer: Arc<dyn WorkPayer>,
    ) -> StateFuture<KeyPage>;

    /// Changes the bucket, within the quota of its owner. Changes that reduce the owner's state are
    /// always allowed.
    fn change(
        &self,
        bucket: &StateBucket,
        quota: StateQuota,
        change: BucketChange,
        payer: Arc<dyn WorkPayer>,
    ) -> StateFuture<ChangeOutcome>;

    /// Deletes the entries for which `is_deleted` returns true, of all owners whose plugin begins
    /// with `prefix`. Each entry is compared and deleted atomically; other changes can happen
    /// between two owners. Returns the size of the deleted entries.
    fn delete_where(&self, prefix: &str, is_deleted: EntryPredicate) -> StateFuture<QuotaUsage>;
}
