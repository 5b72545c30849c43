//! Accounting of the work of operations.

use std::fmt::Debug;
use std::time::Duration;

use toolbay_model::thread_cpu_time;

/// Call to which the work of an operation is charged.
pub trait WorkPayer: Debug + Send + Sync {
    /// Charges memory for bytes that are about to be read, until the payer is dropped. Returns
    /// `false` if not enough is left.
    fn charge_memory(&self, bytes: usize) -> bool;
    /// Charges processor time.
    fn charge_cpu_time(&self, time: Duration);
    /// Returns whether the operation must stop. Called every few microseconds.
    fn is_due(&self) -> bool;
}

/// Payer without limits, for commands of the operator.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnmeteredPayer;

impl WorkPayer for UnmeteredPayer {
    fn charge_memory(&self, _bytes: usize) -> bool {
        true
    }

    fn charge_cpu_time(&self, _time: Duration) {}

    fn is_due(&self) -> bool {
        false
    }
}

/// Does work on this thread and charges its processor time to `payer`.
pub(crate) fn run_charged<T>(payer: &dyn WorkPayer, work: impl FnOnce() -> T) -> T {
    let started_at = thread_cpu_time();
    let result = work();
    payer.charge_cpu_time(thread_cpu_time().saturating_sub(started_at));
    result
}
