//! Persistent state of plugins: keys and values in buckets, within quotas.
//!
//! The sandbox implements `wasi:keyvalue` on a [`StateStore`]. [`StateDatabase`] is the store that
//! uses one file in a private directory; a store on a shared server is another possibility. Each
//! [`StateOwner`] can access only its own state. An owner is a plugin, or one caller of a plugin.
//!
//! The work of the database is charged to the call ([`WorkPayer`]): memory before a value is read,
//! processor time, and the time until the deadline. Reads run on blocking threads. All changes go
//! through one thread, which commits queued changes together, so that a change
//! waits for at most one `fsync`, which many callers share. A change completes after it is on disk,
//! and is applied completely or not at all.
//!
//! This crate does not depend on wasmtime, grants or the protocol.

mod bounds;
mod bucket;
mod change;
mod database;
mod error;
mod file;
mod holding;
mod owner;
mod payer;
mod quota;
mod reading;
mod store;
mod tables;
mod version;
mod writer;

pub use self::bounds::{BATCH, BATCH_KEYS, KEY, PAGE_BYTES, PAGE_KEYS, VALUE};
pub use self::bucket::StateBucket;
pub use self::change::{BucketChange, ChangeOutcome};
pub use self::database::StateDatabase;
pub use self::error::StateError;
pub use self::holding::OwnerUsage;
pub use self::owner::StateOwner;
pub use self::payer::{UnmeteredPayer, WorkPayer};
pub use self::quota::{QuotaUsage, StateQuota};
pub use self::reading::{KeyPage, PageStart};
pub use self::store::{StateFuture, StateStore};
pub use self::version::ValueVersion;
