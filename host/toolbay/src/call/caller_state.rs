//! State of one caller of a plugin: its call rates, its crashes, and the tools that a person has
//! allowed. It does not affect other callers.

use toolbay_catalog::Plugin;

use crate::approval::ruling::RememberedApprovals;
use crate::limits::breaker::CircuitBreaker;
use crate::limits::rate_counter::ToolRates;

/// State of one caller of one loaded version of a plugin.
#[derive(Debug)]
pub(crate) struct CallerState {
    /// The caller's rates of the plugin's tools; `None` if all callers share them.
    pub(crate) rates: Option<ToolRates>,
    /// Circuit breaker that disables the plugin for the caller.
    pub(crate) breaker: CircuitBreaker,
    /// The tools that the caller may call without a further approval.
    pub(crate) approvals: RememberedApprovals,
}

impl CallerState {
    /// Creates the record of a caller that has not called the plugin.
    pub(crate) fn new(plugin: &Plugin) -> Self {
        let own = plugin.terms.rate_limit.filter(|rate| !rate.shared);
        Self {
            rates: own.and_then(|rate| ToolRates::new(rate.limit)),
            breaker: CircuitBreaker::default(),
            approvals: RememberedApprovals::default(),
        }
    }
}
