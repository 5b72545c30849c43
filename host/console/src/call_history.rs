//! Finished calls: the newest ones, their statistics over time, and their totals by tool.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::call_note::CallNote;
use crate::chart_history::ChartHistory;

/// Maximum number of stored calls.
pub(crate) const MAX_CALLS: usize = 1_000;

/// Maximum number of tools with separate totals. All further tools share one entry.
const MAX_TOOLS: usize = 1_000;

/// Maximum number of plugins with separate totals.
const MAX_PLUGINS: usize = 1_000;

/// Name of the shared entry, which is not a valid tool name.
const OTHER_TOOLS: &str = "(other)";

/// The finished calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallHistory {
    /// The stored calls, newest last.
    calls: VecDeque<Arc<CallNote>>,
    /// Statistics over time.
    pub(crate) charts: ChartHistory,
    /// Totals by tool since the server started.
    pub(crate) tools: BTreeMap<String, ToolTotals>,
    /// Totals by plugin since the server started.
    pub(crate) plugins: BTreeMap<String, PluginTotals>,
    /// Number of calls since the server started.
    pub(crate) ended: u64,
    /// Number of failed calls since the server started.
    pub(crate) failed: u64,
    /// Number of cancelled calls since the server started.
    pub(crate) cancelled: u64,
    /// Number of calls that were not recorded because the queue was full.
    pub(crate) lost: u64,
}

/// The totals of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ToolTotals {
    pub(crate) calls: u64,
    pub(crate) failed: u64,
    pub(crate) fuel: u64,
    pub(crate) total_duration: Duration,
    /// Maximum memory of a call, in bytes.
    pub(crate) max_memory: u64,
}

/// The totals of a plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PluginTotals {
    pub(crate) calls: u64,
    pub(crate) failed: u64,
}

impl CallHistory {
    /// Adds a call.
    pub(crate) fn add(&mut self, call: CallNote) {
        self.charts.add(&call);
        self.ended += 1;
        self.failed += u64::from(call.is_failure());
        self.cancelled += u64::from(call.is_cancelled());
        // Unknown tools get no entry, because clients can send any name.
        if let Some(plugin) = &call.plugin {
            let has_entry = self.plugins.contains_key(plugin);
            let id = if has_entry || self.plugins.len() < MAX_PLUGINS {
                plugin.as_str()
            } else {
                OTHER_TOOLS
            };
            let totals = self.plugins.entry(id.to_owned()).or_default();
            totals.calls += 1;
            totals.failed += u64::from(call.is_failure());
            let has_entry = self.tools.contains_key(&call.tool);
            let name = if has_entry || self.tools.len() < MAX_TOOLS {
                call.tool.as_str()
            } else {
                OTHER_TOOLS
            };
            let totals = self.tools.entry(name.to_owned()).or_default();
            let usage = call.usage.unwrap_or_default();
            totals.calls += 1;
            totals.failed += u64::from(call.is_failure());
            totals.fuel = totals.fuel.saturating_add(usage.fuel);
            totals.total_duration = totals.total_duration.saturating_add(call.duration);
            totals.max_memory = totals.max_memory.max(usage.memory);
        }
        if self.calls.len() >= MAX_CALLS {
            self.calls.pop_front();
        }
        self.calls.push_back(Arc::new(call));
    }

    /// Returns the stored call with this number.
    pub(crate) fn find(&self, id: u64) -> Option<Arc<CallNote>> {
        self.newest().find(|call| call.id == id).cloned()
    }

    /// Returns the totals of a plugin.
    pub(crate) fn plugin_totals(&self, id: &str) -> PluginTotals {
        self.plugins.get(id).copied().unwrap_or_default()
    }

    /// Returns the stored calls, newest first.
    pub(crate) fn newest(&self) -> impl Iterator<Item = &Arc<CallNote>> {
        self.calls.iter().rev()
    }
}

impl ToolTotals {
    /// Returns the mean duration of a call.
    pub(crate) fn mean_duration(&self) -> Duration {
        self.total_duration
            .checked_div(u32::try_from(self.calls).unwrap_or(u32::MAX))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_note::tests::note;

    #[test]
    fn calls_are_counted_by_tool_and_the_newest_are_stored() {
        let mut history = CallHistory::default();
        for number in 0..2_500 {
            history.add(note(
                &format!("t{number}"),
                if number % 5 == 0 { "trap" } else { "ok" },
            ));
        }
        history.add(CallNote {
            plugin: None,
            ..note("made up", "unknown-tool")
        });
        assert_eq!((history.ended, history.failed), (2_501, 501));
        history.add(note("t5", "cancelled"));
        assert_eq!(
            (history.ended, history.failed, history.cancelled),
            (2_502, 501, 1)
        );
        history.add(CallNote {
            plugin: None,
            ..note("made up", "unknown-tool")
        });
        assert_eq!(history.newest().count(), MAX_CALLS);
        assert_eq!(history.newest().next().unwrap().tool, "made up");
        assert_eq!(history.tools.len(), MAX_TOOLS + 1);
        assert_eq!(history.tools[OTHER_TOOLS].calls, 1_500);
        assert!(!history.tools.contains_key("made up"));
        let totals = history.plugin_totals("p");
        assert_eq!((totals.calls, totals.failed), (2_501, 500));
        assert_eq!(history.plugin_totals("other"), PluginTotals::default());
        let one = history.tools["t5"];
        assert_eq!(
            (one.calls, one.failed, one.fuel, one.mean_duration()),
            (2, 1, 2_000, Duration::from_millis(12))
        );
    }
}
