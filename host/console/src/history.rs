//! The calls that ended: the newest of them, what they came to over time, and by tool.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::calls::CallNote;
use crate::series::CallSeries;

/// Calls that are kept.
pub(crate) const CALLS: usize = 1_000;

/// Tools whose calls are counted. All further ones share a row.
const TOOLS: usize = 1_000;

/// The row of all further tools. No tool can have such a name.
const OTHERS: &str = "(other)";

/// The calls that ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallHistory {
    /// The newest last.
    calls: VecDeque<Arc<CallNote>>,
    /// What they came to over time.
    pub(crate) series: CallSeries,
    /// What those of each tool came to since the server started.
    pub(crate) tools: BTreeMap<String, ToolTotals>,
    /// All calls since the server started.
    pub(crate) ended: u64,
    /// Those of them that failed.
    pub(crate) failed: u64,
    /// Calls of which nothing is known, because there were too many at once.
    pub(crate) missed: u64,
}

/// What the calls of one tool came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ToolTotals {
    pub(crate) calls: u64,
    pub(crate) failed: u64,
    pub(crate) fuel: u64,
    pub(crate) took: Duration,
    /// The most memory of one, in bytes.
    pub(crate) memory: u64,
}

impl CallHistory {
    /// Adds a call.
    pub(crate) fn add(&mut self, call: CallNote) {
        self.series.add(&call);
        self.ended += 1;
        self.failed += u64::from(call.failed());
        // Names that clients make up get no row.
        if call.plugin.is_some() {
            let known = self.tools.contains_key(&call.tool);
            let name = if known || self.tools.len() < TOOLS { call.tool.as_str() } else { OTHERS };
            let totals = self.tools.entry(name.to_owned()).or_default();
            let usage = call.usage.unwrap_or_default();
            totals.calls += 1;
            totals.failed += u64::from(call.failed());
            totals.fuel = totals.fuel.saturating_add(usage.fuel);
            totals.took = totals.took.saturating_add(call.took);
            totals.memory = totals.memory.max(usage.memory);
        }
        if self.calls.len() >= CALLS {
            self.calls.pop_front();
        }
        self.calls.push_back(Arc::new(call));
    }

    /// The newest calls, the newest first.
    pub(crate) fn newest(&self) -> impl Iterator<Item = &Arc<CallNote>> {
        self.calls.iter().rev()
    }
}

impl ToolTotals {
    /// Their mean time.
    pub(crate) fn mean(&self) -> Duration {
        self.took.checked_div(u32::try_from(self.calls).unwrap_or(u32::MAX)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::tests::note;

    #[test]
    fn calls_are_counted_by_tool_and_the_newest_are_kept() {
        let mut history = CallHistory::default();
        for number in 0..2_500 {
            history.add(note(&format!("t{number}"), if number % 5 == 0 { "trap" } else { "ok" }));
        }
        history.add(CallNote { plugin: None, ..note("made up", "unknown-tool") });
        assert_eq!((history.ended, history.failed), (2_501, 501));
        assert_eq!(history.newest().count(), CALLS);
        assert_eq!(history.newest().next().unwrap().tool, "made up");
        assert_eq!(history.tools.len(), TOOLS + 1);
        assert_eq!(history.tools[OTHERS].calls, 1_500);
        assert!(!history.tools.contains_key("made up"));
        let one = history.tools["t5"];
        assert_eq!((one.calls, one.failed, one.fuel, one.mean()), (1, 1, 1_000, Duration::from_millis(12)));
    }
}
