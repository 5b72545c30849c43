//! Properties of every grant and every request.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::Ipv6Net;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;

use crate::{
    AddressRange, HttpMethod, HttpRequest, HttpRule, NormalizedHost, OriginPattern, PathPrefix,
    TcpRequest, TcpRule, UrlScheme, filter_addresses, refusal_reason,
};

/// Hosts as an attacker would write them: labels, dots and decorations that are significant to some
/// parser.
fn host() -> impl Strategy<Value = String> {
    let label = select(vec![
        "api",
        "API",
        "a",
        "evil",
        "example",
        "Example",
        "com",
        "org",
        "bücher",
        "xn--bcher-kva",
        "BÜCHER",
        "localhost",
        "127",
        "0x7f",
        "0177",
        "1",
        "0",
        "10",
        "256",
        "ａ",
        "a_b",
        "a\u{ad}",
        "*",
        "",
        "xn--a",
        "a b",
        "\u{200b}",
        "％41",
    ]);
    let dot = select(vec![
        ".", ".", ".", ".", ".", ".", "。", "．", "｡", "..", "%2e",
    ]);
    let ordinary = select(vec![
        "api.example.com",
        "API.example.com.",
        "a.example.org",
        "a.b.Example.org",
        "example.org",
        "bücher.example",
        "10.0.0.7",
        "0xa.7",
        "127.1",
        "[::1]",
        "[::ffff:10.0.0.7]",
        "[2001:db8::7]",
        "[fe80::1%25eth0]",
        "localhost",
    ])
    .prop_map(str::to_owned);
    let composed = prop::collection::vec((label, dot), 1..5).prop_map(|parts| {
        let mut host: String = parts
            .into_iter()
            .flat_map(|(label, dot)| [label, dot])
            .collect();
        host.pop();
        host
    });
    let delimiters = "[\\[\\]:0-9a-f.%@\\\\/?#]{0,24}";
    prop_oneof![8 => ordinary, 4 => composed, 1 => "[ -~]{0,20}", 1 => any::<String>(), 1 => delimiters]
}

fn authority() -> impl Strategy<Value = String> {
    let port = select(vec!["", "", "", ":443", ":0443", ":8443", ":80", ":"]);
    let before = select(vec![
        "",
        "",
        "user@",
        "api.example.com@",
        " ",
        "//",
        "api.example.com\\@",
    ]);
    let after = select(vec![
        "",
        "",
        ":0",
        ":65536",
        ":80:443",
        "@evil.com",
        "\\@evil.com",
        "#@evil.com",
        "?api.example.com",
        "/",
        "\t",
        "%00",
        ".",
        "\n",
    ]);
    let ordinary = (host(), port).prop_map(|(host, port)| format!("{host}{port}"));
    let decorated =
        (before, host(), after).prop_map(|(before, host, after)| format!("{before}{host}{after}"));
    prop_oneof![3 => ordinary, 1 => decorated]
}

fn path() -> impl Strategy<Value = String> {
    let segment = select(vec![
        "", "v1", "v10", "V1", ".", "..", "%2e%2e", "..;", "%2F", "x", "a%20b", "%c3%bc", "%",
        "%25", "..%5c", "\\", "ü", "*", "'",
    ]);
    let after = select(vec!["", "", "", "?", "?a=/../b", "#x", " "]);
    let segments = prop::collection::vec(segment, 0..5)
        .prop_map(|segments| format!("/{}", segments.join("/")));
    let ordinary = select(vec![
        "",
        "/",
        "/v1",
        "/v1/",
        "/v1/x",
        "/v1/../v2/x",
        "/v10",
        "/%c3%bc",
    ])
    .prop_map(str::to_owned);
    let decorated = (segments, after).prop_map(|(path, after)| format!("{path}{after}"));
    prop_oneof![4 => ordinary, 4 => decorated, 1 => any::<String>()]
}

