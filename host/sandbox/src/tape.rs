//! What a call records of what the host answers to its guest, or gets from a recording instead.
//!
//! A tape that records notes each answer beside doing what the guest wants. A tape that plays gives the same answers, and
//! nothing is done: no request is sent, and no state is read or changed. What changes and what is not on it is noted by
//! both: for one, the call cannot be run again; for the other, it does not do the same.

mod taped;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng as _, SeedableRng as _};
use toolbay_recording::{
    HostAnswers, HostOperation, MissingInput, OperationResult, RandomSeed, RecordingReservation, variable,
};
use toolbay_secrets::SecretFilter;
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtxBuilder};

pub(crate) use self::taped::OperationKind;
pub use self::taped::TapedCall;
use self::taped::UnfinishedOperation;

/// What each look at a clock takes once the recording has no more, in nanoseconds: a guest that waits for a time in a loop
/// reaches it.
const TICK: u64 = 1_000_000;

/// Bytes of a recorded look at a clock, and of other small answers.
const SMALL: usize = 8;

/// Bytes of an operation beside its texts.
const OPERATION: usize = 64;

/// Most operations that are noted because the recording does not have them, or the guest did not do them.
const NOTED: usize = 20;

/// Resolution of the clocks, in nanoseconds: that of the system's.
const RESOLUTION: u64 = 1;

/// What a call records, or gets from a recording. Clones share it. The default does neither.
#[derive(Clone, Default)]
pub struct ReplayTape(Option<Arc<Mutex<TapeReel>>>);

enum TapeReel {
    Records(TapeRecords),
    Plays(TapePlayback),
}

/// What a call has recorded.
struct TapeRecords {
    answers: HostAnswers,
    began: Instant,
    /// What the clocks showed last.
    last: u64,
    salt: String,
    operations: Vec<UnfinishedOperation>,
    /// How often the guest looked whether somebody waits.
    looked: u64,
    missing: BTreeSet<MissingInput>,
    /// `None` once there was none left.
    room: Option<RecordingReservation>,
    secrets: Arc<SecretFilter>,
}

/// What a call is given again.
struct TapePlayback {
    given: ReplayedValue,
    clock: std::vec::IntoIter<u64>,
    last: u64,
    polls: std::vec::IntoIter<Vec<u32>>,
    looked: u64,
    /// `None` once the guest did it.
    operations: Vec<Option<HostOperation>>,
    unknown: Vec<String>,
    missing: BTreeSet<MissingInput>,
    secrets: Arc<SecretFilter>,
}

/// What a call gets from a recording.
#[derive(Clone, Debug, Default)]
pub struct ReplayedValue {
    /// What the host answered.
    pub answers: HostAnswers,
    /// The environment variables.
    pub variables: BTreeMap<String, String>,
    /// Whether it could send HTTP requests.
    pub http: bool,
    /// Whether it had mounted folders.
    pub mounts: bool,
}

/// What a call did that was not as it is in the recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayDeviation {
    /// What the recording does not have.
    pub unknown: Vec<String>,
    /// What the recording has, and the guest did not do.
    pub undone: Vec<String>,
    /// What it used that no recording has.
    pub missing: Vec<MissingInput>,
}

impl ReplayTape {
    /// A tape that records, within `room`. All random numbers of the call follow from `seed`; `salt` is that of the
    /// recording.
    pub fn record(seed: [u8; 32], salt: &str, room: RecordingReservation) -> Self {
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let began = u64::try_from(began.as_nanos()).unwrap_or_default();
        Self::of(TapeReel::Records(TapeRecords {
            answers: HostAnswers { began, seed: RandomSeed(seed), ..HostAnswers::default() },
            began: Instant::now(),
            last: 0,
            salt: salt.to_owned(),
            operations: Vec::new(),
            looked: 0,
            missing: BTreeSet::new(),
            room: Some(room),
            secrets: Arc::default(),
        }))
    }

    /// A tape that gives a call what it got before.
    pub fn play(mut given: ReplayedValue) -> Self {
        let clock = std::mem::take(&mut given.answers.clock).into_iter();
        let polls = std::mem::take(&mut given.answers.polls).into_iter();
        let operations = std::mem::take(&mut given.answers.operations).into_iter().map(Some).collect();
        let (unknown, missing) = (Vec::new(), BTreeSet::new());
        let (last, looked, secrets) = (0, 0, Arc::default());
        Self::of(TapeReel::Plays(TapePlayback {
            given,
            clock,
            last,
            polls,
            looked,
            operations,
            unknown,
            missing,
            secrets,
        }))
    }

