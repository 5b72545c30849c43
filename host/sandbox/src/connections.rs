//! The TCP connections of a plugin: where its calls can connect to.

use std::fmt;
use std::sync::Arc;

use toolbay_outgoing::{Lookups, Places};
use toolbay_policy::{Network, TcpRule};

/// Where the calls of a plugin can connect to. The default is nowhere.
#[derive(Clone, Default)]
pub struct Connections(Option<Arc<Reach>>);

/// The rules of a plugin, and what resolves the names in them.
pub(crate) struct Reach {
    pub(crate) rules: Vec<TcpRule>,
    /// Networks that are not globally reachable, and that the plugin can reach nevertheless.
    pub(crate) opened: Vec<Network>,
    pub(crate) lookups: Arc<Lookups>,
    /// Those of the plugin's lookups.
    pub(crate) places: Places,
}

impl Connections {
    /// Connections that `rules` allow, to addresses that are globally reachable or in `opened`.
    pub(crate) fn new(lookups: Arc<Lookups>, rules: Vec<TcpRule>, opened: Vec<Network>) -> Self {
        Self(Some(Arc::new(Reach { rules, opened, lookups, places: Places::new() })))
    }

    pub(crate) fn reach(&self) -> Option<Arc<Reach>> {
        self.0.clone()
    }
}

/// Always equal: where a plugin can connect to is among its permissions.
impl PartialEq for Connections {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connections").field(&self.0.is_some()).finish()
    }
}
