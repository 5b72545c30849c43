//! The reasons for denying a request or a connection. Each has a sentence for the model, and most
//! have a line of TOML that lets the operator allow the request.

use std::fmt;
use std::net::IpAddr;

use crate::address::private_ranges_for;
use crate::address_filter;
use crate::authority;
use crate::authority_error::AuthorityError;
use crate::host::NormalizedHost;
use crate::http_rule::HttpRule;
use crate::origin::UrlOrigin;
use crate::origin_pattern::OriginPattern;
use crate::scheme::UrlScheme;

/// The reason for denying a request or a connection of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DenialReason {
    /// The scheme is neither `http` nor `https`.
    Scheme,
    /// The authority of the request, or the host of the connection, is malformed.
    Authority(AuthorityError),
    /// The method is not a token (RFC 9110, section 5.6.2).
    MalformedMethod,
    /// No tool may use this method.
    ForbiddenMethod(&'static str),
    /// The path does not begin with `/`, or contains a space, a control character or a `#`.
    MalformedPath,
    /// A header is not valid in HTTP (RFC 9110, section 5), for example because its value contains
    /// a line break, or it is a second `Content-Length`.
    MalformedHeader,
    /// No tool may set the header with this name.
    ForbiddenHeader(String),
    /// No rule covers the host.
    Host(UrlOrigin),
    /// The host is an IP literal that no rule lists.
    IpLiteral(UrlOrigin),
    /// Rules cover the host only with the other scheme.
    OtherScheme(UrlOrigin),
    /// Rules cover the host and the scheme, but only with other ports.
    OtherPort(UrlOrigin),
    /// No rule for the origin allows the method. The [`HttpRule`] allows only this method at this
    /// path. It is `None` if the method or the path cannot be an entry of a grant: the method
    /// `get`, for example.
    Method(UrlOrigin, Option<Box<HttpRule>>),
    /// No rule for the origin and the method allows the path. The [`HttpRule`] is as in
    /// [`DenialReason::Method`].
    Path(UrlOrigin, Option<Box<HttpRule>>),
    /// The rules for the origin and the method restrict paths, and servers can interpret this path
    /// in different ways.
    AmbiguousPath(UrlOrigin),
    /// No rule covers the host of a connection.
    ConnectionHost(NormalizedHost, u16),
    /// The host of a connection is an IP literal that no rule lists.
    ConnectionIpLiteral(IpAddr, u16),
    /// Rules cover the host of a connection, but only with other ports.
    ConnectionPort(NormalizedHost, u16),
    /// No rule for connections covers the name to resolve.
    Lookup(NormalizedHost),
    /// A connection to port 0.
    ConnectionPortZero,
}

impl DenialReason {
    /// Returns the reason for rejecting `text` as the authority of a request. For authorities that
    /// were rejected before any rule was checked.
    pub fn for_authority(text: &str) -> Self {
        Self::Authority(
            authority::parse_host_port(text)
                .err()
                .unwrap_or(AuthorityError::Name),
        )
    }

