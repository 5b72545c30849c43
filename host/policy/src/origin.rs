//! The origin of a request.

use std::fmt;

use crate::host::NormalizedHost;
use crate::scheme::UrlScheme;

/// The normalized target of a request: scheme, host and port (RFC 6454).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UrlOrigin {
    /// The scheme.
    pub scheme: UrlScheme,
    /// The host.
    pub host: NormalizedHost,
    /// The port, 1 to 65535. It is the default port of the scheme unless the request names another.
    pub port: u16,
}

/// Formats the origin as in a grant: without the default port of the scheme.
impl fmt::Display for UrlOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)?;
        if self.port == self.scheme.default_port() {
            Ok(())
        } else {
            write!(f, ":{}", self.port)
        }
    }
}
