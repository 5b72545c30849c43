//! Owner of state.

use std::sync::Arc;

use toolbay_model::CallerIdentity;

/// Owner of state: a plugin, or one caller of a plugin. Owners share nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateOwner {
    /// Id of the plugin.
    pub plugin: Arc<str>,
    /// Caller; `None` if all callers of the plugin share the state.
    pub caller: Option<CallerIdentity>,
}

impl StateOwner {
    /// Returns the key of the owner's row. The name of a caller is never empty, so empty stands for
    /// shared state.
    pub(crate) fn row(&self) -> (&str, &str) {
        (
            &self.plugin,
            self.caller.as_ref().map_or("", CallerIdentity::as_str),
        )
    }
}
