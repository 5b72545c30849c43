//! Recordings of calls: what was asked, what the host answered to the guest, and what came of it, as lines of JSON in one
//! file.
//!
//! A [`Recorder`] takes [`Call`]s from any thread and hands them to a thread that writes; a [`Reader`] gives them back, and
//! [`compare()`] says what differs when a call runs again. Nothing here knows wasmtime, the catalog or the protocol: the
//! sandbox fills the [`Answers`] of a call, or gets them, and the `toolbay` crate does the rest.

mod answers;
mod blob;
mod call;
mod compare;
mod error;
mod file;
mod header;
mod http;
mod line;
mod missing;
mod outcome;
mod queue;
mod reader;
mod room;
mod writer;

pub use self::answers::{Answer, Answers, Operation, Seed};
pub use self::blob::Blob;
pub use self::call::{Asked, Call, Used, variable};
pub use self::compare::{Change, Comparison, Figure, Replayed, Verdict, compare};
pub use self::error::RecordingError;
pub use self::file::Opened;
pub use self::header::Header;
pub use self::http::{HttpAnswer, HttpError};
pub use self::missing::Missing;
pub use self::outcome::{Outcome, failed, replied};
pub use self::queue::{Recorder, Settings};
pub use self::reader::{Item, Reader};
pub use self::room::Room;
