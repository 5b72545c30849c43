//! Buffers the messages from the server until they are requested.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

use anyhow::{Error, Result, anyhow, bail};
use serde_json::Value;

use crate::message::Arrived;
use crate::{DEADLINE, LIST_CHANGED};

/// A line from the server: a message, or the reason why it is not a valid message.
type Read = Arrived<Result<Value, String>>;

/// Messages in the order in which they arrived.
#[derive(Debug)]
pub(super) struct Inbox {
    arriving: Receiver<Read>,
    /// Messages that arrived while the client waited for something else.
    kept: VecDeque<Arrived<Value>>,
    /// The number of `list_changed` notifications that were read.
    pub(super) list_changes: usize,
}

impl Inbox {
    pub(super) fn new(arriving: Receiver<Read>) -> Self {
        Self { arriving, kept: VecDeque::new(), list_changes: 0 }
    }

    /// Waits for the first message that matches and removes it. The others stay.
    pub(super) fn wait_for(&mut self, fits: impl FnMut(&Value) -> bool) -> Result<Arrived<Value>> {
        self.wait_until(Instant::now() + DEADLINE, fits)?.ok_or_else(nothing)
    }

    /// Like [`wait_for`](Self::wait_for), but returns `None` if no message matches until
    /// `deadline`.
    pub(super) fn wait_until(
        &mut self,
        deadline: Instant,
        mut fits: impl FnMut(&Value) -> bool,
    ) -> Result<Option<Arrived<Value>>> {
        let kept = self.kept.iter().position(|arrived| fits(&arrived.what));
        if let Some(found) = kept.and_then(|at| self.kept.remove(at)) {
            return Ok(Some(found));
        }
        while let Some(arrived) = self.next_until(deadline)? {
            if fits(&arrived.what) {
                return Ok(Some(arrived));
            }
            self.kept.push_back(arrived);
        }
        Ok(None)
    }

    /// Waits for the next new message. Buffered messages stay.
    pub(super) fn next(&mut self) -> Result<Arrived<Value>> {
        self.next_until(Instant::now() + DEADLINE)?.ok_or_else(nothing)
    }

    /// Removes and returns the buffered messages that match.
    pub(super) fn take_kept(&mut self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let (taken, kept) = self.kept.drain(..).partition(|arrived: &Arrived<Value>| fits(&arrived.what));
        self.kept = kept;
        taken.into_iter().map(|arrived| arrived.what).collect()
    }

    /// Removes and returns all remaining messages, after the end of the output.
    pub(super) fn rest(&mut self) -> Result<Vec<Value>> {
        let mut all: Vec<Value> = self.kept.drain(..).map(|arrived| arrived.what).collect();
        for arrived in self.arriving.try_iter() {
            all.push(arrived.what.map_err(Error::msg)?);
        }
        Ok(all)
    }

    /// Waits for the next new message. Returns `None` if none arrives until `deadline`.
    fn next_until(&mut self, deadline: Instant) -> Result<Option<Arrived<Value>>> {
        match self.arriving.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Arrived { what, at }) => {
                let what = what.map_err(Error::msg)?;
                self.list_changes += usize::from(what.get("method").is_some_and(|method| method == LIST_CHANGED));
                Ok(Some(Arrived { what, at }))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => bail!("the server exited"),
        }
    }
}

fn nothing() -> Error {
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
        let mut inbox = Inbox::new(arriving);
        for n in 1..=5 {
            sender.send(Arrived { what: Ok(json!(n)), at: Instant::now() }).unwrap();
        }
        assert_eq!(inbox.wait_for(|n| *n == 2).unwrap().what, 2);
        assert_eq!(inbox.next().unwrap().what, 3);
        assert_eq!(inbox.wait_for(|_| true).unwrap().what, 1);
        assert_eq!(inbox.wait_for(|n| *n == 5).unwrap().what, 5);
        assert!(inbox.wait_until(Instant::now(), |n| *n == 6).unwrap().is_none());
        assert_eq!(inbox.take_kept(|n| *n == 4), [json!(4)]);
        sender.send(Arrived { what: Err("not JSON".to_owned()), at: Instant::now() }).unwrap();
        assert_eq!(inbox.next().unwrap_err().to_string(), "not JSON");
        drop(sender);
        assert_eq!(inbox.next().unwrap_err().to_string(), "the server exited");
        assert!(inbox.rest().unwrap().is_empty());
    }
}
