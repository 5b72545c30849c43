//! Fair scheduling of connections on the protocol's thread. The many connections of one peer do not
//! delay those of another.
//!
//! The runtime polls ready tasks one after the other. A peer with hundreds of busy connections
//! would get hundreds of polls before another peer gets its next one. With this module, the
//! connections of one network share a time budget in each pass over the ready tasks. Once it is
//! spent, they wait for the next pass.

use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, Semaphore};
use tokio::task::yield_now;
use tokio::time::sleep;

/// Time budget of one network in one pass: one or two requests.
const PASS_BUDGET: Duration = Duration::from_micros(250);

/// Maximum number of waiting connections of one network that are woken in a new pass. Each uses
/// part of the budget. Connections that find it spent wait again.
const MAX_WOKEN_PER_PASS: usize = 8;

/// Pause of a network after each chunk that it sends. With chunks of 64 KiB, that is 64 MB/s, for
/// which the system and the protocol's thread need a fraction of one core.
const CHUNK_INTERVAL: Duration = Duration::from_millis(1);

/// Scheduler of all connections.
#[derive(Debug, Default)]
pub(super) struct FairScheduler {
    networks: Mutex<HashMap<Arc<str>, Arc<NetworkShare>>>,
    /// Number of the current pass.
    pass: AtomicU64,
    /// Notified when a connection waits for the next pass.
    waiting: Notify,
}

/// Resources shared by the connections of one network.
#[derive(Debug)]
struct NetworkShare {
    usage: Mutex<NetworkUsage>,
    /// Held by the connection that reads the next chunk of a long body.
    chunk: Semaphore,
}

/// Time that the connections of one network have used, and the connections that wait.
#[derive(Debug, Default)]
struct NetworkUsage {
    /// Pass to which `time` refers.
    pass: u64,
    time: Duration,
    /// Waiting connections, in order of arrival.
    waiting: BTreeMap<u64, Waker>,
    /// Position of the next connection in that order.
    next: u64,
}

/// A connection of a network. Dropping the last one removes the network.
#[derive(Debug)]
struct NetworkMember {
    scheduler: Arc<FairScheduler>,
    network: Arc<str>,
    share: Arc<NetworkShare>,
    /// Position in the wait queue, until the connection is polled again.
    place: Option<u64>,
}

/// Rate limit for long bodies of a network. Bodies cost the system and the protocol's thread time
/// even if they are rejected, and only their sender waits for them.
#[derive(Debug)]
pub(super) struct ReadPace {
    scheduler: Arc<FairScheduler>,
    share: Arc<NetworkShare>,
}

/// A future that is polled within the budget of its network.
pub(super) struct ScheduledConnection<T> {
    inner: Pin<Box<dyn Future<Output = T> + Send>>,
    member: NetworkMember,
}

impl FairScheduler {
    /// Wraps `inner`, the future of a connection from `network`.
    pub(super) fn schedule<T>(
        self: &Arc<Self>,
        network: &Arc<str>,
        inner: impl Future<Output = T> + Send + 'static,
    ) -> ScheduledConnection<T> {
        let share = Arc::clone(self.networks().entry(Arc::clone(network)).or_default());
        let member = NetworkMember {
            scheduler: Arc::clone(self),
            network: Arc::clone(network),
            share,
            place: None,
        };
        ScheduledConnection {
            inner: Box::pin(inner),
            member,
        }
    }

    /// Returns the rate limit of a connection from `network`.
    pub(super) fn read_pace(self: &Arc<Self>, network: &str) -> ReadPace {
        let share = self.networks().get(network).cloned().unwrap_or_default();
        ReadPace {
            scheduler: Arc::clone(self),
            share,
        }
    }

    /// Returns whether there are connections of several networks. A single network takes no time
    /// from others.
    fn is_crowded(&self) -> bool {
        self.networks().len() > 1
    }

    /// Starts passes for as long as it is polled. It must run on the runtime that polls the
    /// connections.
    pub(super) async fn run_passes(&self) {
        loop {
            self.waiting.notified().await;
            loop {
                self.pass.fetch_add(1, Ordering::Relaxed);
                let woken = self
                    .networks()
                    .values()
                    .fold(0, |woken, share| woken + share.wake_waiting());
                if woken == 0 {
                    break;
                }
                // All tasks that are ready now are polled before the next pass.
                yield_now().await;
            }
        }
    }

    // Held for a few instructions and never across an await.
    fn networks(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<NetworkShare>>> {
        self.networks.lock()
    }
}

impl ReadPace {
    /// Returns whether unlimited reads by this network would delay others.
    pub(super) fn is_contended(&self) -> bool {
        self.scheduler.is_crowded()
    }

