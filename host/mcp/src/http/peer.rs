//! The other end of a connection.

use std::net::{IpAddr, Ipv6Addr};

use tokio_util::sync::CancellationToken;

/// The other end of a connection.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub(super) address: IpAddr,
    /// Cancelled when the peer has closed its side: it sends nothing more, and may or may not read.
    pub(super) half_closed: CancellationToken,
}

/// What counts as one peer: an address of IPv4, or a network of 64 bits of IPv6, which is what one customer has at least.
pub(super) fn network(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            let network = Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0);
            // The loopback address and the like are no networks.
            if network.is_unspecified() { address.to_string() } else { format!("{network}/64") }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
