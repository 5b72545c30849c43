//! The side effects of a call: operations beyond its memory, each with its result.
//!
//! The operations before a question to the caller must not happen again when the call is restarted.
//! The first run records each of them with its result in the journal, and the next run receives
//! these results without repeating the operations. If the next run performs other operations, it
//! receives an error, because the combined effect of both runs is unknown. A call that is recorded,
//! or replayed from a recording, does the same with its [`ReplayTape`], for all operations.

use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use toolbay_model::{ByteReservation, CallJournal, Limits, RecordedEffect};
use toolbay_recording::MissingInput;

use crate::capability::memory_budget::MemoryBudget;
use crate::context::replay_log::{NotRecorded, OperationKind, ReplayTape};

/// Maximum size of an operation's description, in bytes. Descriptions that differ only beyond it
/// are considered equal.
const MAX_DESCRIPTION_BYTES: usize = 512;

/// The side effects of a call. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct SideEffects {
    /// The operations before a question, or `None` if the plugin cannot ask.
    journal: Option<Arc<Mutex<EffectRecord>>>,
    tape: ReplayTape,
}

#[derive(Debug)]
struct EffectRecord {
    /// The operations of earlier runs. Shared with the owner of the journal, whose budget it counts
    /// against.
    past: Arc<CallJournal>,
    /// The number of these operations that were repeated.
    replayed_count: usize,
    /// The further operations of this run, with their results. A result is `None` until its
    /// operation ends.
    operations: Vec<(String, Option<Vec<u8>>)>,
    /// Bytes that further results can take.
    remaining_bytes: usize,
    memory: ByteReservation,
    /// The reason why the call can no longer ask.
    blocker: Option<AskBlocker>,
}

/// The reason why a call can no longer ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskBlocker {
    /// The results of its operations exceed the journal limit.
    JournalFull,
    /// It changed a file in a mounted folder.
    FileChange,
    /// It made a TCP connection.
    TcpConnection,
}

/// The start of an operation.
pub(crate) enum EffectStart {
    /// The operation was executed before, with this result.
    Replay(Vec<u8>),
    /// The operation must be executed now.
    Execute(EffectNumber),
}

/// The numbers of a pending operation in the journal and on the tape. `None` where its result is
/// not recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EffectNumber {
    journal: Option<usize>,
    tape: Option<usize>,
}

impl EffectNumber {
    /// Placeholder for operations that are not recorded.
    const NONE: Self = Self {
        journal: None,
        tape: None,
    };

    /// Returns whether the result is recorded.
    pub(crate) fn is_recorded(self) -> bool {
        self.journal.is_some() || self.tape.is_some()
    }
}

/// Error for a call that performs another operation than its earlier run. As the error of a host
/// call, it ends the call.
#[derive(Clone, Debug)]
pub(crate) enum EffectMismatch {
    /// The operation differs from the one before the question.
    AfterRestart {
        /// The earlier operation.
        before: String,
        /// The current operation.
        current: String,
    },
    /// The operation differs from the recorded one.
    InReplay(NotRecorded),
}

impl SideEffects {
    /// Creates the side effects of a call that continues after those in `past`. A plugin that
    /// cannot ask has no journal.
    pub(crate) fn new(
        can_ask: bool,
        past: &Arc<CallJournal>,
        limits: &Limits,
        memory_budget: &MemoryBudget,
        tape: ReplayTape,
    ) -> Self {
        let journal = can_ask.then(|| {
            let used: usize = past.effects.iter().map(RecordedEffect::size).sum();
            let remaining_bytes = usize::try_from(limits.journal.as_u64())
                .unwrap_or(usize::MAX)
                .saturating_sub(used);
            Arc::new(Mutex::new(EffectRecord {
                past: Arc::clone(past),
                replayed_count: 0,
                operations: Vec::new(),
                remaining_bytes,
                memory: memory_budget.empty_reservation(),
                blocker: None,
            }))
        });
        Self { journal, tape }
    }

