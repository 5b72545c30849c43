//! The origin of an entry of `permissions.http`.

use std::fmt;
use std::net::Ipv6Addr;

use serde::{Deserialize, Serialize};

use crate::authority;
use crate::authority_error::AuthorityError;
use crate::host_pattern::HostPattern;
use crate::origin::UrlOrigin;
use crate::scheme::UrlScheme;

/// The origins that a rule covers: `https://api.example.com`, `http://localhost:8080`,
/// `https://*.example.org`.
///
/// Scheme and port must be equal: a rule for `https` never covers `http`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct OriginPattern {
    scheme: UrlScheme,
    host: HostPattern,
    port: u16,
}

impl OriginPattern {
    /// Parses an entry.
    ///
    /// # Errors
    ///
    /// Returns a message with the entry in quotes, the mistake, and a correct form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let invalid_entry = |why: &dyn fmt::Display| format!("{text:?} {why}");
        let Some((scheme, rest)) = text.split_once("://") else {
            let with_scheme = format!("https://{text}");
            return Err(match Self::parse(&with_scheme) {
                Ok(_) => invalid_entry(&format_args!("has no scheme; write {with_scheme:?}")),
                Err(_) => invalid_entry(&"is not an origin, such as \"https://api.example.com\""),
            });
        };
        let Some(scheme) = UrlScheme::parse(scheme) else {
            return Err(invalid_entry(
                &"must begin with \"https://\" or \"http://\"",
            ));
        };
        if let Some(end) = rest.find(['/', '\\', '?', '#']) {
            let (authority, rest) = rest.split_at(end);
            let origin = format!("{scheme}://{authority}");
            // The suggested text must be a valid origin.
            Self::parse(&origin)?;
            return Err(invalid_entry(&suffix_message(&origin, rest)));
        }
        if rest.parse::<Ipv6Addr>().is_ok() {
            return Err(invalid_entry(&format_args!(
                "must have its IPv6 address in brackets; write \"{scheme}://[{rest}]\""
            )));
        }
        let (host, port) = authority::split_host_port(rest)
            .map_err(|error| malformed_entry_message(text, error))?;
        let port = match port {
            None => scheme.default_port(),
            Some("") => {
                return Err(invalid_entry(
                    &"has no port after its last colon; add the port, or leave out the colon",
                ));
            }
            Some(digits) => parse_port(digits).map_err(|why| invalid_entry(&why))?,
        };
        let host = HostPattern::parse(host).map_err(|why| invalid_entry(&why))?;
        Ok(Self { scheme, host, port })
    }

    /// Creates a pattern that covers only this origin.
    pub(crate) fn exact(origin: UrlOrigin) -> Self {
        Self {
            scheme: origin.scheme,
            host: HostPattern::Exact(origin.host),
            port: origin.port,
        }
    }

    /// Returns whether the pattern covers the origin.
    pub fn covers(&self, origin: &UrlOrigin) -> bool {
        self.scheme == origin.scheme && self.port == origin.port && self.host.covers(&origin.host)
    }

    /// Returns whether this pattern covers every origin that the other covers.
    pub fn covers_all_of(&self, other: &Self) -> bool {
        let hosts = match (&self.host, &other.host) {
            (hosts, HostPattern::Exact(host)) => hosts.covers(host),
            (HostPattern::Exact(_), HostPattern::Subdomains(_)) => false,
            (HostPattern::Subdomains(parent), HostPattern::Subdomains(child)) => {
                parent == child
                    || child
                        .strip_suffix(parent.as_str())
                        .is_some_and(|labels| labels.ends_with('.'))
            }
        };
        self.scheme == other.scheme && self.port == other.port && hosts
    }

    /// Returns the scheme.
    pub fn scheme(&self) -> UrlScheme {
        self.scheme
    }

    /// Returns the hosts.
    pub fn host(&self) -> &HostPattern {
        &self.host
    }

    /// Returns the port, 1 to 65535.
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// Returns the message for an entry whose authority is malformed. It omits user information, which
/// often contains a password.
pub(crate) fn malformed_entry_message(entry: &str, error: AuthorityError) -> String {
    match entry.rsplit_once('@') {
        Some((before, host)) => {
            let scheme = before
                .split_once("://")
                .map(|(scheme, _)| format!("{scheme}://"))
                .unwrap_or_default();
            format!("{:?} {error}", format!("{scheme}…@{host}"))
        }
        None => format!("{entry:?} {error}"),
    }
}

/// Parses the port of an entry: digits without leading zeros.
pub(crate) fn parse_port(digits: &str) -> Result<u16, String> {
    let port = authority::parse_port(digits).map_err(|error: AuthorityError| error.to_string())?;
    if digits.starts_with('0') {
        return Err(format!("has leading zeros in its port; write {port}"));
    }
    Ok(port)
}

/// Returns the message for the text `rest` after an origin.
fn suffix_message(origin: &str, rest: &str) -> String {
    match rest.chars().next() {
        Some('/') if rest == "/" => {
            format!("ends with a slash, which an origin does not have; write {origin:?}")
        }
        Some('/') => {
            let path = rest.split(['?', '#']).next().unwrap_or(rest);
            format!(
                "has a path; put the path into `paths`, as in {{ origin = {origin:?}, paths = [{path:?}] }}"
            )
        }
        Some('?') => format!("has a query, which a rule cannot restrict; write {origin:?}"),
        Some('#') => format!("has a fragment, which no request has; write {origin:?}"),
        _ => "has a backslash, which an origin does not have".to_owned(),
    }
}

/// Formats the canonical form, which [`OriginPattern::parse`] accepts: without the default port of
/// the scheme.
impl fmt::Display for OriginPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)?;
        if self.port == self.scheme.default_port() {
            Ok(())
        } else {
            write!(f, ":{}", self.port)
        }
    }
}

impl TryFrom<String> for OriginPattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<OriginPattern> for String {
    fn from(origin: OriginPattern) -> Self {
        origin.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::OriginPattern;

    #[test]
    fn pattern_covers_patterns_that_are_not_wider() {
        let pattern = |text: &str| OriginPattern::parse(text).unwrap();
        for (wide, narrow, expected) in [
            ("https://a.example.org", "https://a.example.org", true),
            ("https://*.example.org", "https://a.example.org", true),
            ("https://*.example.org", "https://*.example.org", true),
            ("https://*.example.org", "https://*.a.example.org", true),
            ("https://*.example.org", "https://*.anexample.org", false),
            ("https://*.example.org", "https://example.org", false),
            ("https://*.a.example.org", "https://*.example.org", false),
            ("https://a.example.org", "https://*.example.org", false),
            ("https://a.example.org", "http://a.example.org", false),
            ("https://a.example.org", "https://a.example.org:8443", false),
        ] {
            assert_eq!(
                pattern(wide).covers_all_of(&pattern(narrow)),
                expected,
                "{wide} {narrow}"
            );
        }
    }
}
