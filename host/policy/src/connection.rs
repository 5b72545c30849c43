//! Checks TCP connections and name lookups against the rules.

use std::net::Ipv6Addr;

use crate::denial_reason::DenialReason;
use crate::host::NormalizedHost;
use crate::tcp_rule::TcpRule;

/// A TCP connection that a guest requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpRequest<'a> {
    /// A name or an IP address. An IPv6 address can have brackets.
    pub host: &'a str,
    /// The port.
    pub port: u16,
}

/// The target of an allowed connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedConnection {
    /// The normalized host. A name is absolute. The addresses of a name must still pass
    /// [`filter_addresses`](crate::filter_addresses), and so must an IP literal.
    pub host: NormalizedHost,
    /// The port, 1 to 65535.
    pub port: u16,
    /// The index of the rule that allows the connection.
    pub rule_index: usize,
}

impl TcpRequest<'_> {
    /// Checks whether a rule allows the connection.
    ///
    /// An address that the guest obtained from a DNS lookup is an IP literal here, and rules for
    /// names do not cover it. A caller that resolves names for guests must remember the name of
    /// each address and check the name instead.
    ///
    /// # Errors
    ///
    /// Returns an error if the host is malformed, the port is 0, or no rule allows the connection.
    pub fn check(&self, rules: &[TcpRule]) -> Result<AllowedConnection, DenialReason> {
        let host = match self.host.parse::<Ipv6Addr>() {
            Ok(address) => NormalizedHost::Ip(address.into()),
            Err(_) => NormalizedHost::parse(self.host).map_err(DenialReason::Authority)?,
        };
        let port = self.port;
        if port == 0 {
            return Err(DenialReason::ConnectionPortZero);
        }
        if let Some(rule_index) = rules.iter().position(|rule| rule.covers(&host, port)) {
            return Ok(AllowedConnection {
                host,
                port,
                rule_index,
            });
        }
        if rules.iter().any(|rule| rule.host().covers(&host)) {
            return Err(DenialReason::ConnectionPort(host, port));
        }
        Err(match host {
            NormalizedHost::Ip(address) => DenialReason::ConnectionIpLiteral(address, port),
            NormalizedHost::Name(_) => DenialReason::ConnectionHost(host, port),
        })
    }
}

