//! The places of connections, and the peer against which each connection counts.
//!
//! A connection counts against the network that it comes from. For connections within this machine,
//! that is not enough: all accounts of the machine have the same address, so one account could take
//! the places of all of them. Once an address of this machine has used part of its share, further
//! connections from it count against the account that opened them. An account gets the rest of the
//! share, so a reverse proxy, whose account opens all connections, has the whole share.

use std::net::SocketAddr;
use std::sync::Arc;

use toolbay_background::{QuotaExhausted, QuotaPortion, SharedQuota};
use toolbay_socket::{can_find_users, connection_user};

use super::address::ListenAddress;

/// Divisor of the share of an address: that fraction is available without a lookup of accounts. A
/// lookup takes microseconds on the protocol's thread. There is none while the address has few
/// connections, or for a client that reuses its connections.
const FREE_SHARE_DIVISOR: usize = 4;

/// Returns the user that opened the connection from the first address to the second one.
type UserLookup = Box<dyn Fn(SocketAddr, SocketAddr) -> Option<u32> + Send + Sync>;

/// The places of connections.
pub(super) struct ConnectionPlaces {
    quota: Arc<SharedQuota>,
    /// `None` if users cannot be looked up. All connections count against their network.
    find_user: Option<UserLookup>,
}

/// The peer against which a connection counts.
#[derive(Clone, Debug)]
pub(super) struct ConnectionOwner {
    /// The network, or the account.
    pub(super) name: Arc<str>,
    /// The maximum number of connections that count against `name`.
    share: usize,
    network: Arc<str>,
}

impl ConnectionPlaces {
    /// Creates the places of a listener at `address`, which must be listening already.
    pub(super) fn new(quota: Arc<SharedQuota>, address: &ListenAddress) -> Self {
        let find_user = match address {
            ListenAddress::Internet(address) if can_find_users(*address) => {
                let find: UserLookup =
                    Box::new(|peer, own| connection_user(peer, own).ok().flatten());
                Some(find)
            }
            ListenAddress::Internet(_) => {
                tracing::debug!(
                    "the accounts of local connections cannot be found (sock_diag); they count against their address"
                );
                None
            }
            // A Unix socket reports the account of every connection.
            ListenAddress::Unix(_) => None,
        };
        Self { quota, find_user }
    }

    /// Returns the peer against which a connection from `network` counts. `ends` returns the
    /// addresses of the peer and of this server; `None` if the connection has none.
    pub(super) fn owner(
        &self,
        network: &Arc<str>,
        ends: impl FnOnce() -> Option<(SocketAddr, SocketAddr)>,
    ) -> ConnectionOwner {
        let share = self.quota.share();
        let user = match &self.find_user {
            Some(find_user) if self.quota.of(network) >= self.free_share() => {
                let local = ends().filter(|(peer, own)| is_within_machine(*peer, *own));
                local.and_then(|(peer, own)| find_user(peer, own))
            }
            _ => None,
        };
        let network = Arc::clone(network);
        match user {
            // Together with the connections that count against the address, the account has at most
            // one share.
            Some(user) => ConnectionOwner {
                name: format!("uid:{user}").into(),
                share: share - self.free_share(),
                network,
            },
            None => ConnectionOwner {
                name: Arc::clone(&network),
                share,
                network,
            },
        }
    }

    /// Reserves a place.
    ///
    /// # Errors
    ///
    /// The owner's share or the total is used up.
    pub(super) fn try_reserve(
        &self,
        owner: &ConnectionOwner,
    ) -> Result<QuotaPortion, QuotaExhausted> {
        self.quota.try_reserve_within(&owner.name, 1, owner.share)
    }

    /// Waits for a place.
    pub(super) async fn reserve(&self, owner: &ConnectionOwner) -> QuotaPortion {
        tokio::select! {
            place = self.quota.reserve_within(&owner.name, 1, owner.share) => place,
            // The address of an account can have free places again.
            place = self.quota.reserve_within(&owner.network, 1, self.free_share()) => place,
        }
    }

    fn free_share(&self) -> usize {
        self.quota.share() / FREE_SHARE_DIVISOR
    }
}

