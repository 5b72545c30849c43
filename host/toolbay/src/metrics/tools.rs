//! What is counted of each tool that was called: so many tools at most, and only those that are offered.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use toolbay_catalog::Plugin;
use toolbay_model::{CallUsage, Tool};

use super::times::{TimeHistogram, times};
use crate::outcome::EndedAs;

/// Tools that are counted one by one. Plugins choose their number and their names.
const MOST: usize = 1_000;

/// What is counted of the calls of one tool, or of all that share a meter. What each call needs is in two lines of a cache.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct ToolMeter {
    /// Whether it is shown no more.
    gone: AtomicBool,
    fuel: AtomicU64,
    peak: AtomicU64,
    outcomes: [AtomicU64; EndedAs::COUNT],
    /// What calls take from the moment their plugin is found until their result is checked.
    pub(crate) times: TimeHistogram,
    /// The name that clients call, or one in brackets, which no tool can have.
    pub(crate) name: String,
}

/// The meters of all tools.
#[derive(Debug)]
pub(crate) struct ToolMeters {
    most: usize,
    table: Mutex<BTreeMap<String, Arc<ToolMeter>>>,
    /// Of all prompts.
    pub(crate) prompts: Arc<ToolMeter>,
    /// Of all resources.
    pub(crate) resources: Arc<ToolMeter>,
    /// Of the completion of arguments.
    pub(crate) completions: Arc<ToolMeter>,
    /// Of tools for which there is no room, and of calls of what nobody knows.
    others: Arc<ToolMeter>,
}

/// The meters of the tools of one loaded version of a plugin. Each is looked up when the tool is first called.
#[derive(Debug)]
pub(crate) struct PluginMeters {
    /// By the address of the tool, which stays as long as the plugin is there to be called.
    tools: HashMap<usize, OnceLock<Arc<ToolMeter>>>,
}

impl ToolMeter {
    fn new(name: &str) -> Arc<Self> {
        Arc::new(Self {
            gone: AtomicBool::new(false),
            fuel: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            outcomes: std::array::from_fn(|_| AtomicU64::new(0)),
            times: times(),
            name: name.to_owned(),
        })
    }

    /// Counts a call that ended like this.
    pub(crate) fn ended(&self, outcome: EndedAs) {
        if let Some(count) = self.outcomes.get(outcome.index()) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts what a call used.
    pub(crate) fn used(&self, usage: &CallUsage) {
        self.fuel.fetch_add(usage.fuel, Ordering::Relaxed);
        self.peak.fetch_max(usage.memory, Ordering::Relaxed);
    }

    /// How many calls ended in which way, without the ways in which none did.
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = (EndedAs, u64)> {
        let counts = self.outcomes.iter().map(|count| count.load(Ordering::Relaxed));
        EndedAs::all().zip(counts).filter(|(_, count)| *count > 0)
    }

    /// The fuel of all calls.
    pub(crate) fn fuel(&self) -> u64 {
        self.fuel.load(Ordering::Relaxed)
    }

    /// The most memory that a call had.
    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }
}

impl Default for ToolMeters {
    fn default() -> Self {
        Self::with_room(MOST)
    }
}

impl ToolMeters {
    fn with_room(most: usize) -> Self {
        let [prompts, resources, completions, others] =
            ["(prompt)", "(resource)", "(completion)", "(other)"].map(ToolMeter::new);
        Self { most, table: Mutex::default(), prompts, resources, completions, others }
    }

