//! Counters since the server started.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, MutexGuard};
use toolbay_model::{CallUsage, DenialKind};
use toolbay_otel::HistogramPoint;

use super::duration_histogram::{TimeHistogram, new_time_histogram};
use super::histogram::AtomicHistogram;
use super::tool_counters::{ToolMeter, ToolMeters};
use crate::observe::call_outcome::OutcomeLabel;

/// Bucket bounds of guest memory, in bytes.
const MEMORY_BOUNDS: [u64; 7] = [
    256 << 10,
    1 << 20,
    4 << 20,
    16 << 20,
    64 << 20,
    256 << 20,
    1 << 30,
];

/// Nanoseconds per second.
const NANOS_PER_SECOND: f64 = 1e9;

/// Stages of a call, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallStage {
    /// The call waits for admission.
    Queue,
    /// Its arguments are checked, folders and secrets are opened, and its store is created.
    Prepare,
    /// The guest is instantiated and runs.
    Guest,
    /// The result is checked.
    Check,
}

impl CallStage {
    /// All stages.
    pub(crate) const ALL: [Self; 4] = [Self::Queue, Self::Prepare, Self::Guest, Self::Check];

    /// Returns the label value of the stage.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Prepare => "prepare",
            Self::Guest => "guest",
            Self::Check => "check",
        }
    }
}

/// Kinds of changes of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PluginChange {
    /// The plugin was loaded.
    Load,
    /// Only the plugin's grant changed.
    Grant,
    /// The plugin's file was refused.
    Refused,
    /// The plugin's file was removed.
    Removed,
}

impl PluginChange {
    /// All kinds of changes.
    pub(crate) const ALL: [Self; 4] = [Self::Load, Self::Grant, Self::Refused, Self::Removed];

    /// Returns the label value of the change.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Grant => "grant",
            Self::Refused => "refused",
            Self::Removed => "removed",
        }
    }
}

/// Counters since the server started.
#[derive(Debug)]
pub(crate) struct ServerMetrics {
    /// Time when the server started.
    pub(crate) started: SystemTime,
    /// Counters per tool.
    pub(crate) tools: ToolMeters,
    stages: [TimeHistogram; CallStage::ALL.len()],
    memory: AtomicHistogram<{ MEMORY_BOUNDS.len() }>,
    denied: [AtomicU64; DenialKind::ALL.len()],
    changes: [AtomicU64; PluginChange::ALL.len()],
    /// Counts per key that raises the limit, so there are as many entries as limits.
    limits: Mutex<BTreeMap<&'static str, u64>>,
}

impl Default for ServerMetrics {
    fn default() -> Self {
        Self {
            started: SystemTime::now(),
            tools: ToolMeters::default(),
            stages: std::array::from_fn(|_| new_time_histogram()),
            memory: AtomicHistogram::new(&MEMORY_BOUNDS),
            denied: std::array::from_fn(|_| AtomicU64::new(0)),
            changes: std::array::from_fn(|_| AtomicU64::new(0)),
            limits: Mutex::default(),
        }
    }
}

impl ServerMetrics {
    /// Counts a finished call of the tool of `meter`. Without a meter, counts it for the tool with
    /// the requested `name`.
    pub(crate) fn count_call(&self, meter: Option<&ToolMeter>, name: &str, outcome: OutcomeLabel) {
        match meter {
            Some(meter) => meter.count_call(outcome),
            None => self.tools.existing_meter(name).count_call(outcome),
        }
    }

    /// Records the duration of a stage of a call.
    pub(crate) fn record_stage(&self, stage: CallStage, took: Duration) {
        if let Some(histogram) = self.stages.get(stage as usize) {
            histogram.record_time(took);
        }
    }

    /// Records the usage of a call that entered a guest.
    pub(crate) fn record_usage(&self, meter: &ToolMeter, usage: &CallUsage) {
        meter.record_usage(usage);
        self.memory.record(usage.memory);
    }

    /// Counts a denied use.
    pub(crate) fn count_denial(&self, kind: DenialKind) {
        if let Some(count) = self.denied.get(kind as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a change of a plugin.
    pub(crate) fn count_change(&self, change: PluginChange) {
        if let Some(count) = self.changes.get(change as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a limit that was reached, under the key that raises it.
    pub(crate) fn count_limit(&self, key: &'static str) {
        *self.lock_limits().entry(key).or_default() += 1;
    }

    /// Returns the durations per stage, in seconds.
    pub(crate) fn stages(&self) -> impl Iterator<Item = (CallStage, HistogramPoint)> {
        CallStage::ALL.into_iter().zip(
            self.stages
                .iter()
                .map(|histogram| histogram.read(NANOS_PER_SECOND)),
        )
    }

    /// Returns the memory of calls, in bytes.
    pub(crate) fn memory(&self) -> HistogramPoint {
        self.memory.read(1.0)
    }

    /// Returns the durations of a tool's calls, in seconds.
    pub(crate) fn call_times(meter: &ToolMeter) -> HistogramPoint {
        meter.times.read(NANOS_PER_SECOND)
    }

    /// Returns the number of denials per kind of use.
    pub(crate) fn denials(&self) -> impl Iterator<Item = (DenialKind, u64)> {
        DenialKind::ALL.into_iter().zip(
            self.denied
                .iter()
                .map(|count| count.load(Ordering::Relaxed)),
        )
    }

    /// Returns the number of plugin changes per kind.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (PluginChange, u64)> {
        PluginChange::ALL.into_iter().zip(
            self.changes
                .iter()
                .map(|count| count.load(Ordering::Relaxed)),
        )
    }

    /// Returns how often each limit was reached.
    pub(crate) fn limits(&self) -> Vec<(&'static str, u64)> {
        self.lock_limits()
            .iter()
            .map(|(key, count)| (*key, *count))
            .collect()
    }

    // Held for a few instructions, and only by calls that fail because of a limit.
    fn lock_limits(&self) -> MutexGuard<'_, BTreeMap<&'static str, u64>> {
        self.limits.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_has_the_place_of_its_word() {
        let metrics = ServerMetrics::default();
        CallStage::ALL
            .iter()
            .zip(1..)
            .for_each(|(stage, n)| metrics.record_stage(*stage, Duration::from_secs(n)));
        let sums: Vec<String> = metrics
            .stages()
            .map(|(_, distribution)| distribution.sum.to_string())
            .collect();
        assert_eq!(sums, ["1", "2", "3", "4"]);
        for (kind, n) in DenialKind::ALL.into_iter().zip(1..) {
            (0..n).for_each(|_| metrics.count_denial(kind));
        }
        assert!(metrics.denials().zip(1..).all(|((_, count), n)| count == n));
        for (change, n) in PluginChange::ALL.into_iter().zip(1..) {
            (0..n).for_each(|_| metrics.count_change(change));
        }
        assert!(metrics.changes().zip(1..).all(|((_, count), n)| count == n));
        for key in ["b", "a", "b"] {
            metrics.count_limit(key);
        }
        assert_eq!(metrics.limits(), [("a", 1), ("b", 2)]);
    }
}
