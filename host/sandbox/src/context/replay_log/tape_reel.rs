//! State of a log that records or replays.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use toolbay_recording::{HostAnswers, HostOperation, MissingInput, RecordingReservation};
use toolbay_secrets::SecretFilter;

use super::finished_recording::UnfinishedOperation;

/// Size of a recorded clock reading and of other small answers, in bytes.
pub(super) const SMALL_ANSWER_BYTES: usize = 8;

/// Size of a recorded operation in addition to its text, in bytes.
pub(super) const OPERATION_OVERHEAD_BYTES: usize = 64;

/// Maximum number of operations that a deviation lists as unrecorded or as not repeated.
pub(super) const MAX_NOTED_OPERATIONS: usize = 20;

/// The mode of a log, with its state.
pub(super) enum TapeMode {
    Record(RecordingState),
    Replay(PlaybackState),
}

/// State of a recording.
pub(super) struct RecordingState {
    pub(super) answers: HostAnswers,
    pub(super) began: Instant,
    /// The last clock reading.
    pub(super) last_time: u64,
    pub(super) salt: String,
    pub(super) operations: Vec<UnfinishedOperation>,
    /// Number of times that the guest checked for cancellation.
    pub(super) cancel_checks: u64,
    pub(super) missing: BTreeSet<MissingInput>,
    /// The memory reservation; `None` once it is exhausted.
    pub(super) reservation: Option<RecordingReservation>,
    pub(super) secrets: Arc<SecretFilter>,
}

/// State of a replay.
pub(super) struct PlaybackState {
    pub(super) input: ReplayInput,
    pub(super) clock: std::vec::IntoIter<u64>,
    pub(super) last_time: u64,
    pub(super) polls: std::vec::IntoIter<Vec<u32>>,
    pub(super) cancel_checks: u64,
    /// The recorded operations; `None` for those that the guest has repeated.
    pub(super) operations: Vec<Option<HostOperation>>,
    pub(super) unrecorded: Vec<String>,
    pub(super) missing: BTreeSet<MissingInput>,
    pub(super) secrets: Arc<SecretFilter>,
}

/// Recorded input of a call.
#[derive(Clone, Debug, Default)]
pub struct ReplayInput {
    /// The host's answers.
    pub answers: HostAnswers,
    /// The environment variables.
    pub variables: BTreeMap<String, String>,
    /// True if the call could send HTTP requests.
    pub http: bool,
    /// True if the call had mounted directories.
    pub mounts: bool,
}

impl RecordingState {
    /// Reserves memory, and returns whether there was enough. If there was not, discards the
    /// recording and records nothing more.
    pub(super) fn reserve(&mut self, bytes: usize) -> bool {
        let is_reserved = self
            .reservation
            .as_mut()
            .is_some_and(|reservation| reservation.try_reserve(bytes));
        if !is_reserved {
            self.missing.insert(MissingInput::TooLarge);
            self.reservation = None;
            self.operations.clear();
            let HostAnswers { began, seed, .. } = std::mem::take(&mut self.answers);
            self.answers = HostAnswers {
                began,
                seed,
                ..HostAnswers::default()
            };
        }
        is_reserved
    }
}