    fn of(reel: TapeReel) -> Self {
        Self(Some(Arc::new(Mutex::new(reel))))
    }

    /// What the call is asked for does not fit in its room.
    pub fn overflow(&self) {
        if let Some(TapeReel::Records(records)) = self.reel().as_deref_mut() {
            records.take(usize::MAX);
        }
    }

    /// Ends recording; `None` if nothing was recorded.
    pub fn taped(&self) -> Option<TapedCall> {
        let mut reel = self.reel()?;
        let TapeReel::Records(records) = &mut *reel else { return None };
        Some(TapedCall {
            answers: std::mem::take(&mut records.answers),
            operations: std::mem::take(&mut records.operations),
            missing: std::mem::take(&mut records.missing),
            room: records.room.take(),
            secrets: Arc::clone(&records.secrets),
        })
    }

    /// What a call did that was not as it is in the recording.
    pub fn deviation(&self) -> ReplayDeviation {
        match self.reel().as_deref_mut() {
            Some(TapeReel::Plays(plays)) => ReplayDeviation {
                unknown: plays.unknown.clone(),
                undone: plays.operations.iter().flatten().take(NOTED).map(|operation| operation.what.clone()).collect(),
                missing: plays.missing.iter().copied().collect(),
            },
            _ => ReplayDeviation::default(),
        }
    }

    /// Whether it neither records nor plays.
    pub(crate) fn is_off(&self) -> bool {
        self.0.is_none()
    }

    /// Whether the host's answers come from it.
    pub(crate) fn plays(&self) -> bool {
        matches!(self.reel().as_deref(), Some(TapeReel::Plays(_)))
    }

    /// Whether the call can send HTTP requests, if a recording says that.
    pub(crate) fn http(&self) -> Option<bool> {
        match self.reel().as_deref() {
            Some(TapeReel::Plays(plays)) => Some(plays.given.http),
            _ => None,
        }
    }

    /// Whether the call has mounted folders, if a recording says that.
    pub(crate) fn mounts(&self) -> Option<bool> {
        match self.reel().as_deref() {
            Some(TapeReel::Plays(plays)) => Some(plays.given.mounts),
            _ => None,
        }
    }

    /// Gives a guest clocks and random numbers that can be given to it again.
    pub(crate) fn apply(&self, context: &mut WasiCtxBuilder) {
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
        Some(match &*self.reel()? {
            TapeReel::Records(records) => records.answers.seed.0,
            TapeReel::Plays(plays) => plays.given.answers.seed.0,
        })
    }

    /// The secrets that nothing on the tape may contain. In a recording, marks stand for them.
    pub(crate) fn redact(&self, secrets: &Arc<SecretFilter>) {
        match self.reel().as_deref_mut() {
            None => {}
            Some(TapeReel::Records(records)) => records.secrets = Arc::clone(secrets),
            Some(TapeReel::Plays(plays)) => plays.secrets = Arc::clone(secrets),
        }
    }

    /// What an operation is called on the tape: without secrets, and without the forms that a guest gives their marks.
    pub(crate) fn named(&self, what: &str) -> String {
        let secrets = match self.reel().as_deref() {
            None => return what.to_owned(),
            Some(TapeReel::Records(records)) => Arc::clone(&records.secrets),
            Some(TapeReel::Plays(plays)) => Arc::clone(&plays.secrets),
        };
        secrets.scrub(what).into_owned()
    }

    /// The value of an environment variable, which is `value` unless it comes from a recording.
    pub(crate) fn variable(&self, name: &str, value: impl FnOnce() -> Option<String>) -> Option<String> {
        match self.reel().as_deref_mut() {
            None => value(),
            Some(TapeReel::Plays(plays)) => plays.given.variables.get(name).cloned(),
            Some(TapeReel::Records(records)) => {
                let value = value()?;
                if records.secrets.are_in(value.as_bytes()) {
                    let marked = records.secrets.scrub(&value).into_owned();
                    if records.take(name.len() + marked.len()) {
                        records.answers.marked.insert(name.to_owned(), marked);
                        records.answers.redacted = true;
                    }
                } else if records.take(name.len() + OPERATION) {
                    let digest = variable(&records.salt, name, &value);
                    records.answers.variables.insert(name.to_owned(), digest);
                }
                Some(value)
            }
        }
    }