fn scheme() -> impl Strategy<Value = String> {
    let known =
        select(vec!["https", "https", "https", "HTTPS", "http", "ftp"]).prop_map(str::to_owned);
    prop_oneof![8 => known, 1 => any::<String>()]
}

fn method() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => select(vec!["GET", "GET", "GET", "GET", "GET", "POST", "get", "PURGE", "CONNECT", "trace", ""]).prop_map(str::to_owned),
        1 => any::<String>()
    ]
}

/// The parts of an entry of `permissions.http`, which need no parser.
#[derive(Clone, Debug)]
struct Entry {
    scheme: &'static str,
    /// The host in canonical form, optionally with `*.` in front.
    host: &'static str,
    port: u16,
    method: Option<&'static str>,
    path: Option<&'static str>,
}

impl Entry {
    fn rule(&self) -> HttpRule {
        let mut table = toml::Table::new();
        table.insert(
            "origin".to_owned(),
            format!("{}://{}:{}", self.scheme, self.host, self.port).into(),
        );
        if let Some(method) = self.method {
            table.insert("methods".to_owned(), vec![method].into());
        }
        if let Some(path) = self.path {
            table.insert("paths".to_owned(), vec![path].into());
        }
        table.try_into().unwrap()
    }

    /// Returns whether the entry allows a URL. Deliberately naive.
    fn allows(&self, url: &url::Url, method: &str) -> bool {
        let host = url.host_str().unwrap_or_default();
        let host = host.strip_suffix('.').unwrap_or(host);
        let host_allowed = match self.host.strip_prefix('*') {
            Some(parent) => {
                host.ends_with(parent) && host.len() > parent.len() && url.domain().is_some()
            }
            None => host == self.host,
        };
        url.scheme() == self.scheme
            && host_allowed
            && url.port_or_known_default() == Some(self.port)
            && self.method.is_none_or(|allowed| allowed == method)
            && self.path.is_none_or(|prefix| {
                let prefix: Vec<&str> = prefix.split('/').collect();
                let path = url.path().replace("%c3%bc", "%C3%BC");
                let path: Vec<&str> = path.split('/').collect();
                match prefix.as_slice() {
                    [folder @ .., ""] => path.starts_with(folder) && path.len() > folder.len(),
                    exact => path.starts_with(exact),
                }
            })
    }
}

fn entry() -> impl Strategy<Value = Entry> {
    let host = select(vec![
        "api.example.com",
        "*.example.org",
        "*.example.com",
        "example.org",
        "xn--bcher-kva.example",
        "10.0.0.7",
        "127.0.0.1",
        "[::1]",
        "[2001:db8::7]",
        "localhost",
        "a_b.example.com",
    ]);
    let method = select(vec![None, None, Some("GET"), Some("PURGE")]);
    let path = select(vec![
        None,
        None,
        Some("/"),
        Some("/v1"),
        Some("/v1/"),
        Some("/v1/x"),
        Some("/%C3%BC"),
    ]);
    (
        select(vec!["https", "https", "http"]),
        host,
        select(vec![443, 443, 443, 80, 8443]),
        method,
        path,
    )
        .prop_map(|(scheme, host, port, method, path)| Entry {
            scheme,
            host,
            port,
            method,
            path,
        })
}

/// An address that is likely to be special, or to embed an IPv4 address.
fn address() -> impl Strategy<Value = IpAddr> {
    let v6 = (
        select(PREFIXES.to_vec()),
        any::<u128>(),
        any::<u32>(),
        any::<bool>(),
    )
        .prop_map(|(prefix, rest, v4, embed)| {
            let prefix: Ipv6Net = prefix.parse().unwrap();
            let rest = if embed {
                u128::from(v4)
            } else {
                rest & prefix.hostmask().to_bits()
            };
            Ipv6Addr::from_bits(prefix.network().to_bits() | rest)
        });
    let any_v6 = any::<Ipv6Addr>().prop_map(IpAddr::V6);
    prop_oneof![4 => v4().prop_map(IpAddr::V4), 4 => v6.prop_map(IpAddr::V6), 1 => any_v6]
}