/// Returns whether a connection may have its other end on this machine. This holds for every
/// connection to or from a loopback address, unless a firewall has unusual rules, and for a
/// connection between equal addresses.
fn is_within_machine(peer: SocketAddr, own: SocketAddr) -> bool {
    let peer = peer.ip().to_canonical();
    let own = own.ip().to_canonical();
    peer.is_loopback() || own.is_loopback() || peer == own
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const OWN: &str = "127.0.0.1:80";

    fn places(
        find: impl Fn(SocketAddr, SocketAddr) -> Option<u32> + Send + Sync + 'static,
    ) -> ConnectionPlaces {
        ConnectionPlaces {
            quota: SharedQuota::new(24, 8),
            find_user: Some(Box::new(find)),
        }
    }

    /// Returns the thousands of the port as the user.
    fn user_of_port(peer: SocketAddr, own: SocketAddr) -> Option<u32> {
        assert_eq!(own.port(), 80);
        let user = u32::from(peer.port() / 1000);
        (user > 0).then_some(user)
    }

    fn owner(places: &ConnectionPlaces, network: &str, peer: &str, own: &str) -> ConnectionOwner {
        places.owner(&network.into(), || {
            Some((peer.parse().unwrap(), own.parse().unwrap()))
        })
    }

    /// Opens connections from `peer` until no more are possible.
    fn fill(places: &ConnectionPlaces, network: &str, peer: &str) -> Vec<QuotaPortion> {
        let next = || places.try_reserve(&owner(places, network, peer, OWN)).ok();
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn an_account_leaves_places_to_the_other_accounts_of_its_address() {
        let places = places(user_of_port);
        let crowd = fill(&places, "127.0.0.1", "127.0.0.1:1001");
        assert_eq!(crowd.len(), 8, "one share, as for an address");
        assert_eq!(
            (places.quota.of("127.0.0.1"), places.quota.of("uid:1")),
            (2, 6)
        );
        let other = fill(&places, "127.0.0.1", "127.0.0.1:2001");
        assert_eq!(other.len(), 6);
        // Another address of the machine does not give an account another share.
        let more = fill(&places, "192.0.2.2", "192.0.2.2:1002");
        assert_eq!((more.len(), places.quota.of("192.0.2.2")), (2, 2));
        drop((crowd, other, more));
        assert_eq!(places.quota.total_used(), 0);
    }

    #[test]
    fn a_connection_whose_account_is_not_found_counts_against_its_address() {
        static LOOKUPS: AtomicUsize = AtomicUsize::new(0);
        let places = places(|_, _| {
            LOOKUPS.fetch_add(1, Ordering::Relaxed);
            None
        });
        assert_eq!(fill(&places, "127.0.0.1", "127.0.0.1:1001").len(), 8);
        assert_eq!(
            LOOKUPS.load(Ordering::Relaxed),
            7,
            "not for the first two connections"
        );
        let without = ConnectionPlaces {
            quota: SharedQuota::new(24, 8),
            find_user: None,
        };
        assert_eq!(fill(&without, "127.0.0.1", "127.0.0.1:1001").len(), 8);
        // A connection that has ended meanwhile has no addresses.
        let _held = fill(&places, "::1", "[::1]:1001");
        assert_eq!(&*places.owner(&"::1".into(), || None).name, "::1");
    }

    #[test]
    fn only_connections_within_the_machine_are_looked_up() {
        for (peer, own, local) in [
            ("127.0.0.1:1001", "127.0.0.1:80", true),
            ("[::ffff:127.0.0.1]:1001", "[::ffff:127.0.0.1]:80", true),
            ("[::1]:1001", "[::1]:80", true),
            ("192.0.2.2:1001", "127.0.0.1:80", true),
            ("127.0.0.1:1001", "192.0.2.2:80", true),
            ("192.0.2.2:1001", "192.0.2.2:80", true),
            ("[::ffff:192.0.2.2]:1001", "192.0.2.2:80", true),
            ("192.0.2.3:1001", "192.0.2.2:80", false),
            ("[2001:db8::1]:1001", "[2001:db8::2]:80", false),
        ] {
            let places = places(user_of_port);
            let free = ConnectionOwner {
                name: "a".into(),
                share: 8,
                network: "a".into(),
            };
            let _held = [(); 2].map(|()| places.try_reserve(&free).unwrap());
            assert_eq!(
                &*owner(&places, "a", peer, own).name,
                if local { "uid:1" } else { "a" },
                "{peer} to {own}"
            );
        }
    }

    #[tokio::test]
    async fn an_account_that_waits_gets_the_next_place_of_its_address_too() {
        let places = Arc::new(places(user_of_port));
        let mut crowd = fill(&places, "127.0.0.1", "127.0.0.1:1001");
        let next = owner(&places, "127.0.0.1", "127.0.0.1:1002", OWN);
        assert_eq!((&*next.name, next.share), ("uid:1", 6));
        assert!(places.try_reserve(&next).is_err());
        let waiting = tokio::spawn({
            let places = Arc::clone(&places);
            async move { places.reserve(&next).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        // The first one counts against the address.
        drop(crowd.remove(0));
        let _place = waiting.await.unwrap();
        assert_eq!(
            (places.quota.of("127.0.0.1"), places.quota.of("uid:1")),
            (2, 6)
        );
    }

    #[test]
    fn a_small_share_is_that_of_an_account() {
        for share in 1..4 {
            let places = ConnectionPlaces {
                quota: SharedQuota::new(24, share),
                find_user: Some(Box::new(user_of_port)),
            };
            let crowd = fill(&places, "127.0.0.1", "127.0.0.1:1001");
            assert_eq!((crowd.len(), places.quota.of("uid:1")), (share, share));
            assert_eq!(fill(&places, "127.0.0.1", "127.0.0.1:2001").len(), share);
        }
    }
}