    /// The variables that tell the guest of its trace, which are these unless they come from a recording.
    pub(crate) fn trace(&self, variables: Vec<(&'static str, String)>) -> Vec<(String, String)> {
        let owned = variables.into_iter().map(|(name, value)| (name.to_owned(), value));
        match self.reel().as_deref_mut() {
            None => owned.collect(),
            Some(TapeReel::Plays(plays)) => plays.given.answers.trace.clone().into_iter().collect(),
            Some(TapeReel::Records(records)) => {
                let variables: Vec<_> = owned.collect();
                if records.take(variables.iter().map(|(name, value)| name.len() + value.len()).sum()) {
                    records.answers.trace.extend(variables.iter().cloned());
                }
                variables
            }
        }
    }

    /// Whether somebody waits for the result, which `waits` says unless a recording does.
    pub(crate) fn cancelled(&self, cancelled: impl FnOnce() -> bool) -> bool {
        match self.reel().as_deref_mut() {
            None => cancelled(),
            Some(TapeReel::Plays(plays)) => {
                let told = plays.given.answers.cancelled.is_some_and(|after| plays.looked >= after);
                plays.looked += 1;
                told
            }
            Some(TapeReel::Records(records)) => {
                let told = cancelled();
                if told {
                    records.answers.cancelled.get_or_insert(records.looked);
                }
                records.looked += 1;
                told
            }
        }
    }

    /// What is ready of several things, as a recording says.
    pub(crate) fn polled_before(&self) -> Option<Vec<u32>> {
        match self.reel().as_deref_mut() {
            Some(TapeReel::Plays(plays)) => plays.polls.next(),
            _ => None,
        }
    }

    /// Records what is ready of several things.
    pub(crate) fn polled(&self, ready: &[u32]) {
        if let Some(TapeReel::Records(records)) = self.reel().as_deref_mut()
            && records.take(SMALL + size_of_val(ready))
        {
            records.answers.polls.push(ready.to_vec());
        }
    }

    /// The call depends on something that is not in a recording.
    pub(crate) fn lacks(&self, missing: MissingInput) {
        match self.reel().as_deref_mut() {
            None => {}
            Some(TapeReel::Records(records)) => drop(records.missing.insert(missing)),
            Some(TapeReel::Plays(plays)) => drop(plays.missing.insert(missing)),
        }
    }

    /// What came of this operation before. It is looked for among all that was not done again yet: a plugin that does the
    /// same in another order gets the same answers.
    ///
    /// # Errors
    ///
    /// The recording does not have it.
    pub(crate) fn again(&self, kind: OperationKind, what: &str) -> Result<Option<Vec<u8>>, NotRecorded> {
        let mut reel = self.reel();
        let Some(TapeReel::Plays(plays)) = reel.as_deref_mut() else { return Ok(None) };
        let is_it = |operation: &HostOperation| {
            let same = match operation.answer {
                OperationResult::Http(_) => kind == OperationKind::Http,
                OperationResult::State(_) => kind == OperationKind::State,
            };
            same && operation.what == what
        };
        let found = plays.operations.iter_mut().find(|operation| operation.as_ref().is_some_and(is_it));
        match found.and_then(Option::take).map(|operation| operation.answer) {
            Some(OperationResult::State(bytes)) => Ok(Some(bytes.0)),
            Some(OperationResult::Http(answer)) => Ok(Some(postcard::to_allocvec(&answer).unwrap_or_default())),
            None => {
                if plays.unknown.len() < NOTED {
                    plays.unknown.push(what.to_owned());
                }
                Err(NotRecorded(what.to_owned()))
            }
        }
    }

    /// Records that an operation begins. Returns its number, if its result is wanted.
    pub(crate) fn begin(&self, kind: OperationKind, what: &str) -> Option<usize> {
        let mut reel = self.reel();
        let Some(TapeReel::Records(records)) = reel.as_deref_mut() else { return None };
        if !records.take(OPERATION + what.len()) {
            return None;
        }
        records.operations.push(UnfinishedOperation { kind, what: what.to_owned(), result: None, held: 0 });
        Some(records.operations.len() - 1)
    }

    /// Takes room for a part of a result. Returns whether there is as much.
    pub(crate) fn hold(&self, number: usize, bytes: usize) -> bool {
        let mut reel = self.reel();
        let Some(TapeReel::Records(records)) = reel.as_deref_mut() else { return false };
        let taken = records.take(bytes);
        if taken && let Some(operation) = records.operations.get_mut(number) {
            operation.held += bytes;
        }
        taken
    }

    /// Records the result of an operation.
    pub(crate) fn end(&self, number: usize, result: &[u8]) {
        let mut reel = self.reel();
        let Some(TapeReel::Records(records)) = reel.as_deref_mut() else { return };
        let held = records.operations.get(number).map_or(0, |operation| operation.held);
        if records.take(result.len().saturating_sub(held))
            && let Some(operation) = records.operations.get_mut(number)
        {
            operation.result = Some(result.to_vec());
        }
    }

    /// Nanoseconds since the call began.
    fn look(&self) -> u64 {
        match self.reel().as_deref_mut() {
            None => 0,
            Some(TapeReel::Records(records)) => {
                let now = u64::try_from(records.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                if records.take(SMALL) {
                    records.answers.clock.push(now.saturating_sub(records.last));
                }
                records.last = now.max(records.last);
                records.last
            }
            Some(TapeReel::Plays(plays)) => {
                plays.last = plays.last.saturating_add(plays.clock.next().unwrap_or(TICK));
                plays.last
            }
        }
    }

    fn began(&self) -> u64 {
        match self.reel().as_deref() {
            None => 0,
            Some(TapeReel::Records(records)) => records.answers.began,
            Some(TapeReel::Plays(plays)) => plays.given.answers.began,
        }
    }

    // Held for a few instructions and never across an await.
    fn reel(&self) -> Option<MutexGuard<'_, TapeReel>> {
        Some(self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl TapeRecords {
    /// Takes room for so many bytes. Once there is none, nothing more is kept.
    fn take(&mut self, bytes: usize) -> bool {
        let taken = self.room.as_mut().is_some_and(|room| room.take(bytes));
        if !taken {
            self.missing.insert(MissingInput::TooLarge);
            self.room = None;
            self.operations.clear();
            let HostAnswers { began, seed, .. } = std::mem::take(&mut self.answers);
            self.answers = HostAnswers { began, seed, ..HostAnswers::default() };
        }
        taken
    }
}

/// The clocks of a call that records or plays.
struct TapeClock(ReplayTape);

impl HostWallClock for TapeClock {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(RESOLUTION)
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.began().saturating_add(self.0.look()))
    }
}

impl HostMonotonicClock for TapeClock {
    fn resolution(&self) -> u64 {
        RESOLUTION
    }

    fn now(&self) -> u64 {
        self.0.look()
    }
}

impl fmt::Debug for ReplayTape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.reel().as_deref() {
            None => "Tape(off)",
            Some(TapeReel::Records(_)) => "Tape(records)",
            Some(TapeReel::Plays(_)) => "Tape(plays)",
        })
    }
}

