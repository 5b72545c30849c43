//! Fair sharing of permits among parties.
//!
//! A party is a consumer that must not hold all permits, such as a caller or a tool of a plugin.
//! The next permit goes to the waiting party that holds the fewest. Ties go to the party that was
//! served, or arrived, longest ago. Within a party, waiters that held permits before are served
//! first, but at most [`MAX_CONSECUTIVE_RESUMES`] of them in a row. Then the order is first come,
//! first served. Each operation takes time logarithmic in the number of waiters.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

/// Maximum number of consecutive permits of a party that go to resumed waiters while new ones wait.
/// Calls that release and reacquire their permits repeatedly must not starve new calls.
const MAX_CONSECUTIVE_RESUMES: u32 = 4;

/// Minimum number of parties that stay in the table, even without permits or waiters. Most parties
/// come back.
const MIN_RETAINED_PARTIES: usize = 4;

/// Identifies a party that acquires permits.
pub(crate) type PartyId = u64;

/// Priority of a waiter within its party. The variants are in the order in which waiters are
/// served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WaitPriority {
    /// The waiter held permits before, and released them while it waited for something else.
    Resumed,
    /// The waiter has not started yet.
    New,
}

/// A semaphore that shares its permits fairly among parties, which wait for them in turn.
#[derive(Debug)]
pub(crate) struct FairSemaphore {
    permits: u32,
    /// Maximum number of permits of one party. A party that holds none gets any amount that it
    /// requests.
    party_limit: u32,
    state: Mutex<SemaphoreState>,
}

/// Permits that are released on drop.
#[derive(Debug)]
pub(crate) struct FairPermits {
    semaphore: Arc<FairSemaphore>,
    party: PartyId,
    amount: u32,
}

#[derive(Debug)]
struct SemaphoreState {
    free: u32,
    /// The parties that hold or wait for permits, and a few idle ones.
    parties: HashMap<PartyId, PartyState, BuildHasherDefault<PartyHasher>>,
    /// The parties whose next waiter is within the limit of the party, in the order in which they
    /// are served.
    eligible: BTreeSet<PartyRank>,
    /// A logical clock that advances with each arrival and each grant.
    clock: u64,
}

#[derive(Debug)]
struct PartyState {
    held: u32,
    /// Time of the last grant, or of the arrival if that is later.
    last_served: u64,
    /// Number of consecutive grants to resumed waiters.
    consecutive_resumes: u32,
    queue: BTreeMap<(WaitPriority, u64), PermitWaiter>,
    /// Entry of the party in [`SemaphoreState::eligible`].
    rank: Option<PartyRank>,
}

/// Sort key of a party: the permits that it holds, the time of its last grant or arrival, and its
/// id.
type PartyRank = (u32, u64, PartyId);

#[derive(Debug)]
struct PermitWaiter {
    amount: u32,
    sender: oneshot::Sender<FairPermits>,
}

/// Permits granted while the lock was held. They are sent after it is released.
type PendingGrants = Vec<(oneshot::Sender<FairPermits>, FairPermits)>;

impl FairSemaphore {
    /// Creates a semaphore with `permits` permits, of which one party holds at most `party_limit`.
    pub(crate) fn new(permits: u32, party_limit: u32) -> Self {
        let parties = HashMap::default();
        let eligible = BTreeSet::new();
        Self {
            permits,
            party_limit,
            state: Mutex::new(SemaphoreState {
                free: permits,
                parties,
                eligible,
                clock: 0,
            }),
        }
    }

    /// Creates a semaphore in which one party can hold all permits while no other party waits.
    pub(crate) fn without_party_limit(permits: u32) -> Self {
        Self::new(permits, permits)
    }

    /// Returns the total number of permits.
    pub(crate) fn permits(&self) -> u32 {
        self.permits
    }

    /// Returns the number of permits that `party` can hold now: its limit if it has reached that
    /// limit, or else all permits.
    pub(crate) fn max_for_party(&self, party: PartyId) -> u32 {
        let is_at_bound = self
            .lock()
            .parties
            .get(&party)
            .is_some_and(|party_state| !party_state.can_hold(1, self.party_limit));
        if is_at_bound {
            self.party_limit
        } else {
            self.permits
        }
    }

