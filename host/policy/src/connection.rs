//! Decides about a TCP connection.

use std::net::Ipv6Addr;

use crate::denied::Denied;
use crate::host::Host;
use crate::tcp_rule::TcpRule;

/// A TCP connection that a guest asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpRequest<'a> {
    /// A name, or an IP address; one of IPv6 with or without brackets.
    pub host: &'a str,
    /// The port.
    pub port: u16,
}

/// An allowed connection: where to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedConnection {
    /// The normalised host. Its addresses are still to be [chosen](crate::choose), an IP literal's as well.
    pub host: Host,
    /// The port, 1 to 65535.
    pub port: u16,
    /// The index of the rule that allows the connection.
    pub rule: usize,
}

impl TcpRequest<'_> {
    /// Whether a rule allows the connection.
    ///
    /// An address that the guest got by resolving a name is an IP literal here, which rules for names do not cover:
    /// whoever resolves names for guests remembers for which name, and asks about the name.
    ///
    /// # Errors
    ///
    /// What is malformed, or that no rule allows the connection.
    pub fn check(&self, rules: &[TcpRule]) -> Result<AllowedConnection, Denied> {
        let host = match self.host.parse::<Ipv6Addr>() {
            Ok(address) => Host::Ip(address.into()),
            Err(_) => Host::parse(self.host).map_err(Denied::Authority)?,
        };
        let port = self.port;
        if port == 0 {
            return Err(Denied::ConnectionPortZero);
        }
        if let Some(rule) = rules.iter().position(|rule| rule.covers(&host, port)) {
            return Ok(AllowedConnection { host, port, rule });
        }
        Err(match host {
            host if rules.iter().any(|rule| rule.host().covers(&host)) => Denied::ConnectionPort(host, port),
            Host::Ip(address) => Denied::ConnectionIpLiteral(address, port),
            host @ Host::Name(_) => Denied::ConnectionHost(host, port),
        })
    }
}