/// The guest does something that the recording does not have. As the error of a host call, it ends the call.
#[derive(Clone, Debug)]
pub(crate) struct NotRecorded(String);

impl fmt::Display for NotRecorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "The tool did something that the recording does not have: {}.", self.0)
    }
}

impl std::error::Error for NotRecorded {}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use toolbay_recording::{BinaryText, HttpAnswer};
    use toolbay_secrets::SecretValue;

    use super::*;

    fn recording(most: usize) -> ReplayTape {
        ReplayTape::record([3; 32], "salt", RecordingReservation::new(&Arc::new(AtomicUsize::new(1 << 20)), most))
    }

    fn again(tape: &ReplayTape) -> (ReplayTape, Vec<MissingInput>) {
        let (answers, missing) = tape.taped().unwrap().answers();
        (ReplayTape::play(ReplayedValue { answers, ..ReplayedValue::default() }), missing.into_iter().collect())
    }

    fn did(tape: &ReplayTape, what: &str, result: &[u8]) {
        let number = tape.begin(OperationKind::State, what).unwrap();
        tape.end(number, result);
    }

    #[test]
    fn a_tape_that_plays_gives_what_was_recorded() {
        let tape = recording(1 << 16);
        let looks: Vec<u64> = (0..100).map(|_| tape.look()).collect();
        assert!(looks.is_sorted());
        tape.polled(&[0, 2]);
        tape.polled(&[]);
        assert!(!tape.cancelled(|| false) && !tape.cancelled(|| false) && tape.cancelled(|| true));
        did(&tape, "get a", b"1");
        did(&tape, "get b", b"2");
        let (plays, missing) = again(&tape);
        assert_eq!(missing, []);
        assert_eq!((0..100).map(|_| plays.look()).collect::<Vec<_>>(), looks);
        assert_eq!(plays.look(), looks[99] + TICK, "a guest that looks more often does not wait for ever");
        assert_eq!(
            [plays.polled_before(), plays.polled_before(), plays.polled_before()],
            [Some(vec![0, 2]), Some(vec![]), None]
        );
        assert!(!plays.cancelled(|| true) && !plays.cancelled(|| true) && plays.cancelled(|| false));
        // In another order.
        assert_eq!(plays.again(OperationKind::State, "get b").unwrap().unwrap(), b"2");
        assert!(plays.again(OperationKind::State, "get b").unwrap_err().to_string().contains("does not have: get b."));
        assert!(plays.again(OperationKind::Http, "get a").is_err(), "that was something else");
        let ReplayDeviation { unknown, undone, missing } = plays.deviation();
        assert_eq!(
            (unknown, undone, missing),
            (vec!["get b".to_owned(), "get a".to_owned()], vec!["get a".to_owned()], vec![])
        );
    }

    #[test]
    fn what_does_not_fit_leaves_the_outline() {
        let tape = recording(OPERATION * 2);
        did(&tape, "get a", &[7; 30]);
        assert!(tape.begin(OperationKind::State, "get b").is_none());
        tape.look();
        let (answers, missing) = tape.taped().unwrap().answers();
        assert_eq!(missing.into_iter().collect::<Vec<_>>(), [MissingInput::TooLarge]);
        assert_eq!(answers, HostAnswers { began: answers.began, seed: RandomSeed([3; 32]), ..HostAnswers::default() });
    }

    #[test]
    fn no_secret_is_in_what_was_recorded() {
        let value = SecretValue::parse(b"hunter2-hunter2").unwrap();
        let secrets = Arc::new(SecretFilter::new([("key", &value)]).unwrap());
        let response = |body: &[u8], field: &str| HttpAnswer::Response {
            status: 200,
            fields: vec![("x".to_owned(), BinaryText(field.as_bytes().to_vec()))],
            body: BinaryText(body.to_vec()),
            pieces: vec![u32::try_from(body.len()).unwrap()],
            end: None,
        };
        let recorded = |kind, what: &str, result: &[u8]| {
            let tape = recording(1 << 16);
            tape.redact(&secrets);
            let number = tape.begin(kind, &tape.named(what)).unwrap();
            tape.end(number, result);
            let (answers, missing) = tape.taped().unwrap().answers();
            let text = serde_json::to_string(&answers).unwrap();
            assert!(!secrets.are_in(text.as_bytes()), "{text}");
            (text, missing.into_iter().collect::<Vec<_>>())
        };
        let http = |answer: &HttpAnswer| postcard::to_allocvec(answer).unwrap();
        let (text, missing) = recorded(
            OperationKind::Http,
            "GET http://a/?k=hunter2-hunter2",
            &http(&response(b"my hunter2-hunter2", "hunter2-hunter2")),
        );
        assert!(text.contains("?k=[secret:key]") && text.contains("my [secret:key]"), "{text}");
        assert_eq!(missing, []);
        let binary = [b"\xff".as_slice(), b"hunter2-hunter2"].concat();
        assert_eq!(recorded(OperationKind::Http, "GET /", &http(&response(&binary, ""))).1, [MissingInput::Secret]);
        assert_eq!(recorded(OperationKind::State, "get a", b"\x0fhunter2-hunter2").1, [MissingInput::Secret]);
        assert_eq!(recorded(OperationKind::State, "get a", b"\x03abc").1, []);
        let tape = recording(1 << 16);
        tape.redact(&secrets);
        assert_eq!(tape.variable("KEY", || Some("hunter2-hunter2".to_owned())).as_deref(), Some("hunter2-hunter2"));
        let (answers, _) = tape.taped().unwrap().answers();
        assert_eq!(answers.marked, BTreeMap::from([("KEY".to_owned(), "[secret:key]".to_owned())]));
        assert!(answers.redacted && answers.variables.is_empty());
    }

    #[test]
    fn variables_are_a_digest_and_come_back_from_whoever_plays() {
        let tape = recording(1 << 16);
        assert_eq!(tape.variable("LANG", || Some("C.UTF-8".to_owned())).as_deref(), Some("C.UTF-8"));
        assert_eq!(tape.variable("NONE", || None), None);
        let (answers, _) = tape.taped().unwrap().answers();
        assert_eq!(answers.variables, BTreeMap::from([("LANG".to_owned(), variable("salt", "LANG", "C.UTF-8"))]));
        assert!(!answers.redacted && answers.marked.is_empty());
        let variables = BTreeMap::from([("LANG".to_owned(), "C".to_owned())]);
        let plays = ReplayTape::play(ReplayedValue { answers, variables, ..ReplayedValue::default() });
        assert_eq!(plays.variable("LANG", || panic!()).as_deref(), Some("C"));
        assert_eq!(plays.variable("HOME", || panic!()), None);
    }
}
