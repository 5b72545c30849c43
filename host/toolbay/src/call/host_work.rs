//! The host's computations for one call, and the client for which it computes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use toolbay_model::{CallError, Interrupt, Limit};

use crate::call::client_permits::ClientAdmission;
use crate::call::offload::{OffloadPool, OffloadShare, TooLate};
use crate::limits::call_permit::CallPermit;

/// Maximum size of text that the host checks or hashes on a thread of the guest runtime, in bytes.
/// Cleaning and parsing a result of this size takes about half a millisecond; a guest yields every
/// 2 ms.
pub(crate) const MAX_INLINE_BYTES: usize = 64 << 10;

/// The client of a call.
#[derive(Clone, Copy)]
pub(crate) struct CallClient<'a> {
    /// Its admission state.
    pub(crate) admission: &'a ClientAdmission,
    /// The threads for slow computations.
    pub(crate) offload: &'a OffloadPool,
    /// Its share of these threads.
    pub(crate) threads: &'a OffloadShare,
}

/// Context of the host's computations for one call: its permit, its deadline, and threads for slow
/// ones.
pub(crate) struct HostWork<'a> {
    client: CallClient<'a>,
    /// The permit of the call, which each computation holds.
    pub(crate) permit: Arc<CallPermit>,
    /// Time of admission.
    pub(crate) admitted: Instant,
    /// Time at which all computations of the call end.
    pub(crate) deadline: Instant,
    /// Maximum duration of the call.
    timeout: Duration,
}

impl<'a> HostWork<'a> {
    /// Starts the work for a call that was just admitted. Its deadline starts now.
    pub(crate) fn start(
        client: CallClient<'a>,
        permit: Arc<CallPermit>,
        timeout: Duration,
    ) -> Self {
        let admitted = Instant::now();
        Self {
            client,
            permit,
            admitted,
            deadline: admitted + timeout,
            timeout,
        }
    }

    /// Runs slow work on another thread. `work` must check its interrupt itself.
    ///
    /// # Errors
    ///
    /// The deadline passed before a thread was free, or the runtime is shutting down.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Interrupt) -> T + Send + 'static,
    ) -> Result<T, TooLate> {
        let CallClient {
            offload, threads, ..
        } = self.client;
        offload
            .run(threads, &self.permit, self.deadline, work)
            .await
    }

    /// Returns the error of a call that did not end before its deadline.
    pub(crate) fn deadline_error(&self) -> CallError {
        CallError::limit(Limit::Deadline(self.timeout))
    }
}