fn v4() -> impl Strategy<Value = Ipv4Addr> {
    let near = select(vec![
        "10.0.0.0",
        "127.0.0.1",
        "169.254.169.254",
        "172.16.0.0",
        "192.168.0.0",
        "224.0.0.0",
        "0.0.0.0",
    ]);
    let near = (near, 0..300_u32).prop_map(|(base, offset)| {
        Ipv4Addr::from_bits(
            base.parse::<Ipv4Addr>()
                .unwrap()
                .to_bits()
                .wrapping_add(offset)
                .wrapping_sub(20),
        )
    });
    prop_oneof![near, any::<Ipv4Addr>()]
}

const PREFIXES: [&str; 12] = [
    "::/96",
    "::ffff:0:0/96",
    "::ffff:0:0:0/96",
    "64:ff9b::/96",
    "64:ff9b:1::/48",
    "2001::/32",
    "2002::/16",
    "fd00::/8",
    "fe80::/10",
    "2606:4700::/32",
    "2001:db8::/32",
    "::/127",
];

/// Returns every IPv6 address that embeds this IPv4 address, with any other bits.
fn embeddings(v4: Ipv4Addr, rest: u64) -> Vec<Ipv6Addr> {
    let bits = u128::from(v4.to_bits());
    let (rest, low) = (u128::from(rest), u128::from(rest & 0xffff_ffff));
    vec![
        v4.to_ipv6_mapped(),
        Ipv6Addr::from_bits(bits),
        Ipv6Addr::from_bits(0xffff << 48 | bits),
        Ipv6Addr::from_bits(0x0064_ff9b << 96 | bits),
        Ipv6Addr::from_bits(0x2002 << 112 | bits << 80 | rest),
        // Teredo: as the server, and as the client.
        Ipv6Addr::from_bits(0x2001_0000 << 96 | bits << 64 | rest),
        Ipv6Addr::from_bits(0x2001_0000 << 96 | low << 64 | (!bits & 0xffff_ffff)),
        // ISATAP below a global prefix.
        Ipv6Addr::from_bits(0x2606_4700 << 96 | low << 64 | 0x5efe << 32 | bits),
        Ipv6Addr::from_bits(0x2606_4700 << 96 | low << 64 | 0x0200_5efe << 32 | bits),
    ]
}

fn networks(entries: &[&str]) -> Vec<AddressRange> {
    entries
        .iter()
        .map(|entry| AddressRange::parse(entry).unwrap())
        .collect()
}