    /// Starts an operation with a lasting effect. `describe` returns its description, which must be
    /// the same in each run.
    ///
    /// # Errors
    ///
    /// Fails if an earlier run performed a different operation at this point.
    pub(crate) fn begin(
        &self,
        kind: OperationKind,
        describe: impl FnOnce() -> String,
    ) -> Result<EffectStart, EffectMismatch> {
        if self.journal.is_none() && self.tape.is_off() {
            return Ok(EffectStart::Execute(EffectNumber::NONE));
        }
        let full_description = describe();
        let (description, taped_description) = (
            truncate(&full_description),
            truncate(&self.tape.redact_description(&full_description)),
        );
        if let Some(result) = self.tape.replay_operation(kind, &taped_description)? {
            // The effect lasts: a call that asks afterwards must not execute it again.
            if let Some(mut record) = self.lock_journal()
                && record.reserve(description.len() + result.len())
            {
                record.operations.push((description, Some(result.clone())));
            }
            return Ok(EffectStart::Replay(result));
        }
        let (before, journal) = match self.lock_journal() {
            Some(mut record) => record.begin(&description)?,
            None => (None, None),
        };
        let tape = self.tape.start_operation(kind, &taped_description);
        Ok(match before {
            Some(result) => {
                if let Some(number) = tape {
                    self.tape.record_result(number, &result);
                }
                EffectStart::Replay(result)
            }
            None => EffectStart::Execute(EffectNumber { journal, tape }),
        })
    }

    /// Starts an operation without a lasting effect. Its result is needed only for recordings.
    ///
    /// # Errors
    ///
    /// The recording does not contain the operation.
    pub(crate) fn begin_read(
        &self,
        kind: OperationKind,
        describe: impl FnOnce() -> String,
    ) -> Result<EffectStart, EffectMismatch> {
        if self.tape.is_off() {
            return Ok(EffectStart::Execute(EffectNumber::NONE));
        }
        let description = truncate(&self.tape.redact_description(&describe()));
        Ok(match self.tape.replay_operation(kind, &description)? {
            Some(result) => EffectStart::Replay(result),
            None => EffectStart::Execute(EffectNumber {
                journal: None,
                tape: self.tape.start_operation(kind, &description),
            }),
        })
    }

    /// Returns whether a recording has the results of all operations.
    pub(crate) fn is_replay(&self) -> bool {
        self.tape.is_replay()
    }

    /// Records the result of an operation. If it exceeds the journal limit, the call can no longer
    /// ask.
    pub(crate) fn end(&self, effect_number: EffectNumber, result: Vec<u8>) {
        if let Some(number) = effect_number.tape {
            self.tape.record_result(number, &result);
        }
        let (Some(mut record), Some(number)) = (self.lock_journal(), effect_number.journal) else {
            return;
        };
        if record.reserve(result.len())
            && let Some((_, slot)) = record.operations.get_mut(number)
        {
            *slot = Some(result);
        }
    }

    /// Returns whether a result can grow by `bytes` to `size` bytes and still be recorded.
    pub(crate) fn try_grow(&self, effect_number: EffectNumber, bytes: usize, size: usize) -> bool {
        let is_taped = effect_number
            .tape
            .is_some_and(|number| self.tape.reserve_result(number, bytes));
        is_taped || effect_number.journal.is_some() && size <= self.remaining_bytes()
    }

    /// Marks that the call used an operation that recordings do not support.
    pub(crate) fn mark_unsupported(&self, missing: MissingInput) {
        self.tape.note_missing(missing);
    }

    /// Marks that the call can no longer ask.
    pub(crate) fn block_questions(&self, blocker: AskBlocker) {
        if let Some(mut record) = self.lock_journal() {
            record.blocker.get_or_insert(blocker);
        }
    }

