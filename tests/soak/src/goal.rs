//! What a soak is to reach.

use std::time::Duration;

/// How much there is to do.
#[derive(Clone, Copy)]
pub(crate) struct Goal {
    pub(crate) calls: u64,
    pub(crate) reloads: u64,
    pub(crate) time: Duration,
    pub(crate) seed: u64,
}
