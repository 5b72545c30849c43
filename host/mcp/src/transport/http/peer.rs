//! The other end of a connection.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tokio_util::sync::CancellationToken;

/// The other end of a connection.
#[derive(Clone, Debug)]
pub(super) struct HttpPeer {
    pub(super) source: PeerSource,
    /// Cancelled when the peer has closed its side. It sends nothing more, and may or may not read.
    pub(super) half_closed: CancellationToken,
}

/// The origin of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerSource {
    /// An IP address.
    Internet(IpAddr),
    /// A user of this machine, connected through a Unix socket.
    User(u32),
}

impl PeerSource {
    /// Returns the key that identifies one peer: its network, or the user.
    pub(super) fn network(self) -> String {
        match self {
            Self::Internet(address) => network(address),
            Self::User(_) => self.to_string(),
        }
    }

    /// Returns the name of a caller without further identification.
    pub(super) fn caller_name(self) -> String {
        match self {
            Self::Internet(address) => format!("ip:{}", network(address)),
            Self::User(_) => self.to_string(),
        }
    }
}

impl fmt::Display for PeerSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Internet(address) => address.fmt(f),
            Self::User(user) => write!(f, "uid:{user}"),
        }
    }
}

/// Returns the key that identifies one peer: the address or network, or the user, from which a
/// request with these extensions comes. `None` if the request was not received by this server.
pub fn network_of(extensions: &http::Extensions) -> Option<String> {
    extensions
        .get::<HttpPeer>()
        .map(|peer| peer.source.network())
}

/// Returns the key of an address: an IPv4 address, or an IPv6 /64 network, the smallest that a
/// provider assigns to a customer.
///
/// One process must not count as many peers. It can use each of the 16 million addresses of
/// 127.0.0.0/8, so these count as 127.0.0.1. It can use any IPv6 link-local address, but these are
/// all in one /64 network, which counts as one peer. Its machine can have further addresses, such
/// as `::1` in addition to 127.0.0.1, but only an administrator can add them. They count
/// separately, because a connection does not show that two addresses belong to one machine. For
/// connections within this machine, `connection_places` finds the account.
fn network(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) if address.is_loopback() => Ipv4Addr::LOCALHOST.to_string(),
        IpAddr::V4(address) => address.to_string(),
        // `::1` is the only loopback address of IPv6.
        IpAddr::V6(address) if address.is_loopback() => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{}/64", Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_one_peer() {
        let source = PeerSource::User(1000);
        assert_eq!(
            (source.network(), source.caller_name()),
            ("uid:1000".to_owned(), "uid:1000".to_owned())
        );
        let source = PeerSource::Internet("2001:db8:0:1::7".parse().unwrap());
        assert_eq!(
            (source.network().as_str(), source.caller_name().as_str()),
            ("2001:db8:0:1::/64", "ip:2001:db8:0:1::/64")
        );
    }

    #[test]
    fn addresses_of_one_network_count_as_one() {
        for (address, expected) in [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.2", "127.0.0.1"),
            ("127.255.255.254", "127.0.0.1"),
            ("::ffff:127.0.0.41", "127.0.0.1"),
            ("128.0.0.1", "128.0.0.1"),
            ("::1", "::1"),
            ("::2", "::/64"),
            ("::127.0.0.1", "::/64"),
            ("fe80::1", "fe80::/64"),
            ("fe80::ffff:1", "fe80::/64"),
            ("2001:db8:0:1::7", "2001:db8:0:1::/64"),
            ("2001:db8:0:1:ffff:ffff:ffff:ffff", "2001:db8:0:1::/64"),
            ("2001:db8:0:2::7", "2001:db8:0:2::/64"),
        ] {
            assert_eq!(network(address.parse().unwrap()), expected, "{address}");
        }
    }
}
