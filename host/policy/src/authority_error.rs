//! The errors in an authority.

use std::fmt;

/// The reason for rejecting a text as the authority of a URL (`host` or `host:port`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthorityError {
    /// There is no host.
    Empty,
    /// The authority has more than 255 bytes.
    Length,
    /// A space, a control character, or one of `/ \ ? #`, which end an authority.
    Character,
    /// A `%`: an encoded host, or the zone of an IPv6 address.
    Percent,
    /// User information before an `@`.
    Userinfo,
    /// A bracket that is not the beginning or the end of an IPv6 address.
    Bracket,
    /// The port is not a decimal number from 1 to 65535, or there are several ports.
    Port,
    /// A character other than `.` that means a dot, such as U+3002.
    Dot,
    /// Two dots in a row, or a dot at the beginning.
    EmptyLabel,
    /// A label with more than 63 bytes.
    LabelLength,
    /// A name with more than 253 bytes.
    NameLength,
    /// The host ends in a number, or is in brackets, and is not an IP address.
    Address,
    /// The name has characters that no host name can have, or is not valid IDNA (UTS #46).
    Name,
}

/// Formats the rest of a sentence whose subject is the authority, without a full stop.
impl fmt::Display for AuthorityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "has no host",
            Self::Length => "has more than 255 bytes",
            Self::Character => "contains a space, a control character, a slash, `\\`, `?` or `#`",
            Self::Percent => {
                "contains `%`; write a host without percent-encoding and without an IPv6 zone"
            }
            Self::Userinfo => {
                "contains user information (the part before `@`), which is not allowed"
            }
            Self::Bracket => {
                "has brackets that do not surround an IPv6 address, as in [2001:db8::1]"
            }
            Self::Port => "has a port that is not a number from 1 to 65535",
            Self::Dot => "contains a character that only looks like a dot; write `.`",
            Self::EmptyLabel => "has an empty label: a dot at the beginning, or two dots in a row",
            Self::LabelLength => "has a label of more than 63 bytes between its dots",
            Self::NameLength => "has a name of more than 253 bytes",
            Self::Address => "ends in a number or has brackets, but is not a valid IP address",
            Self::Name => "is not a valid host name",
        })
    }
}

impl std::error::Error for AuthorityError {}
