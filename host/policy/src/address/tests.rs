//! Open and refused addresses, as a table with one line per case.

use super::*;
use crate::filter_addresses;

fn networks(entries: &[&str]) -> Vec<AddressRange> {
    entries
        .iter()
        .map(|entry| AddressRange::parse(entry).unwrap())
        .collect()
}

/// Cases: the address, the entries of `private_networks`, and the reason, which is empty for an
/// address that is open.
const CASES: &[(&str, &[&str], &str)] = &[
    // Global.
    ("8.8.8.8", &[], ""),
    ("1.1.1.1", &[], ""),
    ("93.184.215.14", &[], ""),
    ("2606:4700::6810:84e5", &[], ""),
    ("2a00:1450:4001::1", &[], ""),
    // Both ends of each range of IPv4, and the addresses next to them.
    ("0.0.0.0", &[], "unspecified"),
    ("0.0.0.1", &[], "this network (0.0.0.0/8)"),
    ("0.255.255.255", &[], "this network (0.0.0.0/8)"),
    ("1.0.0.0", &[], ""),
    ("9.255.255.255", &[], ""),
    ("10.0.0.0", &[], "private (RFC 1918)"),
    ("10.255.255.255", &[], "private (RFC 1918)"),
    ("11.0.0.0", &[], ""),
    ("100.63.255.255", &[], ""),
    (
        "100.64.0.0",
        &[],
        "shared behind a provider's NAT (100.64.0.0/10)",
    ),
    (
        "100.100.100.200",
        &[],
        "shared behind a provider's NAT (100.64.0.0/10)",
    ),
    (
        "100.127.255.255",
        &[],
        "shared behind a provider's NAT (100.64.0.0/10)",
    ),
    ("100.128.0.0", &[], ""),
    ("126.255.255.255", &[], ""),
    ("127.0.0.0", &[], "loopback"),
    ("127.0.0.1", &[], "loopback"),
    ("127.255.255.255", &[], "loopback"),
    ("128.0.0.0", &[], ""),
    (
        "168.63.129.16",
        &[],
        "a cloud's platform service (168.63.129.16)",
    ),
    ("168.63.129.17", &[], ""),
    ("169.253.255.255", &[], ""),
    (
        "169.254.0.0",
        &[],
        "link-local, with the metadata services of clouds",
    ),
    (
        "169.254.169.254",
        &[],
        "link-local, with the metadata services of clouds",
    ),
    (
        "169.254.255.255",
        &[],
        "link-local, with the metadata services of clouds",
    ),
    ("169.255.0.0", &[], ""),
    ("172.15.255.255", &[], ""),
    ("172.16.0.0", &[], "private (RFC 1918)"),
    ("172.31.255.255", &[], "private (RFC 1918)"),
    ("172.32.0.0", &[], ""),
    ("191.255.255.255", &[], ""),
    ("192.0.0.0", &[], "reserved for protocols (192.0.0.0/24)"),
    ("192.0.0.192", &[], "reserved for protocols (192.0.0.0/24)"),
    ("192.0.1.0", &[], ""),
    ("192.0.2.0", &[], "for documentation"),
    ("192.0.2.255", &[], "for documentation"),
    ("192.0.3.0", &[], ""),
    ("192.88.99.1", &[], "a relay of 6to4"),
    ("192.88.100.0", &[], ""),
    ("192.167.255.255", &[], ""),
    ("192.168.0.0", &[], "private (RFC 1918)"),
    ("192.168.255.255", &[], "private (RFC 1918)"),
    ("192.169.0.0", &[], ""),
    ("198.17.255.255", &[], ""),
    ("198.18.0.0", &[], "for benchmarks"),
    ("198.19.255.255", &[], "for benchmarks"),
    ("198.20.0.0", &[], ""),
    ("198.51.100.7", &[], "for documentation"),
    ("203.0.113.7", &[], "for documentation"),
    ("203.0.114.0", &[], ""),
    ("223.255.255.255", &[], ""),
    ("224.0.0.0", &[], "multicast"),
    ("239.255.255.255", &[], "multicast"),
    ("240.0.0.0", &[], "reserved (240.0.0.0/4)"),
    ("255.255.255.254", &[], "reserved (240.0.0.0/4)"),
    ("255.255.255.255", &[], "broadcast"),
    // IPv6.
    ("::", &[], "unspecified"),
    ("::1", &[], "loopback"),
    ("100::1", &[], "discarded (100::/64)"),
    (
        "100:0:0:1::1",
        &[],
        "outside of the global addresses (2000::/3)",
    ),
    (
        "1fff:ffff::",
        &[],
        "outside of the global addresses (2000::/3)",
    ),
    ("2000::1", &[], ""),
    ("2001:1::1", &[], "reserved for protocols (2001::/23)"),
    ("2001:2::1", &[], "reserved for protocols (2001::/23)"),
    ("2001:10::1", &[], "a hash identifier (ORCHID)"),
    ("2001:1f:ffff::", &[], "a hash identifier (ORCHID)"),
    ("2001:20::1", &[], "a hash identifier (ORCHIDv2)"),
    ("2001:1ff:ffff::", &[], "reserved for protocols (2001::/23)"),
    ("2001:200::", &[], ""),
    ("2001:db7:ffff::", &[], ""),
    ("2001:db8::1", &[], "for documentation"),
    ("2001:db9::", &[], ""),
    ("3ffe:ffff::", &[], ""),
    ("3fff::1", &[], "for documentation"),
    ("3fff:fff:ffff::", &[], "for documentation"),
    ("3fff:1000::", &[], ""),
    ("4000::", &[], "outside of the global addresses (2000::/3)"),
    ("5f00::1", &[], "a segment identifier (SRv6)"),
    (
        "fbff:ffff::",
        &[],
        "outside of the global addresses (2000::/3)",
    ),
    ("fc00::1", &[], "private (unique local)"),
    ("fd00:ec2::254", &[], "private (unique local)"),
    ("fd20:ce::254", &[], "private (unique local)"),
    ("fe00::1", &[], "outside of the global addresses (2000::/3)"),
    ("fe80::1", &[], "link-local"),
    ("febf:ffff::", &[], "link-local"),
    ("fec0::1", &[], "site-local"),
    ("feff:ffff::", &[], "site-local"),
    ("ff02::1", &[], "multicast"),
    ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", &[], "multicast"),
    // IPv4 in IPv6.
    ("::ffff:8.8.8.8", &[], ""),
    ("::ffff:127.0.0.1", &[], "loopback"),
    (
        "::ffff:169.254.169.254",
        &[],
        "link-local, with the metadata services of clouds",
    ),
    ("::ffff:0.0.0.0", &[], "unspecified"),
    ("::2", &[], "IPv4-compatible"),
    ("::8.8.8.8", &[], "IPv4-compatible"),
    ("::127.0.0.1", &[], "IPv4-compatible"),
    ("::ffff:0:8.8.8.8", &[], "IPv4-translated"),
    ("::ffff:0:10.0.0.1", &[], "IPv4-translated"),
    ("64:ff9b::8.8.8.8", &[], "translated to IPv4 (NAT64)"),
    (
        "64:ff9b::169.254.169.254",
        &[],
        "translated to IPv4 (NAT64)",
    ),
    ("64:ff9b:1::1", &[], "translated to IPv4 (local NAT64)"),
    (
        "64:ff9b:2::1",
        &[],
        "outside of the global addresses (2000::/3)",
    ),
    ("2002:808:808::1", &[], "tunnelled in IPv4 (6to4)"),
    ("2002:a9fe:a9fe::1", &[], "tunnelled in IPv4 (6to4)"),
    ("2001::1", &[], "tunnelled in IPv4 (Teredo)"),
    (
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        &[],
        "tunnelled in IPv4 (Teredo)",
    ),
    ("2606:4700::5efe:8.8.8.8", &[], ""),
    ("2606:4700::5efe:10.0.0.1", &[], "private (RFC 1918)"),
    ("2606:4700::200:5efe:10.0.0.1", &[], "private (RFC 1918)"),
    // Networks that the operator opens.
    ("10.1.2.3", &["10.0.0.0/8"], ""),
    ("10.1.2.3", &["10.1.2.3"], ""),
    ("10.1.2.4", &["10.1.2.3"], "private (RFC 1918)"),
    ("11.0.0.1", &["10.0.0.0/8"], ""),
    ("127.0.0.1", &["10.0.0.0/8", "127.0.0.1"], ""),
    (
        "169.254.169.254",
        &["10.0.0.0/8", "172.16.0.0/12"],
        "link-local, with the metadata services of clouds",
    ),
    ("169.254.169.254", &["169.254.169.254"], ""),
    ("::1", &["127.0.0.1"], "loopback"),
    ("::1", &["::1"], ""),
    ("::ffff:10.1.2.3", &["10.0.0.0/8"], ""),
    ("::ffff:10.1.2.3", &["::/64"], "private (RFC 1918)"),
    ("fd00::1", &["fd00::/8"], ""),
    ("fd00:ec2::254", &["fd12::/16"], "private (unique local)"),
    ("fe80::5efe:10.0.0.1", &["fe80::/10"], "private (RFC 1918)"),
    ("fe80::5efe:10.0.0.1", &["fe80::/10", "10.0.0.0/8"], ""),
    ("64:ff9b::8.8.8.8", &["64:ff9b::/96"], ""),
    ("64:ff9b::10.0.0.1", &["64:ff9b::/96"], "private (RFC 1918)"),
    (
        "64:ff9b::10.0.0.1",
        &["10.0.0.0/8"],
        "translated to IPv4 (NAT64)",
    ),
    ("64:ff9b::10.0.0.1", &["10.0.0.0/8", "64:ff9b::/96"], ""),
    (
        "64:ff9b::169.254.169.254",
        &["64:ff9b::/96"],
        "link-local, with the metadata services of clouds",
    ),
    ("64:ff9b:1::1", &["64:ff9b:1::/48"], ""),
    ("::10.0.0.1", &["::/96"], "private (RFC 1918)"),
    (
        "::ffff:0:10.0.0.1",
        &["::ffff:0:0:0/96"],
        "private (RFC 1918)",
    ),
    ("2002:808:808::1", &["2002::/16"], ""),
    ("2002:a00:1::1", &["2002::/16"], "private (RFC 1918)"),
    // The embedded server is 65.54.227.120, and the client 192.0.2.45.
    (
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        &["2001::/32"],
        "for documentation",
    ),
    (
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        &["2001::/32", "192.0.2.0/24"],
        "",
    ),
    (
        "2001:0:a00:1:8000:63bf:f7f7:f7f7",
        &["2001::/32"],
        "private (RFC 1918)",
    ),
    ("2001:0:808:808:8000:63bf:f7f7:f7f7", &["2001::/32"], ""),
];

