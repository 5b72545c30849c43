//! Server-sent events, and the ids from which a client resumes a stream.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;

/// Delay before a client reconnects to a stream that ended without the expected message.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);

/// A comment, which clients ignore.
pub(super) const COMMENT_EVENT: Bytes = Bytes::from_static(b":\n\n");

/// The id of an event: the stream of its session, and its number in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventId {
    /// 0 is the stream for messages that belong to no request.
    pub(super) stream: u64,
    /// 0 is the event that opens a stream, without a message.
    pub(super) event: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.stream, self.event)
    }
}

impl FromStr for EventId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (stream, event) = text.split_once('-').ok_or(())?;
        let number = |digits: &str| {
            let digits =
                Some(digits).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
            digits.and_then(|digits| digits.parse().ok()).ok_or(())
        };
        Ok(Self {
            stream: number(stream)?,
            event: number(event)?,
        })
    }
}

/// Source of the events of a stream.
pub(super) trait EventSource: Send + 'static {
    /// Returns the next event; `None` at the end. Cancel safe: no event is lost.
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

/// Returns the event that opens a stream. It has no message, but an id from which the client can
/// resume (SEP-1699).
pub(super) fn opening_event(id: EventId) -> Bytes {
    format!(
        "id: {id}\nretry: {}\ndata:\n\n",
        RECONNECT_DELAY.as_millis()
    )
    .into()
}

/// Encodes a message as an event. Its JSON contains no line feeds.
pub(super) fn message_event(id: Option<EventId>, text: &[u8]) -> Bytes {
    let id = id.map_or_else(String::new, |id| format!("id: {id}\n"));
    named_event("message", &id, text)
}

/// Encodes an event with this name.
pub(super) fn named_event(name: &str, fields: &str, data: &[u8]) -> Bytes {
    let head = format!("event: {name}\n{fields}data: ");
    [head.as_bytes(), data, b"\n\n"].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        for id in [
            EventId {
                stream: 0,
                event: 0,
            },
            EventId {
                stream: 7,
                event: u64::MAX,
            },
        ] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        for wrong in [
            "",
            "-",
            "1",
            "1-",
            "-1",
            "+1-1",
            "1-2-3",
            "1-x",
            " 1-1",
            "18446744073709551616-0",
        ] {
            assert_eq!(wrong.parse::<EventId>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn events_are_as_clients_read_them() {
        let id = EventId {
            stream: 3,
            event: 1,
        };
        assert_eq!(
            &message_event(Some(id), b"{}")[..],
            b"event: message\nid: 3-1\ndata: {}\n\n"
        );
        assert_eq!(
            &message_event(None, b"{}")[..],
            b"event: message\ndata: {}\n\n"
        );
        assert_eq!(
            &opening_event(EventId { event: 0, ..id })[..],
            b"id: 3-0\nretry: 1000\ndata:\n\n"
        );
    }
}
