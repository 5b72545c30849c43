//! The number of processors of this process.

use std::sync::OnceLock;
use std::thread::available_parallelism;

/// Returns the number of processors that this process can use, at least one. The value is cached,
/// because determining it takes two dozen system calls.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| available_parallelism().map_or(1, usize::from))
}
