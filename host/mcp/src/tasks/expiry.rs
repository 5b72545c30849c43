//! Forgets tasks when their time is over: one timer for all of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// What forgets.
pub(super) trait ExpiringTable: Send + Sync + 'static {
    /// Forgets what is over. Returns when there will be something again.
    fn remove_expired(&self) -> impl Future<Output = Option<Instant>> + Send;
}

/// The timer of a table of tasks.
#[derive(Default)]
pub(super) struct ExpiryTimer {
    setting: Arc<Mutex<TimerSetting>>,
    /// The timer has to look again.
    sooner: Arc<Notify>,
}

/// What the timer waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TimerSetting {
    /// It does not run.
    #[default]
    Off,
    /// It runs, and there are no tasks.
    Idle,
    /// The time of the first task.
    At(Instant),
}

impl Drop for ExpiryTimer {
    fn drop(&mut self) {
        // It ends.
        self.sooner.notify_one();
    }
}

/// The timer runs for as long as this exists. Its runtime may end before the tasks.
struct RunningTimer(Arc<Mutex<TimerSetting>>);

impl Drop for RunningTimer {
    fn drop(&mut self) {
        *lock(&self.0) = TimerSetting::Off;
    }
}

impl ExpiryTimer {
    /// Has `whole` forget what is over at this time.
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

/// Forgets tasks as their times are over, until there is no table of tasks any more.
async fn forget(whole: Weak<impl ExpiringTable>, sooner: Arc<Notify>, running: RunningTimer) {
    loop {
        // Created first: it also notices what is set meanwhile.
        let looks_again = sooner.notified();
        let Some(alive) = whole.upgrade() else { return };
        // Whatever is added from here on sets it anew.
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
    setting.lock().unwrap_or_else(PoisonError::into_inner)
}
