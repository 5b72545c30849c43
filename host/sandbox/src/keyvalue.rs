//! What a plugin keeps from one call to the next: the store that its calls share, and what the grant says of it.

use std::fmt;
use std::sync::Arc;

use toolbay_policy::StateGrant;
use toolbay_state::Store;

/// What a plugin keeps from one call to the next. The default keeps nothing.
#[derive(Clone, Default)]
pub struct KeyValue(Option<Arc<Granted>>);

/// What the grant of a plugin allows it to keep.
pub(crate) struct Granted {
    /// `None` if the server keeps no state.
    pub(crate) store: Option<Arc<dyn Store>>,
    /// The plugin's id.
    pub(crate) plugin: Arc<str>,
    pub(crate) grant: StateGrant,
}

impl KeyValue {
    pub(crate) fn new(store: Option<Arc<dyn Store>>, plugin: &str, grant: StateGrant) -> Self {
        Self(Some(Arc::new(Granted { store, plugin: plugin.into(), grant })))
    }

    /// `None` if the plugin may keep nothing.
    pub(crate) fn granted(&self) -> Option<&Granted> {
        self.0.as_deref()
    }
}

/// Always equal: what a plugin may keep is among its permissions.
impl PartialEq for KeyValue {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl fmt::Debug for KeyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyValue").field(&self.0.as_ref().map(|granted| granted.grant)).finish()
    }
}
