//! Removes expired tasks, with one timer for all tasks.

use parking_lot::{Mutex, MutexGuard};
use std::sync::{Arc, Weak};

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// A table whose entries expire.
pub(super) trait ExpiringTable: Send + Sync + 'static {
    /// Removes the expired entries. Returns when the next entry expires.
    fn remove_expired(&self) -> impl Future<Output = Option<Instant>> + Send;
}

/// The timer of a table of tasks.
#[derive(Default)]
pub(super) struct ExpiryTimer {
    setting: Arc<Mutex<TimerSetting>>,
    /// Notifies the timer that it must check the time again.
    sooner: Arc<Notify>,
}

/// The state of the timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TimerSetting {
    /// The timer does not run.
    #[default]
    Off,
    /// The timer runs, and there are no tasks.
    Idle,
    /// The timer runs until the first task expires.
    At(Instant),
}

impl Drop for ExpiryTimer {
    fn drop(&mut self) {
        // Wakes the timer so that it ends.
        self.sooner.notify_one();
    }
}

/// A guard that marks the timer as running. The runtime of the timer may end before the tasks.
struct RunningTimer(Arc<Mutex<TimerSetting>>);

impl Drop for RunningTimer {
    fn drop(&mut self) {
        *lock(&self.0) = TimerSetting::Off;
    }
}

impl ExpiryTimer {
    /// Schedules the removal of expired entries of `table` at this time.
    pub(super) fn schedule(&self, until: Instant, whole: &Arc<impl ExpiringTable>) {
        let Self { setting, sooner } = self;
        let before = {
            let mut setting = lock(setting);
            let before = *setting;
            if !matches!(before, TimerSetting::At(first) if first <= until) {
                *setting = TimerSetting::At(until);
            }
            before
        };
        match before {
            TimerSetting::At(first) if first <= until => {}
            TimerSetting::At(_) | TimerSetting::Idle => sooner.notify_one(),
            TimerSetting::Off => {
                let running = RunningTimer(Arc::clone(setting));
                tokio::spawn(forget(Arc::downgrade(whole), Arc::clone(sooner), running));
            }
        }
    }
}

/// Removes tasks as they expire, until the table of tasks is dropped.
async fn forget(whole: Weak<impl ExpiringTable>, sooner: Arc<Notify>, running: RunningTimer) {
    loop {
        // Created before the check, so that a change in between also wakes this future.
        let looks_again = sooner.notified();
        let Some(alive) = whole.upgrade() else { return };
        // A task that is added after this point schedules the timer again.
        *lock(&running.0) = TimerSetting::Idle;
        let next = alive.remove_expired().await;
        drop(alive);
        let Some(next) = next else {
            looks_again.await;
            continue;
        };
        {
            let mut setting = lock(&running.0);
            if !matches!(*setting, TimerSetting::At(first) if first <= next) {
                *setting = TimerSetting::At(next);
            }
        }
        tokio::select! {
            () = sleep_until(next) => {}
            () = looks_again => {}
        }
    }
}

// Held for a few instructions and never across an await.
fn lock(setting: &Mutex<TimerSetting>) -> MutexGuard<'_, TimerSetting> {
    setting.lock()
}
