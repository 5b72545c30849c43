//! The origin of a request.

use std::fmt;

use crate::host::NormalizedHost;
use crate::scheme::UrlScheme;

/// Where a request goes: scheme, host and port (RFC 6454), normalised.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UrlOrigin {
    /// The scheme.
    pub scheme: UrlScheme,
    /// The host.
    pub host: NormalizedHost,
    /// The port, 1 to 65535: the default of the scheme unless the request names another one.
    pub port: u16,
}

/// As a grant lists it: the default port of the scheme is left out.
impl fmt::Display for UrlOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)?;
        if self.port == self.scheme.default_port() { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}
