//! The stream with the response to a request of a session, which a client can go on with after its connection has ended
//! (2025-03-26, "Resumability and Redelivery").
//!
//! Only the newest [`StreamReader`] takes messages out of the queue, so that a client can reconnect before the server knows that the
//! old connection is gone.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::time::{Instant, sleep_until};

use super::event;
use super::event_log::{EventLog, SentEvent};
use crate::caller::Caller;
use crate::outbox::{OutboxReceiver, OutgoingMessage};
use crate::quota::QuotaPortion;

/// The stream with the response to a request.
pub(super) struct ResponseStream {
    number: u64,
    /// Who sent the request. Somebody with other rights gets nothing of it.
    caller: Arc<Caller>,
    messages: OutboxReceiver,
    state: Mutex<StreamState>,
}

struct StreamState {
    log: EventLog,
    /// Which reader is the newest.
    reader: u64,
    /// Since when nobody reads.
    left: Option<Instant>,
    /// Whether the client has the id of an event.
    is_named: bool,
    /// Whether everything that was sent has been read.
    is_over: bool,
}

/// What a reader finds.
enum StreamItem {
    Event(SentEvent),
    Nothing,
    /// The stream is over, or another reader has replaced this one.
    End,
}

/// How a reader leaves its stream.
pub(super) enum ReaderExit {
    /// Another one reads it.
    Replaced,
    /// Its client has no id to go on with.
    Unnamed,
    /// Its client can go on with it. Until then, this reader takes what is sent, so that it counts as what is kept and the call
    /// does not wait.
    Open(StreamReader),
    /// Everything was sent.
    Over,
}

impl ResponseStream {
    /// Begins the stream with this number of its session: `first`, which was taken out of the queue already, and what will be in
    /// `messages`. What is kept of it is taken from `held`. The client polls: at `closes`, the reader ends.
    pub(super) fn open(
        number: u64,
        caller: Arc<Caller>,
        first: Option<&OutgoingMessage>,
        messages: OutboxReceiver,
        held: QuotaPortion,
        closes: Option<Instant>,
    ) -> StreamReader {
        let mut log = EventLog::new(number, held);
        if let Some(first) = first {
            log.push(first);
        }
        let state = StreamState { log, reader: 0, left: None, is_named: false, is_over: false };
        let stream = Arc::new(Self { number, caller, messages, state: Mutex::new(state) });
        StreamReader { stream, mine: 0, position: 0, closes }
    }

    /// Reads what follows the event with this number, in place of whoever has read until now; `None` if something of it is no
    /// longer kept, or if `caller` has other rights than who sent the request. At `closes`, the reader ends.
    pub(super) fn resume(
        self: &Arc<Self>,
        caller: &Caller,
        after: u64,
        closes: Option<Instant>,
    ) -> Option<StreamReader> {
        let mut state = self.state();
        if caller.rights != self.caller.rights || !state.log.can_resume_after(after) {
            return None;
        }
        state.reader += 1;
        state.left = None;
        let mine = state.reader;
        drop(state);
        self.messages.wake();
        Some(StreamReader { stream: Arc::clone(self), mine, position: after, closes })
    }

    /// Ends whoever reads it: it is not kept any more.
    pub(super) fn discard(&self) {
        self.state().reader += 1;
        self.messages.wake();
    }

    /// Whether nobody has read it since then.
    pub(super) fn is_idle_since(&self, since: Instant) -> bool {
        self.state().left.is_some_and(|left| left <= since)
    }

    fn next_item(&self, mine: u64, after: u64) -> StreamItem {
        let mut state = self.state();
        if state.reader != mine {
            return StreamItem::End;
        }
        // Asked first: before the last sender left, it may have sent something.
        let is_complete = self.messages.has_no_senders();
        let kept = state.log.next_after(after).cloned();
        let event = kept.or_else(|| self.messages.try_recv().map(|message| state.log.push(&message)));
        match event {
            Some(event) => {
                state.is_named = true;
                StreamItem::Event(event)
            }
            None if is_complete => {
                state.is_over = true;
                StreamItem::End
            }
            None => StreamItem::Nothing,
        }
    }

    // Held for a few instructions and never across an await.
    fn state(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a [`ResponseStream`].
pub(super) struct StreamReader {
    stream: Arc<ResponseStream>,
    mine: u64,
    /// The number of the event that was read last.
    position: u64,
    closes: Option<Instant>,
}

impl StreamReader {
    /// The event that opens the stream for its client.
    pub(super) fn opening(&self) -> Bytes {
        let mut state = self.stream.state();
        state.is_named = true;
        event::opening_event(state.log.id(self.position))
    }

    /// The next event; `None` at the end, when the client is to poll, or when another reader has replaced this one.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            // Made first: it notices what changes from here on.
            let mut changed = pin!(self.stream.messages.changed());
            match self.stream.next_item(self.mine, self.position) {
                StreamItem::Event(event) => {
                    self.position = event.number;
                    return Some(event.frame);
                }
                StreamItem::End => return None,
                StreamItem::Nothing => {}
            }
            match self.closes {
                None => changed.as_mut().await,
                Some(closes) => tokio::select! {
                    () = changed.as_mut() => {}
                    () = sleep_until(closes) => return None,
                },
            }
        }
    }

    /// Its stream, with its number.
    pub(super) fn stream(&self) -> (u64, &Arc<ResponseStream>) {
        (self.stream.number, &self.stream)
    }

    /// Reads nothing more.
    pub(super) fn detach(&self) -> ReaderExit {
        let mut state = self.stream.state();
        if state.reader != self.mine {
            drop(state);
            // It may have been woken in place of the one that replaced it.
            self.stream.messages.wake();
            return ReaderExit::Replaced;
        }
        state.left = Some(Instant::now());
        match (state.is_named, state.is_over) {
            (false, _) => ReaderExit::Unnamed,
            (true, true) => ReaderExit::Over,
            (true, false) => {
                state.reader += 1;
                let (mine, position) = (state.reader, state.log.newest());
                ReaderExit::Open(Self { stream: Arc::clone(&self.stream), mine, position, closes: None })
            }
        }
    }
}
