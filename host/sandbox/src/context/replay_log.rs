//! Records the host's answers during a call, or replays them from a recording.
//!
//! In record mode, the log stores each answer while the host performs the guest's operations. In
//! replay mode, the log returns the recorded answers, and the host performs nothing: it sends no
//! request, and neither reads nor changes state. Both modes note operations that the log does not
//! cover. In record mode, such a call cannot be replayed. In replay mode, the call deviates from
//! the recording.

mod finished_recording;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng as _, SeedableRng as _};
use toolbay_recording::{
    HostAnswers, HostOperation, MissingInput, OperationResult, RandomSeed, RecordingReservation,
    variable_digest,
};
use toolbay_secrets::SecretFilter;
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtxBuilder};

pub(crate) use self::finished_recording::OperationKind;
pub use self::finished_recording::TapedCall;
use self::finished_recording::UnfinishedOperation;

/// Advance of the replayed clock per read after the recording has no more readings, in nanoseconds.
/// A guest that polls the clock in a loop thus reaches its target time.
const REPLAY_TICK_NANOS: u64 = 1_000_000;

/// Size of a recorded clock reading and of other small answers, in bytes.
const SMALL_ANSWER_BYTES: usize = 8;

/// Size of a recorded operation in addition to its text, in bytes.
const OPERATION_OVERHEAD_BYTES: usize = 64;

/// Maximum number of operations that a deviation lists as unrecorded or as not repeated.
const MAX_NOTED_OPERATIONS: usize = 20;

/// Resolution of the clocks, in nanoseconds, which is that of the system clock.
const CLOCK_RESOLUTION_NANOS: u64 = 1;

/// Log that records or replays the host's answers in a call. Clones share it. The default does
/// neither.
#[derive(Clone, Default)]
pub struct ReplayTape(Option<Arc<Mutex<TapeReel>>>);

enum TapeReel {
    Record(TapeRecords),
    Replay(TapePlayback),
}

/// State of a recording.
struct TapeRecords {
    answers: HostAnswers,
    began: Instant,
    /// The last clock reading.
    last_time: u64,
    salt: String,
    operations: Vec<UnfinishedOperation>,
    /// Number of times that the guest checked for cancellation.
    cancel_checks: u64,
    missing: BTreeSet<MissingInput>,
    /// The memory reservation; `None` once it is exhausted.
    reservation: Option<RecordingReservation>,
    secrets: Arc<SecretFilter>,
}

/// State of a replay.
struct TapePlayback {
    input: ReplayedValue,
    clock: std::vec::IntoIter<u64>,
    last_time: u64,
    polls: std::vec::IntoIter<Vec<u32>>,
    cancel_checks: u64,
    /// The recorded operations; `None` for those that the guest has repeated.
    operations: Vec<Option<HostOperation>>,
    unrecorded: Vec<String>,
    missing: BTreeSet<MissingInput>,
    secrets: Arc<SecretFilter>,
}

