//! The compute permit of a call.

use std::pin::Pin;

/// The permit of a call to use a processor. The call releases it while it waits for an event.
pub trait ComputePermit: Send + Sync {
    /// Releases the permit because the guest waits for a clock, a response or another external
    /// event. Returns whether other calls can use the permit in the meantime. If `false`, the call
    /// keeps it.
    fn release(&self) -> bool;

    /// Waits until the call holds a permit again after it was released.
    fn acquire(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}
