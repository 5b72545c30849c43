//! The HTTP requests that plugins send: names are resolved, addresses filtered, connections made and kept, TLS spoken,
//! and everything that a server sends back is bounded.
//!
//! Three lifetimes are three types. [`HttpConnector`] belongs to the server: certificates, resolver, proxy. [`PluginClient`]
//! belongs to a plugin: its rules and its connections, which no other plugin uses. [`RequestMeter`] belongs to a call.
//!
//! [`PluginClient::send`] takes the steps in an order that leaves no gap between what is checked and what is done:
//!
//! 1. The rules decide about the request as the guest wrote it. From then on only the normalised origin is used.
//! 2. A connection of this plugin for this origin and this [`PoolPartition`] is used again, or a new one is made: the
//!    name is resolved once, the addresses are filtered, and the connection goes to an address that is left. Nothing
//!    resolves the name a second time. The address of the socket itself is filtered again.
//! 3. TLS verifies the name. The request is sent, and counted by the meter as it is.
//! 4. The head of the response is bounded, its body is handed on as it comes: no faster than it is read.
//!
//! A redirect is a response like others: it is returned, and the guest decides. No variable of the environment names a
//! proxy. A request is sent again only if nothing of it left the host.
//!
//! This crate knows nothing of wasmtime, of MCP or of configuration files.

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
