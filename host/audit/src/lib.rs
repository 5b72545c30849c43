//! The audit log: one line for each load, call, denial and limit, in tamper-evident files.
//!
//! An [`AuditLog`] accepts [`AuditEvent`]s from any thread and sends them to a writer thread. Each
//! line contains the hash of the previous line (`chain`). The newest line is signed after each
//! write (`head`), and checkpoint lines sign the log periodically. Events that clients can cause at
//! will are in a separate [`LogPart`], and repeated rejections are only counted.
//! [`verify`](fn@verify) finds every line that was changed, truncated, swapped or inserted.
//! [`LineReader`] reads the log.
//!
//! This crate does not depend on wasmtime, JSON-RPC or the catalog. Events come from the `toolbay`
//! crate as plain data and are written to files in one private directory.

mod anchor;
mod chain;
mod claim;
mod error;
mod event;
mod folder;
mod head;
mod key;
mod key_file;
mod line_reader;
mod merged_lines;
mod part;
mod part_writer;
mod plugin_record;
mod queue;
mod recovery;
mod rejection_series;
mod tail;
mod verify;
mod writer;

pub use self::chain::hash;
pub use self::error::AuditError;
pub use self::event::{
    ArgumentsRecord, AuditEvent, CallRecord, CallSubject, OperatorRecord, RejectedRecord,
    truncate_name,
};
pub use self::key::PublicKey;
pub use self::line_reader::{LineReader, LogLine};
pub use self::merged_lines::MergedLines;
pub use self::part::LogPart;
pub use self::plugin_record::{PluginRecord, VersionApprovalRecord};
pub use self::queue::{AuditLog, AuditSettings, QueueReservation, WhenFull};
pub use self::tail::tail;
pub use self::verify::{PartReport, VerifyFinding, VerifyReport, verify};
