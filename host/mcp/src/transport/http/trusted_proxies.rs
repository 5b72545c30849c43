//! Reverse proxies whose `X-Forwarded-For` header states the address of the client.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

use super::peer::PeerSource;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Maximum number of addresses that are read. No chain of proxies is longer.
const MAX_HOPS: usize = 32;

/// A proxy, or a network of proxies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustedProxy {
    /// Connections from an address in this network.
    Network(IpNet),
    /// Connections through the Unix socket, which the file mode of the socket restricts.
    Unix,
}

impl TrustedProxy {
    /// The name of [`Self::Unix`] in a configuration.
    pub const UNIX: &str = "unix";
}

impl FromStr for TrustedProxy {
    type Err = String;

    /// Reads an address, a network such as `10.0.0.0/8`, or `unix`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == Self::UNIX {
            return Ok(Self::Unix);
        }
        let network = text
            .parse::<IpAddr>()
            .map(IpNet::from)
            .or_else(|_| text.parse::<IpNet>())
            .map_err(|_| {
                format!("{text:?} is not an address, a network such as 10.0.0.0/8, or \"unix\"")
            })?;
        if network.prefix_len() == 0 {
            return Err(format!(
                "{text:?} contains every address, so that every client could state any address: list the addresses of your proxies"
            ));
        }
        Ok(Self::Network(network.trunc()))
    }
}

impl fmt::Display for TrustedProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(network) => network.fmt(f),
            Self::Unix => f.write_str(Self::UNIX),
        }
    }
}

/// Returns the source of a request that arrived from `peer`: the rightmost address of
/// `X-Forwarded-For` that is not a trusted proxy. Each proxy appends the address that it sees, so
/// what is left of that address was written by the client.
///
/// Returns the proxy itself if the header is absent or what a trusted proxy should have written is
/// not an address.
pub(super) fn client_source(
    proxies: &[TrustedProxy],
    peer: PeerSource,
    headers: &HeaderMap,
) -> PeerSource {
    if !is_trusted(proxies, peer) {
        return peer;
    }
    let mut source = peer;
    let lines = headers.get_all(FORWARDED_FOR).iter().rev();
    let hops = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
    for hop in hops.take(MAX_HOPS) {
        let Some(address) = parse_address(hop) else {
            return source;
        };
        source = PeerSource::Internet(address);
        if !is_trusted(proxies, source) {
            return source;
        }
    }
    source
}

fn is_trusted(proxies: &[TrustedProxy], peer: PeerSource) -> bool {
    proxies.iter().any(|proxy| match (proxy, peer) {
        (TrustedProxy::Network(network), PeerSource::Internet(address)) => {
            network.contains(&address.to_canonical())
        }
        (TrustedProxy::Unix, PeerSource::User(_)) => true,
        _ => false,
    })
}

/// Parses an address, with or without a port.
fn parse_address(hop: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(hop).ok()?.trim();
    let address = text.parse::<IpAddr>().ok();
    let address = address.or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()));
    Some(address?.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(proxies: &[&str], peer: &str, lines: &[&str]) -> String {
        let proxies: Vec<TrustedProxy> =
            proxies.iter().map(|proxy| proxy.parse().unwrap()).collect();
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, line.parse().unwrap());
        }
        let peer = match peer.strip_prefix("uid:") {
            Some(user) => PeerSource::User(user.parse().unwrap()),
            None => PeerSource::Internet(peer.parse().unwrap()),
        };
        client_source(&proxies, peer, &headers).to_string()
    }

    #[test]
    fn the_address_that_the_nearest_trusted_proxy_saw_is_the_source() {
        let local = &["127.0.0.0/8"][..];
        for (proxies, peer, lines, expected) in [
            // No proxy is trusted, or the peer is not one.
            (&[][..], "127.0.0.1", &["192.0.2.7"][..], "127.0.0.1"),
            (local, "192.0.2.1", &["192.0.2.7"], "192.0.2.1"),
            (local, "uid:7", &["192.0.2.7"], "uid:7"),
            (local, "127.0.0.1", &["192.0.2.7"], "192.0.2.7"),
            (&["unix"], "uid:7", &["192.0.2.7"], "192.0.2.7"),
            (&["unix"], "127.0.0.1", &["192.0.2.7"], "127.0.0.1"),
            // A client can write anything to the left of its own address.
            (local, "127.0.0.1", &["127.0.0.1, 192.0.2.7"], "192.0.2.7"),
            (
                local,
                "127.0.0.1",
                &["8.8.8.8", "127.0.0.1, 192.0.2.7"],
                "192.0.2.7",
            ),
            (local, "127.0.0.1", &["x, 192.0.2.7"], "192.0.2.7"),
            // A chain of proxies.
            (
                &["127.0.0.1", "10.0.0.0/8"],
                "127.0.0.1",
                &["192.0.2.7, 10.1.2.3"],
                "192.0.2.7",
            ),
            (
                &["127.0.0.1", "10.0.0.0/8"],
                "127.0.0.1",
                &["192.0.2.7", "10.1.2.3"],
                "192.0.2.7",
            ),
            // What a proxy should have written is missing or not an address.
            (local, "127.0.0.1", &[], "127.0.0.1"),
            (local, "127.0.0.1", &[""], "127.0.0.1"),
            (local, "127.0.0.1", &["192.0.2.7, unknown"], "127.0.0.1"),
            (local, "127.0.0.1", &["192.0.2.7,"], "127.0.0.1"),
            (
                &["127.0.0.1", "10.0.0.0/8"],
                "127.0.0.1",
                &["192.0.2.7, x, 10.1.2.3"],
                "10.1.2.3",
            ),
            // Only proxies.
            (local, "127.0.0.1", &["127.0.0.5, 127.0.0.2"], "127.0.0.5"),
            // Ports, IPv6, and IPv4 in IPv6.
            (local, "127.0.0.1", &["192.0.2.7:4711"], "192.0.2.7"),
            (local, "127.0.0.1", &["[2001:db8::7]:4711"], "2001:db8::7"),
            (local, "127.0.0.1", &["2001:db8::7"], "2001:db8::7"),
            (
                local,
                "::ffff:127.0.0.1",
                &["::ffff:192.0.2.7"],
                "192.0.2.7",
            ),
            (&["::1"], "::1", &["192.0.2.7"], "192.0.2.7"),
        ] {
            assert_eq!(source(proxies, peer, lines), expected, "{peer} {lines:?}");
        }
        // The number of addresses that are read is bounded.
        let long = "127.0.0.2,".repeat(1000) + "127.0.0.3";
        assert_eq!(source(local, "127.0.0.1", &[&long]), "127.0.0.2");
    }

    #[test]
    fn a_list_that_would_trust_every_client_is_refused() {
        for (text, why) in [
            ("0.0.0.0/0", "contains every address"),
            ("::/0", "contains every address"),
            ("proxy.example", "is not an address"),
            ("10.0.0.0/33", "is not an address"),
            ("", "is not an address"),
            ("Unix", "is not an address"),
        ] {
            let error = text.parse::<TrustedProxy>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        for (text, shown) in [
            ("10.1.2.3/8", "10.0.0.0/8"),
            ("10.1.2.3", "10.1.2.3/32"),
            ("::1", "::1/128"),
            ("unix", "unix"),
        ] {
            assert_eq!(text.parse::<TrustedProxy>().unwrap().to_string(), shown);
        }
    }
}
