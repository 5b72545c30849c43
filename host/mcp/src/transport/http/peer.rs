//! The other end of a connection.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

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
    extensions.get::<HttpPeer>().map(|peer| peer.source.network())
}

/// Returns the key of an address: an IPv4 address, or an IPv6 network of 64 bits, which is the
/// smallest one that a customer gets.
fn network(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            let network = Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0);
            // The loopback address and similar addresses do not form networks.
            if network.is_unspecified() { address.to_string() } else { format!("{network}/64") }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_one_peer() {
        let source = PeerSource::User(1000);
        assert_eq!((source.network(), source.caller_name()), ("uid:1000".to_owned(), "uid:1000".to_owned()));
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
            ("::1", "::1"),
            ("2001:db8:0:1::7", "2001:db8:0:1::/64"),
            ("2001:db8:0:1:ffff:ffff:ffff:ffff", "2001:db8:0:1::/64"),
            ("2001:db8:0:2::7", "2001:db8:0:2::/64"),
        ] {
            assert_eq!(network(address.parse().unwrap()), expected);
        }
    }
}
