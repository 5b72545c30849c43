//! An entry of `permissions.tcp`.

use std::fmt;
use std::net::SocketAddrV6;

use serde::{Deserialize, Serialize};

use crate::authority;
use crate::host::Host;
use crate::host_pattern::HostPattern;
use crate::origin_pattern::{OriginPattern, port_of};

/// TCP connections that a plugin can make: `db.internal:5432`, `*.example.org:443`, `10.0.0.7:6379`,
/// `[2001:db8::7]:6379`. Hosts are written as in an origin.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct TcpRule {
    host: HostPattern,
    port: u16,
}

impl TcpRule {
    /// Parses an entry.
    ///
    /// # Errors
    ///
    /// The entry in quotes, what is wrong with it, and what would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &dyn fmt::Display| format!("{text:?} {why}");
        if let Some((_, rest)) = text.split_once("://") {
            return Err(match OriginPattern::parse(text) {
                Ok(origin) => wrong(&format_args!("has a scheme; write \"{}:{}\"", origin.host(), origin.port())),
                Err(_) => wrong(&format_args!("has a scheme; write host and port alone, such as {rest:?}")),
            });
        }
        if let Ok(address) = text.parse::<std::net::Ipv6Addr>() {
            return Err(wrong(&format_args!(
                "must have its IPv6 address in brackets, and a port, as in \"{}\"",
                SocketAddrV6::new(address, 443, 0, 0)
            )));
        }
        let (host, port) = authority::split(text).map_err(|malformed| wrong(&malformed))?;
        let host = HostPattern::parse(host).map_err(|why| wrong(&why))?;
        match port {
            None | Some("") => Err(wrong(&format_args!("has no port; write host and port, as in \"{host}:443\""))),
            Some(digits) => Ok(Self { host, port: port_of(digits).map_err(|why| wrong(&why))? }),
        }
    }

    /// The hosts. A name is worth resolving for a guest if the hosts of a rule cover it.
    pub fn host(&self) -> &HostPattern {
        &self.host
    }

    /// The port, 1 to 65535.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether the rule allows a connection to this host and port.
    pub fn covers(&self, host: &Host, port: u16) -> bool {
        self.port == port && self.host.covers(host)
    }
}

/// The canonical form, which [`TcpRule::parse`] reads again.
impl fmt::Display for TcpRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl TryFrom<String> for TcpRule {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<TcpRule> for String {
    fn from(rule: TcpRule) -> Self {
        rule.to_string()
    }
}
