//! Lookup of the account that opened a local connection, from Linux's `/proc/net`.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::{IpAddr, SocketAddr};

/// The tables of IPv4 connections, and of IPv6 sockets, which can also carry IPv4 connections.
const CONNECTION_TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// Returns the user at the other end of a local connection from `peer` to `own`; `None` if the
/// system does not list it. Blocks.
pub(crate) fn peer_user(peer: SocketAddr, own: SocketAddr) -> Option<u32> {
    CONNECTION_TABLES.iter().find_map(|table| {
        let lines = BufReader::new(File::open(table).ok()?).lines();
        // Skip the header line.
        lines.skip(1).map_while(Result::ok).find_map(|line| match_line(&line, peer, own))
    })
}

/// Returns the user of a table line if it describes this connection.
fn match_line(line: &str, peer: SocketAddr, own: SocketAddr) -> Option<u32> {
    let mut words = line.split_ascii_whitespace();
    let (from, to) = (words.nth(1)?, words.next()?);
    if parse_address(from)? != canonical(peer) || parse_address(to)? != canonical(own) {
        return None;
    }
    // Skip the state, queues, timer and retransmissions.
    words.nth(4)?.parse().ok()
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Parses an address of a table: 32-bit words in native byte order, and the port.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| Some(u32::from_str_radix(host.get(at * 8..at * 8 + 8)?, 16).ok()?.to_ne_bytes());
    let host: IpAddr = match host.len() {
        8 => word(0)?.into(),
        32 => {
            let mut bytes = [0; 16];
            for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(at)?);
            }
            bytes.into()
        }
        _ => return None,
    };
    Some(SocketAddr::new(host.to_canonical(), port))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_user_of_a_connection_is_known() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap();
        let stream = TcpStream::connect(own).unwrap();
        let peer = stream.local_addr().unwrap();
        assert_eq!(peer_user(peer, own), Some(rustix::process::geteuid().as_raw()));
        let none = SocketAddr::new(peer.ip(), if peer.port() == 1 { 2 } else { 1 });
        assert_eq!(peer_user(none, own), None);
    }

    #[test]
    fn lines_of_other_connections_and_malformed_ones_name_nobody() {
        let [peer, own] = ["127.0.0.1:4660", "127.0.0.1:80"].map(|text| text.parse().unwrap());
        let local = hex(u32::from_ne_bytes([127, 0, 0, 1]));
        let mapped = format!("{}{}{}{local}", hex(0), hex(0), hex(u32::from_ne_bytes([0, 0, 255, 255])));
        for host in [&local, &mapped] {
            let line =
                format!("  1: {host}:1234 {host}:0050 01 00000000:00000000 00:00000000 00000000  1000        0 9");
            assert_eq!(match_line(&line, peer, own), Some(1_000), "{line}");
            assert_eq!(match_line(&line, own, peer), None);
        }
        for line in ["", "1:", "1: x y", "1: 0100007F:12345 0100007F:0050 01", "1: 0100007F 0100007F:0050"] {
            assert_eq!(match_line(line, peer, own), None, "{line}");
        }
    }

    fn hex(word: u32) -> String {
        format!("{word:08X}")
    }
}
