//! The permissions in an operator's grant: data and functions without I/O.
//!
//! The catalog parses the entries of a grant into [`HttpRule`], [`TcpRule`] and [`AddressRange`].
//! The sandbox performs three steps before a guest can reach an address:
//!
//! 1. [`HttpRequest::check`] or [`TcpRequest::check`] compares the guest's request with the rules.
//!    The host and port of the result, such as an [`AllowedRequest`], are normalised. The sandbox
//!    connects to those, never to the host that the guest wrote.
//! 2. The sandbox resolves the name.
//! 3. [`choose`] removes every address that is not globally reachable, unless `network_private`
//!    opens it. An allowed name whose records point into the operator's network stays blocked, and
//!    so does an allowed IP literal.
//!
//! Each redirect, each new name and each resolution is checked again. A request that no rule allows
//! is denied. This crate does not resolve names or open sockets, and does not depend on wasmtime.

mod address;
mod authority;
mod choice;
mod connection;
mod denied;
mod file_denied;
mod folder;
mod host;
mod host_pattern;
mod http_rule;
mod intersection;
mod malformed;
mod method;
mod network;
mod origin;
mod origin_pattern;
mod path;
mod permissions;
mod request;
mod scheme;
mod scratch;
mod state_grant;
mod tcp_rule;
mod ui_access;
mod web_origin;

pub use self::address::refusal;
pub use self::choice::{AddressesRefused, choose};
pub use self::connection::{AllowedConnection, TcpRequest, resolvable};
pub use self::denied::DenialReason;
pub use self::file_denied::{FileDenied, absolute};
pub use self::host::NormalizedHost;
pub use self::host_pattern::HostPattern;
pub use self::http_rule::HttpRule;
pub use self::malformed::AuthorityError;
pub use self::method::HttpMethod;
pub use self::network::AddressRange;
pub use self::origin::UrlOrigin;
pub use self::origin_pattern::OriginPattern;
pub use self::path::PathPrefix;
pub use self::permissions::{MountAccess, MountPermission, MountScope, Permissions};
pub use self::request::{AllowedRequest, HttpRequest};
pub use self::scheme::UrlScheme;
pub use self::scratch::ScratchPermission;
pub use self::state_grant::{StateBy, StateGrant};
pub use self::tcp_rule::TcpRule;
pub use self::ui_access::{UiAccess, UiDenied, UiPermission, loading_origin, view_domain};
pub use self::web_origin::WebOrigin;

#[cfg(test)]
mod tests;
