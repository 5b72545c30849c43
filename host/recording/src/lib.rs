//! Recordings of calls: arguments, the host's answers to the guest, and the outcome, as lines of
//! JSON in a file.
//!
//! A [`CallRecorder`] accepts [`RecordedCall`]s from any thread and passes them to a writer thread.
//! A [`RecordingReader`] reads them, and [`compare()`] returns the differences between a call and
//! its replay. The crate does not depend on wasmtime, the catalog or the protocol: the sandbox
//! records and replays the [`HostAnswers`] of a call, and the `toolbay` crate does the rest.

mod binary_text;
mod compare;
mod error;
mod file;
mod header;
mod host_answers;
mod http;
mod missing_input;
mod outcome;
mod reader;
mod recorded_call;
mod recorder;
mod recording_line;
mod reservation;
mod writer;

pub use self::binary_text::BinaryText;
pub use self::compare::{
    FigurePair, ReplayChange, ReplayComparison, ReplayVerdict, ReplayedCall, compare,
};
pub use self::error::RecordingError;
pub use self::file::RecordingFile;
pub use self::header::RecordingHeader;
pub use self::host_answers::{HostAnswers, HostOperation, OperationResult, RandomSeed};
pub use self::http::{HttpAnswer, HttpError};
pub use self::missing_input::MissingInput;
pub use self::outcome::{RecordedOutcome, error_result, reply_result};
pub use self::reader::{RecordingItem, RecordingReader};
pub use self::recorded_call::{RecordedCall, RecordedQuestions, RecordedUsage, variable_digest};
pub use self::recorder::{CallRecorder, RecordingSettings};
pub use self::reservation::RecordingReservation;
