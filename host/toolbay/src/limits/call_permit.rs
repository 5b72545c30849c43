//! The permit of one call: its permits to compute, which it releases while it waits, and its
//! memory.

use std::pin::Pin;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use toolbay_model::CapacityLimit;
use toolbay_sandbox::ComputePermit;

use crate::limits::fair_semaphore::{FairPermits, FairSemaphore, PartyId, WaitPriority};

/// The permits that a call needs, in the order in which it acquires them. A call that waits for a
/// busy plugin therefore does not hold a permit of the server.
#[derive(Debug)]
pub(crate) struct PermitRoute<'a> {
    /// Permits to compute: of the client, of the target, of the plugin, and of the server.
    pub(crate) stages: [Option<PermitStage<'a>>; 4],
    /// Memory: of the target's share, of the plugin's share, and of the server.
    pub(crate) memory: [Option<PermitStage<'a>>; 3],
    /// Permits of suspended calls: of the server and of the plugin.
    pub(crate) suspended: [Option<PermitStage<'a>>; 2],
}

/// One of these permits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PermitStage<'a> {
    pub(crate) semaphore: &'a Arc<FairSemaphore>,
    pub(crate) party: PartyId,
    /// The setting that limits the number of permits.
    pub(crate) bound: CapacityLimit,
}

/// The semaphore and party with which a call acquires a permit.
#[derive(Clone, Debug)]
struct PermitSource {
    semaphore: Arc<FairSemaphore>,
    party: PartyId,
}

/// Permits to compute that a call holds.
pub(crate) type ComputePermits = [Option<FairPermits>; 4];

/// Memory that a call holds: of its target's share, of its plugin's share, and of the server.
pub(crate) type MemoryPermits = [Option<FairPermits>; 3];

/// The permit of one call. Dropping it releases its permits and its memory.
#[derive(Debug)]
pub(crate) struct CallPermit {
    /// Sources of permits of suspended calls; `None` if the call cannot be suspended.
    suspension_sources: [Option<PermitSource>; 2],
    held_permits: Mutex<HeldPermits>,
    _memory: MemoryPermits,
}

/// Permits that a call holds.
#[derive(Debug)]
enum HeldPermits {
    /// Permits to compute.
    Compute(ComputePermits),
    /// Permits of a suspended call, and the sources of the compute permits that were released in
    /// exchange.
    Suspended {
        _suspended_permits: [FairPermits; 2],
        compute_sources: [Option<PermitSource>; 4],
    },
}

impl<'a> PermitRoute<'a> {
    /// Waits for the permits to compute. `awaited` is set to the stage that the call waits for.
    pub(crate) async fn acquire_compute(
        &self,
        priority: WaitPriority,
        awaited: &mut Option<PermitStage<'a>>,
    ) -> ComputePermits {
        let mut acquired = ComputePermits::default();
        for (stage, permits) in self.stages.iter().zip(&mut acquired) {
            if let Some(stage) = stage {
                *awaited = Some(*stage);
                *permits = Some(stage.semaphore.acquire(stage.party, 1, priority).await);
            }
        }
        acquired
    }

    /// Reserves the memory if it is available.
    pub(crate) fn try_reserve_memory(&self, amount: u32) -> Option<MemoryPermits> {
        let mut reserved = MemoryPermits::default();
        for (stage, permits) in self.memory.iter().zip(&mut reserved) {
            if let Some(PermitStage {
                semaphore, party, ..
            }) = stage
            {
                *permits = Some(semaphore.try_acquire(*party, amount)?);
            }
        }
        Some(reserved)
    }

    /// Waits for the memory.
    pub(crate) async fn reserve_memory(&self, amount: u32) -> MemoryPermits {
        let mut reserved = MemoryPermits::default();
        for (stage, permits) in self.memory.iter().zip(&mut reserved) {
            if let Some(PermitStage {
                semaphore, party, ..
            }) = stage
            {
                *permits = Some(semaphore.acquire(*party, amount, WaitPriority::New).await);
            }
        }
        reserved
    }
}

impl CallPermit {
    pub(crate) fn new(
        route: &PermitRoute<'_>,
        compute: ComputePermits,
        memory: MemoryPermits,
    ) -> Self {
        let suspension_sources = route
            .suspended
            .map(|stage| stage.map(PermitStage::to_source));
        Self {
            suspension_sources,
            held_permits: Mutex::new(HeldPermits::Compute(compute)),
            _memory: memory,
        }
    }

    // Held while permits are exchanged, never across an await.
    fn lock_held(&self) -> MutexGuard<'_, HeldPermits> {
        self.held_permits.lock()
    }

    /// Replaces the held permits. Returns the previous ones, which must be dropped without the
    /// lock.
    fn replace(&self, new_permits: HeldPermits) -> HeldPermits {
        std::mem::replace(&mut *self.lock_held(), new_permits)
    }
}

impl PermitStage<'_> {
    fn to_source(self) -> PermitSource {
        PermitSource {
            semaphore: Arc::clone(self.semaphore),
            party: self.party,
        }
    }
}

impl ComputePermit for CallPermit {
    fn release(&self) -> bool {
        let [Some(server), Some(plugin)] = &self.suspension_sources else {
            return false;
        };
        let Some(server) = server.semaphore.try_acquire(server.party, 1) else {
            return false;
        };
        let Some(plugin) = plugin.semaphore.try_acquire(plugin.party, 1) else {
            return false;
        };
        let compute_sources = match &*self.lock_held() {
            HeldPermits::Compute(places) => places.each_ref().map(|place| {
                let (semaphore, party) = place.as_ref()?.source();
                Some(PermitSource {
                    semaphore: Arc::clone(semaphore),
                    party,
                })
            }),
            HeldPermits::Suspended { .. } => return true,
        };
        drop(self.replace(HeldPermits::Suspended {
            _suspended_permits: [server, plugin],
            compute_sources,
        }));
        true
    }

    fn acquire(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let compute_sources = match &*self.lock_held() {
            HeldPermits::Compute(_) => Default::default(),
            // A clone: if the future is dropped before it completes, the caller can try again.
            HeldPermits::Suspended {
                compute_sources: wanted,
                ..
            } => wanted.clone(),
        };
        Box::pin(async move {
            if compute_sources.iter().all(Option::is_none) {
                return;
            }
            let mut acquired = ComputePermits::default();
            for (source, permits) in compute_sources.iter().zip(&mut acquired) {
                if let Some(PermitSource { semaphore, party }) = source {
                    *permits = Some(semaphore.acquire(*party, 1, WaitPriority::Resumed).await);
                }
            }
            drop(self.replace(HeldPermits::Compute(acquired)));
        })
    }
}