    /// Returns the number of permits that are held.
    pub(crate) fn permits_in_use(&self) -> u32 {
        self.permits.saturating_sub(self.lock().free)
    }

    /// Returns the permits if they are free and no other party waits for them. `amount` is capped
    /// at the total.
    pub(crate) fn try_acquire(
        self: &Arc<Self>,
        party: PartyId,
        amount: u32,
    ) -> Option<FairPermits> {
        let amount = amount.min(self.permits);
        // A semaphore without permits grants nothing.
        (amount > 0 && self.lock().try_take(party, amount, self.party_limit))
            .then(|| self.issue_permits(party, amount))
    }

    /// Waits for permits. `amount` is capped at the total. If the future is dropped, the waiter
    /// leaves the queue, and permits that it was granted go to the next one.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        party: PartyId,
        amount: u32,
        priority: WaitPriority,
    ) -> FairPermits {
        let amount = amount.min(self.permits);
        let queued = self.update(|state, party_limit| {
            if state.try_take(party, amount, party_limit) {
                return None;
            }
            let (sender, receiver) = oneshot::channel();
            let ticket = state.enqueue(
                party,
                priority,
                PermitWaiter { amount, sender },
                party_limit,
            );
            Some((receiver, ticket))
        });
        let Some((receiver, ticket)) = queued else {
            return self.issue_permits(party, amount);
        };
        let position = QueuePosition {
            semaphore: self,
            party,
            key: (priority, ticket),
        };
        match receiver.await {
            Ok(permits) => permits,
            // The sender is dropped unused only when this future leaves the queue, which happens
            // when it is dropped.
            Err(_closed) => {
                drop(position);
                std::future::pending().await
            }
        }
    }

    fn issue_permits(self: &Arc<Self>, party: PartyId, amount: u32) -> FairPermits {
        FairPermits {
            semaphore: Arc::clone(self),
            party,
            amount,
        }
    }

    /// Applies a change that can allow further grants, and sends these grants.
    fn update<T>(self: &Arc<Self>, change: impl FnOnce(&mut SemaphoreState, u32) -> T) -> T {
        let mut grants = PendingGrants::new();
        let changed = {
            let mut state = self.lock();
            let changed = change(&mut state, self.party_limit);
            while let Some((party, PermitWaiter { amount, sender })) =
                state.grant_next(self.party_limit)
            {
                grants.push((sender, self.issue_permits(party, amount)));
            }
            changed
        };
        // Without the lock: permits whose receiver is gone are released here.
        for (sender, permits) in grants {
            drop(sender.send(permits));
        }
        changed
    }

    // The lock is held only briefly, never across an await.
    fn lock(&self) -> MutexGuard<'_, SemaphoreState> {
        self.state.lock()
    }
}

impl FairPermits {
    /// Returns the semaphore and the party of the permits.
    pub(crate) fn source(&self) -> (&Arc<FairSemaphore>, PartyId) {
        (&self.semaphore, self.party)
    }
}

impl Drop for FairPermits {
    fn drop(&mut self) {
        let party = self.party;
        let amount = self.amount;
        self.semaphore
            .update(|state, party_limit| state.release(party, amount, party_limit));
    }
}

/// A position in the queue, which is removed on drop.
struct QueuePosition<'a> {
    semaphore: &'a Arc<FairSemaphore>,
    party: PartyId,
    key: (WaitPriority, u64),
}

impl Drop for QueuePosition<'_> {
    fn drop(&mut self) {
        let party = self.party;
        let key = self.key;
        // The next waiter may request less, so it may be granted now.
        self.semaphore
            .update(|state, party_limit| state.dequeue(party, key, party_limit));
    }
}

impl SemaphoreState {
    /// Takes permits if they are free and no eligible party waits. Returns whether it did.
    fn try_take(&mut self, party: PartyId, amount: u32, party_limit: u32) -> bool {
        if amount > self.free || !self.eligible.is_empty() {
            return false;
        }
        let clock = self.tick();
        let party_state = self
            .parties
            .entry(party)
            .or_insert_with(|| PartyState::arrived_at(clock));
        // Waiters of the same party that are blocked by its limit go first.
        if !party_state.queue.is_empty() || !party_state.can_hold(amount, party_limit) {
            return false;
        }
        party_state.held += amount;
        party_state.last_served = clock;
        self.free -= amount;
        true
    }