    /// Returns the bytes that further results can take, or 0 if results are not recorded.
    pub(crate) fn remaining_bytes(&self) -> usize {
        self.lock_journal().map_or(0, |record| {
            if record.blocker.is_none() {
                record.remaining_bytes
            } else {
                0
            }
        })
    }

    /// Returns all operations of the call, to be stored until the call is restarted.
    ///
    /// # Errors
    ///
    /// The reason why they cannot be stored, worded for the author.
    pub(crate) fn to_journal(&self) -> Result<Vec<RecordedEffect>, String> {
        let Some(record) = self.lock_journal() else {
            return Ok(Vec::new());
        };
        if let Some(blocker) = record.blocker {
            return Err(blocker.message().to_owned());
        }
        let mut effects = record.past.effects.clone();
        for (what, result) in &record.operations {
            let Some(result) = result.clone() else {
                return Err(format!(
                    "{what} was started before this question, and its response has not been read to the end: read it first"
                ));
            };
            effects.push(RecordedEffect {
                what: what.clone(),
                result,
            });
        }
        Ok(effects)
    }

    /// Returns the locked journal. The lock is held for a few instructions and never across an
    /// await.
    fn lock_journal(&self) -> Option<MutexGuard<'_, EffectRecord>> {
        Some(self.journal.as_ref()?.lock())
    }
}

/// Truncates the description of an operation.
fn truncate(description: &str) -> String {
    description
        .get(..description.floor_char_boundary(MAX_DESCRIPTION_BYTES))
        .unwrap_or_default()
        .to_owned()
}

impl EffectRecord {
    /// Starts an operation. Returns its result if an earlier run executed it, or its number if its
    /// result is recorded.
    ///
    /// # Errors
    ///
    /// An earlier run performed another operation here.
    fn begin(
        &mut self,
        description: &str,
    ) -> Result<(Option<Vec<u8>>, Option<usize>), EffectMismatch> {
        if let Some(before) = self.past.effects.get(self.replayed_count) {
            if before.what != description {
                return Err(EffectMismatch::AfterRestart {
                    before: before.what.clone(),
                    current: description.to_owned(),
                });
            }
            let result = before.result.clone();
            self.replayed_count += 1;
            return Ok((Some(result), None));
        }
        if self.blocker.is_some() || !self.reserve(description.len()) {
            return Ok((None, None));
        }
        self.operations.push((description.to_owned(), None));
        Ok((None, Some(self.operations.len() - 1)))
    }

    /// Reserves `bytes` of the journal limit and of the call's memory budget. If that fails, the
    /// call can no longer ask.
    fn reserve(&mut self, bytes: usize) -> bool {
        let is_reserved = bytes <= self.remaining_bytes && self.memory.grow(bytes).is_ok();
        if is_reserved {
            self.remaining_bytes -= bytes;
        } else {
            self.blocker.get_or_insert(AskBlocker::JournalFull);
        }
        is_reserved
    }
}

impl AskBlocker {
    /// Returns the message for the author.
    const fn message(self) -> &'static str {
        match self {
            Self::JournalFull => {
                "the results of the operations before this question are too large to store (limits.journal): ask \
                 earlier"
            }
            Self::FileChange => {
                "the call changed files before this question: ask first, because the call starts again afterwards"
            }
            Self::TcpConnection => {
                "the call made a TCP connection before this question: ask first, because the call starts again afterwards"
            }
        }
    }
}

impl fmt::Display for EffectMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AfterRestart {
                before,
                current: now,
            } => write!(
                f,
                "After its question was answered, the tool did something different: {now} instead of {before}. Before \
                 its question, a tool must perform the same operations in each run."
            ),
            Self::InReplay(unrecorded) => unrecorded.fmt(f),
        }
    }
}

impl std::error::Error for EffectMismatch {}

impl From<NotRecorded> for EffectMismatch {
    fn from(unrecorded: NotRecorded) -> Self {
        Self::InReplay(unrecorded)
    }
}

#[cfg(test)]
mod tests;
