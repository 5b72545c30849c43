//! The audit log: one line for each load, call, denial and limit, in files whose lines cannot be changed unnoticed.
//!
//! An [`AuditLog`] takes [`AuditEvent`]s from any thread and hands them to a thread that writes. Each line holds the hash of the
//! line before it (`chain`); the newest line is signed after each write (`head`), and from time to time within the log
//! (`checkpoint`). What clients can cause at will is in a [`LogPart`] of its own, and repeated rejections are counted
//! (`series`). [`verify`] finds every line that was changed, cut, swapped or inserted, and [`LineReader`] reads the log.
//! Nothing here knows wasmtime, JSON-RPC or the catalog: events come from the `toolbay` crate as plain data, and go to
//! files in one private folder.

mod anchor;
mod chain;
mod claim;
mod error;
mod event;
mod folder;
mod head;
mod journal;
mod key;
mod lines;
mod part;
mod queue;
mod recovery;
mod series;
mod tail;
mod timed;
mod verify;
mod writer;

pub use self::chain::hash;
pub use self::error::AuditError;
pub use self::event::{
    ArgumentsRecord, AuditEvent, CallRecord, CallSubject, OperatorRecord, PluginRecord, RejectedRecord, shortened,
};
pub use self::key::PublicKey;
pub use self::lines::{LineReader, LogLine};
pub use self::part::LogPart;
pub use self::queue::{AuditLog, AuditSettings, QueueReservation, WhenFull};
pub use self::tail::tail;
pub use self::timed::MergedLines;
pub use self::verify::{PartReport, VerifyFinding, VerifyReport, verify};
