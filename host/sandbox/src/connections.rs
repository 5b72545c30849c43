//! The TCP connections of a plugin: where its calls can connect to.

use std::fmt;
use std::sync::Arc;

use toolbay_outgoing::{LookupLimiter, PluginLookups};
use toolbay_policy::{AddressRange, TcpRule};

/// Where the calls of a plugin can connect to. The default is nowhere.
#[derive(Clone, Default)]
pub struct PluginConnections(Option<Arc<ConnectionRules>>);

/// The rules of a plugin, and what resolves the names in them.
pub(crate) struct ConnectionRules {
    pub(crate) rules: Vec<TcpRule>,
    /// Networks that are not globally reachable, and that the plugin can reach nevertheless.
    pub(crate) opened: Vec<AddressRange>,
    pub(crate) lookups: Arc<LookupLimiter>,
    /// Those of the plugin's lookups.
    pub(crate) places: PluginLookups,
}

impl PluginConnections {
    /// Connections that `rules` allow, to addresses that are globally reachable or in `opened`.
    pub(crate) fn new(lookups: Arc<LookupLimiter>, rules: Vec<TcpRule>, opened: Vec<AddressRange>) -> Self {
        Self(Some(Arc::new(ConnectionRules { rules, opened, lookups, places: PluginLookups::new() })))
    }

    pub(crate) fn reach(&self) -> Option<Arc<ConnectionRules>> {
        self.0.clone()
    }
}

/// Always equal: where a plugin can connect to is among its permissions.
impl PartialEq for PluginConnections {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl fmt::Debug for PluginConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connections").field(&self.0.is_some()).finish()
    }
}