#[test]
fn allowed_requests_match_a_rule_according_to_a_url_parser() {
    let allowed = Cell::new(0);
    let denied = Cell::new(0);
    let anywhere = (scheme(), authority()).prop_map(Err);
    // An origin from an entry, in another spelling.
    let spelling = select(vec![
        ("", ""),
        ("", ""),
        ("a.", ""),
        ("a.B.", ""),
        ("", "."),
        ("user@", ""),
        ("ａ.", ""),
        ("", ".evil.com"),
        ("evil-", ""),
    ]);
    let listed = (any::<prop::sample::Index>(), spelling).prop_map(Ok);
    let request = (prop_oneof![1 => anywhere, 3 => listed], method(), path());
    let config = ProptestConfig {
        cases: 6_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    TestRunner::new(config)
        .run(
            &(prop::collection::vec(entry(), 1..8), request),
            |(entries, (place, method, path))| {
                let (scheme, authority) = match place {
                    Err(anywhere) => anywhere,
                    Ok((index, (before, after))) => {
                        let Entry {
                            scheme, host, port, ..
                        } = index.get(&entries);
                        (
                            (*scheme).to_owned(),
                            format!("{before}{}{after}:{port}", host.trim_start_matches("*.")),
                        )
                    }
                };
                let rules: Vec<HttpRule> = entries.iter().map(Entry::rule).collect();
                let request = HttpRequest {
                    scheme: &scheme,
                    authority: &authority,
                    method: &method,
                    path_with_query: &path,
                };
                match request.check(&rules) {
                    Ok(ok) => {
                        allowed.set(allowed.get() + 1);
                        let url =
                            url::Url::parse(&format!("{scheme}://{authority}{path}")).unwrap();
                        prop_assert!(
                            entries[ok.rule_index].allows(&url, &method),
                            "{url} by {:?}",
                            entries[ok.rule_index]
                        );
                        prop_assert!(url.username().is_empty() && url.password().is_none());
                        let formatted = ok.origin.to_string();
                        let (_, authority) = formatted.split_once("://").unwrap();
                        let same = HttpRequest {
                            scheme: ok.origin.scheme.as_str(),
                            authority,
                            ..request
                        }
                        .check(&rules);
                        prop_assert_eq!(same, Ok(ok));
                    }
                    Err(why) => {
                        denied.set(denied.get() + 1);
                        prop_assert!(why.to_string().ends_with('.'));
                        if let Some(remedy) = why.remedy() {
                            #[derive(serde::Deserialize)]
                            #[serde(deny_unknown_fields)]
                            struct Permissions {
                                http: Vec<HttpRule>,
                                #[serde(default)]
                                private_networks: Vec<AddressRange>,
                            }
                            let permissions: Permissions = toml::from_str(&remedy).unwrap();
                            let ok = request.check(&permissions.http).unwrap();
                            if let NormalizedHost::Ip(address) = ok.origin.host {
                                prop_assert_eq!(
                                    refusal_reason(address, &permissions.private_networks),
                                    None
                                );
                            }
                        }
                    }
                }
                Ok(())
            },
        )
        .unwrap();
    // Without enough cases of both kinds, this would test little.
    assert!(
        allowed.get() > 100 && denied.get() > 100,
        "{} allowed, {} denied",
        allowed.get(),
        denied.get()
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_host_is_normalized_once(text in host()) {
        if let Ok(host) = NormalizedHost::parse(&text) {
            prop_assert_eq!(NormalizedHost::parse(&host.to_string()), Ok(host.clone()));
            let connection = TcpRequest { host: &text, port: 443 }.check(&[]).unwrap_err();
            let rule: toml::Table = connection.remedy().unwrap().parse().unwrap();
            let rules: Vec<TcpRule> = rule["tcp"].clone().try_into().unwrap();
            prop_assert_eq!(TcpRequest { host: &text, port: 443 }.check(&rules).unwrap().host, host);
        }
    }

    #[test]
    fn formatted_entries_parse_again(host in authority(), path in path(), method in method()) {
        for text in [format!("https://{host}"), format!("http://*.{host}"), host.clone()] {
            if let Ok(origin) = OriginPattern::parse(&text) {
                prop_assert_eq!(OriginPattern::parse(&origin.to_string()), Ok(origin.clone()));
                let mut table = toml::Table::new();
                table.insert("origin".to_owned(), text.clone().into());
                if HttpMethod::parse(&method).is_ok() {
                    table.insert("methods".to_owned(), vec![method.clone()].into());
                }
                if PathPrefix::parse(&path).is_ok() {
                    table.insert("paths".to_owned(), vec![path.clone()].into());
                }
                let rule: HttpRule = table.try_into().unwrap();
                let json = serde_json::to_string(&rule).unwrap();
                prop_assert_eq!(&serde_json::from_str::<HttpRule>(&json).unwrap(), &rule);
                let line: toml::Table = format!("http = [{rule}]").parse().unwrap();
                prop_assert_eq!(line["http"].clone().try_into::<Vec<HttpRule>>().unwrap(), [rule]);
            }
            for text in [text.clone(), format!("{text}:5432")] {
                if let Ok(rule) = TcpRule::parse(&text) {
                    let json = serde_json::to_string(&rule).unwrap();
                    prop_assert_eq!(serde_json::from_str::<TcpRule>(&json).unwrap(), rule);
                }
            }
        }
    }

    #[test]
    fn arbitrary_text_is_parsed_or_rejected(text in any::<String>(), other in any::<String>(), port in any::<u16>()) {
        let rules = [HttpRule::new(OriginPattern::parse("https://*.example.org").unwrap())];
        for path_with_query in [text.as_str(), other.as_str(), "/"] {
            let request = HttpRequest { scheme: "https", authority: &text, method: &other, path_with_query };
            prop_assert!(request.check(&rules).is_err());
            let request = HttpRequest { scheme: &other, authority: "a.example.org", method: "GET", path_with_query };
            prop_assert_eq!(request.check(&rules).is_ok(), UrlScheme::parse(&other) == Some(UrlScheme::Https));
        }
        let connection = TcpRequest { host: &text, port }.check(&[]);
        prop_assert!(connection.is_err());
        let _ = (OriginPattern::parse(&text), TcpRule::parse(&text), AddressRange::parse(&text));
        let _ = (HttpMethod::parse(&text), PathPrefix::parse(&text), PathPrefix::parse(&format!("/{text}")));
        let _ = serde_json::from_str::<HttpRule>(&text);
    }

    #[test]
    fn embeddings_of_refused_addresses_are_refused(v4 in v4(), rest in any::<u64>()) {
        let opened = networks(&[
            "::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16", "fc00::/7", "fe80::/10",
            "::1",
        ]);
        let special = v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_documentation()
            || v4.is_broadcast() || v4.is_multicast() || v4.is_unspecified() || v4.octets()[0] >= 240;
        if special {
            prop_assert!(refusal_reason(v4.into(), &[]).is_some());
        }
        if refusal_reason(v4.into(), &[]).is_some() {
            for v6 in embeddings(v4, rest) {
                // As IPv4-compatible addresses, these two equal the unspecified and the loopback
                // address of IPv6, which are opened as such.
                if !v6.is_loopback() && !v6.is_unspecified() {
                    prop_assert!(refusal_reason(v6.into(), &opened).is_some(), "{v4} in {v6}");
                }
                prop_assert!(refusal_reason(v6.into(), &[]).is_some(), "{v4} in {v6}");
            }
        }
    }

    #[test]
    fn filtered_addresses_are_those_without_a_refusal_reason(
        addresses in prop::collection::vec(address(), 0..6),
        opened in prop::collection::vec(address(), 0..3),
    ) {
        let opened: Vec<AddressRange> = opened.into_iter().map(AddressRange::from).collect();
        for address in &opened {
            prop_assert_eq!(AddressRange::parse(&address.to_string()), Ok(*address));
        }
        match filter_addresses(&addresses, &opened) {
            Ok(chosen) => {
                prop_assert!(!chosen.is_empty() && chosen.iter().all(|address| refusal_reason(*address, &opened).is_none()));
                let mut rest = addresses.iter();
                prop_assert!(chosen.iter().all(|address| rest.any(|other| other == address)), "not in order");
            }
            Err(refused) => {
                prop_assert_eq!(refused.addresses().len(), addresses.len());
                prop_assert!(refused.addresses().iter().all(|(address, why)| refusal_reason(*address, &opened) == Some(why)));
                prop_assert!(!refused.to_string().is_empty());
                if let Some(remedy) = refused.remedy() {
                    let line: toml::Table = remedy.parse().unwrap();
                    let opened: Vec<AddressRange> = line["private_networks"].clone().try_into().unwrap();
                    prop_assert_eq!(filter_addresses(&addresses, &opened), Ok(addresses));
                } else {
                    prop_assert!(addresses.is_empty());
                }
            }
        }
    }
}