#[test]
fn addresses() {
    let differ: Vec<String> = CASES
        .iter()
        .map(|(address, opened, expected)| {
            (
                address,
                opened,
                expected,
                refusal_reason(address.parse().unwrap(), &networks(opened)).unwrap_or_default(),
            )
        })
        .filter(|(.., expected, actual)| actual != *expected)
        .map(|(address, opened, expected, actual)| {
            format!("{address} {opened:?}: expected {expected:?}, not {actual:?}")
        })
        .collect();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

#[test]
fn the_allowed_addresses_of_a_name_keep_their_order() {
    let addresses = ["10.0.0.1", "8.8.8.8", "::1", "2606:4700::1", "127.0.0.1"]
        .map(|address| address.parse::<IpAddr>().unwrap());
    let chosen = |opened: &[&str]| {
        filter_addresses(&addresses, &networks(opened))
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(chosen(&[]), ["8.8.8.8", "2606:4700::1"]);
    assert_eq!(
        chosen(&["127.0.0.0/8", "10.0.0.1"]),
        ["10.0.0.1", "8.8.8.8", "2606:4700::1", "127.0.0.1"]
    );
}

#[test]
fn error_lists_the_reasons_for_refused_addresses() {
    let lists: [&[&str]; 5] = [
        &[],
        &["169.254.169.254"],
        &["10.0.0.1", "10.0.0.2", "::1", "10.0.0.1"],
        &["::ffff:127.0.0.1", "127.0.0.1"],
        &["64:ff9b::a00:1", "2606:4700::5efe:a00:1"],
    ];
    let messages: Vec<String> = lists
        .into_iter()
        .map(|list| {
            let addresses: Vec<IpAddr> = list
                .iter()
                .map(|address| address.parse().unwrap())
                .collect();
            let refused = filter_addresses(&addresses, &[]).unwrap_err();
            assert_eq!(refused.addresses().len(), list.len());
            let remedy = refused.remedy();
            if let Some(remedy) = &remedy {
                let table: toml::Table = remedy.parse().unwrap();
                let opened: Vec<AddressRange> =
                    table["private_networks"].clone().try_into().unwrap();
                assert_eq!(
                    filter_addresses(&addresses, &opened),
                    Ok(addresses),
                    "{remedy}"
                );
            }
            format!(
                "{refused}\n    {}",
                remedy.unwrap_or_else(|| "(nothing)".to_owned())
            )
        })
        .collect();
    insta::assert_snapshot!(messages.join("\n"), @r#"
        the name has no addresses
            (nothing)
        the only address was refused: it is link-local, with the metadata services of clouds
            private_networks = ["169.254.169.254"]
        the 4 addresses were refused: 3 are private (RFC 1918), 1 is loopback
            private_networks = ["10.0.0.1", "10.0.0.2", "::1"]
        the 2 addresses were refused: 2 are loopback
            private_networks = ["127.0.0.1"]
        the 2 addresses were refused: 1 is translated to IPv4 (NAT64), 1 is private (RFC 1918)
            private_networks = ["64:ff9b::a00:1", "10.0.0.1", "2606:4700::5efe:a00:1"]
        "#);
}
