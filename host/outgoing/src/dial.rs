//! Connecting to one of several addresses.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::net::TcpStream;
use tokio::time::sleep;
use toolbay_policy::{AddressRange, filter_addresses};

use crate::error::SendError;
use crate::socket_budget::SocketBudget;

/// Maximum number of addresses that are tried. A name can have any number of them.
const MAX_DIAL_ADDRESSES: usize = 8;
/// Delay before the next attempt starts in parallel (RFC 8305, section 8).
const CONNECTION_ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Connects to the first address that accepts a connection. Addresses are tried in their order,
/// with IPv4 and IPv6 alternating, and each has a head start before the next one (RFC 8305). The
/// caller has the reservation for one socket. Parallel attempts need further reservations; without
/// them, attempts are sequential.
pub(crate) async fn dial(
    addresses: &[IpAddr],
    port: u16,
    sockets: &SocketBudget,
) -> Result<TcpStream, SendError> {
    let mut waiting = interleave_families(addresses);
    let mut attempts = FuturesUnordered::new();
    let mut failure = SendError::NoAddress;
    loop {
        // The first attempt uses the caller's reservation.
        let room = if attempts.is_empty() {
            None
        } else {
            sockets.try_reserve()
        };
        if (attempts.is_empty() || room.is_some())
            && let Some(address) = waiting.pop_front()
        {
            let address = SocketAddr::new(address, port);
            attempts.push(async move {
                let connected = TcpStream::connect(address)
                    .await
                    .map_err(|error| connect_error(address, &error));
                (connected, room)
            });
        }
        tokio::select! {
            attempt = attempts.next() => match attempt {
                Some((Ok(stream), _)) => {
                    // Requests are written in one piece, so Nagle's algorithm would only delay
                    // them.
                    let _slower_without = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Some((Err(error), _)) => failure = error,
                None => return Err(failure),
            },
            () = sleep(CONNECTION_ATTEMPT_DELAY), if !waiting.is_empty() => {}
        }
    }
}

/// Returns the first addresses, with IPv4 and IPv6 alternating, starting with the family of the
/// first address.
fn interleave_families(addresses: &[IpAddr]) -> VecDeque<IpAddr> {
    let first_is_v6 = addresses.first().is_some_and(IpAddr::is_ipv6);
    let (mut these, mut others): (VecDeque<IpAddr>, VecDeque<IpAddr>) = addresses
        .iter()
        .partition(|address| address.is_ipv6() == first_is_v6);
    let mut turns = VecDeque::new();
    while turns.len() < MAX_DIAL_ADDRESSES
        && let Some(next) = these.pop_front().or_else(|| others.pop_front())
    {
        turns.push_back(next);
        std::mem::swap(&mut these, &mut others);
    }
    turns
}

/// Checks that connections to the peer of a socket are allowed. The addresses were filtered before;
/// this checks the address that is actually used.
pub(crate) fn check_peer(
    stream: &TcpStream,
    private_networks: &[AddressRange],
) -> Result<(), SendError> {
    let peer = stream
        .peer_addr()
        .map_err(|error| SendError::Reset(error.to_string()))?;
    filter_addresses(&[peer.ip()], private_networks)
        .map(drop)
        .map_err(SendError::AddressesRefused)
}

fn connect_error(address: SocketAddr, error: &io::Error) -> SendError {
    let details = format!("{address}: {error}");
    match error.kind() {
        io::ErrorKind::ConnectionRefused => SendError::ConnectionRefused(details),
        io::ErrorKind::TimedOut => SendError::ConnectTimeout,
        _ => SendError::Unreachable(details),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use tokio::net::TcpListener;

    use super::{MAX_DIAL_ADDRESSES, check_peer, dial, interleave_families};
    use crate::error::SendError;
    use crate::socket_budget::SocketBudget;

    fn addresses(text: &[&str]) -> Vec<IpAddr> {
        text.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn kinds_take_turns() {
        let turns = |text: &[&str]| Vec::from(interleave_families(&addresses(text)));
        assert_eq!(
            turns(&["::1", "::2", "::3", "1.1.1.1"]),
            addresses(&["::1", "1.1.1.1", "::2", "::3"])
        );
        assert_eq!(
            turns(&["1.1.1.1", "::1", "1.1.1.2"]),
            addresses(&["1.1.1.1", "::1", "1.1.1.2"])
        );
        assert_eq!(turns(&[]), addresses(&[]));
        assert_eq!(
            turns(&["1.1.1.1"; 3 * MAX_DIAL_ADDRESSES]).len(),
            MAX_DIAL_ADDRESSES
        );
    }

    #[tokio::test]
    async fn the_next_address_is_tried_if_one_refuses() {
        let listener = TcpListener::bind((Ipv4Addr::new(127, 0, 0, 2), 0))
            .await
            .unwrap();
        let port = listener.local_addr().unwrap().port();
        let sockets = SocketBudget::new(1);
        let dial = async |text: &[&str]| dial(&addresses(text), port, &sockets).await;
        let stream = dial(&["127.0.0.3", "127.0.0.2"]).await.unwrap();
        assert_eq!(
            stream.peer_addr().unwrap().ip(),
            IpAddr::from([127, 0, 0, 2])
        );
        assert!(matches!(
            check_peer(&stream, &[]),
            Err(SendError::AddressesRefused(_))
        ));
        check_peer(&stream, &["127.0.0.2".parse::<IpAddr>().unwrap().into()]).unwrap();
        let refused = dial(&["127.0.0.3"]).await.unwrap_err();
        assert!(
            matches!(refused, SendError::ConnectionRefused(_)),
            "{refused:?}"
        );
        assert_eq!(dial(&[]).await.unwrap_err(), SendError::NoAddress);
    }
}
