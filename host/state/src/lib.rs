//! Persistent state of plugins: keys and values in buckets, within quotas.
//!
//! The sandbox implements `wasi:keyvalue` on a [`StateStore`]. [`StateDatabase`] is the store that
//! uses one file in a private directory; a store on a shared server is another possibility. Each
//! [`StateOwner`] can access only its own state. An owner is a plugin, or one caller of a plugin.
//!
//! The work of the database is charged to the call ([`WorkPayer`]): memory before a value is read,
//! processor time, and the time until the deadline. Reads run on blocking threads. All changes go
//! through one thread, which commits queued changes together, so that a change waits for at most
//! one `fsync`, which many callers share. A change completes after it is on disk, and is applied
//! completely or not at all.
//!
//! This crate does not depend on wasmtime, grants or the protocol.

mod bounds;
mod bucket;
mod change;
mod database;
mod database_file;
mod error;
mod owner;
mod payer;
mod queries;
mod quota;
mod store;
mod tables;
mod usage;
mod value_version;
mod writer;

pub use self::bounds::{
    MAX_KEY_BYTES, MAX_OPERATION_BYTES, MAX_OPERATION_KEYS, MAX_PAGE_KEYS, MAX_VALUE_BYTES,
    TARGET_PAGE_BYTES,
};
pub use self::bucket::StateBucket;
pub use self::change::{BucketChange, ChangeOutcome};
pub use self::database::StateDatabase;
pub use self::error::StateError;
pub use self::owner::StateOwner;
pub use self::payer::{UnmeteredPayer, WorkPayer};
pub use self::queries::{KeyPage, PageStart};
pub use self::quota::{QuotaUsage, StateQuota};
pub use self::store::{EntryPredicate, StateFuture, StateStore};
pub use self::usage::OwnerUsage;
pub use self::value_version::ValueVersion;
