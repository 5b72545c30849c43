//! A caller that always has requests in flight and checks every response.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use fastrand::Rng;
use serde_json::json;
use toolbay_testkit::{CallerEvent, CallerMailbox, DEADLINE, RequestResult};

use crate::counts::{CANCELLED, kind};
use crate::mix::{self, Call, Deed, Expected, said};
use crate::slot::{Said, Slot};
use crate::soak::Soak;

/// One in this many steps, a caller sends a burst.
const BURST_EVERY: usize = 2000;

/// Number of light calls in a burst: more than run at once, so that they queue.
const BURST: usize = 100;

/// A caller.
pub(crate) struct Caller<'a> {
    soak: &'a Soak<'a>,
    mailbox: CallerMailbox<'a>,
    random: Rng,
    /// Maximum number of requests in flight.
    window: usize,
    /// Number of light calls left in the current burst.
    burst: usize,
    open: HashMap<u64, Open<'a>>,
}

/// A request in flight.
struct Open<'a> {
    began: Instant,
    expected: Wanted<'a>,
    cancel: Option<Instant>,
}

enum Wanted<'a> {
    Call(Expected),
    /// Any result that the slot could return from this step on.
    Slot(&'a Slot, usize),
    Pong,
}

impl<'a> Caller<'a> {
    pub(crate) fn new(soak: &'a Soak<'a>, window: usize, seed: u64) -> Self {
        let mailbox = soak.connection.open_mailbox();
        Self {
            soak,
            mailbox,
            random: Rng::with_seed(seed),
            window,
            burst: 0,
            open: HashMap::new(),
        }
    }

    /// Calls until the run ends, then waits for the requests in flight.
    pub(crate) fn run(mut self) -> Result<()> {
        loop {
            while !self.soak.is_over() && (self.open.len() < self.window || self.burst > 0) {
                self.send()?;
            }
            if self.open.is_empty() {
                return Ok(());
            }
            self.hear()?;
        }
    }

    fn send(&mut self) -> Result<()> {
        if self.random.usize(..BURST_EVERY) == 0 {
            self.burst = BURST;
        }
        let deed = if self.burst > 0 {
            self.burst -= 1;
            mix::light(&mut self.random)
        } else {
            mix::deed(&mut self.random)
        };
        let began = Instant::now();
        let mut open = |id, expected, cancel: Option<Duration>| {
            self.open.insert(
                id,
                Open {
                    began,
                    expected,
                    cancel: cancel.map(|after| began + after),
                },
            );
        };
        match deed {
            Deed::Call(Call {
                tool,
                arguments,
                expected,
                cancel,
            }) => {
                open(
                    self.mailbox.call(tool, &arguments)?,
                    Wanted::Call(expected),
                    cancel,
                );
            }
            Deed::CallSlot => {
                let Some(slot) = self.random.choice(self.soak.slots) else {
                    return Ok(());
                };
                // The step is read before the call is sent, because a change may take effect in
                // between.
                let step = slot.step();
                open(
                    self.mailbox.call(&slot.tool, &slot.arguments)?,
                    Wanted::Slot(slot, step),
                    None,
                );
            }
            Deed::Ping => open(
                self.mailbox.request("ping", &json!({}))?,
                Wanted::Pong,
                None,
            ),
            Deed::Garbage(line) => self.soak.connection.send_invalid_line(line)?,
        }
        Ok(())
    }

    /// Receives the next response, or cancels a request that is due.
    fn hear(&mut self) -> Result<()> {
        let now = Instant::now();
        let due = |open: &Open| open.cancel.unwrap_or(open.began + DEADLINE);
        let Some((id, at)) = self
            .open
            .iter()
            .map(|(id, open)| (*id, due(open)))
            .min_by_key(|(_, at)| *at)
        else {
            return Ok(());
        };
        // Responses that have already arrived take precedence.
        match self.mailbox.next_event(at.max(now)) {
            Some(CallerEvent::Response(id, answer)) => {
                if let Some(open) = self.open.remove(&id) {
                    self.judge(id, &open, &answer.message);
                }
            }
            Some(CallerEvent::Progress(_)) => {}
            Some(CallerEvent::ServerExited) => bail!("the server exited"),
            None => match self.open.remove(&id) {
                Some(Open {
                    cancel: Some(_), ..
                }) => {
                    self.soak.connection.cancel(id)?;
                    self.soak.counts.call(CANCELLED);
                }
                _ => bail!(
                    "request {id} was not answered within {} s",
                    DEADLINE.as_secs()
                ),
            },
        }
        Ok(())
    }

    fn judge(&self, id: u64, open: &Open<'_>, answer: &RequestResult) {
        let verdict = match &open.expected {
            Wanted::Pong => return,
            Wanted::Call(expected) => expected.judge(answer),
            Wanted::Slot(slot, since) => judge_slot(slot, *since, answer),
        };
        self.soak.counts.call(&kind(answer));
        if let Err(fault) = verdict {
            self.soak
                .connection
                .ledger()
                .record_fault(&format!("call {id}: {fault}"));
        }
    }
}

/// Checks whether a slot's tool may return this result since that step.
pub(crate) fn judge_slot(slot: &Slot, since: usize, answer: &RequestResult) -> Result<(), String> {
    match slot_said(answer) {
        Some(said) if slot.allows(since, &said) => Ok(()),
        _ => Err(format!(
            "{} answered what it could not: {answer:?}",
            slot.tool
        )),
    }
}

/// Returns the result of a slot's tool; `None` if it is neither a text nor an unknown tool.
pub(crate) fn slot_said(answer: &RequestResult) -> Option<Said> {
    match answer {
        Ok(result) if kind(answer) == "ok" => Some(Some(said(result)?.to_owned())),
        Err(refusal) if refusal.code == -32602 => Some(None),
        _ => None,
    }
}
