//! The hosts that an entry of a grant covers.

use std::fmt;
use std::net::IpAddr;

use crate::host::NormalizedHost;

/// The host of a rule: one host, or all subdomains of a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// Only this host. An IP literal covers only the same IP literal.
    Exact(NormalizedHost),
    /// `*.example.org`: every name with at least one more label in front, such as `a.example.org`
    /// and `a.b.example.org`. It never covers an IP literal, or `example.org` itself, which needs a
    /// separate entry.
    Subdomains(String),
}

impl HostPattern {
    /// Parses the host of an entry. Unlike a guest, an operator must write an IPv4 address in its
    /// usual spelling.
    ///
    /// # Errors
    ///
    /// Returns the mistake and a correct form, as the rest of a sentence that begins with the
    /// entry.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Err(
                "would allow every host; list the hosts, such as api.example.com or *.example.com"
                    .to_owned(),
            );
        }
        let Some(parent) = text
            .strip_prefix("*.")
            .or_else(|| text.contains('*').then_some(text))
        else {
            return parse_exact_host(text).map(Self::Exact);
        };
        if parent.contains('*') {
            return Err(
                "has a `*` that is not the whole first label; a pattern is written as in *.example.com".to_owned()
            );
        }
        match parse_exact_host(parent)? {
            NormalizedHost::Ip(address) => Err(format!(
                "has `*` before an IP address; list each address, such as {address}"
            )),
            NormalizedHost::Name(name) if !name.contains('.') => Err(format!(
                "would allow every host below {name}; name at least two labels after `*.`, as in *.example.{name}"
            )),
            NormalizedHost::Name(name) => Ok(Self::Subdomains(name)),
        }
    }

    /// Returns whether the pattern covers the host.
    pub fn covers(&self, host: &NormalizedHost) -> bool {
        match (self, host) {
            (Self::Exact(one), host) => one == host,
            (Self::Subdomains(parent), NormalizedHost::Name(name)) => name
                .strip_suffix(parent.as_str())
                .is_some_and(|labels| labels.len() > 1 && labels.ends_with('.')),
            (Self::Subdomains(_), NormalizedHost::Ip(_)) => false,
        }
    }
}

/// Parses a host without `*`.
fn parse_exact_host(text: &str) -> Result<NormalizedHost, String> {
    match NormalizedHost::parse(text).map_err(|error| error.to_string())? {
        NormalizedHost::Ip(IpAddr::V4(address)) if address.to_string() != text => Err(format!(
            "has another spelling of the address {address}; write {address}"
        )),
        host => Ok(host),
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(host) => write!(f, "{host}"),
            Self::Subdomains(name) => write!(f, "*.{name}"),
        }
    }
}
