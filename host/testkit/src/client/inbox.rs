//! Buffers the messages from the server until they are requested.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

use anyhow::{Error, Result, anyhow, bail};
use serde_json::Value;

use crate::message::TimedMessage;
use crate::{DEADLINE, LIST_CHANGED};

/// A line from the server: a message, or the reason why it is not a valid message.
type IncomingLine = TimedMessage<Result<Value, String>>;

/// Messages in the order in which they arrived.
#[derive(Debug)]
pub(super) struct MessageInbox {
    incoming: Receiver<IncomingLine>,
    /// Messages that arrived while the client waited for something else.
    buffered: VecDeque<TimedMessage<Value>>,
    /// The number of `list_changed` notifications that were read.
    pub(super) list_changes: usize,
}

impl MessageInbox {
    pub(super) fn new(arriving: Receiver<IncomingLine>) -> Self {
        Self {
            incoming: arriving,
            buffered: VecDeque::new(),
            list_changes: 0,
        }
    }

    /// Waits for the first message that matches and removes it. The others stay.
    pub(super) fn wait_for(
        &mut self,
        fits: impl FnMut(&Value) -> bool,
    ) -> Result<TimedMessage<Value>> {
        self.wait_until(Instant::now() + DEADLINE, fits)?
            .ok_or_else(timeout_error)
    }

    /// Like [`wait_for`](Self::wait_for), but returns `None` if no message matches until
    /// `deadline`.
    pub(super) fn wait_until(
        &mut self,
        deadline: Instant,
        mut fits: impl FnMut(&Value) -> bool,
    ) -> Result<Option<TimedMessage<Value>>> {
        let kept = self
            .buffered
            .iter()
            .position(|arrived| fits(&arrived.message));
        if let Some(found) = kept.and_then(|at| self.buffered.remove(at)) {
            return Ok(Some(found));
        }
        while let Some(arrived) = self.next_until(deadline)? {
            if fits(&arrived.message) {
                return Ok(Some(arrived));
            }
            self.buffered.push_back(arrived);
        }
        Ok(None)
    }

    /// Waits for the next new message. Buffered messages stay.
    pub(super) fn next(&mut self) -> Result<TimedMessage<Value>> {
        self.next_until(Instant::now() + DEADLINE)?
            .ok_or_else(timeout_error)
    }

    /// Removes and returns the buffered messages that match.
    pub(super) fn take_buffered(&mut self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let (taken, kept) = self
            .buffered
            .drain(..)
            .partition(|arrived: &TimedMessage<Value>| fits(&arrived.message));
        self.buffered = kept;
        taken.into_iter().map(|arrived| arrived.message).collect()
    }

    /// Removes and returns all remaining messages, after the end of the output.
    pub(super) fn drain_remaining(&mut self) -> Result<Vec<Value>> {
        let mut all: Vec<Value> = self
            .buffered
            .drain(..)
            .map(|arrived| arrived.message)
            .collect();
        for arrived in self.incoming.try_iter() {
            all.push(arrived.message.map_err(Error::msg)?);
        }
        Ok(all)
    }

    /// Waits for the next new message. Returns `None` if none arrives until `deadline`.
    fn next_until(&mut self, deadline: Instant) -> Result<Option<TimedMessage<Value>>> {
        match self
            .incoming
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            Ok(TimedMessage {
                message: what,
                received_at: at,
            }) => {
                let what = what.map_err(Error::msg)?;
                self.list_changes += usize::from(
                    what.get("method")
                        .is_some_and(|method| method == LIST_CHANGED),
                );
                Ok(Some(TimedMessage {
                    message: what,
                    received_at: at,
                }))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => bail!("the server exited"),
        }
    }
}

fn timeout_error() -> Error {
    anyhow!("nothing came within {} s", DEADLINE.as_secs())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use serde_json::json;

    use super::*;

    #[test]
    fn messages_are_kept_until_they_are_requested() {
        let (sender, arriving) = channel();
        let mut inbox = MessageInbox::new(arriving);
        for n in 1..=5 {
            sender
                .send(TimedMessage {
                    message: Ok(json!(n)),
                    received_at: Instant::now(),
                })
                .unwrap();
        }
        assert_eq!(inbox.wait_for(|n| *n == 2).unwrap().message, 2);
        assert_eq!(inbox.next().unwrap().message, 3);
        assert_eq!(inbox.wait_for(|_| true).unwrap().message, 1);
        assert_eq!(inbox.wait_for(|n| *n == 5).unwrap().message, 5);
        assert!(
            inbox
                .wait_until(Instant::now(), |n| *n == 6)
                .unwrap()
                .is_none()
        );
        assert_eq!(inbox.take_buffered(|n| *n == 4), [json!(4)]);
        sender
            .send(TimedMessage {
                message: Err("not JSON".to_owned()),
                received_at: Instant::now(),
            })
            .unwrap();
        assert_eq!(inbox.next().unwrap_err().to_string(), "not JSON");
        drop(sender);
        assert_eq!(inbox.next().unwrap_err().to_string(), "the server exited");
        assert!(inbox.drain_remaining().unwrap().is_empty());
    }
}
