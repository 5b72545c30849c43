//! Background work, for which requests do not wait, and the bounds on requests.
//!
//! A [`BackgroundWriter`] writes items that any thread queues, in batches, on a separate thread. A
//! [`RejectionLog`] writes a line for the first rejected request of a series, and later lines with
//! the number of further ones. A [`SharedQuota`] limits what the requests of each owner hold.
//!
//! This crate does not depend on files, formats or protocols.

mod background_writer;
mod rejected_requests;
mod rejection_log;
mod shared_quota;

pub use self::background_writer::{
    BackgroundQueue, BackgroundWriter, BatchSpace, BatchWriter, EndTimeout, WriterEnded,
};
pub use self::rejected_requests::{RejectedCount, RejectedRequests};
pub use self::rejection_log::RejectionLog;
pub use self::shared_quota::{QuotaExhausted, QuotaPortion, SharedQuota};
