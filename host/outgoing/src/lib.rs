//! The HTTP client for plugins: it resolves names, filters addresses, pools connections, negotiates
//! TLS, and limits everything that a server sends.
//!
//! Three types have three lifetimes. [`HttpConnector`] belongs to the server: certificates,
//! resolver, proxy. [`PluginClient`] belongs to a plugin: its rules and its connections, which no
//! other plugin uses. [`RequestMeter`] belongs to a call.
//!
//! A request is sent in steps whose order leaves no gap between check and use:
//!
//! 1. [`PluginClient::authorize`] applies the rules to the request as the guest wrote it. Its
//!    result, an [`AuthorizedRequest`], is the only form in which a request can be sent. Afterwards
//!    only the normalized origin is used.
//! 2. The host adds its credentials, and with them the partition of the connections that the
//!    request may use.
//! 3. [`AuthorizedRequest::send`] reuses a connection of this plugin for this origin and this
//!    partition, or creates one: the name is resolved once, the addresses are filtered, and the
//!    connection is made to an allowed address. The name is not resolved a second time. The address
//!    of the socket itself is filtered again.
//! 4. TLS verifies the name. The request is sent, and the meter counts it during sending.
//! 5. The head of the response is limited in size, and its body is forwarded as it arrives, no
//!    faster than it is read.
//!
//! A redirect is returned like any other response, and the guest decides whether to follow it.
//! Environment variables cannot set a proxy. A request is sent again only if no part of it has left
//! the host.
//!
//! This crate does not depend on wasmtime, MCP or configuration files.

mod authorized_request;
mod connection;
mod connection_driver;
mod connector;
mod deadline;
mod dial;
mod error;
mod error_classification;
mod header_fields;
mod hosts_file;
mod lookup_limiter;
mod metered_transport;
mod name_resolver;
mod plugin_client;
mod pool;
mod pool_partition;
mod proxy;
mod request_meter;
mod request_target;
mod request_timeouts;
mod response_body;
mod root_certificates;
mod socket_budget;
mod tls;
mod traffic_count;
mod upload_body;
mod upload_state;

pub use self::authorized_request::AuthorizedRequest;
pub use self::connector::{ConnectorOptions, HttpConnector};
pub use self::error::SendError;
pub use self::header_fields::parse_content_length;
pub use self::lookup_limiter::{LookupLimiter, PluginLookups};
pub use self::name_resolver::{NameResolver, SystemResolver};
pub use self::plugin_client::PluginClient;
pub use self::request_meter::{ExceededLimit, RequestMeter};
pub use self::request_timeouts::RequestTimeouts;
pub use self::response_body::ResponseBody;
pub use self::root_certificates::load as roots;
pub use self::traffic_count::TrafficCount;

#[cfg(test)]
mod tests;
