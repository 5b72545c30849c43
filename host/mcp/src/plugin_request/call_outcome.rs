//! The outcome of a call, before it becomes a response.

use std::any::Any;

use toolbay_model::{CallFailure, CallResult};

use crate::host::interface::QueuePlace;
use crate::plugin_request::elicitation::NoAnswers;

/// The outcome of one entry or of a whole call.
#[expect(
    clippy::large_enum_variant,
    reason = "it is moved immediately, and `Answered` is the common variant"
)]
pub(super) enum CallOutcome {
    /// The client has cancelled the call.
    Cancelled,
    Answered(CallResult),
    /// A guest panicked, or the server has another internal error. The text is for the log.
    Panicked(String),
}

/// A call that will not enter its plugin again.
pub(super) struct EndedCall {
    pub(super) outcome: CallOutcome,
    /// `None` if the call ended while it had no place in the client's queue.
    pub(super) place: Option<Box<dyn QueuePlace>>,
}

impl CallOutcome {
    /// Creates the outcome of a call that failed.
    pub(super) fn failed(failure: CallFailure) -> Self {
        Self::Answered(CallResult {
            result: Err(failure),
            usage: None,
        })
    }

    /// Creates the outcome of an entry that panicked.
    pub(super) fn panicked(panic: &(dyn Any + Send)) -> Self {
        let message = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::Panicked(format!(
            "a call panicked: {}",
            message.unwrap_or("no message")
        ))
    }

    /// Returns whether it is a rejection. A plugin does not observe a rejected entry.
    pub(super) fn is_rejection(&self) -> bool {
        matches!(
            self,
            Self::Answered(CallResult {
                result: Err(CallFailure::Rejected(_)),
                ..
            })
        )
    }
}

impl From<NoAnswers> for CallOutcome {
    fn from(end: NoAnswers) -> Self {
        match end {
            NoAnswers::Cancelled => Self::Cancelled,
            NoAnswers::Failed(failure) => Self::failed(failure),
        }
    }
}
