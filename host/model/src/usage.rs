//! What a call used up.

use std::time::Duration;

/// What a call used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Fuel: about one unit per WebAssembly instruction. After a deadline or a cancellation, what was used up to the
    /// last yield.
    pub fuel: u64,
    /// Wall clock, from instantiation to the answer.
    pub wall: Duration,
    /// Peak linear memory in bytes, all memories of the component together.
    pub memory: u64,
}
