//! Operations of a call and their results, recorded or replayed.

use std::fmt;

use toolbay_recording::{HostOperation, OperationResult};

use super::finished_recording::{OperationKind, UnfinishedOperation};
use super::replay_tape::ReplayTape;
use super::tape_reel::{MAX_NOTED_OPERATIONS, OPERATION_OVERHEAD_BYTES, TapeMode};

impl ReplayTape {
    /// Returns the recorded result of an operation, or `None` if the log does not replay. Searches
    /// all operations that were not repeated yet, so a plugin that performs them in another order
    /// gets the same answers.
    ///
    /// # Errors
    ///
    /// Fails if the recording does not have the operation.
    pub(crate) fn replay_operation(
        &self,
        kind: OperationKind,
        what: &str,
    ) -> Result<Option<Vec<u8>>, NotRecorded> {
        let mut mode = self.lock_mode();
        let Some(TapeMode::Replay(playback)) = mode.as_deref_mut() else {
            return Ok(None);
        };
        let is_match = |operation: &HostOperation| {
            let is_same_kind = match operation.answer {
                OperationResult::Http(_) => kind == OperationKind::Http,
                OperationResult::State(_) => kind == OperationKind::State,
            };
            is_same_kind && operation.what == what
        };
        let matching = playback
            .operations
            .iter_mut()
            .find(|operation| operation.as_ref().is_some_and(is_match));
        match matching
            .and_then(Option::take)
            .map(|operation| operation.answer)
        {
            Some(OperationResult::State(bytes)) => Ok(Some(bytes.0)),
            Some(OperationResult::Http(answer)) => {
                Ok(Some(postcard::to_allocvec(&answer).unwrap_or_default()))
            }
            None => {
                if playback.unrecorded.len() < MAX_NOTED_OPERATIONS {
                    playback.unrecorded.push(what.to_owned());
                }
                Err(NotRecorded(what.to_owned()))
            }
        }
    }

    /// Records the start of an operation. Returns its number if the result must be recorded.
    pub(crate) fn start_operation(&self, kind: OperationKind, what: &str) -> Option<usize> {
        let mut mode = self.lock_mode();
        let Some(TapeMode::Record(recording)) = mode.as_deref_mut() else {
            return None;
        };
        if !recording.reserve(OPERATION_OVERHEAD_BYTES + what.len()) {
            return None;
        }
        recording.operations.push(UnfinishedOperation {
            kind,
            description: what.to_owned(),
            result: None,
            reserved_bytes: 0,
        });
        Some(recording.operations.len() - 1)
    }

    /// Reserves memory for a part of a result. Returns whether enough was available.
    pub(crate) fn reserve_result(&self, number: usize, bytes: usize) -> bool {
        let mut mode = self.lock_mode();
        let Some(TapeMode::Record(recording)) = mode.as_deref_mut() else {
            return false;
        };
        let is_reserved = recording.reserve(bytes);
        if is_reserved && let Some(operation) = recording.operations.get_mut(number) {
            operation.reserved_bytes += bytes;
        }
        is_reserved
    }

    /// Records the result of an operation.
    pub(crate) fn record_result(&self, number: usize, result: &[u8]) {
        let mut mode = self.lock_mode();
        let Some(TapeMode::Record(recording)) = mode.as_deref_mut() else {
            return;
        };
        let reserved_bytes = recording
            .operations
            .get(number)
            .map_or(0, |operation| operation.reserved_bytes);
        if recording.reserve(result.len().saturating_sub(reserved_bytes))
            && let Some(operation) = recording.operations.get_mut(number)
        {
            operation.result = Some(result.to_vec());
        }
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