/// Checks whether a guest may resolve a name: a rule must allow a connection to it, at any port.
/// Returns the normalized host. An IP literal always passes, because it needs no resolution.
///
/// # Errors
///
/// Returns an error if the name is malformed, or if no rule covers it.
pub fn check_lookup(name: &str, rules: &[TcpRule]) -> Result<NormalizedHost, DenialReason> {
    if let Ok(address) = name.parse::<Ipv6Addr>() {
        return Ok(NormalizedHost::Ip(address.into()));
    }
    let host = NormalizedHost::parse(name).map_err(DenialReason::Authority)?;
    let is_covered =
        matches!(host, NormalizedHost::Ip(_)) || rules.iter().any(|rule| rule.host().covers(&host));
    if is_covered {
        Ok(host)
    } else {
        Err(DenialReason::Lookup(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_in_rules_are_resolved() {
        let rules: Vec<TcpRule> = ["db.internal:5432", "*.example.org:443"]
            .map(|entry| TcpRule::parse(entry).unwrap())
            .into();
        for (name, expected) in [
            ("db.internal", "db.internal"),
            ("DB.internal.", "db.internal"),
            ("a.example.org", "a.example.org"),
            ("example.org", "Lookup"),
            ("secret.evil.example", "Lookup"),
            ("localhost", "Lookup"),
            ("10.0.0.1", "10.0.0.1"),
            ("::1", "[::1]"),
            ("db.internal%2e", "Authority"),
            ("", "Authority"),
        ] {
            let verdict = match check_lookup(name, &rules) {
                Ok(host) => host.to_string(),
                Err(denied) => format!("{denied:?}").split('(').next().unwrap().to_owned(),
            };
            assert_eq!(verdict, expected, "{name}");
        }
        let denied = check_lookup("evil.example", &rules).unwrap_err();
        assert_eq!(
            denied.to_string(),
            "evil.example is not among the hosts that this tool may connect to."
        );
        assert_eq!(denied.remedy().unwrap(), "tcp = [\"evil.example:PORT\"]");
    }

    #[test]
    fn connections() {
        let rules: Vec<TcpRule> = [
            "db.internal:5432",
            "*.example.org:443",
            "10.0.0.7:6379",
            "[2001:db8::7]:6379",
        ]
        .map(|entry| TcpRule::parse(entry).unwrap())
        .into();
        for (host, port, expected) in [
            ("db.internal", 5432, "db.internal by 0"),
            ("DB.Internal.", 5432, "db.internal by 0"),
            ("db.internal", 5433, "ConnectionPort"),
            ("db.internal", 0, "ConnectionPortZero"),
            ("internal", 5432, "ConnectionHost"),
            ("evil.db.internal", 5432, "ConnectionHost"),
            ("a.example.org", 443, "a.example.org by 1"),
            ("a.b.example.org", 443, "a.b.example.org by 1"),
            ("example.org", 443, "ConnectionHost"),
            ("10.0.0.7", 6379, "10.0.0.7 by 2"),
            ("0xa.7", 6379, "10.0.0.7 by 2"),
            ("10.0.0.7", 6380, "ConnectionPort"),
            ("10.0.0.8", 6379, "ConnectionIpLiteral"),
            ("::ffff:10.0.0.7", 6379, "ConnectionIpLiteral"),
            ("2001:db8::7", 6379, "[2001:db8::7] by 3"),
            ("[2001:db8::7]", 6379, "[2001:db8::7] by 3"),
            ("[2001:db8::8]", 6379, "ConnectionIpLiteral"),
            ("169.254.169.254", 80, "ConnectionIpLiteral"),
            ("db.internal:5432", 5432, "Authority(Name)"),
            ("user@db.internal", 5432, "Authority(Name)"),
            ("db.internal\\@evil.example", 5432, "Authority(Name)"),
            ("db。internal", 5432, "Authority(Dot)"),
            ("fe80::1%eth0", 5432, "Authority(Percent)"),
            ("", 5432, "Authority(Empty)"),
        ] {
            let verdict = match (TcpRequest { host, port }).check(&rules) {
                Ok(allowed) => {
                    assert_eq!(allowed.port, port);
                    format!("{} by {}", allowed.host, allowed.rule_index)
                }
                Err(denied @ DenialReason::Authority(_)) => format!("{denied:?}"),
                Err(denied) => format!("{denied:?}").split('(').next().unwrap().to_owned(),
            };
            assert_eq!(verdict, expected, "{host} {port}");
        }
    }

    #[test]
    fn a_denial_is_a_sentence_for_the_model_and_a_line_for_the_operator() {
        let rules = [TcpRule::parse("db.internal:5432").unwrap()];
        let requests = [
            ("evil.example", 443),
            ("db.internal", 5433),
            ("8.8.8.8", 53),
            ("::1", 22),
            ("db.internal", 0),
            ("db.internal:5432", 5432),
        ];
        let messages: Vec<String> = requests
            .into_iter()
            .map(|(host, port)| {
                let denied = TcpRequest { host, port }.check(&rules).unwrap_err();
                let remedy = denied.remedy().unwrap_or_else(|| "(nothing)".to_owned());
                format!("{denied}\n    {}", remedy.replace('\n', "\n    "))
            })
            .collect();
        insta::assert_snapshot!(messages.join("\n"), @r#"
        evil.example:443 is not among the hosts and ports that this tool may connect to.
            tcp = ["evil.example:443"]
        This tool may connect to db.internal at another port, and not at 5433.
            tcp = ["db.internal:5433"]
        This tool may connect to an IP address only if its grant lists it.
            tcp = ["8.8.8.8:53"]
        This tool may connect to an IP address only if its grant lists it.
            tcp = ["[::1]:22"]
            private_networks = ["::1"]
        Port 0 is not a port to connect to.
            (nothing)
        The address of the request is not a valid host name.
            (nothing)
        "#);
    }
}
