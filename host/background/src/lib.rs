//! Work that requests leave to others, so that they do not wait for it, and the bounds on requests.
//!
//! A [`BackgroundWriter`] is a thread that writes in batches what any thread queues. A
//! [`RejectionLog`] writes one line about a rejected request, and later ones that count the
//! others. A [`SharedQuota`] limits what the requests of each owner hold.
//!
//! This crate does not depend on what is written: no files, formats or protocols.

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
