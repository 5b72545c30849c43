//! Permits to check descriptions and to read plain files.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolbay_sandbox::cores;

use crate::component::blocking_work::run_blocking;
use crate::folder::load_error::LoadError;

/// Permits to check descriptions and to read plain files. Only a few checks run concurrently, so
/// that the threads of calls and of the protocol keep their cores.
pub(crate) struct CheckQueue {
    permits: Arc<Semaphore>,
}

impl CheckQueue {
    /// Creates a queue with a permit for each core except one.
    pub(crate) fn new() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(cores().saturating_sub(1).max(1))),
        }
    }

    /// Waits for a permit.
    pub(crate) async fn acquire(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.permits).acquire_owned().await.ok()
    }

    /// Checks a plugin's description on a blocking thread, because schemas may be slow to compile.
    ///
    /// # Errors
    ///
    /// A refusal with the reason that `work` returns.
    pub(crate) async fn run_check<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<T, LoadError> {
        let permit = self.acquire().await;
        run_blocking("checking what it offers", move || {
            let _permit = permit;
            work().map_err(LoadError::Refused)
        })
        .await
    }
}
