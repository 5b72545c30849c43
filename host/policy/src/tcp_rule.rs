//! An entry of `permissions.tcp`.

use std::fmt;
use std::net::{Ipv6Addr, SocketAddrV6};

use serde::{Deserialize, Serialize};

use crate::authority;
use crate::host::NormalizedHost;
use crate::host_pattern::HostPattern;
use crate::origin_pattern::{OriginPattern, malformed_entry_message, parse_port};

/// A rule for the TCP connections that a plugin can make: `db.internal:5432`, `*.example.org:443`,
/// `10.0.0.7:6379`, `[2001:db8::7]:6379`. Hosts are written as in an origin.
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
    /// Returns a message with the entry in quotes, the mistake, and a correct form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let invalid_entry = |why: &dyn fmt::Display| format!("{text:?} {why}");
        if let Some((_, rest)) = text.split_once("://") {
            return Err(match OriginPattern::parse(text) {
                Ok(origin) => invalid_entry(&format_args!(
                    "has a scheme; write \"{}:{}\"",
                    origin.host(),
                    origin.port()
                )),
                Err(_) => invalid_entry(&format_args!(
                    "has a scheme; write only host and port, such as {rest:?}"
                )),
            });
        }
        if let Ok(address) = text.parse::<Ipv6Addr>() {
            return Err(invalid_entry(&format_args!(
                "must have its IPv6 address in brackets, and a port, as in \"{}\"",
                SocketAddrV6::new(address, 443, 0, 0)
            )));
        }
        let (host, port) = authority::split_host_port(text)
            .map_err(|error| malformed_entry_message(text, error))?;
        let host = HostPattern::parse(host).map_err(|why| invalid_entry(&why))?;
        match port {
            None | Some("") => Err(invalid_entry(&format_args!(
                "has no port; write host and port, as in \"{host}:443\""
            ))),
            Some(digits) => Ok(Self {
                host,
                port: parse_port(digits).map_err(|why| invalid_entry(&why))?,
            }),
        }
    }

    /// Returns the hosts. A guest may resolve a name if the hosts of a rule cover it.
    pub fn host(&self) -> &HostPattern {
        &self.host
    }

    /// Returns the port, 1 to 65535.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns whether the rule allows a connection to this host and port.
    pub fn covers(&self, host: &NormalizedHost, port: u16) -> bool {
        self.port == port && self.host.covers(host)
    }
}

/// Formats the canonical form, which [`TcpRule::parse`] accepts.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_one_canonical_form() {
        for (entry, canonical) in [
            ("db.internal:5432", "db.internal:5432"),
            ("DB.internal.:5432", "db.internal:5432"),
            ("*.example.org:443", "*.example.org:443"),
            ("bücher.example:1", "xn--bcher-kva.example:1"),
            ("10.0.0.7:65535", "10.0.0.7:65535"),
            ("[2001:DB8::7]:6379", "[2001:db8::7]:6379"),
        ] {
            let rule = TcpRule::parse(entry).unwrap();
            assert_eq!(rule.to_string(), canonical);
            assert_eq!(TcpRule::parse(canonical), Ok(rule));
        }
    }

    #[test]
    fn errors_suggest_a_correct_form() {
        let entries = [
            "",
            "db.internal",
            "db.internal:",
            ":5432",
            "db.internal:0",
            "db.internal:05432",
            "db.internal:65536",
            "db.internal:5432-5440",
            "db.internal:*",
            "db.internal:postgres",
            "db.internal:5432/name",
            "user@db.internal:5432",
            "*:5432",
            "*.internal:5432",
            "db.*:5432",
            "*",
            "tcp://db.internal:5432",
            "https://db.internal",
            "127.1:80",
            "0x7f000001:80",
            "::1",
            "::1:80",
            "[::1]",
            "[::1%25lo]:80",
        ];
        let messages: Vec<String> = entries
            .into_iter()
            .map(|entry| TcpRule::parse(entry).unwrap_err())
            .collect();
        insta::assert_snapshot!(messages.join("\n"), @r#"
        "" has no host
        "db.internal" has no port; write host and port, as in "db.internal:443"
        "db.internal:" has no port; write host and port, as in "db.internal:443"
        ":5432" has no host
        "db.internal:0" has a port that is not a number from 1 to 65535
        "db.internal:05432" has leading zeros in its port; write 5432
        "db.internal:65536" has a port that is not a number from 1 to 65535
        "db.internal:5432-5440" has a port that is not a number from 1 to 65535
        "db.internal:*" has a port that is not a number from 1 to 65535
        "db.internal:postgres" has a port that is not a number from 1 to 65535
        "db.internal:5432/name" contains a space, a control character, a slash, `\`, `?` or `#`
        "…@db.internal:5432" contains user information (the part before `@`), which is not allowed
        "*:5432" would allow every host; list the hosts, such as api.example.com or *.example.com
        "*.internal:5432" would allow every host below internal; name at least two labels after `*.`, as in *.example.internal
        "db.*:5432" has a `*` that is not the whole first label; a pattern is written as in *.example.com
        "*" would allow every host; list the hosts, such as api.example.com or *.example.com
        "tcp://db.internal:5432" has a scheme; write only host and port, such as "db.internal:5432"
        "https://db.internal" has a scheme; write "db.internal:443"
        "127.1:80" has another spelling of the address 127.0.0.1; write 127.0.0.1
        "0x7f000001:80" has another spelling of the address 127.0.0.1; write 127.0.0.1
        "::1" must have its IPv6 address in brackets, and a port, as in "[::1]:443"
        "::1:80" must have its IPv6 address in brackets, and a port, as in "[::1:80]:443"
        "[::1]" has no port; write host and port, as in "[::1]:443"
        "[::1%25lo]:80" contains `%`; write a host without percent-encoding and without an IPv6 zone
        "#);
    }
}
