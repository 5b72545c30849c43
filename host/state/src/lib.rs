//! What plugins keep from one call to the next: keys and values in buckets, within quotas.
//!
//! The sandbox asks a [`StateStore`] for what a guest wants of `wasi:keyvalue`. [`StateDatabase`] is the store that keeps
//! everything in one file of a private folder; a server that many share could be another. Each [`StateOwner`] sees what is
//! its own and nothing else: a plugin, or one caller of a plugin.
//!
//! What the database does for a call is drawn from the call ([`WorkPayer`]): memory before a value is read, processor time,
//! and the time until its deadline. Reads run on threads that may block. All changes go through one thread, which
//! commits those that wait together, so that a change waits for one `fsync` at the most and many callers share it. A
//! change is answered after it is on disk, wholly or not at all.
//!
//! This crate does not know wasmtime, grants or the protocol.

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
