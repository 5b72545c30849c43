//! Rules for the addresses to which a guest can connect.
//!
//! The tables follow the IANA registries of special-purpose addresses
//! ([IPv4](https://www.iana.org/assignments/iana-ipv4-special-registry),
//! [IPv6](https://www.iana.org/assignments/iana-ipv6-special-registry)) and refuse a few more
//! ranges: ranges that are reachable in principle but that no tool needs, such as 192.88.99.0/24,
//! and addresses that cloud providers reserve for themselves.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

use crate::address_range::AddressRange;

/// IPv4 networks whose addresses are refused, with the reason. The first network that contains the
/// address applies.
const REFUSED_V4: [(Ipv4Net, &str); 18] = [
    (v4([0, 0, 0, 0], 32), "unspecified"),
    (v4([0, 0, 0, 0], 8), "this network (0.0.0.0/8)"),
    (v4([10, 0, 0, 0], 8), "private (RFC 1918)"),
    (
        v4([100, 64, 0, 0], 10),
        "shared behind a provider's NAT (100.64.0.0/10)",
    ),
    (v4([127, 0, 0, 0], 8), "loopback"),
    // The platform service of Azure serves virtual machines at this address, including their
    // secrets.
    (
        v4([168, 63, 129, 16], 32),
        "a cloud's platform service (168.63.129.16)",
    ),
    (
        v4([169, 254, 0, 0], 16),
        "link-local, with the metadata services of clouds",
    ),
    (v4([172, 16, 0, 0], 12), "private (RFC 1918)"),
    (
        v4([192, 0, 0, 0], 24),
        "reserved for protocols (192.0.0.0/24)",
    ),
    (v4([192, 0, 2, 0], 24), "for documentation"),
    (v4([192, 88, 99, 0], 24), "a relay of 6to4"),
    (v4([192, 168, 0, 0], 16), "private (RFC 1918)"),
    (v4([198, 18, 0, 0], 15), "for benchmarks"),
    (v4([198, 51, 100, 0], 24), "for documentation"),
    (v4([203, 0, 113, 0], 24), "for documentation"),
    (v4([224, 0, 0, 0], 4), "multicast"),
    (v4([255, 255, 255, 255], 32), "broadcast"),
    (v4([240, 0, 0, 0], 4), "reserved (240.0.0.0/4)"),
];

/// IPv6 networks whose addresses are refused, with the reason. The first network that contains the
/// address applies.
const REFUSED_V6: [(Ipv6Net, &str); 19] = [
    (v6(0, 128), "unspecified"),
    (v6(1, 128), "loopback"),
    (v6(0, 96), "IPv4-compatible"),
    (v6(0xffff << 48, 96), "IPv4-translated"),
    (v6(0x64_ff9b << 96, 96), "translated to IPv4 (NAT64)"),
    (
        v6(0x64_ff9b_0001 << 80, 48),
        "translated to IPv4 (local NAT64)",
    ),
    (v6(0x100 << 112, 64), "discarded (100::/64)"),
    (v6(0x2001 << 112, 32), "tunnelled in IPv4 (Teredo)"),
    (v6(0x2001_0010 << 96, 28), "a hash identifier (ORCHID)"),
    (v6(0x2001_0020 << 96, 28), "a hash identifier (ORCHIDv2)"),
    (v6(0x2001 << 112, 23), "reserved for protocols (2001::/23)"),
    (v6(0x2001_0db8 << 96, 32), "for documentation"),
    (v6(0x2002 << 112, 16), "tunnelled in IPv4 (6to4)"),
    (v6(0x3fff << 112, 20), "for documentation"),
    (v6(0x5f00 << 112, 16), "a segment identifier (SRv6)"),
    (v6(0xfc00 << 112, 7), "private (unique local)"),
    (v6(0xfe80 << 112, 10), "link-local"),
    (v6(0xfec0 << 112, 10), "site-local"),
    (v6(0xff00 << 112, 8), "multicast"),
];

