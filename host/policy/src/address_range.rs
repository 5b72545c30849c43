//! An entry of `permissions.private_networks`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};

/// Minimum prefix lengths of an entry: those of `240.0.0.0/4` and `fc00::/7`, the widest networks
/// that are not globally reachable. A shorter prefix would open several of them at once, including
/// the metadata services of clouds.
const MIN_PREFIX_LEN_V4: u8 = 4;
const MIN_PREFIX_LEN_V6: u8 = 7;

/// The IPv4-mapped addresses, `::ffff:0:0/96` (RFC 4291, section 2.5.5.2). IPv6 sockets use these
/// for IPv4 peers.
const IPV4_MAPPED: Ipv6Net = Ipv6Net::new_assert(Ipv4Addr::UNSPECIFIED.to_ipv6_mapped(), 96);

/// Addresses that the operator opens even though they are not globally reachable: `10.0.0.0/8`,
/// `127.0.0.1`, `fd00::/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct AddressRange(IpNet);

impl AddressRange {
    /// Parses an entry: a network in CIDR notation, or an address.
    ///
    /// # Errors
    ///
    /// Returns a message with the entry in quotes, the mistake, and a correct form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let without_brackets = text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'));
        if let Some(address) = without_brackets.and_then(|inside| inside.parse::<IpAddr>().ok()) {
            return Err(format!(
                "{text:?} has brackets, which are only for addresses in origins; write \"{address}\""
            ));
        }
        let network = match (IpNet::from_str(text), text.parse::<IpAddr>()) {
            (Ok(network), _) => network,
            (_, Ok(address)) => address.into(),
            _ => {
                return Err(format!(
                    "{text:?} is not a network or an IP address, such as \"10.0.0.0/8\" or \"127.0.0.1\""
                ));
            }
        };
        let min_prefix_len = if network.addr().is_ipv4() {
            MIN_PREFIX_LEN_V4
        } else {
            MIN_PREFIX_LEN_V6
        };
        if network.prefix_len() < min_prefix_len {
            return Err(format!(
                "{text:?} would open more than any private network, and the metadata services of clouds with it; list \
                 the networks that the plugin needs, such as \"10.0.0.0/8\""
            ));
        }
        if network.trunc() != network {
            return Err(format!(
                "{text:?} has bits set beyond its prefix; write the network \"{}\", or the address \"{}\"",
                network.trunc(),
                network.addr()
            ));
        }
        if let IpNet::V6(v6) = network
            && IPV4_MAPPED.contains(&v6)
            && let Some(address) = v6.addr().to_ipv4_mapped()
            && let Ok(v4) = Ipv4Net::new(address, v6.prefix_len() - IPV4_MAPPED.prefix_len())
        {
            return Err(format!(
                "{text:?} consists of IPv4 addresses, which are compared as such; write \"{}\"",
                format_network(IpNet::V4(v4))
            ));
        }
        Ok(Self(network))
    }

    /// Returns whether the address belongs to the network. IPv4 addresses belong only to IPv4
    /// networks.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address)
    }
}

/// Formats a network. A network of one address is written as the address.
fn format_network(network: IpNet) -> String {
    if network.prefix_len() == network.max_prefix_len() {
        network.addr().to_string()
    } else {
        network.to_string()
    }
}

/// Creates the network of one address. An IPv4-mapped address becomes an IPv4 address.
impl From<IpAddr> for AddressRange {
    fn from(address: IpAddr) -> Self {
        Self(address.to_canonical().into())
    }
}

/// Formats the canonical form, which [`AddressRange::parse`] accepts.
impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_network(self.0))
    }
}

