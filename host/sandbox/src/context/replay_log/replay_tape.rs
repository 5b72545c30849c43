//! The log of a call, and its answers that are neither operations nor clock readings.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, MutexGuard};
use toolbay_recording::{
    HostAnswers, MissingInput, RandomSeed, RecordingReservation, variable_digest,
};
use toolbay_secrets::SecretFilter;

use super::finished_recording::TapedCall;
use super::tape_reel::{
    MAX_NOTED_OPERATIONS, OPERATION_OVERHEAD_BYTES, PlaybackState, RecordingState, ReplayInput,
    SMALL_ANSWER_BYTES, TapeMode,
};

/// Log that records or replays the host's answers in a call. Clones share it. The default does
/// neither.
#[derive(Clone, Default)]
pub struct ReplayTape(Option<Arc<Mutex<TapeMode>>>);

/// Differences between a replayed call and its recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayDeviation {
    /// Operations of the call that the recording does not have.
    pub unrecorded: Vec<String>,
    /// Recorded operations that the call did not repeat.
    pub not_repeated: Vec<String>,
    /// Features that the call used and that recordings do not cover.
    pub missing: Vec<MissingInput>,
}

impl ReplayTape {
    /// Creates a log that records within `reservation`. All random numbers of the call are derived
    /// from `seed`. `salt` is the salt of the recording.
    pub fn record(seed: [u8; 32], salt: &str, reservation: RecordingReservation) -> Self {
        let began = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let began = u64::try_from(began.as_nanos()).unwrap_or_default();
        Self::with_mode(TapeMode::Record(RecordingState {
            answers: HostAnswers {
                began,
                seed: RandomSeed(seed),
                ..HostAnswers::default()
            },
            began: Instant::now(),
            last_time: 0,
            salt: salt.to_owned(),
            operations: Vec::new(),
            cancel_checks: 0,
            missing: BTreeSet::new(),
            reservation: Some(reservation),
            secrets: Arc::default(),
        }))
    }

    /// Creates a log that replays a recording.
    pub fn replay(mut recording: ReplayInput) -> Self {
        let clock = std::mem::take(&mut recording.answers.clock).into_iter();
        let polls = std::mem::take(&mut recording.answers.polls).into_iter();
        let operations = std::mem::take(&mut recording.answers.operations)
            .into_iter()
            .map(Some)
            .collect();
        Self::with_mode(TapeMode::Replay(PlaybackState {
            input: recording,
            clock,
            last_time: 0,
            polls,
            cancel_checks: 0,
            operations,
            unrecorded: Vec::new(),
            missing: BTreeSet::new(),
            secrets: Arc::default(),
        }))
    }

    fn with_mode(mode: TapeMode) -> Self {
        Self(Some(Arc::new(Mutex::new(mode))))
    }

    /// Discards the recording, because the request does not fit in the reservation.
    pub fn mark_too_large(&self) {
        if let Some(TapeMode::Record(recording)) = self.lock_mode().as_deref_mut() {
            recording.reserve(usize::MAX);
        }
    }

    /// Ends recording. Returns `None` if nothing was recorded.
    pub fn finish_recording(&self) -> Option<TapedCall> {
        let mut mode = self.lock_mode()?;
        let TapeMode::Record(recording) = &mut *mode else {
            return None;
        };
        Some(TapedCall {
            answers: std::mem::take(&mut recording.answers),
            operations: std::mem::take(&mut recording.operations),
            missing: std::mem::take(&mut recording.missing),
            reservation: recording.reservation.take(),
            secrets: Arc::clone(&recording.secrets),
        })
    }

    /// Returns the differences between a replayed call and its recording.
    pub fn deviation(&self) -> ReplayDeviation {
        match self.lock_mode().as_deref_mut() {
            Some(TapeMode::Replay(playback)) => ReplayDeviation {
                unrecorded: playback.unrecorded.clone(),
                not_repeated: playback
                    .operations
                    .iter()
                    .flatten()
                    .take(MAX_NOTED_OPERATIONS)
                    .map(|operation| operation.what.clone())
                    .collect(),
                missing: playback.missing.iter().copied().collect(),
            },
            _ => ReplayDeviation::default(),
        }
    }

    /// Returns whether the log neither records nor replays.
    pub(crate) fn is_off(&self) -> bool {
        self.0.is_none()
    }

    /// Returns whether the log replays a recording.
    pub(crate) fn is_replay(&self) -> bool {
        matches!(self.lock_mode().as_deref(), Some(TapeMode::Replay(_)))
    }

    /// Returns whether the call can send HTTP requests according to the recording; `None` if there
    /// is no replay.
    pub(crate) fn recorded_http(&self) -> Option<bool> {
        match self.lock_mode().as_deref() {
            Some(TapeMode::Replay(playback)) => Some(playback.input.http),
            _ => None,
        }
    }

    /// Returns whether the call has mounted directories according to the recording; `None` if there
    /// is no replay.
    pub(crate) fn recorded_mounts(&self) -> Option<bool> {
        match self.lock_mode().as_deref() {
            Some(TapeMode::Replay(playback)) => Some(playback.input.mounts),
            _ => None,
        }
    }

