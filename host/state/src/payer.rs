//! What an operation is drawn from.

use std::fmt::Debug;
use std::time::Duration;

use toolbay_model::thread_cpu_time;

/// The call that an operation is done for.
pub trait WorkPayer: Debug + Send + Sync {
    /// Takes memory for bytes that are about to be read, until the payer is dropped. `false` if there is not as much.
    fn hold(&self, bytes: usize) -> bool;
    /// Takes note of processor time that was spent.
    fn spend(&self, time: Duration);
    /// Whether the operation must stop. It is asked every few microseconds.
    fn is_due(&self) -> bool;
}

/// Pays for anything: for commands of the operator.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnmeteredPayer;

impl WorkPayer for UnmeteredPayer {
    fn hold(&self, _bytes: usize) -> bool {
        true
    }

    fn spend(&self, _time: Duration) {}

    fn is_due(&self) -> bool {
        false
    }
}

/// Does work on this thread, and has `payer` pay for its processor time.
pub(crate) fn paid<T>(payer: &dyn WorkPayer, work: impl FnOnce() -> T) -> T {
    let before = thread_cpu_time();
    let result = work();
    payer.spend(thread_cpu_time().saturating_sub(before));
    result
}
