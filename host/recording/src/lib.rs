//! Recordings of calls: what was asked, what the host answered to the guest, and what came of it, as lines of JSON in one
//! file.
//!
//! A [`CallRecorder`] takes [`RecordedCall`]s from any thread and hands them to a thread that writes; a [`RecordingReader`] gives them back, and
//! [`compare()`] says what differs when a call runs again. Nothing here knows wasmtime, the catalog or the protocol: the
//! sandbox fills the [`HostAnswers`] of a call, or gets them, and the `toolbay` crate does the rest.

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

pub use self::answers::{HostAnswers, HostOperation, OperationResult, RandomSeed};
pub use self::blob::BinaryText;
pub use self::call::{RecordedCall, RecordedQuestions, RecordedUsage, variable};
pub use self::compare::{FigurePair, ReplayChange, ReplayComparison, ReplayVerdict, ReplayedCall, compare};
pub use self::error::RecordingError;
pub use self::file::RecordingFile;
pub use self::header::RecordingHeader;
pub use self::http::{HttpAnswer, HttpError};
pub use self::missing::MissingInput;
pub use self::outcome::{RecordedOutcome, failed, replied};
pub use self::queue::{CallRecorder, RecordingSettings};
pub use self::reader::{RecordingItem, RecordingReader};
pub use self::room::RecordingReservation;
