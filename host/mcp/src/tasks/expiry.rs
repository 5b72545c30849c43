//! Removes expired tasks, with one timer for all tasks.

use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};
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
    rescheduled: Arc<Notify>,
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
        self.rescheduled.notify_one();
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
    pub(super) fn schedule(&self, expires_at: Instant, table: &Arc<impl ExpiringTable>) {
        let Self {
            setting,
            rescheduled,
        } = self;
        let previous = {
            let mut setting = lock(setting);
            let previous_setting = *setting;
            if !matches!(previous_setting, TimerSetting::At(first) if first <= expires_at) {
                *setting = TimerSetting::At(expires_at);
            }
            previous_setting
        };
        match previous {
            TimerSetting::At(first) if first <= expires_at => {}
            TimerSetting::At(_) | TimerSetting::Idle => rescheduled.notify_one(),
            TimerSetting::Off => {
                let running = RunningTimer(Arc::clone(setting));
                tokio::spawn(run_timer(
                    Arc::downgrade(table),
                    Arc::clone(rescheduled),
                    running,
                ));
            }
        }
    }
}

/// Removes tasks as they expire, until the table of tasks is dropped.
async fn run_timer(
    weak_table: Weak<impl ExpiringTable>,
    rescheduled: Arc<Notify>,
    running: RunningTimer,
) {
    loop {
        // Created before the check, so that a change in between also wakes this future.
        let rescheduling = rescheduled.notified();
        let Some(table) = weak_table.upgrade() else {
            return;
        };
        // A task that is added after this point schedules the timer again.
        *lock(&running.0) = TimerSetting::Idle;
        let next = table.remove_expired().await;
        drop(table);
        let Some(next) = next else {
            rescheduling.await;
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
            () = rescheduling => {}
        }
    }
}

// Held for a few instructions and never across an await.
fn lock(setting: &Mutex<TimerSetting>) -> MutexGuard<'_, TimerSetting> {
    setting.lock()
}
