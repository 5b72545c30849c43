//! Recordings of calls: arguments, the host's answers to the guest, and the outcome, as lines of
//! JSON in a file.
//!
//! A [`CallRecorder`] accepts [`RecordedCall`]s from any thread and passes them to a writer thread.
//! A [`RecordingReader`] reads them, and [`compare()`] returns the differences between a call and
//! its replay. The crate does not depend on wasmtime, the catalog or the protocol: the sandbox
//! records and replays the [`HostAnswers`] of a call, and the `toolbay` crate does the rest.

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
