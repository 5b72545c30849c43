//! The TCP connections that a plugin can make.

use std::fmt;
use std::sync::Arc;

use toolbay_outgoing::{LookupLimiter, PluginLookups};
use toolbay_policy::{AddressRange, TcpRule};

/// The TCP destinations that calls of a plugin can connect to. The default has none.
#[derive(Clone, Default)]
pub struct PluginConnections(Option<Arc<ConnectionRules>>);

/// The rules of a plugin and the resolver for the names in them.
pub(crate) struct ConnectionRules {
    pub(crate) rules: Vec<TcpRule>,
    /// Networks that the plugin can reach although they are not globally reachable.
    pub(crate) allowed_networks: Vec<AddressRange>,
    pub(crate) lookups: Arc<LookupLimiter>,
    /// The plugin's slots for lookups.
    pub(crate) lookup_slots: PluginLookups,
}

impl PluginConnections {
    /// Creates the connections that `rules` allow, to addresses that are globally reachable or in
    /// `allowed_networks`.
    pub(crate) fn new(
        lookups: Arc<LookupLimiter>,
        rules: Vec<TcpRule>,
        allowed_networks: Vec<AddressRange>,
    ) -> Self {
        Self(Some(Arc::new(ConnectionRules {
            rules,
            allowed_networks,
            lookups,
            lookup_slots: PluginLookups::new(),
        })))
    }

    pub(crate) fn rules(&self) -> Option<Arc<ConnectionRules>> {
        self.0.clone()
    }
}

/// Always equal: the destinations are compared as part of the plugin's permissions.
impl PartialEq for PluginConnections {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl fmt::Debug for PluginConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PluginConnections")
            .field(&self.0.is_some())
            .finish()
    }
}
