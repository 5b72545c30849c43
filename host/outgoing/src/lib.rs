//! The HTTP client for plugins: it resolves names, filters addresses, pools connections, negotiates
//! TLS, and limits everything that a server sends.
//!
//! Three types have three lifetimes. [`HttpConnector`] belongs to the server: certificates,
//! resolver, proxy. [`PluginClient`] belongs to a plugin: its rules and its connections, which no
//! other plugin uses. [`RequestMeter`] belongs to a call.
//!
//! [`PluginClient::send`] performs its steps in an order that leaves no gap between check and use:
//!
//! 1. The rules are applied to the request as the guest wrote it. Afterwards only the normalized
//!    origin is used.
//! 2. A connection of this plugin for this origin and this [`PoolPartition`] is reused, or a new
//!    one is created: the name is resolved once, the addresses are filtered, and the connection is
//!    made to an allowed address. The name is not resolved a second time. The address of the socket
//!    itself is filtered again.
//! 3. TLS verifies the name. The request is sent, and the meter counts it during sending.
//! 4. The head of the response is limited in size, and its body is forwarded as it arrives, no
//!    faster than it is read.
//!
//! A redirect is returned like any other response, and the guest decides whether to follow it.
//! Environment variables cannot set a proxy. A request is sent again only if no part of it has left
//! the host.
//!
//! This crate does not depend on wasmtime, MCP or configuration files.

mod cause;
mod connection;
mod connector;
mod deadline;
mod dial;
mod error;
mod exchange;
mod field;
mod hosts;
mod lookups;
mod meter;
mod outlet;
mod partition;
mod pool;
mod proxy;
mod received;
mod request;
mod resolve;
mod roots;
mod sockets;
mod timeouts;
mod tls;
mod upload;
mod wire;
mod work;

pub use self::connector::{ConnectorOptions, HttpConnector};
pub use self::error::SendError;
pub use self::lookups::{LookupLimiter, PluginLookups};
pub use self::meter::{ExceededLimit, RequestMeter};
pub use self::outlet::PluginClient;
pub use self::partition::PoolPartition;
pub use self::received::ResponseBody;
pub use self::request::asked;
pub use self::resolve::{NameResolver, SystemResolver};
pub use self::roots::load as roots;
pub use self::timeouts::RequestTimeouts;

#[cfg(test)]
mod tests;
