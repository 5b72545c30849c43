//! What one caller did with a plugin: how often it called its tools, how often they crashed,
//! and which of them a person has allowed. No other caller notices.

use toolbay_catalog::Plugin;

use crate::approval::RememberedApprovals;
use crate::breaker::CircuitBreaker;
use crate::rate_counter::ToolRates;

/// What one caller did with one loaded version of a plugin.
#[derive(Debug)]
pub(crate) struct CallerRecord {
    /// The caller's rates of the plugin's tools, unless all callers share them.
    pub(crate) rates: Option<ToolRates>,
    /// Whether the plugin is disabled for the caller.
    pub(crate) breaker: CircuitBreaker,
    /// The tools that the caller was allowed to call without being asked again.
    pub(crate) approvals: RememberedApprovals,
}

impl CallerRecord {
    /// The record of a caller that has not called the plugin.
    pub(crate) fn of(plugin: &Plugin) -> Self {
        let own = plugin.terms.rate_limit.filter(|rate| !rate.shared);
        Self {
            rates: own.and_then(|rate| ToolRates::new(rate.limit)),
            breaker: CircuitBreaker::default(),
            approvals: RememberedApprovals::default(),
        }
    }
}
