//! The sent events of a stream, retained for a client that resumes the stream.

use std::collections::VecDeque;

use bytes::Bytes;
use toolbay_background::QuotaPortion;

use super::event::{self, EventId};
use crate::exchange::outbox::{OutgoingKind, OutgoingMessage};

/// Bytes that a stream or an event counts in addition to its text.
pub(super) const EVENT_OVERHEAD_BYTES: usize = 512;

/// Maximum bytes of retained notifications per stream. Older ones may be dropped: the newest ones
/// state the progress of a call.
const MAX_NOTIFICATION_BYTES: usize = 64 << 10;

/// The sent events of a stream that its client may need again.
#[derive(Debug)]
pub(super) struct EventLog {
    /// The number of the stream.
    stream: u64,
    /// The number of the newest event. The first event has number 1.
    newest: u64,
    /// Retained responses and questions.
    messages: VecDeque<SentEvent>,
    /// Retained notifications. The oldest are dropped first.
    notifications: VecDeque<SentEvent>,
    /// Bytes of the retained notifications.
    notification_bytes: usize,
    /// The newest event that is not retained although its client requires it. 0 if there is none.
    newest_lost: u64,
    /// The caller's share of the memory for retained events of all streams.
    held: QuotaPortion,
}

/// An event with a message, in its encoded form.
#[derive(Clone, Debug)]
pub(super) struct SentEvent {
    pub(super) number: u64,
    pub(super) frame: Bytes,
}

impl SentEvent {
    fn size(&self) -> usize {
        EVENT_OVERHEAD_BYTES + self.frame.len()
    }
}

impl EventLog {
    /// Creates an empty log for the stream with this number. The memory for retained events is
    /// taken from `held`.
    pub(super) fn new(stream: u64, held: QuotaPortion) -> Self {
        let messages = VecDeque::new();
        let notifications = VecDeque::new();
        Self {
            stream,
            newest: 0,
            messages,
            notifications,
            notification_bytes: 0,
            newest_lost: 0,
            held,
        }
    }

    /// Returns the id of the event with this number.
    pub(super) fn id(&self, event: u64) -> EventId {
        EventId {
            stream: self.stream,
            event,
        }
    }

    /// Returns the number of the newest event; 0 if there is none.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// Adds a message as the newest event, and retains it if there is capacity.
    pub(super) fn push(&mut self, message: &OutgoingMessage) -> SentEvent {
        let event = self.push_unretained(message);
        let fits = self.held.grow(event.size()).is_ok();
        match message.kind {
            OutgoingKind::Notification if fits => {
                self.notification_bytes += event.size();
                self.notifications.push_back(event.clone());
                while self.notification_bytes > MAX_NOTIFICATION_BYTES
                    && let Some(oldest) = self.notifications.pop_front()
                {
                    self.notification_bytes -= oldest.size();
                    self.held.release(oldest.size());
                }
            }
            OutgoingKind::Notification => {}
            OutgoingKind::Request | OutgoingKind::Response | OutgoingKind::Rejection(_) if fits => {
                self.messages.push_back(event.clone());
            }
            OutgoingKind::Request | OutgoingKind::Response | OutgoingKind::Rejection(_) => {
                self.newest_lost = self.newest;
            }
        }
        event
    }

    /// Adds a message as the newest event without retaining it.
    pub(super) fn push_unretained(&mut self, message: &OutgoingMessage) -> SentEvent {
        self.newest += 1;
        SentEvent {
            number: self.newest,
            frame: event::message_event(Some(self.id(self.newest)), &message.text),
        }
    }

    /// Returns the oldest retained event after the one with this number.
    pub(super) fn next_after(&self, number: u64) -> Option<&SentEvent> {
        let next =
            |events: &VecDeque<SentEvent>| events.partition_point(|event| event.number <= number);
        let message = self.messages.get(next(&self.messages));
        let notification = self.notifications.get(next(&self.notifications));
        message
            .into_iter()
            .chain(notification)
            .min_by_key(|event| event.number)
    }

