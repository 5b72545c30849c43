//! The permission to make one call: its places for computing, which it gives back while it waits, and its memory.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolbay_model::Bound;
use toolbay_sandbox::ComputePlace;

use crate::fair_semaphore::{FairPermits, FairSemaphore, Party, Turn};

/// The places that a call needs to compute, in the order in which it takes them: a call that waits for a busy plugin does
/// not hold a place of the server.
#[derive(Debug)]
pub(crate) struct Route<'a> {
    pub(crate) stages: [Option<Stage<'a>>; 4],
    /// Memory: of the parts of the target and of the plugin, and of the server's.
    pub(crate) memory: [Option<Stage<'a>>; 3],
    /// Places of calls that wait: of the server and of the plugin.
    pub(crate) waits: [Option<Stage<'a>>; 2],
}

/// One of these places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stage<'a> {
    pub(crate) semaphore: &'a Arc<FairSemaphore>,
    pub(crate) party: Party,
    /// The setting that says how many there are.
    pub(crate) bound: Bound,
}

/// Where a call gets a place when it needs one.
#[derive(Clone, Debug)]
struct PlaceSource {
    semaphore: Arc<FairSemaphore>,
    party: Party,
}

/// Places that a call has.
pub(crate) type Places = [Option<FairPermits>; 4];

/// Memory that a call has: of the parts of its target and of its plugin, and of the server's.
pub(crate) type Reserved = [Option<FairPermits>; 3];

/// The permission to make one call. Dropping it frees its places and its memory.
#[derive(Debug)]
pub(crate) struct Permit {
    /// Places of calls that wait; `None` if there are none.
    waits: [Option<PlaceSource>; 2],
    held: Mutex<Held>,
    _memory: Reserved,
}

/// What a call holds.
#[derive(Debug)]
enum Held {
    /// Places to compute.
    Places(Places),
    /// Places to wait, and the places that it has given back for them.
    Waits { _waits: [FairPermits; 2], wanted: [Option<PlaceSource>; 4] },
}

impl<'a> Route<'a> {
    /// Waits for the places. What it waits for meanwhile is left in `awaited`.
    pub(crate) async fn places(&self, turn: Turn, awaited: &mut Option<Stage<'a>>) -> Places {
        let mut places = Places::default();
        for (stage, place) in self.stages.iter().zip(&mut places) {
            if let Some(stage) = stage {
                *awaited = Some(*stage);
                *place = Some(stage.semaphore.acquire(stage.party, 1, turn).await);
            }
        }
        places
    }

    /// The memory, if it is free.
    pub(crate) fn reserve_now(&self, amount: u32) -> Option<Reserved> {
        let mut reserved = Reserved::default();
        for (stage, permits) in self.memory.iter().zip(&mut reserved) {
            if let Some(Stage { semaphore, party, .. }) = stage {
                *permits = Some(semaphore.try_acquire(*party, amount)?);
            }
        }
        Some(reserved)
    }

    /// Waits for the memory.
    pub(crate) async fn reserve_later(&self, amount: u32) -> Reserved {
        let mut reserved = Reserved::default();
        for (stage, permits) in self.memory.iter().zip(&mut reserved) {
            if let Some(Stage { semaphore, party, .. }) = stage {
                *permits = Some(semaphore.acquire(*party, amount, Turn::First).await);
            }
        }
        reserved
    }
}

impl Permit {
    pub(crate) fn new(route: &Route<'_>, places: Places, memory: Reserved) -> Self {
        let waits = route.waits.map(|stage| stage.map(Stage::source));
        Self { waits, held: Mutex::new(Held::Places(places)), _memory: memory }
    }

    // Held while places change hands, never across an await.
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has this from now on. What it had comes back, and is to be dropped without the lock.
    fn replace(&self, held: Held) -> Held {
        std::mem::replace(&mut *self.held(), held)
    }
}

impl Stage<'_> {
    fn source(self) -> PlaceSource {
        PlaceSource { semaphore: Arc::clone(self.semaphore), party: self.party }
    }
}

impl ComputePlace for Permit {
    fn give_back(&self) -> bool {
        let [Some(server), Some(plugin)] = &self.waits else { return false };
        let Some(server) = server.semaphore.try_acquire(server.party, 1) else { return false };
        let Some(plugin) = plugin.semaphore.try_acquire(plugin.party, 1) else { return false };
        let wanted = match &*self.held() {
            Held::Places(places) => places.each_ref().map(|place| {
                let (semaphore, party) = place.as_ref()?.source();
                Some(PlaceSource { semaphore: Arc::clone(semaphore), party })
            }),
            Held::Waits { .. } => return true,
        };
        drop(self.replace(Held::Waits { _waits: [server, plugin], wanted }));
        true
    }

    fn take_again(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let wanted = match &*self.held() {
            Held::Places(_) => Default::default(),
            // Kept: whoever drops the future before its end can ask again.
            Held::Waits { wanted, .. } => wanted.clone(),
        };
        Box::pin(async move {
            if wanted.iter().all(Option::is_none) {
                return;
            }
            let mut places = Places::default();
            for (wanted, place) in wanted.iter().zip(&mut places) {
                if let Some(PlaceSource { semaphore, party }) = wanted {
                    *place = Some(semaphore.acquire(*party, 1, Turn::Again).await);
                }
            }
            drop(self.replace(Held::Places(places)));
        })
    }
}
