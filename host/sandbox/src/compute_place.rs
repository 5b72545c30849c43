//! The place of a call among those that compute.

use std::pin::Pin;

/// The place of a call among those that compute: it needs none while it waits for something.
pub trait ComputePlace: Send + Sync {
    /// The guest waits for a clock, a response or something else outside. Returns whether others get its place meanwhile: if
    /// not, the call keeps it.
    fn give_back(&self) -> bool;

    /// Waits until the guest may go on, after its place was given back.
    fn take_again(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}
