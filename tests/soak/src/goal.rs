//! The goal of a soak test.

use std::time::Duration;

/// The amount of work to do.
#[derive(Clone, Copy)]
pub(crate) struct Goal {
    pub(crate) calls: u64,
    pub(crate) reloads: u64,
    pub(crate) time: Duration,
    pub(crate) seed: u64,
}
