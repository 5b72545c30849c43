//! How many processors there are for this process.

use std::sync::OnceLock;
use std::thread::available_parallelism;

/// The number of processors that this process may use, at least one. The system is asked once: it takes two dozen system
/// calls.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| available_parallelism().map_or(1, usize::from))
}
