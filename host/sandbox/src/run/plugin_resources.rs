//! Resources of a plugin that all of its calls share.

use std::sync::Arc;

use toolbay_model::Limits;
use toolbay_outgoing::{HttpConnector, PluginClient, SystemResolver};
use toolbay_policy::Permissions;

use crate::context::keyvalue::KeyValue;
use crate::context::plugin_connections::PluginConnections;
use crate::context::plugin_http::PluginHttp;
use crate::run::sandbox::Sandbox;

impl Sandbox {
    /// Returns the HTTP client of a plugin with these permissions. All calls of the plugin share
    /// it. The first use blocks while it reads the certificates that the system trusts.
    ///
    /// # Errors
    ///
    /// Returns the reason why no requests can be sent.
    pub fn plugin_http(
        &self,
        permissions: &Permissions,
        limits: &Limits,
    ) -> Result<PluginHttp, String> {
        let Permissions {
            http,
            private_networks,
            ..
        } = permissions;
        if http.is_empty() {
            return Ok(PluginHttp::default());
        }
        let inner = &self.inner;
        let sockets = inner.descriptors.connections();
        let connector =
            || HttpConnector::new(&inner.http_client, Arc::new(SystemResolver), sockets);
        let connector = inner
            .connector
            .get_or_init(connector)
            .as_ref()
            .map_err(Clone::clone)?;
        Ok(PluginHttp::new(PluginClient::new(
            Arc::clone(connector),
            http.clone(),
            private_networks.clone(),
            limits.http_connections,
        )))
    }

    /// Returns the TCP connections of a plugin with these permissions. All calls of the plugin
    /// share them.
    pub fn plugin_connections(&self, permissions: &Permissions) -> PluginConnections {
        let Permissions {
            tcp,
            private_networks,
            ..
        } = permissions;
        if tcp.is_empty() {
            return PluginConnections::default();
        }
        PluginConnections::new(
            Arc::clone(&self.inner.lookups),
            tcp.clone(),
            private_networks.clone(),
        )
    }

    /// Returns the persistent state of the plugin `id` with these permissions.
    pub fn key_value(&self, id: &str, permissions: &Permissions) -> KeyValue {
        match permissions.state {
            Some(grant) => KeyValue::new(self.inner.state.clone(), id, grant),
            None => KeyValue::default(),
        }
    }
}
