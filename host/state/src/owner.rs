//! Whose state it is.

use std::sync::Arc;

use toolbay_model::CallerIdentity;

/// Whose state it is: a plugin's, or that of one caller of a plugin. Nothing is shared between two owners.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateOwner {
    /// The id of the plugin.
    pub plugin: Arc<str>,
    /// The caller; `None` if all callers of the plugin share the state.
    pub caller: Option<CallerIdentity>,
}

impl StateOwner {
    /// The key of its row: no name of a caller is empty.
    pub(crate) fn row(&self) -> (&str, &str) {
        (&self.plugin, self.caller.as_ref().map_or("", CallerIdentity::as_str))
    }
}
