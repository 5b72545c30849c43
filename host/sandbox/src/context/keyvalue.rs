//! Access of a plugin to the key-value store that all its calls share.

use std::fmt;
use std::sync::Arc;

use toolbay_policy::StateGrant;
use toolbay_state::StateStore;

/// The key-value store of a plugin, with its grant. The default denies access.
#[derive(Clone, Default)]
pub struct KeyValue(Option<Arc<StoreAccess>>);

/// The store and the grant of a plugin.
pub(crate) struct StoreAccess {
    /// The store, or `None` if the server stores no state.
    pub(crate) store: Option<Arc<dyn StateStore>>,
    /// The id of the plugin.
    pub(crate) plugin: Arc<str>,
    pub(crate) grant: StateGrant,
}

impl KeyValue {
    pub(crate) fn new(store: Option<Arc<dyn StateStore>>, plugin: &str, grant: StateGrant) -> Self {
        Self(Some(Arc::new(StoreAccess {
            store,
            plugin: plugin.into(),
            grant,
        })))
    }

    /// Returns the store and the grant, or `None` if the plugin has no grant.
    pub(crate) fn access(&self) -> Option<&StoreAccess> {
        self.0.as_deref()
    }
}

/// All values are equal: the permissions of the plugin already contain the grant.
impl PartialEq for KeyValue {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl fmt::Debug for KeyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyValue")
            .field(&self.0.as_ref().map(|granted| granted.grant))
            .finish()
    }
}
