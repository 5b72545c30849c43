//! Turns of connections on the protocol's thread, so that the many connections of one peer do not delay those of another.
//!
//! The runtime polls whatever is ready, one after the other. A peer with hundreds of busy connections would thus have
//! hundreds of turns before another peer has its next one. Here, all connections of one network together have a share of
//! each pass over what is ready. When it is spent, the others wait for the next pass.

use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, Semaphore};
use tokio::task::yield_now;
use tokio::time::sleep;

/// How long the connections of one network may compute in one pass: one or two requests.
const SHARE: Duration = Duration::from_micros(250);

/// Connections of one network that may go on in a new pass. Each takes part of the share; those that come too late wait
/// again.
const WOKEN: usize = 8;

/// How long a network waits after each piece of what it sends. With pieces of 64 KiB, that is 64 MB/s, for which the system
/// and the protocol's thread need a fraction of one core.
const PAUSE: Duration = Duration::from_millis(1);

/// The turns of all connections.
#[derive(Debug, Default)]
pub(super) struct FairScheduler {
    networks: Mutex<HashMap<Arc<str>, Arc<NetworkShare>>>,
    /// The number of the pass.
    pass: AtomicU64,
    /// Somebody waits for the next pass.
    waiting: Notify,
}

/// What the connections of one network have.
#[derive(Debug)]
struct NetworkShare {
    spent: Mutex<NetworkUsage>,
    /// Held by the connection that reads the next piece of much.
    piece: Semaphore,
}

/// What the connections of one network have had, and those that wait.
#[derive(Debug, Default)]
struct NetworkUsage {
    /// In the pass with this number.
    pass: u64,
    time: Duration,
    /// The connections that wait, in the order in which they came.
    waiting: BTreeMap<u64, Waker>,
    /// The place in that order of the next one.
    next: u64,
}

/// A connection of a network. Dropping it forgets the network if it was the last one.
#[derive(Debug)]
struct NetworkMember {
    turns: Arc<FairScheduler>,
    network: Arc<str>,
    share: Arc<NetworkShare>,
    /// Its place among those that wait, until it has its turn.
    place: Option<u64>,
}

/// The pace at which the connections of a network read what is long. Bodies cost the system and the protocol's thread time
/// whatever becomes of them, and nobody but the sender waits for them.
#[derive(Debug)]
pub(super) struct ReadPace {
    turns: Arc<FairScheduler>,
    share: Arc<NetworkShare>,
}

/// A future that has only the turns that its network may have.
pub(super) struct InTurn<T> {
    inner: Pin<Box<dyn Future<Output = T> + Send>>,
    member: NetworkMember,
}

impl FairScheduler {
    /// `inner` with the turns of a connection from `network`.
    pub(super) fn of<T>(
        self: &Arc<Self>,
        network: &Arc<str>,
        inner: impl Future<Output = T> + Send + 'static,
    ) -> InTurn<T> {
        let share = Arc::clone(self.networks().entry(Arc::clone(network)).or_default());
        let member = NetworkMember { turns: Arc::clone(self), network: Arc::clone(network), share, place: None };
        InTurn { inner: Box::pin(inner), member }
    }

    /// The pace of a connection from `network`.
    pub(super) fn pace(self: &Arc<Self>, network: &str) -> ReadPace {
        let share = self.networks().get(network).cloned().unwrap_or_default();
        ReadPace { turns: Arc::clone(self), share }
    }

    /// Whether there are connections of several networks. One that is alone takes nothing from others.
    fn is_crowded(&self) -> bool {
        self.networks().len() > 1
    }

    /// Begins passes for as long as it is polled. It must run on the runtime that polls the connections.
    pub(super) async fn begin_passes(&self) {
        loop {
            self.waiting.notified().await;
            loop {
                self.pass.fetch_add(1, Ordering::Relaxed);
                let woken = self.networks().values().fold(0, |woken, share| woken + share.wake());
                if woken == 0 {
                    break;
                }
                // Whatever is ready now is polled before the next pass.
                yield_now().await;
            }
        }
    }

