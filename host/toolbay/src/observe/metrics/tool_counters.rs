//! Counters per called tool. The number of tools is bounded, and only offered tools are retained.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};
use toolbay_catalog::Plugin;
use toolbay_model::{CallUsage, Tool};

use super::duration_histogram::{TimeHistogram, new_time_histogram};
use crate::observe::call_outcome::OutcomeLabel;

/// Maximum number of tools with their own meter. Plugins choose the number and names of their
/// tools.
const MAX_TOOLS: usize = 1_000;

/// Counters of one tool's calls, or of all calls that share a meter. Each call needs two cache
/// lines of it.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct ToolMeter {
    /// True if the tool is no longer offered, so that the meter is no longer exported.
    is_retired: AtomicBool,
    fuel: AtomicU64,
    peak: AtomicU64,
    outcomes: [AtomicU64; OutcomeLabel::COUNT],
    /// Durations of calls, from the lookup of the plugin until the result is checked.
    pub(crate) times: TimeHistogram,
    /// The tool's public name, or a name in parentheses, which no tool can have.
    pub(crate) name: String,
}

/// The meters of all tools.
#[derive(Debug)]
pub(crate) struct ToolMeters {
    most: usize,
    table: Mutex<BTreeMap<String, Arc<ToolMeter>>>,
    /// Shared meter of all prompts.
    pub(crate) prompts: Arc<ToolMeter>,
    /// Shared meter of all resources.
    pub(crate) resources: Arc<ToolMeter>,
    /// Shared meter of completions of arguments.
    pub(crate) completions: Arc<ToolMeter>,
    /// Shared meter of tools beyond the maximum, and of calls of unknown names.
    others: Arc<ToolMeter>,
}

/// The meters of the tools of one loaded version of a plugin. Each is looked up when the tool is
/// first called.
#[derive(Debug)]
pub(crate) struct PluginMeters {
    /// Meters by the address of the tool, which is stable while the plugin can be called.
    tools: HashMap<usize, OnceLock<Arc<ToolMeter>>>,
}

impl ToolMeter {
    fn new(name: &str) -> Arc<Self> {
        Arc::new(Self {
            is_retired: AtomicBool::new(false),
            fuel: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            outcomes: std::array::from_fn(|_| AtomicU64::new(0)),
            times: new_time_histogram(),
            name: name.to_owned(),
        })
    }

    /// Counts a finished call.
    pub(crate) fn count_call(&self, outcome: OutcomeLabel) {
        if let Some(count) = self.outcomes.get(outcome.index()) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records the usage of a call.
    pub(crate) fn record_usage(&self, usage: &CallUsage) {
        self.fuel.fetch_add(usage.fuel, Ordering::Relaxed);
        self.peak.fetch_max(usage.memory, Ordering::Relaxed);
    }

    /// Returns the number of calls per outcome, without outcomes that did not occur.
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = (OutcomeLabel, u64)> {
        let counts = self
            .outcomes
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        OutcomeLabel::all()
            .zip(counts)
            .filter(|(_, count)| *count > 0)
    }

    /// Returns the fuel of all calls.
    pub(crate) fn fuel(&self) -> u64 {
        self.fuel.load(Ordering::Relaxed)
    }

    /// Returns the highest memory usage of a call, in bytes.
    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }
}

impl Default for ToolMeters {
    fn default() -> Self {
        Self::with_capacity(MAX_TOOLS)
    }
}

impl ToolMeters {
    fn with_capacity(most: usize) -> Self {
        let [prompts, resources, completions, others] =
            ["(prompt)", "(resource)", "(completion)", "(other)"].map(ToolMeter::new);
        Self {
            most,
            table: Mutex::default(),
            prompts,
            resources,
            completions,
            others,
        }
    }

    /// Returns the meter of the offered tool with this name. Creates it if there is capacity.
    fn meter(&self, name: &str) -> Arc<ToolMeter> {
        let mut table = self.lock_table();
        if let Some(meter) = table.get(name) {
            return Arc::clone(meter);
        }
        if table.len() >= self.most {
            return Arc::clone(&self.others);
        }
        let meter = ToolMeter::new(name);
        table.insert(name.to_owned(), Arc::clone(&meter));
        meter
    }

    /// Returns the meter of the tool with this name if it was called before, otherwise the shared
    /// one. A caller can choose any name, so this does not create a meter.
    pub(crate) fn existing_meter(&self, name: &str) -> Arc<ToolMeter> {
        Arc::clone(self.lock_table().get(name).unwrap_or(&self.others))
    }

