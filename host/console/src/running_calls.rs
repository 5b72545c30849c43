//! The calls that are running, and their stop signals.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::call_note::truncate_name;

/// A call that has not ended.
#[derive(Clone, Debug)]
pub struct RunningCall {
    /// Number of the call in this console.
    pub id: u64,
    /// The caller's name.
    pub caller: String,
    /// The tool, prompt or resource.
    pub tool: String,
    /// The plugin that handles the call, once it is known.
    pub plugin: Option<String>,
    /// Time at which the call arrived.
    pub started_at: SystemTime,
    /// The newest progress that the call reported, in words.
    pub progress: Option<String>,
}

/// All running calls. The lock is held for a few instructions.
pub(crate) type SharedRunningCalls = Arc<Mutex<RunningCalls>>;

/// The running calls of a server, for a console that is created later and for `toolbay ps`.
#[derive(Clone, Debug, Default)]
pub struct RunningCallTable(pub(crate) SharedRunningCalls);

impl RunningCallTable {
    /// Adds a call of `tool`, which is listed until the entry is dropped.
    pub fn start(&self, caller: &str, tool: &str) -> RunningCallEntry {
        RunningCallEntry::new(&self.0, caller, tool)
    }

    /// Returns at most `max_count` calls, the oldest first, and the number of all.
    pub fn oldest(&self, max_count: usize) -> (Vec<RunningCall>, usize) {
        self.0.lock().oldest(max_count)
    }

    /// Signals a call to stop, and returns it. Returns `None` if it has ended.
    pub fn stop(&self, id: u64) -> Option<RunningCall> {
        self.0.lock().stop(id)
    }
}

/// Reports the progress of a running call.
#[derive(Clone, Debug)]
pub struct CallProgress {
    running: SharedRunningCalls,
    id: u64,
}

impl CallProgress {
    /// Sets the newest progress, in words. Does nothing if the call has ended.
    pub fn set(&self, progress: String) {
        if let Some((call, _)) = self.running.lock().calls.get_mut(&self.id) {
            call.progress = Some(truncate_name(progress));
        }
    }
}

/// All running calls, by number. Their number is bounded by the places of callers and queues.
#[derive(Debug, Default)]
pub(crate) struct RunningCalls {
    last_id: u64,
    calls: BTreeMap<u64, (RunningCall, Arc<Notify>)>,
}

impl RunningCalls {
    /// Adds a call, and returns its number.
    fn add(&mut self, caller: &str, tool: &str, stop: Arc<Notify>) -> u64 {
        self.last_id += 1;
        let call = RunningCall {
            id: self.last_id,
            caller: truncate_name(caller.to_owned()),
            tool: truncate_name(tool.to_owned()),
            plugin: None,
            progress: None,
            started_at: SystemTime::now(),
        };
        self.calls.insert(self.last_id, (call, stop));
        self.last_id
    }

    /// Returns at most `max_count` calls, the oldest first, and the number of all.
    pub(crate) fn oldest(&self, max_count: usize) -> (Vec<RunningCall>, usize) {
        let calls = self.calls.values().take(max_count);
        (
            calls.map(|(call, _)| call.clone()).collect(),
            self.calls.len(),
        )
    }

    /// Returns a call by its number.
    pub(crate) fn get(&self, id: u64) -> Option<&RunningCall> {
        self.calls.get(&id).map(|(call, _)| call)
    }

    /// Signals a call to stop. Returns the call, or `None` if it has ended.
    pub(crate) fn stop(&self, id: u64) -> Option<RunningCall> {
        let (call, stop) = self.calls.get(&id)?;
        // Stores the signal if the call does not wait for it yet.
        stop.notify_one();
        Some(call.clone())
    }
}

/// The entry of a running call, which is removed on drop.
#[derive(Debug)]
pub struct RunningCallEntry {
    running: SharedRunningCalls,
    id: u64,
    stop: Arc<Notify>,
}

impl RunningCallEntry {
    /// Adds an entry for a call of `tool`.
    pub(crate) fn new(running: &SharedRunningCalls, caller: &str, tool: &str) -> Self {
        let stop = Arc::<Notify>::default();
        let id = running.lock().add(caller, tool, Arc::clone(&stop));
        Self {
            running: Arc::clone(running),
            id,
            stop,
        }
    }

    /// Returns the number of the call in this console.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Sets the plugin that handles the call.
    pub fn set_plugin(&self, plugin: &str) {
        if let Some((call, _)) = self.running.lock().calls.get_mut(&self.id) {
            call.plugin = Some(truncate_name(plugin.to_owned()));
        }
    }

    /// Returns a handle with which the progress of the call is reported.
    pub fn progress(&self) -> CallProgress {
        CallProgress {
            running: Arc::clone(&self.running),
            id: self.id,
        }
    }

    /// Returns the signal that an operator stops the call. One task can wait for it.
    pub fn stop_signal(&self) -> Arc<Notify> {
        Arc::clone(&self.stop)
    }
}

impl Drop for RunningCallEntry {
    fn drop(&mut self) {
        self.running.lock().calls.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_listed_until_its_entry_is_dropped() {
        let running = SharedRunningCalls::default();
        let first = RunningCallEntry::new(&running, "stdio", "one");
        let second = RunningCallEntry::new(&running, "token:ci", "two\u{1b}[1m");
        second.set_plugin("p");
        second.progress().set("1/2".to_owned());
        let (calls, count) = running.lock().oldest(1);
        assert_eq!((calls[0].tool.as_str(), calls.len(), count), ("one", 1, 2));
        let listed = running.lock().get(second.id).unwrap().clone();
        assert_eq!(
            (
                listed.tool.as_str(),
                listed.plugin.as_deref(),
                listed.progress.as_deref()
            ),
            ("two", Some("p"), Some("1/2"))
        );
        drop(first);
        assert_eq!(running.lock().oldest(9).1, 1);
        drop(second);
        assert_eq!(running.lock().oldest(9).1, 0);
    }

    #[tokio::test]
    async fn a_stop_signal_is_stored_and_reaches_only_its_call() {
        let running = SharedRunningCalls::default();
        let entries = ["a", "b"].map(|tool| RunningCallEntry::new(&running, "stdio", tool));
        assert!(running.lock().stop(entries[1].id).is_some());
        entries[1].stop_signal().notified().await;
        let other = entries[0].stop_signal();
        assert!(
            tokio::time::timeout(std::time::Duration::ZERO, other.notified())
                .await
                .is_err()
        );
        let id = entries[0].id;
        drop(entries);
        assert!(running.lock().stop(id).is_none());
    }
}
