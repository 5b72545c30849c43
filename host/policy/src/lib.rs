//! The permissions in an operator's grant: data and functions without I/O.
//!
//! The catalog parses the entries of a grant into [`HttpRule`], [`TcpRule`] and [`AddressRange`].
//! The sandbox performs three steps before a guest can reach an address:
//!
//! 1. [`HttpRequest::check`] or [`TcpRequest::check`] compares the guest's request with the rules.
//!    The host and port of the result, such as an [`AllowedRequest`], are normalized. The sandbox
//!    connects to those, never to the host that the guest wrote.
//! 2. The sandbox resolves the name.
//! 3. [`filter_addresses`] removes every address that is not globally reachable, unless
//!    `private_networks` opens it. An allowed name whose records point into the operator's network
//!    stays blocked, and so does an allowed IP literal.
//!
//! Each redirect, each new name and each resolution is checked again. A request that no rule allows
//! is denied. This crate does not resolve names or open sockets, and does not depend on wasmtime.

mod address;
mod address_filter;
mod address_range;
mod authority;
mod authority_error;
mod comparison;
mod connection;
mod denial_reason;
mod file_denial;
mod folder_settings;
mod host;
mod host_pattern;
mod http_rule;
mod intersection;
mod method;
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

pub use self::address::refusal_reason;
pub use self::address_filter::{AddressesRefused, filter_addresses};
pub use self::address_range::AddressRange;
pub use self::authority_error::AuthorityError;
pub use self::connection::{AllowedConnection, TcpRequest, check_lookup};
pub use self::denial_reason::DenialReason;
pub use self::file_denial::{FileDenial, absolute_path};
pub use self::host::NormalizedHost;
pub use self::host_pattern::HostPattern;
pub use self::http_rule::HttpRule;
pub use self::method::HttpMethod;
pub use self::origin::UrlOrigin;
pub use self::origin_pattern::OriginPattern;
pub use self::path::PathPrefix;
pub use self::permissions::{MountAccess, MountPermission, MountScope, Permissions};
pub use self::request::{AllowedRequest, HttpRequest};
pub use self::scheme::UrlScheme;
pub use self::scratch::ScratchPermission;
pub use self::state_grant::{StateGrant, StateScope};
pub use self::tcp_rule::TcpRule;
pub use self::ui_access::{
    UiAccess, UiDenial, UiPermission, parse_resource_origin, parse_view_domain,
};
pub use self::web_origin::WebOrigin;

#[cfg(test)]
mod tests;