    /// Removes the meters of tools that are not `offered`.
    pub(crate) fn retain(&self, offered: impl Fn(&str) -> bool) {
        self.lock_table().retain(|name, meter| {
            let keep = offered(name);
            if !keep {
                meter.is_retired.store(true, Ordering::Relaxed);
            }
            keep
        });
    }

    /// Returns all meters: the shared ones first, then by name.
    pub(crate) fn meters(&self) -> Vec<Arc<ToolMeter>> {
        let shared = [
            &self.completions,
            &self.others,
            &self.prompts,
            &self.resources,
        ]
        .map(Arc::clone);
        shared
            .into_iter()
            .chain(self.lock_table().values().map(Arc::clone))
            .collect()
    }

    // Held while at most a thousand pointers are copied, and never across an await.
    fn lock_table(&self) -> MutexGuard<'_, BTreeMap<String, Arc<ToolMeter>>> {
        self.table.lock()
    }
}

impl PluginMeters {
    /// Creates the meters of a plugin that has not been called.
    pub(crate) fn new(plugin: &Plugin) -> Self {
        Self {
            tools: plugin
                .tools
                .iter()
                .map(|named| (tool_address(&named.tool), OnceLock::new()))
                .collect(),
        }
    }

    /// Returns the meter of this tool of the plugin, from `tools`.
    pub(crate) fn tool_meter(&self, tool: &Arc<Tool>, tools: &ToolMeters) -> Arc<ToolMeter> {
        self.meter_at(tool_address(tool), &tool.name, tools)
    }

    fn meter_at(&self, address: usize, name: &str, tools: &ToolMeters) -> Arc<ToolMeter> {
        let own = self
            .tools
            .get(&address)
            .map(|own| own.get_or_init(|| tools.meter(name)));
        match own {
            Some(own) if !own.is_retired.load(Ordering::Relaxed) => Arc::clone(own),
            // Another plugin's tool hid it for a while, or its plugin is being removed.
            _ => tools.meter(name),
        }
    }
}

fn tool_address(tool: &Arc<Tool>) -> usize {
    Arc::as_ptr(tool).addr()
}

#[cfg(test)]
mod tests {
    use toolbay_model::ErrorKind;

    use super::*;

    fn names(tools: &ToolMeters) -> Vec<String> {
        tools
            .meters()
            .iter()
            .map(|meter| meter.name.clone())
            .filter(|name| !name.starts_with('('))
            .collect()
    }

    #[test]
    fn there_is_room_for_so_many_tools_and_the_rest_shares_a_meter() {
        let tools = ToolMeters::with_capacity(2);
        for name in ["b", "a", "c", "b", "d"] {
            tools.meter(name).count_call(OutcomeLabel::Ok);
        }
        assert_eq!(names(&tools), ["a", "b"]);
        assert_eq!(
            tools.existing_meter("c").outcomes().collect::<Vec<_>>(),
            [(OutcomeLabel::Ok, 2)]
        );
        assert_eq!(
            tools.existing_meter("b").outcomes().collect::<Vec<_>>(),
            [(OutcomeLabel::Ok, 2)]
        );
        tools.retain(|name| name != "a");
        tools
            .meter("d")
            .count_call(OutcomeLabel::Failed(ErrorKind::Trap));
        assert_eq!(names(&tools), ["b", "d"]);
        assert_eq!(tools.existing_meter("nobody's").name, "(other)");
        assert_eq!(
            names(&tools),
            ["b", "d"],
            "looking for a name makes no meter"
        );
    }

    #[test]
    fn a_tool_that_comes_back_is_counted_again() {
        let tools = ToolMeters::default();
        let meters = PluginMeters {
            tools: HashMap::from([(7, OnceLock::new())]),
        };
        meters.meter_at(7, "a", &tools).count_call(OutcomeLabel::Ok);
        tools.retain(|_| false);
        meters
            .meter_at(7, "a", &tools)
            .count_call(OutcomeLabel::InputRequired);
        meters
            .meter_at(7, "a", &tools)
            .count_call(OutcomeLabel::InputRequired);
        assert_eq!(
            tools.existing_meter("a").outcomes().collect::<Vec<_>>(),
            [(OutcomeLabel::InputRequired, 2)]
        );
    }

    #[test]
    fn usage_adds_up_and_the_peak_stays() {
        let meter = ToolMeter::new("a");
        for (fuel, memory) in [(5, 100), (7, 50)] {
            meter.record_usage(&CallUsage {
                fuel,
                memory,
                ..CallUsage::default()
            });
        }
        assert_eq!((meter.fuel(), meter.peak()), (12, 100));
    }
}