    /// Returns the TOML under `[permissions]` with which an operator can allow the request. Returns
    /// `None` if no grant allows it, and for [`AmbiguousPath`](DenialReason::AmbiguousPath), which
    /// would require giving up `paths`.
    ///
    /// For a [`Lookup`](DenialReason::Lookup), the operator must fill in the port: `tcp =
    /// ["db.internal:PORT"]`.
    ///
    /// The result is one line. An IP literal that is not globally reachable needs a second line,
    /// which opens the address. The entry allows no more than was denied. If the key exists
    /// already, the operator adds the entry to its list.
    pub fn remedy(&self) -> Option<String> {
        let (line, host) = match self {
            Self::Scheme
            | Self::Authority(_)
            | Self::MalformedMethod
            | Self::ForbiddenMethod(_)
            | Self::MalformedPath
            | Self::MalformedHeader
            | Self::ForbiddenHeader(_)
            | Self::AmbiguousPath(_)
            | Self::ConnectionPortZero
            | Self::Method(_, None)
            | Self::Path(_, None) => return None,
            Self::Host(origin)
            | Self::IpLiteral(origin)
            | Self::OtherScheme(origin)
            | Self::OtherPort(origin) => {
                let rule = HttpRule::new(OriginPattern::exact(origin.clone()));
                (format!("http = [{rule}]"), origin.host.clone())
            }
            Self::Method(origin, Some(rule)) | Self::Path(origin, Some(rule)) => {
                (format!("http = [{rule}]"), origin.host.clone())
            }
            Self::ConnectionHost(host, port) | Self::ConnectionPort(host, port) => {
                (format!("tcp = [\"{host}:{port}\"]"), host.clone())
            }
            Self::Lookup(host) => (format!("tcp = [\"{host}:PORT\"]"), host.clone()),
            Self::ConnectionIpLiteral(address, port) => {
                let host = NormalizedHost::Ip(*address);
                (format!("tcp = [\"{host}:{port}\"]"), host)
            }
        };
        let networks = match host {
            NormalizedHost::Ip(address) => private_ranges_for(address),
            NormalizedHost::Name(_) => Vec::new(),
        };
        Some(if networks.is_empty() {
            line
        } else {
            format!("{line}\n{}", address_filter::private_ranges_toml(&networks))
        })
    }
}

/// Formats a sentence for the model. It repeats only normalized parts of the guest's text.
impl fmt::Display for DenialReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme => f.write_str("The scheme of a request must be http or https."),
            Self::Authority(error) => write!(f, "The address of the request {error}."),
            Self::MalformedMethod => f.write_str("The method of the request is not a valid HTTP method."),
            Self::ForbiddenMethod(method) => write!(f, "No tool may send requests with the method {method}."),
            Self::MalformedPath => {
                f.write_str("The path of a request must begin with `/`, without spaces, control characters and `#`.")
            }
            Self::MalformedHeader => f.write_str(
                "A header of the request is not valid: its name or its value has a character that HTTP does not allow, or \
                 its `Content-Length` is not one decimal number.",
            ),
            Self::ForbiddenHeader(name) => write!(f, "No tool may set the header {name}."),
            Self::Host(origin) => write!(f, "{origin} is not among the origins that this tool may send requests to."),
            Self::IpLiteral(_) => f.write_str("This tool may call an IP address only if its grant lists it."),
            Self::OtherScheme(UrlOrigin { scheme, host, .. }) => {
                let other = if *scheme == UrlScheme::Http { UrlScheme::Https } else { UrlScheme::Http };
                write!(f, "This tool may call {host} over {other}, and not over {scheme}.")
            }
            Self::OtherPort(UrlOrigin { host, port, .. }) => {
                write!(f, "This tool may call {host} at another port, and not at {port}.")
            }
            Self::Method(origin, _) => {
                write!(f, "The method is not among those that this tool may use at {origin} (case matters).")
            }
            Self::Path(origin, _) => write!(f, "The path is not among those that this tool may call at {origin}."),
            Self::AmbiguousPath(origin) => write!(
                f,
                "This tool may call only some paths at {origin}, and its paths must be plain: without encoded dots, \
                 slashes, backslashes and control characters, and without segments such as `..;`."
            ),
            Self::ConnectionHost(host, port) => {
                write!(f, "{host}:{port} is not among the hosts and ports that this tool may connect to.")
            }
            Self::ConnectionIpLiteral(..) => {
                f.write_str("This tool may connect to an IP address only if its grant lists it.")
            }
            Self::ConnectionPort(host, port) => {
                write!(f, "This tool may connect to {host} at another port, and not at {port}.")
            }
            Self::Lookup(host) => write!(f, "{host} is not among the hosts that this tool may connect to."),
            Self::ConnectionPortZero => f.write_str("Port 0 is not a port to connect to."),
        }
    }
}

impl std::error::Error for DenialReason {}