impl TryFrom<String> for AddressRange {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<AddressRange> for String {
    fn from(network: AddressRange) -> Self {
        network.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_one_canonical_form() {
        for (entry, canonical) in [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1/32", "127.0.0.1"),
            ("240.0.0.0/4", "240.0.0.0/4"),
            ("FD00:0::/8", "fd00::/8"),
            ("fc00::/7", "fc00::/7"),
            ("::1/128", "::1"),
            ("64:ff9b::/96", "64:ff9b::/96"),
        ] {
            let network = AddressRange::parse(entry).unwrap();
            assert_eq!(network.to_string(), canonical);
            assert_eq!(AddressRange::parse(canonical), Ok(network));
        }
    }

    #[test]
    fn errors_suggest_a_correct_form() {
        let entries = [
            "",
            "localhost",
            "10",
            "10/8",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10.0.0.0/255.0.0.0",
            "10.0.0.0-10.0.0.9",
            "010.0.0.1",
            "127.1",
            "10.0.0.1:80",
            "10.0.0.1/8",
            "10.1.0.0/8",
            "fd00::1/8",
            "0.0.0.0/0",
            "::/0",
            "10.0.0.1/0",
            "128.0.0.0/1",
            "2000::/3",
            "::ffff:10.0.0.0/104",
            "::ffff:10.0.0.1",
            "[::1]",
            "fe80::1%eth0",
        ];
        let messages: Vec<String> = entries
            .into_iter()
            .map(|entry| AddressRange::parse(entry).unwrap_err())
            .collect();
        insta::assert_snapshot!(messages.join("\n"), @r#"
        "" is not a network or an IP address, such as "10.0.0.0/8" or "127.0.0.1"
        "localhost" is not a network or an IP address, such as "10.0.0.0/8" or "127.0.0.1"
        "10" is not a network or an IP address, such as "10.0.0.0/8" or "127.0.0.1"
        "10/8" is not a network or an IP address, such as "10.0.0.0/8" or "127.0.0.1"
        "10.0.0.0/" is not a network or an IP address, such as "10.0.0.0/8" or "127.0.0.1"
        "10.0.0.0/33" is not a network or an IP address, such as "10.0.0.0/8" or "127.0.0.1"
        "10.0.0.0/255.0.0.0" is not a network or an IP address, such as "10.0.0.0/8" or "127.0.0.1"
        "10.0.0.0-10.0.0.9" is not a network or an IP address, such as "10.0.0.0/8" or "127.0.0.1"
        "010.0.0.1" is not a network or an IP address, such as "10.0.0.0/8" or "127.0.0.1"
        "127.1" is not a network or an IP address, such as "10.0.0.0/8" or "127.0.0.1"
        "10.0.0.1:80" is not a network or an IP address, such as "10.0.0.0/8" or "127.0.0.1"
        "10.0.0.1/8" has bits set beyond its prefix; write the network "10.0.0.0/8", or the address "10.0.0.1"
        "10.1.0.0/8" has bits set beyond its prefix; write the network "10.0.0.0/8", or the address "10.1.0.0"
        "fd00::1/8" has bits set beyond its prefix; write the network "fd00::/8", or the address "fd00::1"
        "0.0.0.0/0" would open more than any private network, and the metadata services of clouds with it; list the networks that the plugin needs, such as "10.0.0.0/8"
        "::/0" would open more than any private network, and the metadata services of clouds with it; list the networks that the plugin needs, such as "10.0.0.0/8"
        "10.0.0.1/0" would open more than any private network, and the metadata services of clouds with it; list the networks that the plugin needs, such as "10.0.0.0/8"
        "128.0.0.0/1" would open more than any private network, and the metadata services of clouds with it; list the networks that the plugin needs, such as "10.0.0.0/8"
        "2000::/3" would open more than any private network, and the metadata services of clouds with it; list the networks that the plugin needs, such as "10.0.0.0/8"
        "::ffff:10.0.0.0/104" consists of IPv4 addresses, which are compared as such; write "10.0.0.0/8"
        "::ffff:10.0.0.1" consists of IPv4 addresses, which are compared as such; write "10.0.0.1"
        "[::1]" has brackets, which are only for addresses in origins; write "::1"
        "fe80::1%eth0" is not a network or an IP address, such as "10.0.0.0/8" or "127.0.0.1"
        "#);
    }
}