/// All global unicast addresses that IANA allocates.
const GLOBAL_V6: Ipv6Net = v6(0x2000 << 112, 3);
const NOT_GLOBAL_REASON: &str = "outside of the global addresses (2000::/3)";

const fn v4([a, b, c, d]: [u8; 4], prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(bits: u128, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::from_bits(bits), prefix)
}

/// Returns the reason why no guest can connect to the address, in a few words that complete "the
/// address is". Returns `None` if connections are allowed.
///
/// An address that is not globally reachable is refused unless a network in `opened` contains it.
/// An IPv6 address that leads to an IPv4 address is refused if the IPv4 address is refused:
///
/// - An IPv4-mapped address (`::ffff:0:0/96`) *is* the IPv4 address, and only the IPv4 address is
///   checked.
/// - IPv4-compatible and IPv4-translated addresses, NAT64 (`64:ff9b::/96`), 6to4 and Teredo are
///   refused unless `opened` contains both the address and the embedded IPv4 addresses that are not
///   global.
/// - In ISATAP addresses (an interface identifier `::5efe:a.b.c.d`), the embedded address is also
///   checked, under any prefix.
/// - In `64:ff9b:1::/48`, each operator chooses the position of the IPv4 address (RFC 8215). An
///   operator who opens this network opens every address that the translator reaches.
pub fn refusal_reason(address: IpAddr, opened: &[AddressRange]) -> Option<&'static str> {
    let address = address.to_canonical();
    let reason = match address {
        _ if opened.iter().any(|network| network.contains(address)) => None,
        IpAddr::V4(v4) => REFUSED_V4
            .iter()
            .find(|(network, _)| network.contains(&v4))
            .map(|(_, why)| *why),
        IpAddr::V6(v6) => REFUSED_V6
            .iter()
            .find(|(network, _)| network.contains(&v6))
            .map(|(_, why)| *why)
            .or_else(|| (!GLOBAL_V6.contains(&v6)).then_some(NOT_GLOBAL_REASON)),
    };
    reason.or_else(|| embedded_ipv4(address).find_map(|v4| refusal_reason(IpAddr::V4(v4), opened)))
}

/// Returns the entries of `private_networks` that open the address. The list is empty if the
/// address is open without them.
pub(crate) fn private_ranges_for(address: IpAddr) -> Vec<AddressRange> {
    let address = address.to_canonical();
    let candidates = std::iter::once(address).chain(embedded_ipv4(address).map(IpAddr::V4));
    candidates
        .filter(|address| refusal_reason(*address, &[]).is_some())
        .map(AddressRange::from)
        .collect()
}

/// Returns the IPv4 addresses to which, or through which, a packet for this address would be sent.
fn embedded_ipv4(address: IpAddr) -> impl Iterator<Item = Ipv4Addr> {
    let IpAddr::V6(address) = address else {
        return [None, None].into_iter().flatten();
    };
    #[expect(
        clippy::match_same_arms,
        reason = "the first arm excludes addresses of the second"
    )]
    let embedded = match address.segments() {
        // The unspecified and loopback addresses have the prefix of IPv4-compatible addresses, but
        // are not IPv4-compatible.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => [None, None],
        [0, 0, 0, 0, 0 | 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => [Some(ipv4_from_halves(high, low)), None],
        // The server, and the client with all bits inverted (RFC 4380, section 4).
        [0x2001, 0, a, b, _, _, c, d] => {
            [Some(ipv4_from_halves(a, b)), Some(ipv4_from_halves(!c, !d))]
        }
        // ISATAP (RFC 5214, section 6.1).
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => [Some(ipv4_from_halves(high, low)), None],
        _ => [None, None],
    };
    embedded.into_iter().flatten()
}

/// Returns the IPv4 address with these halves.
fn ipv4_from_halves(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

#[cfg(test)]
mod tests;