    /// Waits until the next chunk may be read.
    pub(super) async fn wait_for_chunk(&self) {
        let _piece = self.share.chunk.acquire().await;
        sleep(CHUNK_INTERVAL).await;
    }
}

impl Default for NetworkShare {
    fn default() -> Self {
        Self {
            usage: Mutex::default(),
            chunk: Semaphore::new(1),
        }
    }
}

impl NetworkShare {
    /// Wakes some of the waiting connections, and returns their number.
    fn wake_waiting(&self) -> usize {
        let mut spent = self.usage();
        let mut woken = 0;
        while woken < MAX_WOKEN_PER_PASS
            && let Some((_, waker)) = spent.waiting.pop_first()
        {
            waker.wake();
            woken += 1;
        }
        woken
    }

    // Held for a few instructions and never across an await.
    fn usage(&self) -> MutexGuard<'_, NetworkUsage> {
        self.usage.lock()
    }
}

impl NetworkMember {
    /// Returns whether the connection may be polled now. If not, `waker` is woken when it may be.
    fn may_run(&mut self, waker: &Waker) -> bool {
        let pass = self.scheduler.pass.load(Ordering::Relaxed);
        let mut spent = self.share.usage();
        if spent.pass != pass {
            (spent.pass, spent.time) = (pass, Duration::ZERO);
        }
        if spent.time < PASS_BUDGET {
            if let Some(place) = self.place.take() {
                spent.waiting.remove(&place);
            }
            return true;
        }
        let place = *self.place.get_or_insert(spent.next);
        spent.next = spent.next.max(place + 1);
        spent.waiting.insert(place, waker.clone());
        drop(spent);
        self.scheduler.waiting.notify_one();
        false
    }
}

impl<T> Future for ScheduledConnection<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let crowded = self.member.scheduler.is_crowded();
        if crowded && !self.member.may_run(context.waker()) {
            return Poll::Pending;
        }
        let began = Instant::now();
        let polled = self.inner.as_mut().poll(context);
        if crowded {
            self.member.share.usage().time += began.elapsed();
        }
        polled
    }
}

impl Drop for NetworkMember {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.share.usage().waiting.remove(&place);
        }
        let mut networks = self.scheduler.networks();
        // The references of this connection and of the table.
        if Arc::strong_count(&self.share) == 2 {
            networks.remove(&self.network);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize};

    use super::*;

    /// Number of connections of the busy peer.
    const MANY: usize = 300;

    /// Returns the average number of polls of all connections of `crowd` between two polls of one
    /// connection of `other`.
    async fn between(crowd: &str, other: &str) -> usize {
        let turns = Arc::new(FairScheduler::default());
        let over = Arc::new(AtomicBool::new(false));
        let had = AtomicUsize::new(0);
        let had = Arc::new(had);
        let counting = Arc::clone(&turns);
        let counting = tokio::spawn(async move { counting.run_passes().await });
        let busy = (0..MANY).map(|_| {
            let over = Arc::clone(&over);
            let had = Arc::clone(&had);
            tokio::spawn(turns.schedule(&crowd.into(), async move {
                while !over.load(Ordering::Relaxed) {
                    had.fetch_add(1, Ordering::Relaxed);
                    let began = Instant::now();
                    // Each poll uses the whole budget.
                    while began.elapsed() < PASS_BUDGET {}
                    yield_now().await;
                }
            }))
        });
        let busy: Vec<_> = busy.collect();
        let rounds = 5;
        let one = tokio::spawn(turns.schedule(&other.into(), async move {
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
        assert!(
            turns <= 4,
            "{turns} turns of {MANY} busy connections before the next one of another network"
        );
    }

    #[tokio::test]
    async fn a_network_reads_one_piece_after_the_other() {
        let turns = Arc::new(FairScheduler::default());
        let networks = ["192.0.2.7", "198.51.100.1"];
        let _members = networks.map(|network| turns.schedule(&network.into(), async {}));
        let [mine, others] = networks.map(|network| turns.read_pace(network));
        assert!(mine.is_contended());
        let reading = mine.share.chunk.acquire().await.unwrap();
        let second = turns.read_pace(networks[0]);
        let mut second = std::pin::pin!(second.wait_for_chunk());
        tokio::select! {
            biased;
            () = &mut second => panic!("another connection of the network reads"),
            () = others.wait_for_chunk() => {}
        }
        drop(reading);
        second.await;
    }

    #[tokio::test]
    async fn a_network_that_is_alone_has_all_turns() {
        assert!(between("192.0.2.7", "192.0.2.7").await >= MANY / 2);
    }
}
