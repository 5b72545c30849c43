//! Failed steps of a load, and where their reasons are remembered.

use toolbay_model::{CallError, Limit};
use toolbay_sandbox::PrepareError;

use crate::folder::load_error::{LoadError, describe_load_error};

/// The storage in which the reason of a failed step is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureMemory {
    /// This process, if the reason is a refusal.
    Process,
    /// The compile cache: the step timed out, so the next start does not wait for it.
    Slow,
    /// The compile cache: the component is refused again without being tried.
    Lasting,
}

/// Failed step of a load.
pub(crate) struct FailedStep {
    pub(crate) error: LoadError,
    pub(crate) memory: FailureMemory,
}

impl FailedStep {
    pub(crate) fn of_compilation(error: PrepareError) -> Self {
        let memory = if error.is_lasting() {
            FailureMemory::Lasting
        } else if error.is_exhausted() {
            FailureMemory::Slow
        } else {
            FailureMemory::Process
        };
        let error = match error {
            PrepareError::Incomplete | PrepareError::Empty => {
                LoadError::Incomplete(error.to_string())
            }
            PrepareError::Transient(_) | PrepareError::TimedOut(_) | PrepareError::WriteFailed => {
                LoadError::Transient(error.to_string())
            }
            error => LoadError::Refused(error.to_string()),
        };
        Self { error, memory }
    }

    pub(crate) fn of_description(error: &CallError) -> Self {
        let failure = Self::of_check(describe_load_error(error));
        let is_slow = matches!(
            error,
            CallError::Limit {
                limit: Limit::Deadline(_),
                ..
            }
        );
        if is_slow {
            Self {
                memory: FailureMemory::Slow,
                ..failure
            }
        } else {
            failure
        }
    }

    /// Returns the failure of a step whose result depends only on the component.
    pub(crate) fn of_check(error: LoadError) -> Self {
        let is_refusal = matches!(error, LoadError::Refused(_));
        Self {
            error,
            memory: if is_refusal {
                FailureMemory::Lasting
            } else {
                FailureMemory::Process
            },
        }
    }
}
