//! The sessions that `initialize` created: a bounded table from which idle ones are removed.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::trust::Trust;
use crate::access::Rights;
use crate::caller::Caller;
use crate::changes;
use crate::outbox::Outbox;
use crate::session::Session;

/// Random bytes in a session's id: 128 bits cannot be guessed.
const ID_BYTES: usize = 16;

/// All sessions.
pub(super) struct Sessions {
    table: Mutex<HashMap<String, Arc<HttpSession>>>,
    most: usize,
    idle: Duration,
}

/// One session.
pub(super) struct HttpSession {
    pub(super) session: Arc<Session>,
    used: Mutex<Instant>,
    /// The open streams for messages that belong to no request, in the order in which they were opened.
    streams: watch::Sender<BTreeSet<u64>>,
}

impl Sessions {
    /// At most `most` sessions, each kept for `idle` without activity.
    pub(super) fn new(most: usize, idle: Duration) -> Self {
        Self { table: Mutex::default(), most, idle }
    }

    /// Adds a session and returns its id. If the table is full, removes the session that was idle longest.
    ///
    /// # Errors
    ///
    /// The system provides no random bytes.
    pub(super) fn insert(&self, session: Arc<Session>) -> Result<String, getrandom::Error> {
        let id = new_id()?;
        let mut table = self.table();
        if table.len() >= self.most {
            let idle = table.iter().filter(|(_, entry)| !entry.is_in_use());
            if let Some(id) = idle.min_by_key(|(_, entry)| entry.used()).map(|(id, _)| id.clone())
                && let Some(entry) = table.remove(&id)
            {
                entry.end();
            }
        }
        let entry = HttpSession { session, used: Mutex::new(Instant::now()), streams: watch::Sender::default() };
        table.insert(id.clone(), Arc::new(entry));
        Ok(id)
    }

    /// Whether a session can be added, possibly by removing an idle one.
    pub(super) fn has_room(&self) -> bool {
        let table = self.table();
        table.len() < self.most || table.values().any(|entry| !entry.is_in_use())
    }

    /// The session with this id, if it belongs to `caller`.
    pub(super) fn get(&self, id: &str, caller: &Caller) -> Option<Arc<HttpSession>> {
        let entry = self.table().get(id).filter(|entry| entry.session.is_of(caller)).cloned()?;
        entry.touch();
        Some(entry)
    }

    /// Ends the session with this id, if it belongs to `caller`.
    pub(super) fn remove(&self, id: &str, caller: &Caller) -> bool {
        let mut table = self.table();
        if table.get(id).is_none_or(|entry| !entry.session.is_of(caller)) {
            return false;
        }
        let removed = table.remove(id);
        drop(table);
        if let Some(entry) = &removed {
            entry.end();
        }
        removed.is_some()
    }

    /// Ends sessions that were idle for too long, until `stop` is cancelled.
    pub(super) async fn expire(&self, stop: CancellationToken) {
        // Precision does not matter here.
        let every = (self.idle / 4).clamp(Duration::from_millis(50), Duration::from_mins(1));
        while stop.run_until_cancelled(tokio::time::sleep(every)).await.is_some() {
            self.table().retain(|_, entry| {
                let keep = entry.is_in_use() || entry.used().elapsed() < self.idle;
                if !keep {
                    entry.end();
                }
                keep
            });
        }
    }

    // Held for a few instructions and never across an await.
    fn table(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<HttpSession>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpSession {
    /// Notifies the client of changes that `rights` show, through `outbox`, while it reads and `trust` lasts: the rights
    /// and the trust of the request that opened the stream. If the client has several streams open, only the newest is
    /// used.
    pub(super) async fn stream(self: Arc<Self>, rights: Rights, trust: Trust, outbox: Outbox) {
        let mut mine = 0;
        self.streams.send_modify(|streams| {
            mine = streams.last().map_or(0, |newest| newest + 1);
            streams.insert(mine);
        });
        let mut streams = self.streams.subscribe();
        let mut negotiated = self.session.negotiated.subscribe();
        let telling = async {
            // Nothing is sent before the client has sent `notifications/initialized`.
            if negotiated.wait_for(|negotiated| negotiated.initialized).await.is_err() {
                return;
            }
            while streams.wait_for(|streams| streams.last() == Some(&mine)).await.is_ok() {
                tokio::select! {
                    () = changes::tell(&self.session, &rights, &outbox) => return,
                    _ = streams.wait_for(|streams| streams.last() != Some(&mine)) => {}
                }
            }
        };
        tokio::select! {
            () = telling => {}
            () = outbox.closed() => {}
            () = trust.lapse() => {}
            () = self.session.life.closing.cancelled() => {}
            () = self.session.life.ended.cancelled() => {}
        }
        self.streams.send_modify(|streams| {
            streams.remove(&mine);
        });
        self.touch();
    }

    fn is_in_use(&self) -> bool {
        !self.streams.borrow().is_empty() || !self.session.in_flight.is_empty()
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn used(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        self.session.life.ended.cancel();
    }
}

/// A random id.
pub(super) fn new_id() -> Result<String, getrandom::Error> {
    let mut bytes = [0; ID_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(hex::encode(bytes))
}
