//! Messages of a session that belong to no request.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use toolbay_background::QuotaPortion;

use super::event::{self, EventId, EventSource};
use super::event_log::EventLog;
use crate::exchange::outbox::{OutboxReceiver, OutgoingMessage};
use crate::lists::access_rights::CallerRights;

/// Id of the stream of a session's news, in the ids of its events.
pub(super) const STANDALONE_STREAM_ID: u64 = 0;

/// Retained notifications of a session.
#[derive(Debug)]
pub(super) struct StandaloneMessages {
    state: Mutex<NewsState>,
}

#[derive(Debug)]
struct NewsState {
    log: EventLog,
    /// The rights of the caller that the retained notifications were sent to.
    rights: CallerRights,
}

impl StandaloneMessages {
    /// Creates an empty log. The memory for retained events is taken from `held`.
    pub(super) fn new(held: QuotaPortion) -> Self {
        Self {
            state: Mutex::new(NewsState {
                log: EventLog::new(STANDALONE_STREAM_ID, held),
                rights: CallerRights::All,
            }),
        }
    }

    /// Reads `messages`, which are visible with `rights`. A client that has received the events up
    /// to `after` first gets those that it missed, if they were sent to a caller with the same
    /// rights.
    pub(super) fn read(
        self: &Arc<Self>,
        after: Option<u64>,
        rights: &CallerRights,
        messages: OutboxReceiver,
    ) -> StandaloneReader {
        let mut state = self.state();
        if state.rights != *rights {
            state.rights = rights.clone();
            state.log.clear();
        }
        let newest = state.log.newest();
        // An id that this session never sent is from another server.
        let position = after.filter(|after| *after <= newest).unwrap_or(newest);
        let mut missed = VecDeque::new();
        let mut read = position;
        while let Some(event) = state.log.next_after(read) {
            read = event.number;
            missed.push_back(event.frame.clone());
        }
        drop(state);
        StandaloneReader {
            news: Arc::clone(self),
            rights: rights.clone(),
            position,
            missed,
            messages,
        }
    }

    fn push(&self, message: &OutgoingMessage, rights: &CallerRights) -> Bytes {
        let mut state = self.state();
        let event = if state.rights == *rights {
            state.log.push(message)
        } else {
            state.log.push_unretained(message)
        };
        event.frame
    }

    // Held for a few instructions and never across an await.
    fn state(&self) -> MutexGuard<'_, NewsState> {
        self.state.lock()
    }
}

/// Reader of the news of a session. Unread messages are retained for the next reader.
pub(super) struct StandaloneReader {
    news: Arc<StandaloneMessages>,
    rights: CallerRights,
    /// The event after which the reader starts.
    position: u64,
    missed: VecDeque<Bytes>,
    messages: OutboxReceiver,
}

impl StandaloneReader {
    /// Returns the event that opens the stream for its client.
    pub(super) fn opening(&self) -> Bytes {
        event::opening_event(EventId {
            stream: STANDALONE_STREAM_ID,
            event: self.position,
        })
    }
}

impl EventSource for StandaloneReader {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(missed) = self.missed.pop_front() {
            return Some(missed);
        }
        let message = self.messages.recv().await?;
        Some(self.news.push(&message, &self.rights))
    }
}

impl Drop for StandaloneReader {
    fn drop(&mut self) {
        while let Some(message) = self.messages.try_recv() {
            self.news.push(&message, &self.rights);
        }
    }
}
