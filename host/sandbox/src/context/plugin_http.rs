//! Outgoing HTTP of a plugin: its connections, which all of its calls share.

use std::fmt;
use std::sync::Arc;

use toolbay_outgoing::PluginClient;

/// The HTTP client of a plugin. The default sends no requests.
#[derive(Clone, Default)]
pub struct PluginHttp(Option<Arc<PluginClient>>);

impl PluginHttp {
    pub(crate) fn new(client: PluginClient) -> Self {
        Self(Some(Arc::new(client)))
    }

    pub(crate) fn client(&self) -> Option<Arc<PluginClient>> {
        self.0.clone()
    }
}

/// All values are equal: the permissions of the plugin already contain the rules.
impl PartialEq for PluginHttp {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl fmt::Debug for PluginHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PluginHttp")
            .field(&self.0.is_some())
            .finish()
    }
}
