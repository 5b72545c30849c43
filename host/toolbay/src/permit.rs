//! The permission to make one call: its places for computing, which it gives back while it waits, and its memory.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolbay_model::CapacityLimit;
use toolbay_sandbox::ComputePlace;

use crate::fair_semaphore::{FairPermits, FairSemaphore, PartyId, WaitPriority};

/// The places that a call needs to compute, in the order in which it takes them: a call that waits for a busy plugin does
/// not hold a place of the server.
#[derive(Debug)]
pub(crate) struct PermitRoute<'a> {
    pub(crate) stages: [Option<PermitStage<'a>>; 4],
    /// Memory: of the parts of the target and of the plugin, and of the server's.
    pub(crate) memory: [Option<PermitStage<'a>>; 3],
    /// Places of calls that wait: of the server and of the plugin.
    pub(crate) waits: [Option<PermitStage<'a>>; 2],
}

/// One of these places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PermitStage<'a> {
    pub(crate) semaphore: &'a Arc<FairSemaphore>,
    pub(crate) party: PartyId,
    /// The setting that says how many there are.
    pub(crate) bound: CapacityLimit,
}

/// Where a call gets a place when it needs one.
#[derive(Clone, Debug)]
struct PlaceSource {
    semaphore: Arc<FairSemaphore>,
    party: PartyId,
}

/// Places that a call has.
pub(crate) type ComputePermits = [Option<FairPermits>; 4];

/// Memory that a call has: of the parts of its target and of its plugin, and of the server's.
pub(crate) type MemoryPermits = [Option<FairPermits>; 3];

/// The permission to make one call. Dropping it frees its places and its memory.
#[derive(Debug)]
pub(crate) struct CallPermit {
    /// Places of calls that wait; `None` if there are none.
    waits: [Option<PlaceSource>; 2],
    held: Mutex<HeldPermits>,
    _memory: MemoryPermits,
}

/// What a call holds.
#[derive(Debug)]
enum HeldPermits {
    /// Places to compute.
    Places(ComputePermits),
    /// Places to wait, and the places that it has given back for them.
    Waits { _waits: [FairPermits; 2], wanted: [Option<PlaceSource>; 4] },
}

impl<'a> PermitRoute<'a> {
    /// Waits for the places. What it waits for meanwhile is left in `awaited`.
    pub(crate) async fn places(&self, turn: WaitPriority, awaited: &mut Option<PermitStage<'a>>) -> ComputePermits {
        let mut places = ComputePermits::default();
        for (stage, place) in self.stages.iter().zip(&mut places) {
            if let Some(stage) = stage {
                *awaited = Some(*stage);
                *place = Some(stage.semaphore.acquire(stage.party, 1, turn).await);
            }
        }
        places
    }

    /// The memory, if it is free.
    pub(crate) fn reserve_now(&self, amount: u32) -> Option<MemoryPermits> {
        let mut reserved = MemoryPermits::default();
        for (stage, permits) in self.memory.iter().zip(&mut reserved) {
            if let Some(PermitStage { semaphore, party, .. }) = stage {
                *permits = Some(semaphore.try_acquire(*party, amount)?);
            }
        }
        Some(reserved)
    }

    /// Waits for the memory.
    pub(crate) async fn reserve_later(&self, amount: u32) -> MemoryPermits {
        let mut reserved = MemoryPermits::default();
        for (stage, permits) in self.memory.iter().zip(&mut reserved) {
            if let Some(PermitStage { semaphore, party, .. }) = stage {
                *permits = Some(semaphore.acquire(*party, amount, WaitPriority::New).await);
            }
        }
        reserved
    }
}

impl CallPermit {
    pub(crate) fn new(route: &PermitRoute<'_>, places: ComputePermits, memory: MemoryPermits) -> Self {
        let waits = route.waits.map(|stage| stage.map(PermitStage::source));
        Self { waits, held: Mutex::new(HeldPermits::Places(places)), _memory: memory }
    }

    // Held while places change hands, never across an await.
    fn held(&self) -> MutexGuard<'_, HeldPermits> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has this from now on. What it had comes back, and is to be dropped without the lock.
    fn replace(&self, held: HeldPermits) -> HeldPermits {
        std::mem::replace(&mut *self.held(), held)
    }
}

impl PermitStage<'_> {
    fn source(self) -> PlaceSource {
        PlaceSource { semaphore: Arc::clone(self.semaphore), party: self.party }
    }
}

impl ComputePlace for CallPermit {
    fn give_back(&self) -> bool {
        let [Some(server), Some(plugin)] = &self.waits else { return false };
        let Some(server) = server.semaphore.try_acquire(server.party, 1) else { return false };
        let Some(plugin) = plugin.semaphore.try_acquire(plugin.party, 1) else { return false };
        let wanted = match &*self.held() {
            HeldPermits::Places(places) => places.each_ref().map(|place| {
                let (semaphore, party) = place.as_ref()?.source();
                Some(PlaceSource { semaphore: Arc::clone(semaphore), party })
            }),
            HeldPermits::Waits { .. } => return true,
        };
        drop(self.replace(HeldPermits::Waits { _waits: [server, plugin], wanted }));
        true
    }

    fn take_again(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let wanted = match &*self.held() {
            HeldPermits::Places(_) => Default::default(),
            // Kept: whoever drops the future before its end can ask again.
            HeldPermits::Waits { wanted, .. } => wanted.clone(),
        };
        Box::pin(async move {
            if wanted.iter().all(Option::is_none) {
                return;
            }
            let mut places = ComputePermits::default();
            for (wanted, place) in wanted.iter().zip(&mut places) {
                if let Some(PlaceSource { semaphore, party }) = wanted {
                    *place = Some(semaphore.acquire(*party, 1, WaitPriority::Resumed).await);
                }
            }
            drop(self.replace(HeldPermits::Places(places)));
        })
    }
}