    /// The meter of the tool with this name, which is offered.
    fn of(&self, name: &str) -> Arc<ToolMeter> {
        let mut table = self.table();
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

    /// The meter of the tool with this name if it was called before, and else the one of all others: the name may be
    /// anybody's.
    pub(crate) fn known(&self, name: &str) -> Arc<ToolMeter> {
        Arc::clone(self.table().get(name).unwrap_or(&self.others))
    }

    /// Forgets the tools that are not `offered`.
    pub(crate) fn keep(&self, offered: impl Fn(&str) -> bool) {
        self.table().retain(|name, meter| {
            let keep = offered(name);
            if !keep {
                meter.gone.store(true, Ordering::Relaxed);
            }
            keep
        });
    }

    /// Every meter, in the order of the names.
    pub(crate) fn all(&self) -> Vec<Arc<ToolMeter>> {
        let shared = [&self.completions, &self.others, &self.prompts, &self.resources].map(Arc::clone);
        shared.into_iter().chain(self.table().values().map(Arc::clone)).collect()
    }

    // Held for as long as it takes to copy a thousand pointers, and never across an await.
    fn table(&self) -> MutexGuard<'_, BTreeMap<String, Arc<ToolMeter>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PluginMeters {
    /// Those of a plugin that has not been called.
    pub(crate) fn of(plugin: &Plugin) -> Self {
        Self { tools: plugin.tools.iter().map(|named| (address(&named.tool), OnceLock::new())).collect() }
    }

    /// The meter of this tool of the plugin, out of `tools`.
    pub(crate) fn tool(&self, tool: &Arc<Tool>, tools: &ToolMeters) -> Arc<ToolMeter> {
        self.at(address(tool), &tool.name, tools)
    }

    fn at(&self, address: usize, name: &str, tools: &ToolMeters) -> Arc<ToolMeter> {
        let own = self.tools.get(&address).map(|own| own.get_or_init(|| tools.of(name)));
        match own {
            Some(own) if !own.gone.load(Ordering::Relaxed) => Arc::clone(own),
            // It was hidden by another plugin's tool for a while, or its plugin is on its way out.
            _ => tools.of(name),
        }
    }
}

fn address(tool: &Arc<Tool>) -> usize {
    Arc::as_ptr(tool).addr()
}

#[cfg(test)]
mod tests {
    use toolbay_model::ErrorKind;

    use super::*;

    fn names(tools: &ToolMeters) -> Vec<String> {
        tools.all().iter().map(|meter| meter.name.clone()).filter(|name| !name.starts_with('(')).collect()
    }

    #[test]
    fn there_is_room_for_so_many_tools_and_the_rest_shares_a_meter() {
        let tools = ToolMeters::with_room(2);
        for name in ["b", "a", "c", "b", "d"] {
            tools.of(name).ended(EndedAs::Ok);
        }
        assert_eq!(names(&tools), ["a", "b"]);
        assert_eq!(tools.known("c").outcomes().collect::<Vec<_>>(), [(EndedAs::Ok, 2)]);
        assert_eq!(tools.known("b").outcomes().collect::<Vec<_>>(), [(EndedAs::Ok, 2)]);
        tools.keep(|name| name != "a");
        tools.of("d").ended(EndedAs::Failed(ErrorKind::Trap));
        assert_eq!(names(&tools), ["b", "d"]);
        assert_eq!(tools.known("nobody's").name, "(other)");
        assert_eq!(names(&tools), ["b", "d"], "looking for a name makes no meter");
    }

    #[test]
    fn a_tool_that_comes_back_is_counted_again() {
        let (tools, meters) = (ToolMeters::default(), PluginMeters { tools: HashMap::from([(7, OnceLock::new())]) });
        meters.at(7, "a", &tools).ended(EndedAs::Ok);
        tools.keep(|_| false);
        meters.at(7, "a", &tools).ended(EndedAs::Asked);
        meters.at(7, "a", &tools).ended(EndedAs::Asked);
        assert_eq!(tools.known("a").outcomes().collect::<Vec<_>>(), [(EndedAs::Asked, 2)]);
    }

    #[test]
    fn usage_adds_up_and_the_peak_stays() {
        let meter = ToolMeter::new("a");
        for (fuel, memory) in [(5, 100), (7, 50)] {
            meter.used(&CallUsage { fuel, memory, ..CallUsage::default() });
        }
        assert_eq!((meter.fuel(), meter.peak()), (12, 100));
    }
}