    /// Returns whether a client that has received the events up to this number can resume.
    pub(super) fn can_resume_after(&self, number: u64) -> bool {
        (self.newest_lost..=self.newest).contains(&number)
    }

    /// Drops all retained events.
    pub(super) fn clear(&mut self) {
        for event in self.messages.drain(..).chain(self.notifications.drain(..)) {
            self.held.release(event.size());
        }
        self.notification_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use toolbay_background::SharedQuota;

    use super::*;

    fn texts(log: &EventLog, mut after: u64) -> Vec<String> {
        let mut texts = Vec::new();
        while let Some(event) = log.next_after(after) {
            after = event.number;
            let frame = std::str::from_utf8(&event.frame).unwrap();
            texts.push(
                frame
                    .lines()
                    .find_map(|line| line.strip_prefix("data: "))
                    .unwrap()
                    .to_owned(),
            );
        }
        texts
    }

    #[test]
    fn what_was_sent_is_kept_in_its_order() {
        let quota = SharedQuota::new(1 << 20, 1 << 20);
        let mut log = EventLog::new(1, quota.try_reserve("ada", 0).unwrap());
        for n in 1..=4 {
            let text = n.to_string().into_bytes();
            let message = if n % 2 == 0 {
                OutgoingMessage::response(text)
            } else {
                OutgoingMessage::notification(text)
            };
            assert_eq!(log.push(&message).number, n);
        }
        assert_eq!(texts(&log, 0), ["1", "2", "3", "4"]);
        assert_eq!(texts(&log, 2), ["3", "4"]);
        assert_eq!(
            (
                log.can_resume_after(0),
                log.can_resume_after(4),
                log.can_resume_after(5)
            ),
            (true, true, false)
        );
        log.clear();
        assert!(texts(&log, 0).is_empty());
        assert_eq!((log.newest(), quota.of("ada")), (4, 0));
    }

    #[test]
    fn notifications_are_kept_up_to_a_bound_and_the_oldest_go() {
        let quota = SharedQuota::new(10 << 20, 10 << 20);
        let mut log = EventLog::new(1, quota.try_reserve("ada", 0).unwrap());
        log.push(&OutgoingMessage::request(b"question".to_vec()));
        for n in 0..10_000 {
            log.push(&OutgoingMessage::notification(n.to_string().into_bytes()));
        }
        let kept = texts(&log, 0);
        assert_eq!(
            (kept[0].as_str(), kept.last().unwrap().as_str()),
            ("question", "9999")
        );
        assert!(kept.len() < 200, "{}", kept.len());
        assert!(
            quota.of("ada") <= MAX_NOTIFICATION_BYTES + 2 * EVENT_OVERHEAD_BYTES,
            "{}",
            quota.of("ada")
        );
        drop(log);
        assert_eq!(quota.of("ada"), 0);
    }

    #[test]
    fn what_does_not_fit_is_lost_and_known_to_be() {
        let quota = SharedQuota::new(3 * EVENT_OVERHEAD_BYTES, 3 * EVENT_OVERHEAD_BYTES);
        let mut log = EventLog::new(1, quota.try_reserve("ada", 0).unwrap());
        log.push(&OutgoingMessage::request(vec![b'x'; EVENT_OVERHEAD_BYTES]));
        log.push(&OutgoingMessage::notification(vec![
            b'x';
            EVENT_OVERHEAD_BYTES
        ]));
        assert!(log.can_resume_after(0), "clients do without notifications");
        log.push(&OutgoingMessage::response(vec![b'x'; EVENT_OVERHEAD_BYTES]));
        assert_eq!(
            (
                log.can_resume_after(1),
                log.can_resume_after(2),
                log.can_resume_after(3)
            ),
            (false, false, true)
        );
    }
}
