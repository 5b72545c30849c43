//! The sockets of all plugins' connections: each takes a descriptor of the process, of which there are only so many.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};

/// How often somebody who waits looks for a connection that has become idle. Nobody looks while there is room.
const LOOK: Duration = Duration::from_millis(20);

/// The sockets that there may be. Idle connections have one, too, and lose it to whoever needs it.
pub(crate) struct SocketBudget {
    room: Arc<Semaphore>,
    holders: Mutex<Vec<Weak<dyn IdleSocketHolder>>>,
}

/// Who has sockets that nobody uses now.
pub(crate) trait IdleSocketHolder: Send + Sync {
    /// Since when the oldest idle connection is idle; `None` if there is none.
    fn idle_since(&self) -> Option<Instant>;

    /// Closes the connection that has been idle for longest.
    fn close_oldest_idle(&self);
}

/// Room for one socket. Dropped after it.
#[derive(Debug)]
pub(crate) struct SocketReservation {
    _permit: OwnedSemaphorePermit,
}

impl SocketBudget {
    /// At most so many, and at least one.
    pub(crate) fn new(most: usize) -> Self {
        let room = Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS)));
        Self { room, holders: Mutex::default() }
    }

    /// Notes who has connections that make room for others when they are idle.
    pub(crate) fn share(&self, holder: Weak<dyn IdleSocketHolder>) {
        let mut holders = self.holders();
        holders.retain(|holder| holder.strong_count() > 0);
        holders.push(holder);
    }

    /// Room for one more socket, if there is.
    pub(crate) fn spare(&self) -> Option<SocketReservation> {
        Arc::clone(&self.room).try_acquire_owned().ok().map(|permit| SocketReservation { _permit: permit })
    }

    /// Room for one more socket. Waits until there is: first come, first served.
    pub(crate) async fn take(&self) -> Option<SocketReservation> {
        if let Some(room) = self.spare() {
            return Some(room);
        }
        let permit = Arc::clone(&self.room).acquire_owned();
        tokio::pin!(permit);
        loop {
            self.close_oldest_idle();
            tokio::select! {
                // It is never closed.
                permit = &mut permit => return permit.ok().map(|permit| SocketReservation { _permit: permit }),
                () = sleep(LOOK) => {}
            }
        }
    }

    /// Closes the connection that has been idle for longest, whichever plugin has it.
    fn close_oldest_idle(&self) {
        let holders: Vec<Arc<dyn IdleSocketHolder>> = self.holders().iter().filter_map(Weak::upgrade).collect();
        let idle = holders.iter().filter_map(|holder| Some((holder.idle_since()?, holder)));
        if let Some((_, holder)) = idle.min_by_key(|(since, _)| *since) {
            holder.close_oldest_idle();
        }
    }

    // Held for a few instructions and never across an await.
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