/// Recorded input of a call.
#[derive(Clone, Debug, Default)]
pub struct ReplayedValue {
    /// The host's answers.
    pub answers: HostAnswers,
    /// The environment variables.
    pub variables: BTreeMap<String, String>,
    /// True if the call could send HTTP requests.
    pub http: bool,
    /// True if the call had mounted directories.
    pub mounts: bool,
}

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
    /// Creates a log that records, within the reservation `reservation`. All random numbers of the
    /// call are derived from `seed`. `salt` is the salt of the recording.
    pub fn record(seed: [u8; 32], salt: &str, room: RecordingReservation) -> Self {
        let began = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let began = u64::try_from(began.as_nanos()).unwrap_or_default();
        Self::with_mode(TapeReel::Record(TapeRecords {
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
            reservation: Some(room),
            secrets: Arc::default(),
        }))
    }

    /// Creates a log that replays a recording.
    pub fn replay(mut given: ReplayedValue) -> Self {
        let clock = std::mem::take(&mut given.answers.clock).into_iter();
        let polls = std::mem::take(&mut given.answers.polls).into_iter();
        let operations = std::mem::take(&mut given.answers.operations)
            .into_iter()
            .map(Some)
            .collect();
        let (unknown, missing) = (Vec::new(), BTreeSet::new());
        let (last, looked, secrets) = (0, 0, Arc::default());
        Self::with_mode(TapeReel::Replay(TapePlayback {
            input: given,
            clock,
            last_time: last,
            polls,
            cancel_checks: looked,
            operations,
            unrecorded: unknown,
            missing,
            secrets,
        }))
    }

    fn with_mode(reel: TapeReel) -> Self {
        Self(Some(Arc::new(Mutex::new(reel))))
    }

    /// Discards the recording, because the request does not fit in the reservation.
    pub fn mark_too_large(&self) {
        if let Some(TapeReel::Record(records)) = self.lock_mode().as_deref_mut() {
            records.reserve(usize::MAX);
        }
    }

    /// Ends recording. Returns `None` if nothing was recorded.
    pub fn finish_recording(&self) -> Option<TapedCall> {
        let mut reel = self.lock_mode()?;
        let TapeReel::Record(records) = &mut *reel else {
            return None;
        };
        Some(TapedCall {
            answers: std::mem::take(&mut records.answers),
            operations: std::mem::take(&mut records.operations),
            missing: std::mem::take(&mut records.missing),
            reservation: records.reservation.take(),
            secrets: Arc::clone(&records.secrets),
        })
    }

    /// Differences between a replayed call and its recording.
    pub fn deviation(&self) -> ReplayDeviation {
        match self.lock_mode().as_deref_mut() {
            Some(TapeReel::Replay(plays)) => ReplayDeviation {
                unrecorded: plays.unrecorded.clone(),
                not_repeated: plays
                    .operations
                    .iter()
                    .flatten()
                    .take(MAX_NOTED_OPERATIONS)
                    .map(|operation| operation.what.clone())
                    .collect(),
                missing: plays.missing.iter().copied().collect(),
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
        matches!(self.lock_mode().as_deref(), Some(TapeReel::Replay(_)))
    }

    /// Returns whether the call can send HTTP requests according to the recording; `None` if there
    /// is no replay.
    pub(crate) fn recorded_http(&self) -> Option<bool> {
        match self.lock_mode().as_deref() {
            Some(TapeReel::Replay(plays)) => Some(plays.input.http),
            _ => None,
        }
    }

    /// Returns whether the call has mounted directories according to the recording; `None` if there
    /// is no replay.
    pub(crate) fn recorded_mounts(&self) -> Option<bool> {
        match self.lock_mode().as_deref() {
            Some(TapeReel::Replay(plays)) => Some(plays.input.mounts),
            _ => None,
        }
    }

    /// Configures reproducible clocks and random numbers for the guest.
    pub(crate) fn configure_wasi(&self, context: &mut WasiCtxBuilder) {
        let Some(seed) = self.seed() else { return };
        let mut seeds = ChaCha20Rng::from_seed(seed);
        let mut next = || {
            let mut seed = [0; 32];
            seeds.fill_bytes(&mut seed);
            ChaCha20Rng::from_seed(seed)
        };
        let (secure, insecure, mut hash) = (next(), next(), next());
        context
            .secure_random(secure)
            .insecure_random(insecure)
            .insecure_random_seed(u128::from(hash.next_u64()) << 64 | u128::from(hash.next_u64()))
            .wall_clock(TapeClock(self.clone()))
            .monotonic_clock(TapeClock(self.clone()));
    }

    fn seed(&self) -> Option<[u8; 32]> {
        Some(match &*self.lock_mode()? {
            TapeReel::Record(records) => records.answers.seed.0,
            TapeReel::Replay(plays) => plays.input.answers.seed.0,
        })
    }

    /// Sets the secrets that the log must not contain. A recording contains placeholders instead.
    pub(crate) fn set_secrets(&self, secrets: &Arc<SecretFilter>) {
        match self.lock_mode().as_deref_mut() {
            None => {}
            Some(TapeReel::Record(records)) => records.secrets = Arc::clone(secrets),
            Some(TapeReel::Replay(plays)) => plays.secrets = Arc::clone(secrets),
        }
    }

    /// Returns the description of an operation for the log, without secrets and without any encoded
    /// forms of them.
    pub(crate) fn redact_name(&self, what: &str) -> String {
        let secrets = match self.lock_mode().as_deref() {
            None => return what.to_owned(),
            Some(TapeReel::Record(records)) => Arc::clone(&records.secrets),
            Some(TapeReel::Replay(plays)) => Arc::clone(&plays.secrets),
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
            Some(TapeReel::Replay(plays)) => plays.input.variables.get(name).cloned(),
            Some(TapeReel::Record(records)) => {
                let value = value()?;
                if records.secrets.contains_secret(value.as_bytes()) {
                    let marked = records.secrets.scrub(&value).into_owned();
                    if records.reserve(name.len() + marked.len()) {
                        records.answers.marked.insert(name.to_owned(), marked);
                        records.answers.redacted = true;
                    }
                } else if records.reserve(name.len() + OPERATION_OVERHEAD_BYTES) {
                    let digest = variable_digest(&records.salt, name, &value);
                    records.answers.variables.insert(name.to_owned(), digest);
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
            Some(TapeReel::Replay(plays)) => {
                plays.input.answers.trace.clone().into_iter().collect()
            }
            Some(TapeReel::Record(records)) => {
                let variables: Vec<_> = owned.collect();
                if records.reserve(
                    variables
                        .iter()
                        .map(|(name, value)| name.len() + value.len())
                        .sum(),
                ) {
                    records.answers.trace.extend(variables.iter().cloned());
                }
                variables
            }
        }
    }

    /// Returns whether the call was cancelled: the result of `is_cancelled`, or the recorded one in
    /// a replay.
    pub(crate) fn is_cancelled(&self, cancelled: impl FnOnce() -> bool) -> bool {
        match self.lock_mode().as_deref_mut() {
            None => cancelled(),
            Some(TapeReel::Replay(plays)) => {
                let told = plays
                    .input
                    .answers
                    .cancelled
                    .is_some_and(|after| plays.cancel_checks >= after);
                plays.cancel_checks += 1;
                told
            }
            Some(TapeReel::Record(records)) => {
                let told = cancelled();
                if told {
                    records
                        .answers
                        .cancelled
                        .get_or_insert(records.cancel_checks);
                }
                records.cancel_checks += 1;
                told
            }
        }
    }

    /// Returns the recorded result of the next poll, in a replay.
    pub(crate) fn next_recorded_poll(&self) -> Option<Vec<u32>> {
        match self.lock_mode().as_deref_mut() {
            Some(TapeReel::Replay(plays)) => plays.polls.next(),
            _ => None,
        }
    }

    /// Records the result of a poll.
    pub(crate) fn record_poll(&self, ready: &[u32]) {
        if let Some(TapeReel::Record(records)) = self.lock_mode().as_deref_mut()
            && records.reserve(SMALL_ANSWER_BYTES + size_of_val(ready))
        {
            records.answers.polls.push(ready.to_vec());
        }
    }

    /// Notes that the call depends on something that recordings do not cover.
    pub(crate) fn note_missing(&self, missing: MissingInput) {
        match self.lock_mode().as_deref_mut() {
            None => {}
            Some(TapeReel::Record(records)) => drop(records.missing.insert(missing)),
            Some(TapeReel::Replay(plays)) => drop(plays.missing.insert(missing)),
        }
    }

    /// Returns the recorded result of an operation. Searches all operations that were not repeated
    /// yet, so a plugin that performs them in another order gets the same answers.
    ///
    /// # Errors
    ///
    /// Fails if the recording does not have the operation.
    pub(crate) fn replay_operation(
        &self,
        kind: OperationKind,
        what: &str,
    ) -> Result<Option<Vec<u8>>, NotRecorded> {
        let mut reel = self.lock_mode();
        let Some(TapeReel::Replay(plays)) = reel.as_deref_mut() else {
            return Ok(None);
        };
        let is_it = |operation: &HostOperation| {
            let same = match operation.answer {
                OperationResult::Http(_) => kind == OperationKind::Http,
                OperationResult::State(_) => kind == OperationKind::State,
            };
            same && operation.what == what
        };
        let found = plays
            .operations
            .iter_mut()
            .find(|operation| operation.as_ref().is_some_and(is_it));
        match found
            .and_then(Option::take)
            .map(|operation| operation.answer)
        {
            Some(OperationResult::State(bytes)) => Ok(Some(bytes.0)),
            Some(OperationResult::Http(answer)) => {
                Ok(Some(postcard::to_allocvec(&answer).unwrap_or_default()))
            }
            None => {
                if plays.unrecorded.len() < MAX_NOTED_OPERATIONS {
                    plays.unrecorded.push(what.to_owned());
                }
                Err(NotRecorded(what.to_owned()))
            }
        }
    }

    /// Records the start of an operation. Returns its number if the result must be recorded.
    pub(crate) fn start_operation(&self, kind: OperationKind, what: &str) -> Option<usize> {
        let mut reel = self.lock_mode();
        let Some(TapeReel::Record(records)) = reel.as_deref_mut() else {
            return None;
        };
        if !records.reserve(OPERATION_OVERHEAD_BYTES + what.len()) {
            return None;
        }
        records.operations.push(UnfinishedOperation {
            kind,
            description: what.to_owned(),
            result: None,
            reserved_bytes: 0,
        });
        Some(records.operations.len() - 1)
    }

    /// Reserves memory for a part of a result. Returns whether enough was available.
    pub(crate) fn reserve_result(&self, number: usize, bytes: usize) -> bool {
        let mut reel = self.lock_mode();
        let Some(TapeReel::Record(records)) = reel.as_deref_mut() else {
            return false;
        };
        let taken = records.reserve(bytes);
        if taken && let Some(operation) = records.operations.get_mut(number) {
            operation.reserved_bytes += bytes;
        }
        taken
    }

    /// Records the result of an operation.
    pub(crate) fn record_result(&self, number: usize, result: &[u8]) {
        let mut reel = self.lock_mode();
        let Some(TapeReel::Record(records)) = reel.as_deref_mut() else {
            return;
        };
        let held = records
            .operations
            .get(number)
            .map_or(0, |operation| operation.reserved_bytes);
        if records.reserve(result.len().saturating_sub(held))
            && let Some(operation) = records.operations.get_mut(number)
        {
            operation.result = Some(result.to_vec());
        }
    }

    /// Returns the nanoseconds since the start of the call.
    fn read_clock(&self) -> u64 {
        match self.lock_mode().as_deref_mut() {
            None => 0,
            Some(TapeReel::Record(records)) => {
                let now = u64::try_from(records.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                if records.reserve(SMALL_ANSWER_BYTES) {
                    records
                        .answers
                        .clock
                        .push(now.saturating_sub(records.last_time));
                }
                records.last_time = now.max(records.last_time);
                records.last_time
            }
            Some(TapeReel::Replay(plays)) => {
                plays.last_time = plays
                    .last_time
                    .saturating_add(plays.clock.next().unwrap_or(REPLAY_TICK_NANOS));
                plays.last_time
            }
        }
    }

    fn start_time(&self) -> u64 {
        match self.lock_mode().as_deref() {
            None => 0,
            Some(TapeReel::Record(records)) => records.answers.began,
            Some(TapeReel::Replay(plays)) => plays.input.answers.began,
        }
    }

    // The lock is held for a few instructions and never across an await.
    fn lock_mode(&self) -> Option<MutexGuard<'_, TapeReel>> {
        Some(
            self.0
                .as_ref()?
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }
}

impl TapeRecords {
    /// Reserves memory. If it is exhausted, discards the recording and records nothing more.
    fn reserve(&mut self, bytes: usize) -> bool {
        let taken = self
            .reservation
            .as_mut()
            .is_some_and(|room| room.try_reserve(bytes));
        if !taken {
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
        taken
    }
}

/// Clocks of a call that is recorded or replayed.
struct TapeClock(ReplayTape);

impl HostWallClock for TapeClock {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(CLOCK_RESOLUTION_NANOS)
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.start_time().saturating_add(self.0.read_clock()))
    }
}

impl HostMonotonicClock for TapeClock {
    fn resolution(&self) -> u64 {
        CLOCK_RESOLUTION_NANOS
    }

    fn now(&self) -> u64 {
        self.0.read_clock()
    }
}

impl fmt::Debug for ReplayTape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.lock_mode().as_deref() {
            None => "Tape(off)",
            Some(TapeReel::Record(_)) => "Tape(records)",
            Some(TapeReel::Replay(_)) => "Tape(plays)",
        })
    }
}

/// Error for an operation that the recording does not have. Returned from a host function, it ends
/// the call.
#[derive(Clone, Debug)]
pub(crate) struct NotRecorded(String);

impl fmt::Display for NotRecorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "The tool did something that the recording does not have: {}.",
            self.0
        )
    }
}

impl std::error::Error for NotRecorded {}

#[cfg(test)]
mod tests;
