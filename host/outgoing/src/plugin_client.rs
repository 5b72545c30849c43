//! The HTTP client of one plugin.

use std::sync::{Arc, Weak};
#[cfg(test)]
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use toolbay_policy::{HttpRule, UrlOrigin};

use crate::connection::{ConnectionTasks, establish};
use crate::connector::{HttpConnector, run_until};
use crate::error::SendError;
use crate::lookup_limiter::PluginLookups;
use crate::pool::{ConnectionLease, ConnectionPool, PoolCheckout, PoolKey};
use crate::proxy::ProxySettings;

/// Authorizes and sends the requests of one plugin within its rules, over connections that no other plugin uses.
/// Dropping it closes all of its connections, including those in use.
pub struct PluginClient {
    connector: Arc<HttpConnector>,
    rules: Vec<HttpRule>,
    private_networks: Vec<toolbay_policy::AddressRange>,
    lookups: PluginLookups,
    pool: Arc<ConnectionPool>,
    _close: DropGuard,
}

impl PluginClient {
    /// Creates a client for requests that `rules` allow, to addresses that are globally reachable
    /// or in `private_networks`. At most `connections` are open at once, and at least one. Idle connections
    /// count, and are closed to make room for others.
    pub fn new(
        connector: Arc<HttpConnector>,
        rules: Vec<HttpRule>,
        private_networks: Vec<toolbay_policy::AddressRange>,
        connections: usize,
    ) -> Self {
        let close = CancellationToken::new();
        let pool = ConnectionPool::new(connections, close.clone());
        let holder: Weak<ConnectionPool> = Arc::downgrade(&pool);
        connector.sockets.register(holder);
        Self {
            connector,
            rules,
            private_networks,
            lookups: PluginLookups::new(),
            pool,
            _close: close.drop_guard(),
        }
    }

    /// Returns the rules.
    pub(crate) fn rules(&self) -> &[HttpRule] {
        &self.rules
    }

    /// Returns the proxy to which a request for this origin must be addressed.
    pub(crate) fn proxy_for(&self, origin: &UrlOrigin) -> Option<&ProxySettings> {
        self.connector.proxy_for(origin)
    }

    /// Sets the idle timeout of connections.
    #[cfg(test)]
    pub(crate) fn keeping(mut self: Arc<Self>, idle: Duration) -> Arc<Self> {
        if let Some(client) = Arc::get_mut(&mut self) {
            client.pool.keep_for(idle);
        }
        self
    }

    /// Returns an existing connection or a new one.
    pub(crate) async fn checkout(
        &self,
        key: &PoolKey,
        until: Instant,
    ) -> Result<ConnectionLease, SendError> {
        let got = async { Ok(self.pool.checkout(key).await) };
        let slot = match run_until(until, SendError::PluginConnectionLimit, got).await? {
            PoolCheckout::Existing(lease) => return Ok(lease),
            PoolCheckout::NewSlot(slot) => slot,
        };
        let room = async {
            self.connector
                .sockets
                .reserve()
                .await
                .ok_or(SendError::ServerConnectionLimit)
        };
        let slot =
            slot.with_socket(run_until(until, SendError::ServerConnectionLimit, room).await?);
        let close = self.pool.child_token();
        // A cancelled handshake closes the connection.
        let given_up = close.clone().drop_guard();
        let tasks = ConnectionTasks::new(close, slot);
        let connected = self
            .connector
            .connect(&key.origin, &self.private_networks, &self.lookups, until)
            .await?;
        let established = run_until(
            until,
            SendError::ConnectTimeout,
            establish(connected, &tasks),
        )
        .await?;
        let lease = self.pool.add(key.clone(), established, &tasks);
        given_up.disarm();
        Ok(lease)
    }

    /// Returns the number of connections, and the number of further connections that can be opened.
    #[cfg(test)]
    pub(crate) fn connections(&self) -> (usize, usize) {
        (self.pool.open(), self.pool.room())
    }
}
