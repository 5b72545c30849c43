//! The mutable state of each loaded plugin that all callers share: places, shared rates and usage.
//! The immutable part is in the catalog, and what belongs to one caller is in its
//! [`CallerState`](crate::call::caller_state::CallerState).

use toolbay_catalog::Plugin;

use crate::limits::plugin_permits::PluginPermits;
use crate::limits::rate_counter::ToolRates;
use crate::limits::recent_usage::RecentUsage;
use crate::limits::short_calls::LatencyClass;
use crate::limits::suspension::PluginSuspension;
use crate::observe::metrics::PluginMeters;

/// The mutable state of one loaded version of a plugin.
#[derive(Debug)]
pub(crate) struct PluginActivity {
    /// The permits for its calls.
    pub(crate) permits: PluginPermits,
    /// The rate limits of its tools, if all callers share them.
    pub(crate) rates: Option<ToolRates>,
    /// The usage of its most recent calls.
    pub(crate) usage: RecentUsage,
    /// The suspension, which controls whether it serves calls.
    pub(crate) suspension: PluginSuspension,
    /// Records whether its calls are short.
    pub(crate) latency_class: LatencyClass,
    /// Metrics of its tools.
    pub(crate) meters: PluginMeters,
}

impl PluginActivity {
    /// Creates the state of a plugin that has not been called.
    pub(crate) fn new(plugin: &Plugin, places: PluginPermits) -> Self {
        let terms = &plugin.terms;
        Self {
            permits: places,
            rates: terms
                .rate_limit
                .filter(|rate| rate.shared)
                .and_then(|rate| ToolRates::new(rate.limit)),
            usage: RecentUsage::default(),
            suspension: PluginSuspension::default(),
            latency_class: LatencyClass::default(),
            meters: PluginMeters::new(plugin),
        }
    }
}
