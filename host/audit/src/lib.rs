//! The audit log: one line for each load, call, denial and limit, in files whose lines cannot be changed unnoticed.
//!
//! An [`Audit`] takes [`Event`]s from any thread and hands them to a thread that writes. Each line holds the hash of the
//! line before it (`chain`); the newest line is signed after each write (`head`), and from time to time within the log
//! (`checkpoint`). [`verify`] finds every line that was changed, cut, swapped or inserted, and [`Lines`] reads the log.
//! Nothing here knows wasmtime, JSON-RPC or the catalog: events come from the `toolbay` crate as plain data, and go to
//! files in one private folder.

mod chain;
mod claim;
mod error;
mod event;
mod folder;
mod head;
mod journal;
mod key;
mod lines;
mod queue;
mod recovery;
mod tail;
mod verify;
mod writer;

pub use self::chain::hash;
pub use self::error::AuditError;
pub use self::event::{ArgumentsRecord, CallRecord, Event, OperatorRecord, PluginRecord, Subject, shortened};
pub use self::key::PublicKey;
pub use self::lines::{Line, Lines};
pub use self::queue::{Audit, Settings};
pub use self::tail::tail;
pub use self::verify::{Finding, Report, verify};