    /// Enqueues a waiter of a party. Returns its ticket.
    fn enqueue(
        &mut self,
        party: PartyId,
        priority: WaitPriority,
        waiter: PermitWaiter,
        party_limit: u32,
    ) -> u64 {
        let ticket = self.tick();
        let party_state = self
            .parties
            .entry(party)
            .or_insert_with(|| PartyState::arrived_at(ticket));
        if party_state.is_idle() {
            party_state.last_served = ticket;
        }
        party_state.queue.insert((priority, ticket), waiter);
        self.update_rank(party, party_limit);
        ticket
    }

    fn dequeue(&mut self, party: PartyId, key: (WaitPriority, u64), party_limit: u32) {
        if let Some(party_state) = self.parties.get_mut(&party)
            && party_state.queue.remove(&key).is_some()
        {
            self.update_rank(party, party_limit);
        }
    }

    fn release(&mut self, party: PartyId, amount: u32, party_limit: u32) {
        self.free += amount;
        if let Some(party_state) = self.parties.get_mut(&party) {
            party_state.held = party_state.held.saturating_sub(amount);
            if party_state.queue.is_empty() {
                self.remove_if_idle(party);
            } else {
                self.update_rank(party, party_limit);
            }
        }
    }

    /// Grants the request of the next waiter if enough permits are free. Otherwise the free permits
    /// stay reserved for it, so that large requests are not starved.
    fn grant_next(&mut self, party_limit: u32) -> Option<(PartyId, PermitWaiter)> {
        let (_, _, party) = *self.eligible.first()?;
        let clock = self.tick();
        let party_state = self.parties.get_mut(&party)?;
        let (key, amount) = party_state.next_waiter()?;
        if amount > self.free {
            return None;
        }
        let waiter = party_state.queue.remove(&key)?;
        party_state.consecutive_resumes = if key.0 == WaitPriority::Resumed {
            party_state.consecutive_resumes.saturating_add(1)
        } else {
            0
        };
        party_state.held += waiter.amount;
        party_state.last_served = clock;
        self.free -= waiter.amount;
        self.update_rank(party, party_limit);
        Some((party, waiter))
    }

    /// Updates the position of a party in [`SemaphoreState::eligible`] after a change.
    fn update_rank(&mut self, party: PartyId, party_limit: u32) {
        let Some(party_state) = self.parties.get_mut(&party) else {
            return;
        };
        let is_eligible = party_state
            .next_waiter()
            .is_some_and(|(_, amount)| party_state.can_hold(amount, party_limit));
        let rank = is_eligible.then_some((party_state.held, party_state.last_served, party));
        let old = std::mem::replace(&mut party_state.rank, rank);
        if old != rank {
            if let Some(old) = old {
                self.eligible.remove(&old);
            }
            self.eligible.extend(rank);
        }
        self.remove_if_idle(party);
    }

    /// Removes an idle party, unless the table is small.
    fn remove_if_idle(&mut self, party: PartyId) {
        if self.parties.len() > MIN_RETAINED_PARTIES
            && self.parties.get(&party).is_some_and(PartyState::is_idle)
        {
            self.parties.remove(&party);
        }
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

impl PartyState {
    fn arrived_at(since: u64) -> Self {
        Self {
            held: 0,
            last_served: since,
            consecutive_resumes: 0,
            queue: BTreeMap::new(),
            rank: None,
        }
    }

    /// Returns the key of the next waiter and the number of permits that it requests.
    fn next_waiter(&self) -> Option<((WaitPriority, u64), u32)> {
        let new = if self.consecutive_resumes < MAX_CONSECUTIVE_RESUMES {
            None
        } else {
            self.queue.range((WaitPriority::New, 0)..).next()
        };
        new.or_else(|| self.queue.first_key_value())
            .map(|(place, waiter)| (*place, waiter.amount))
    }

    fn can_hold(&self, amount: u32, party_limit: u32) -> bool {
        self.held == 0 || self.held.saturating_add(amount) <= party_limit
    }

    fn is_idle(&self) -> bool {
        self.held == 0 && self.queue.is_empty()
    }
}

/// A hasher for party ids, which the host chooses.
#[derive(Debug, Default)]
struct PartyHasher(u64);

impl Hasher for PartyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests;
