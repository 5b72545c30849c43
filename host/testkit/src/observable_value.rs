//! A value that threads share, with a way to wait for changes.

use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

/// A value and a condition variable that is notified when the value changes.
#[derive(Debug, Default)]
pub struct ObservableValue<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> ObservableValue<T> {
    /// Creates an observable value.
    pub fn new(value: T) -> Self {
        Self {
            value: Mutex::new(value),
            changed: Condvar::new(),
        }
    }

    /// Calls `look` with the value.
    pub fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.lock())
    }

    /// Calls `change` with the value and wakes all waiting threads.
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    /// Waits until `fits` accepts the value. Returns false if `patience` elapses first.
    pub fn wait_until(&self, patience: Duration, mut fits: impl FnMut(&T) -> bool) -> bool {
        let outcome = self
            .changed
            .wait_while_for(&mut self.lock(), |value| !fits(value), patience);
        !outcome.timed_out()
    }

    fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_wakes_waiting_threads() {
        let signal = ObservableValue::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| (0..3).for_each(|_| signal.update(|n| *n += 1)));
            assert!(signal.wait_until(Duration::from_mins(1), |n| *n == 3));
        });
        assert!(!signal.wait_until(Duration::ZERO, |n| *n == 4));
        assert_eq!(signal.read(|n| *n), 3);
    }
}
