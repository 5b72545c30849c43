//! The run of a guest, apart from its result.

use std::time::{Duration, Instant};

use toolbay_model::{CallError, CallUsage};
use toolbay_sandbox::{FinishedCall, HostDenial};

/// The run of a guest, apart from its result.
#[derive(Debug)]
pub(crate) struct GuestRun {
    /// The resources that the guest used.
    pub(crate) usage: CallUsage,
    /// Time at which the guest's store was ready; `None` if no guest was entered.
    pub(crate) entered: Option<Instant>,
    /// Time in which the guest waited, or in which other work used the processor.
    pub(crate) waited: Duration,
    /// True if the guest waited for an external event.
    pub(crate) idled: bool,
    /// Text that the guest wrote to standard output.
    pub(crate) stdout: String,
    /// Text that the guest wrote to standard error.
    pub(crate) stderr: String,
    /// Number of log messages beyond the limit.
    pub(crate) log_dropped: u64,
}

impl GuestRun {
    /// Splits a finished call into the guest's result, its run, and the first denial that it
    /// received.
    pub(crate) fn split<T>(
        finished: FinishedCall<T>,
    ) -> (Result<T, CallError>, Self, Option<HostDenial>) {
        let FinishedCall {
            result,
            usage,
            entered,
            waited,
            idled,
            stdout,
            stderr,
            log_dropped,
            first_denial: hindered,
        } = finished;
        let run = Self {
            usage,
            entered,
            waited,
            idled,
            stdout,
            stderr,
            log_dropped,
        };
        (result, run, hindered)
    }
}
