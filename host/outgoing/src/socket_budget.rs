//! The budget for the sockets of all plugins' connections. Each socket takes one of the limited
//! file descriptors of the process.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};

/// Interval at which a waiting caller tries to evict an idle connection.
const EVICTION_INTERVAL: Duration = Duration::from_millis(20);

/// The budget for open sockets. Idle connections also have a socket, and are evicted when another
/// connection needs it. A semaphore, because waiting callers are served in order.
pub(crate) struct SocketBudget {
    permits: Arc<Semaphore>,
    holders: Mutex<Vec<Weak<dyn IdleSocketHolder>>>,
}

/// An owner of connections that can be idle.
pub(crate) trait IdleSocketHolder: Send + Sync {
    /// Returns the start of the longest idle time; `None` if no connection is idle.
    fn idle_since(&self) -> Option<Instant>;

    /// Closes the connection that has been idle for the longest time.
    fn close_oldest_idle(&self);
}

/// The reservation of one socket. Dropped after the socket.
#[derive(Debug)]
pub(crate) struct SocketReservation {
    _permit: OwnedSemaphorePermit,
}

impl SocketBudget {
    /// Creates a budget of at most `most` sockets, and at least one.
    pub(crate) fn new(most: usize) -> Self {
        let room = Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS)));
        Self {
            permits: room,
            holders: Mutex::default(),
        }
    }

    /// Registers a pool whose idle connections can be evicted.
    pub(crate) fn register(&self, holder: Weak<dyn IdleSocketHolder>) {
        let mut holders = self.lock_holders();
        holders.retain(|holder| holder.strong_count() > 0);
        holders.push(holder);
    }

    /// Reserves one more socket, if one is available.
    pub(crate) fn try_reserve(&self) -> Option<SocketReservation> {
        Arc::clone(&self.permits)
            .try_acquire_owned()
            .ok()
            .map(|permit| SocketReservation { _permit: permit })
    }

    /// Reserves one more socket. Waits until one is available: first come, first served.
    pub(crate) async fn reserve(&self) -> Option<SocketReservation> {
        if let Some(room) = self.try_reserve() {
            return Some(room);
        }
        let permit = Arc::clone(&self.permits).acquire_owned();
        tokio::pin!(permit);
        loop {
            self.close_oldest_idle();
            tokio::select! {
                // The semaphore is never closed.
                permit = &mut permit => return permit.ok().map(|permit| SocketReservation { _permit: permit }),
                () = sleep(EVICTION_INTERVAL) => {}
            }
        }
    }

    /// Closes the connection that has been idle for the longest time, of all plugins.
    fn close_oldest_idle(&self) {
        let holders: Vec<Arc<dyn IdleSocketHolder>> = self
            .lock_holders()
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        let idle = holders
            .iter()
            .filter_map(|holder| Some((holder.idle_since()?, holder)));
        if let Some((_, holder)) = idle.min_by_key(|(since, _)| *since) {
            holder.close_oldest_idle();
        }
    }

    // The lock is held for a few instructions and never across an await.
    fn lock_holders(&self) -> MutexGuard<'_, Vec<Weak<dyn IdleSocketHolder>>> {
        self.holders.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn there_is_room_for_so_many_and_in_turn() {
        let sockets = SocketBudget::new(2);
        let one = sockets.reserve().await.unwrap();
        let two = sockets.reserve().await.unwrap();
        assert!(sockets.try_reserve().is_none());
        let mut third = std::pin::pin!(sockets.reserve());
        tokio::select! {
            biased;
            _ = &mut third => panic!("there are only two"),
            () = std::future::ready(()) => {}
        }
        drop(one);
        assert!(
            sockets.try_reserve().is_none(),
            "somebody waits for it already"
        );
        drop((third.await, two));
        assert!(sockets.try_reserve().is_some());
        assert!(SocketBudget::new(0).try_reserve().is_some());
    }
}
