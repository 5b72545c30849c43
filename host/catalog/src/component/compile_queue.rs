//! Permits to compile components.

use tokio::sync::{Semaphore, SemaphorePermit};
use toolbay_sandbox::cores;

/// Minimum size of a large component, in bytes. Large components are compiled one at a time.
const LARGE_COMPONENT_BYTES: usize = 4 << 20;

/// Permits to compile components.
pub(crate) struct CompileQueue {
    /// Permits for compilations. Each compilation uses all cores that it gets, so one core is left
    /// for calls. There are always at least two permits, so that one compilation that takes minutes
    /// does not delay all others.
    compiling: Semaphore,
    /// Single permit for components larger than [`LARGE_COMPONENT_BYTES`].
    large: Semaphore,
    /// Single permit for components whose last load failed, from their compilation until they are
    /// described: however many they are and however long they take, they delay no other component.
    retrying: Semaphore,
}

/// Permits to compile a component.
pub(crate) struct CompilePermits<'a> {
    retrying: Option<SemaphorePermit<'a>>,
    large: Option<SemaphorePermit<'a>>,
    compiling: Option<SemaphorePermit<'a>>,
}

/// Permit of a component whose last load failed, held until the component is described.
pub(crate) struct RetryPermit<'a> {
    _retrying: Option<SemaphorePermit<'a>>,
}

impl CompileQueue {
    /// Creates a queue for the cores of this machine.
    pub(crate) fn new() -> Self {
        Self {
            compiling: Semaphore::new(cores().saturating_sub(1).max(2)),
            large: Semaphore::new(1),
            retrying: Semaphore::new(1),
        }
    }

    /// Waits for the permits to compile a component of this length in bytes. Large components are
    /// compiled one at a time, because each takes hundreds of megabytes.
    pub(crate) async fn acquire(&self, length: usize, is_retry: bool) -> CompilePermits<'_> {
        // The semaphores are never closed. All loads acquire them in this order.
        let retrying = if is_retry {
            self.retrying.acquire().await.ok()
        } else {
            None
        };
        let large = if length > LARGE_COMPONENT_BYTES {
            self.large.acquire().await.ok()
        } else {
            None
        };
        CompilePermits {
            retrying,
            large,
            compiling: self.compiling.acquire().await.ok(),
        }
    }

    /// Returns the permits to compile a component of this length in bytes, if nothing else waits
    /// for them.
    pub(crate) fn try_acquire(&self, length: usize, is_retry: bool) -> Option<CompilePermits<'_>> {
        let retrying = if is_retry {
            Some(self.retrying.try_acquire().ok()?)
        } else {
            None
        };
        let large = if length > LARGE_COMPONENT_BYTES {
            Some(self.large.try_acquire().ok()?)
        } else {
            None
        };
        Some(CompilePermits {
            retrying,
            large,
            compiling: Some(self.compiling.try_acquire().ok()?),
        })
    }
}

impl<'a> CompilePermits<'a> {
    /// Returns whether a component of this length in bytes may be compiled with these permits.
    pub(crate) fn allow(&self, length: usize) -> bool {
        self.large.is_some() || length <= LARGE_COMPONENT_BYTES
    }

    /// Releases the permits that are held only during the compilation.
    pub(crate) fn end_compilation(self) -> RetryPermit<'a> {
        drop((self.large, self.compiling));
        RetryPermit {
            _retrying: self.retrying,
        }
    }
}
