//! The budget for the sockets of all plugins' connections. Each socket takes one of the limited
//! file descriptors of the process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};

/// Interval at which a waiting caller tries to evict an idle connection.
const LOOK: Duration = Duration::from_millis(20);

/// The budget for open sockets. Idle connections also have a socket, and are evicted when another
/// connection needs it.
pub(crate) struct SocketBudget {
    room: Arc<Semaphore>,
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
        Self { room, holders: Mutex::default() }
    }

    /// Registers a pool whose idle connections can be evicted.
    pub(crate) fn share(&self, holder: Weak<dyn IdleSocketHolder>) {
        let mut holders = self.holders();
        holders.retain(|holder| holder.strong_count() > 0);
        holders.push(holder);
    }

    /// Reserves one more socket, if one is available.
    pub(crate) fn spare(&self) -> Option<SocketReservation> {
        Arc::clone(&self.room).try_acquire_owned().ok().map(|permit| SocketReservation { _permit: permit })
    }

    /// Reserves one more socket. Waits until one is available: first come, first served.
    pub(crate) async fn take(&self) -> Option<SocketReservation> {
        if let Some(room) = self.spare() {
            return Some(room);
        }
        let permit = Arc::clone(&self.room).acquire_owned();
        tokio::pin!(permit);
        loop {
            self.close_oldest_idle();
            tokio::select! {
                // The semaphore is never closed.
                permit = &mut permit => return permit.ok().map(|permit| SocketReservation { _permit: permit }),
                () = sleep(LOOK) => {}
            }
        }
    }

    /// Closes the connection that has been idle for the longest time, of all plugins.
    fn close_oldest_idle(&self) {
        let holders: Vec<Arc<dyn IdleSocketHolder>> = self.holders().iter().filter_map(Weak::upgrade).collect();
        let idle = holders.iter().filter_map(|holder| Some((holder.idle_since()?, holder)));
        if let Some((_, holder)) = idle.min_by_key(|(since, _)| *since) {
            holder.close_oldest_idle();
        }
    }

    // The lock is held for a few instructions and never across an await.
    fn holders(&self) -> MutexGuard<'_, Vec<Weak<dyn IdleSocketHolder>>> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn there_is_room_for_so_many_and_in_turn() {
        let sockets = SocketBudget::new(2);
        let (one, two) = (sockets.take().await.unwrap(), sockets.take().await.unwrap());
        assert!(sockets.spare().is_none());
        let mut third = std::pin::pin!(sockets.take());
        tokio::select! {
            biased;
            _ = &mut third => panic!("there are only two"),
            () = std::future::ready(()) => {}
        }
        drop(one);
        assert!(sockets.spare().is_none(), "somebody waits for it already");
        drop((third.await, two));
        assert!(sockets.spare().is_some());
        assert!(SocketBudget::new(0).spare().is_some());
    }
}
