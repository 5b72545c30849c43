//! The host of a request or of a connection, in its only spelling.

use std::fmt;
use std::net::IpAddr;

use crate::malformed::AuthorityError;

/// Longest text of an authority, in bytes: what a name of 253 bytes needs, and a little more. Longer texts are not
/// worth the work of parsing.
pub(crate) const AUTHORITY: usize = 255;
/// Longest name in bytes, without a trailing dot (RFC 1035, section 2.3.4, as text).
const NAME: usize = 253;
/// Longest label in bytes (RFC 1035, section 2.3.4).
const LABEL: usize = 63;

/// A host, normalised as the [URL standard](https://url.spec.whatwg.org/#host-parsing) does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NormalizedHost {
    /// A name: IDNA in ASCII (UTS #46), lower case, no trailing dot, labels of 1 to 63 bytes of `a-z 0-9 - _`.
    Name(String),
    /// An IP literal. Every spelling of an IPv4 address that the URL standard knows is one: `127.1`, `0x7f.0.0.1`.
    Ip(IpAddr),
}

impl NormalizedHost {
    /// Parses a host as a guest writes it: a name, an IPv4 address, or an IPv6 address in brackets.
    ///
    /// This is stricter than the URL standard: percent-encoding, characters that only look like dots or digits of an
    /// address, and names that DNS cannot have are errors.
    ///
    /// # Errors
    ///
    /// What is wrong with the host.
    pub fn parse(text: &str) -> Result<Self, AuthorityError> {
        if text.is_empty() {
            return Err(AuthorityError::Empty);
        }
        if text.len() > AUTHORITY {
            return Err(AuthorityError::Length);
        }
        // The parser below would decode it.
        if text.contains('%') {
            return Err(AuthorityError::Percent);
        }
        match url::Host::parse(text) {
            Ok(url::Host::Domain(ascii)) => name(text, ascii),
            // `１２７.0.0.1` is an address to a URL parser. Nobody writes that in good faith.
            Ok(url::Host::Ipv4(_)) if !text.is_ascii() => Err(AuthorityError::Address),
            Ok(url::Host::Ipv4(address)) => Ok(Self::Ip(address.into())),
            Ok(url::Host::Ipv6(address)) => Ok(Self::Ip(address.into())),
            Err(url::ParseError::EmptyHost) => Err(AuthorityError::Empty),
            Err(url::ParseError::InvalidIpv4Address | url::ParseError::InvalidIpv6Address) => {
                Err(AuthorityError::Address)
            }
            Err(_) => Err(AuthorityError::Name),
        }
    }
}

/// The name that `written` stands for. `ascii` is what IDNA makes of it.
fn name(written: &str, mut ascii: String) -> Result<NormalizedHost, AuthorityError> {
    let dots = |text: &str| text.bytes().filter(|byte| *byte == b'.').count();
    // IDNA maps several characters to a dot: `evil。com` has one label to whoever reads it, and two to DNS.
    if dots(written) != dots(&ascii) {
        return Err(AuthorityError::Dot);
    }
    if ascii.ends_with('.') {
        ascii.pop();
    }
    if ascii.len() > NAME {
        return Err(AuthorityError::NameLength);
    }
    for label in ascii.split('.') {
        if label.is_empty() {
            return Err(AuthorityError::EmptyLabel);
        }
        if label.len() > LABEL {
            return Err(AuthorityError::LabelLength);
        }
        // The URL standard allows `*`, `!`, `"` and others, which DNS resolvers and logs can do without.
        if !label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte)) {
            return Err(AuthorityError::Name);
        }
    }
    Ok(NormalizedHost::Name(ascii))
}

/// As in a URL: an IPv6 address is in brackets.
impl fmt::Display for NormalizedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Ip(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Ip(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}
