//! The host of a request or a connection, in normalized form.

use std::fmt;
use std::net::IpAddr;

use crate::authority_error::AuthorityError;

/// Maximum size of an authority, in bytes: enough for a name of 253 bytes. Longer texts are
/// rejected before they are parsed.
pub(crate) const MAX_AUTHORITY_BYTES: usize = 255;
/// Maximum size of a name in bytes, without a trailing dot (RFC 1035, section 2.3.4, as text).
const MAX_HOST_NAME_BYTES: usize = 253;
/// Maximum size of a label, in bytes (RFC 1035, section 2.3.4).
const MAX_LABEL_BYTES: usize = 63;

/// A host, normalized as the [URL standard](https://url.spec.whatwg.org/#host-parsing) does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NormalizedHost {
    /// A name: IDNA in ASCII (UTS #46), lower case, no trailing dot, labels of 1 to 63 bytes of
    /// `a-z 0-9 - _`.
    Name(String),
    /// An IP literal. This includes every spelling of an IPv4 address in the URL standard, such as
    /// `127.1` and `0x7f.0.0.1`.
    Ip(IpAddr),
}

impl NormalizedHost {
    /// Parses a host from a guest: a name, an IPv4 address, or an IPv6 address in brackets.
    ///
    /// This is stricter than the URL standard. Percent-encoding, characters that look like dots or
    /// like digits of an address, and names that DNS cannot have are errors.
    ///
    /// # Errors
    ///
    /// Returns an error if the host is malformed.
    pub fn parse(text: &str) -> Result<Self, AuthorityError> {
        if text.is_empty() {
            return Err(AuthorityError::Empty);
        }
        if text.len() > MAX_AUTHORITY_BYTES {
            return Err(AuthorityError::Length);
        }
        // The URL parser would decode it.
        if text.contains('%') {
            return Err(AuthorityError::Percent);
        }
        match url::Host::parse(text) {
            Ok(url::Host::Domain(ascii)) => normalize_name(text, ascii),
            // A URL parser accepts `１２７.0.0.1` as an address. No honest client sends this.
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

/// Returns the normalized name for `written`. `ascii` is the result of IDNA processing.
fn normalize_name(written: &str, mut ascii: String) -> Result<NormalizedHost, AuthorityError> {
    let count_dots = |text: &str| text.bytes().filter(|byte| *byte == b'.').count();
    // IDNA maps several characters to a dot: `evil。com` looks like one label to a reader, but DNS
    // finds two.
    if count_dots(written) != count_dots(&ascii) {
        return Err(AuthorityError::Dot);
    }
    if ascii.ends_with('.') {
        ascii.pop();
    }
    if ascii.len() > MAX_HOST_NAME_BYTES {
        return Err(AuthorityError::NameLength);
    }
    for label in ascii.split('.') {
        if label.is_empty() {
            return Err(AuthorityError::EmptyLabel);
        }
        if label.len() > MAX_LABEL_BYTES {
            return Err(AuthorityError::LabelLength);
        }
        // The URL standard allows `*`, `!`, `"` and others. They cause problems in DNS resolvers
        // and logs.
        if !label
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte))
        {
            return Err(AuthorityError::Name);
        }
    }
    Ok(NormalizedHost::Name(ascii))
}

/// Formats the host as in a URL, with an IPv6 address in brackets.
impl fmt::Display for NormalizedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Ip(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Ip(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}
