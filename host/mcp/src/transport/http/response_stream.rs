//! The stream with the response to a request of a session, which a client can resume after its
//! connection has ended (2025-03-26, "Resumability and Redelivery").
//!
//! Only the newest [`StreamReader`] takes messages out of the queue, so that a client can reconnect
//! before the server knows that the old connection is gone.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep_until};
use toolbay_background::QuotaPortion;

use super::event;
use super::event_log::{EventLog, SentEvent};
use crate::exchange::outbox::{OutboxReceiver, OutgoingMessage};
use crate::host::caller::Caller;

/// The stream with the response to a request.
pub(super) struct ResponseStream {
    number: u64,
    /// The caller that sent the request. A caller with other rights cannot read the stream.
    caller: Arc<Caller>,
    messages: OutboxReceiver,
    state: Mutex<StreamState>,
}

struct StreamState {
    log: EventLog,
    /// The id of the newest reader.
    current_reader: u64,
    /// The time at which the last reader left, if no reader is attached.
    detached_at: Option<Instant>,
    /// If set, the client has the id of an event.
    has_event_id: bool,
    /// If set, all sent messages have been read.
    is_finished: bool,
}

/// The result of polling the stream once.
enum StreamItem {
    Event(SentEvent),
    Nothing,
    /// The stream has ended, or another reader has replaced this one.
    End,
}

/// The state of a stream when its reader leaves it.
pub(super) enum ReaderExit {
    /// Another reader reads the stream.
    Replaced,
    /// The client has no id from which to resume.
    Unnamed,
    /// The client can resume the stream. Until then, this reader moves messages from the queue to
    /// the retained events, so that the call does not wait for space in the queue.
    Open(StreamReader),
    /// All messages were sent.
    Over,
}

impl ResponseStream {
    /// Starts the stream with this number in its session, with `first`, which was taken out of the
    /// queue already, and with the content of `messages`. The memory for retained events is taken
    /// from `held`. At `closes`, the reader ends, so that the client reconnects (polls).
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
        let state = StreamState {
            log,
            current_reader: 0,
            detached_at: None,
            has_event_id: false,
            is_finished: false,
        };
        let stream = Arc::new(Self {
            number,
            caller,
            messages,
            state: Mutex::new(state),
        });
        StreamReader {
            stream,
            id: 0,
            position: 0,
            closes,
        }
    }

    /// Reads the events after `after` in place of the current reader. Returns `None` if one of them
    /// is no longer retained, or if `caller` has other rights than the sender of the request. At
    /// `closes`, the reader ends.
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
        state.current_reader += 1;
        state.detached_at = None;
        let mine = state.current_reader;
        drop(state);
        self.messages.wake();
        Some(StreamReader {
            stream: Arc::clone(self),
            id: mine,
            position: after,
            closes,
        })
    }

    /// Ends the current reader, because the stream is no longer retained.
    pub(super) fn discard(&self) {
        self.state().current_reader += 1;
        self.messages.wake();
    }

    /// Returns whether no reader has been attached since `since`.
    pub(super) fn is_idle_since(&self, since: Instant) -> bool {
        self.state().detached_at.is_some_and(|left| left <= since)
    }

    fn next_item(&self, mine: u64, after: u64) -> StreamItem {
        let mut state = self.state();
        if state.current_reader != mine {
            return StreamItem::End;
        }
        // Checked first: the last sender may have sent a message before it was dropped.
        let is_complete = self.messages.has_no_senders();
        let kept = state.log.next_after(after).cloned();
        let event = kept.or_else(|| {
            self.messages
                .try_recv()
                .map(|message| state.log.push(&message))
        });
        match event {
            Some(event) => {
                state.has_event_id = true;
                StreamItem::Event(event)
            }
            None if is_complete => {
                state.is_finished = true;
                StreamItem::End
            }
            None => StreamItem::Nothing,
        }
    }

    // Held for a few instructions and never across an await.
    fn state(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock()
    }
}

/// Reader of a [`ResponseStream`].
pub(super) struct StreamReader {
    stream: Arc<ResponseStream>,
    id: u64,
    /// The number of the last event that was read.
    position: u64,
    closes: Option<Instant>,
}

impl StreamReader {
    /// Returns the event that opens the stream for its client.
    pub(super) fn opening(&self) -> Bytes {
        let mut state = self.stream.state();
        state.has_event_id = true;
        event::opening_event(state.log.id(self.position))
    }

    /// Returns the next event; `None` at the end, when the client is to poll, or when another
    /// reader has replaced this one.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            // Created first, so that it observes every later change.
            let mut changed = pin!(self.stream.messages.changed());
            match self.stream.next_item(self.id, self.position) {
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

    /// Returns the stream and its number.
    pub(super) fn stream(&self) -> (u64, &Arc<ResponseStream>) {
        (self.stream.number, &self.stream)
    }

    /// Stops reading.
    pub(super) fn detach(&self) -> ReaderExit {
        let mut state = self.stream.state();
        if state.current_reader != self.id {
            drop(state);
            // This reader may have been woken in place of its replacement.
            self.stream.messages.wake();
            return ReaderExit::Replaced;
        }
        state.detached_at = Some(Instant::now());
        match (state.has_event_id, state.is_finished) {
            (false, _) => ReaderExit::Unnamed,
            (true, true) => ReaderExit::Over,
            (true, false) => {
                state.current_reader += 1;
                let mine = state.current_reader;
                let position = state.log.newest();
                ReaderExit::Open(Self {
                    stream: Arc::clone(&self.stream),
                    id: mine,
                    position,
                    closes: None,
                })
            }
        }
    }
}