    // Held for a few instructions and never across an await.
    fn networks(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<NetworkShare>>> {
        self.networks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReadPace {
    /// Whether others are delayed if this network reads as fast as it can.
    pub(super) fn matters(&self) -> bool {
        self.turns.is_crowded()
    }

    /// Waits until it may read the next piece.
    pub(super) async fn next(&self) {
        let _piece = self.share.piece.acquire().await;
        sleep(PAUSE).await;
    }
}

impl Default for NetworkShare {
    fn default() -> Self {
        Self { spent: Mutex::default(), piece: Semaphore::new(1) }
    }
}

impl NetworkShare {
    /// Lets some of those that wait go on; how many.
    fn wake(&self) -> usize {
        let mut spent = self.spent();
        let mut woken = 0;
        while woken < WOKEN
            && let Some((_, waker)) = spent.waiting.pop_first()
        {
            waker.wake();
            woken += 1;
        }
        woken
    }

    // Held for a few instructions and never across an await.
    fn spent(&self) -> MutexGuard<'_, NetworkUsage> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NetworkMember {
    /// Whether it is its turn. If not, `waker` is woken when it may be.
    fn is_next(&mut self, waker: &Waker) -> bool {
        let pass = self.turns.pass.load(Ordering::Relaxed);
        let mut spent = self.share.spent();
        if spent.pass != pass {
            (spent.pass, spent.time) = (pass, Duration::ZERO);
        }
        if spent.time < SHARE {
            if let Some(place) = self.place.take() {
                spent.waiting.remove(&place);
            }
            return true;
        }
        let place = *self.place.get_or_insert(spent.next);
        spent.next = spent.next.max(place + 1);
        spent.waiting.insert(place, waker.clone());
        drop(spent);
        self.turns.waiting.notify_one();
        false
    }
}

impl<T> Future for InTurn<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let crowded = self.member.turns.is_crowded();
        if crowded && !self.member.is_next(context.waker()) {
            return Poll::Pending;
        }
        let began = Instant::now();
        let polled = self.inner.as_mut().poll(context);
        if crowded {
            self.member.share.spent().time += began.elapsed();
        }
        polled
    }
}

impl Drop for NetworkMember {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.share.spent().waiting.remove(&place);
        }
        let mut networks = self.turns.networks();
        // This one's and the table's.
        if Arc::strong_count(&self.share) == 2 {
            networks.remove(&self.network);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize};

    use super::*;

    /// Connections of the peer that has many.
    const MANY: usize = 300;

    /// Turns of all connections of `crowd` between two of one connection of `other`, on average.
    async fn between(crowd: &str, other: &str) -> usize {
        let (turns, over, had) =
            (Arc::new(FairScheduler::default()), Arc::new(AtomicBool::new(false)), AtomicUsize::new(0));
        let had = Arc::new(had);
        let counting = Arc::clone(&turns);
        let counting = tokio::spawn(async move { counting.begin_passes().await });
        let busy = (0..MANY).map(|_| {
            let (over, had) = (Arc::clone(&over), Arc::clone(&had));
            tokio::spawn(turns.of(&crowd.into(), async move {
                while !over.load(Ordering::Relaxed) {
                    had.fetch_add(1, Ordering::Relaxed);
                    let began = Instant::now();
                    // Each turn takes the whole share.
                    while began.elapsed() < SHARE {}
                    yield_now().await;
                }
            }))
        });
        let busy: Vec<_> = busy.collect();
        let rounds = 5;
        let one = tokio::spawn(turns.of(&other.into(), async move {
            for _ in 0..rounds {
                yield_now().await;
            }
            had.load(Ordering::Relaxed)
        }));
        let had = one.await.unwrap();
        over.store(true, Ordering::Relaxed);
        for task in busy {
            task.await.unwrap();
        }
        counting.abort();
        assert!(turns.networks().is_empty(), "nobody is connected any more");
        had / rounds
    }

    #[tokio::test]
    async fn the_connections_of_one_network_have_the_turns_of_a_few() {
        let turns = between("192.0.2.7", "198.51.100.1").await;
        assert!(turns <= 4, "{turns} turns of {MANY} busy connections before the next one of another network");
    }

    #[tokio::test]
    async fn a_network_reads_one_piece_after_the_other() {
        let turns = Arc::new(FairScheduler::default());
        let networks = ["192.0.2.7", "198.51.100.1"];
        let _members = networks.map(|network| turns.of(&network.into(), async {}));
        let [mine, others] = networks.map(|network| turns.pace(network));
        assert!(mine.matters());
        let reading = mine.share.piece.acquire().await.unwrap();
        let second = turns.pace(networks[0]);
        let mut second = std::pin::pin!(second.next());
        tokio::select! {
            biased;
            () = &mut second => panic!("another connection of the network reads"),
            () = others.next() => {}
        }
        drop(reading);
        second.await;
    }

    #[tokio::test]
    async fn a_network_that_is_alone_has_all_turns() {
        assert!(between("192.0.2.7", "192.0.2.7").await >= MANY / 2);
    }
}