    /// Sets the secrets that the log must not contain. A recording contains placeholders instead.
    pub(crate) fn set_secrets(&self, secrets: &Arc<SecretFilter>) {
        match self.lock_mode().as_deref_mut() {
            None => {}
            Some(TapeMode::Record(recording)) => recording.secrets = Arc::clone(secrets),
            Some(TapeMode::Replay(playback)) => playback.secrets = Arc::clone(secrets),
        }
    }

    /// Returns the description of an operation for the log, without secrets and without any encoded
    /// forms of them.
    pub(crate) fn redact_description(&self, what: &str) -> String {
        let secrets = match self.lock_mode().as_deref() {
            None => return what.to_owned(),
            Some(TapeMode::Record(recording)) => Arc::clone(&recording.secrets),
            Some(TapeMode::Replay(playback)) => Arc::clone(&playback.secrets),
        };
        secrets.scrub(what).into_owned()
    }

    /// Returns the value of an environment variable: `value`, or the recorded one in a replay.
    pub(crate) fn variable(
        &self,
        name: &str,
        value: impl FnOnce() -> Option<String>,
    ) -> Option<String> {
        match self.lock_mode().as_deref_mut() {
            None => value(),
            Some(TapeMode::Replay(playback)) => playback.input.variables.get(name).cloned(),
            Some(TapeMode::Record(recording)) => {
                let value = value()?;
                if recording.secrets.contains_secret(value.as_bytes()) {
                    let marked = recording.secrets.scrub(&value).into_owned();
                    if recording.reserve(name.len() + marked.len()) {
                        recording.answers.marked.insert(name.to_owned(), marked);
                        recording.answers.redacted = true;
                    }
                } else if recording.reserve(name.len() + OPERATION_OVERHEAD_BYTES) {
                    let digest = variable_digest(&recording.salt, name, &value);
                    recording.answers.variables.insert(name.to_owned(), digest);
                }
                Some(value)
            }
        }
    }

    /// Returns the environment variables with the trace context: `variables`, or the recorded ones
    /// in a replay.
    pub(crate) fn trace_variables(
        &self,
        variables: Vec<(&'static str, String)>,
    ) -> Vec<(String, String)> {
        let owned = variables
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        match self.lock_mode().as_deref_mut() {
            None => owned.collect(),
            Some(TapeMode::Replay(playback)) => {
                playback.input.answers.trace.clone().into_iter().collect()
            }
            Some(TapeMode::Record(recording)) => {
                let variables: Vec<_> = owned.collect();
                if recording.reserve(
                    variables
                        .iter()
                        .map(|(name, value)| name.len() + value.len())
                        .sum(),
                ) {
                    recording.answers.trace.extend(variables.iter().cloned());
                }
                variables
            }
        }
    }

    /// Returns whether the call was cancelled: the result of `check`, or the recorded one in a
    /// replay.
    pub(crate) fn is_cancelled(&self, check: impl FnOnce() -> bool) -> bool {
        match self.lock_mode().as_deref_mut() {
            None => check(),
            Some(TapeMode::Replay(playback)) => {
                let is_cancelled = playback
                    .input
                    .answers
                    .cancelled
                    .is_some_and(|after| playback.cancel_checks >= after);
                playback.cancel_checks += 1;
                is_cancelled
            }
            Some(TapeMode::Record(recording)) => {
                let is_cancelled = check();
                if is_cancelled {
                    recording
                        .answers
                        .cancelled
                        .get_or_insert(recording.cancel_checks);
                }
                recording.cancel_checks += 1;
                is_cancelled
            }
        }
    }

    /// Returns the recorded result of the next poll, or `None` if the log does not replay.
    pub(crate) fn next_recorded_poll(&self) -> Option<Vec<u32>> {
        match self.lock_mode().as_deref_mut() {
            Some(TapeMode::Replay(playback)) => playback.polls.next(),
            _ => None,
        }
    }

    /// Records the result of a poll.
    pub(crate) fn record_poll(&self, ready: &[u32]) {
        if let Some(TapeMode::Record(recording)) = self.lock_mode().as_deref_mut()
            && recording.reserve(SMALL_ANSWER_BYTES + size_of_val(ready))
        {
            recording.answers.polls.push(ready.to_vec());
        }
    }

    /// Notes that the call depends on something that recordings do not cover.
    pub(crate) fn note_missing(&self, missing: MissingInput) {
        match self.lock_mode().as_deref_mut() {
            None => {}
            Some(TapeMode::Record(recording)) => drop(recording.missing.insert(missing)),
            Some(TapeMode::Replay(playback)) => drop(playback.missing.insert(missing)),
        }
    }

    // The lock is held for a few instructions and never across an await.
    pub(super) fn lock_mode(&self) -> Option<MutexGuard<'_, TapeMode>> {
        Some(self.0.as_ref()?.lock())
    }
}

impl fmt::Debug for ReplayTape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.lock_mode().as_deref() {
            None => "Tape(off)",
            Some(TapeMode::Record(_)) => "Tape(records)",
            Some(TapeMode::Replay(_)) => "Tape(plays)",
        })
    }
}
