//! The books of a conversation: what was asked, and whether it was answered once.

use std::collections::HashMap;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Event;
use crate::client::{self, Arrived};
use crate::signal::Signal;

/// Faults that are described; the others are only counted.
const DESCRIBED: usize = 20;

/// What was asked and answered, and what should not have happened.
#[derive(Default)]
pub(crate) struct Books {
    state: Signal<State>,
}

#[derive(Default)]
struct State {
    asked: u64,
    answered: u64,
    /// By the request's id.
    open: HashMap<u64, Open>,
    garbage: Garbage,
    faults: Faults,
    ended: bool,
}

/// A request that has not been answered yet.
struct Open {
    to: Sender<Event>,
    /// Nobody waits for it: it may be answered, but need not be.
    cancelled: bool,
}

/// Lines that were no requests.
#[derive(Default)]
struct Garbage {
    sent: u64,
    answered: u64,
}

/// What should not have happened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    /// How often.
    pub(crate) count: u64,
    /// What the first ones were.
    pub(crate) first: Vec<String>,
}

impl Books {
    /// Opens a request whose answer goes to `to`, and returns its id.
    pub(super) fn asks(&self, to: &Sender<Event>) -> u64 {
        self.state.update(|state| {
            state.asked += 1;
            state.open.insert(state.asked, Open { to: to.clone(), cancelled: false });
            state.asked
        })
    }

    pub(super) fn cancelled(&self, id: u64) {
        self.state.update(|state| {
            if let Some(open) = state.open.get_mut(&id) {
                open.cancelled = true;
            }
        });
    }

    pub(super) fn garbage_sent(&self) {
        self.state.update(|state| state.garbage.sent += 1);
    }

    /// The server's output has ended.
    pub(super) fn ended(&self) {
        self.state.update(|state| {
            state.ended = true;
            for open in state.open.values() {
                // A caller that has gone already need not know.
                drop(open.to.send(Event::Gone));
            }
        });
    }

    /// Takes in a message of the server's.
    pub(super) fn came(&self, message: Value, at: Instant) {
        self.state.update(|state| {
            if let Err(fault) = state.came(message, at) {
                state.faults.add(&fault);
            }
        });
    }

    /// Notes something that should not have happened.
    pub(crate) fn fault(&self, what: &str) {
        self.state.update(|state| state.faults.add(what));
    }

    /// What should not have happened up to now.
    pub(crate) fn faults(&self) -> Faults {
        self.state.read(|state| state.faults.clone())
    }

    /// How many requests were made.
    pub(crate) fn asked(&self) -> u64 {
        self.state.read(|state| state.asked)
    }

    /// How many answers came.
    pub(crate) fn answered(&self) -> u64 {
        self.state.read(|state| state.answered)
    }

    /// The requests that should have been answered and were not.
    pub(crate) fn unanswered(&self) -> Vec<u64> {
        self.state.read(|state| {
            let open = state.open.iter().filter(|(_, open)| !open.cancelled);
            let mut ids: Vec<u64> = open.map(|(id, _)| *id).collect();
            ids.sort_unstable();
            ids
        })
    }

    /// Waits until every line that was no request has been answered; how many have not.
    pub(crate) fn garbage_unanswered(&self, patience: Duration) -> u64 {
        self.state.wait_until(patience, |state| state.garbage.sent <= state.garbage.answered);
        self.state.read(|state| state.garbage.sent - state.garbage.answered)
    }

    /// Waits until the server's output has ended; false if that takes too long.
    pub(super) fn wait_for_end(&self, patience: Duration) -> bool {
        self.state.wait_until(patience, |state| state.ended)
    }
}

impl State {
    fn came(&mut self, message: Value, at: Instant) -> Result<(), String> {
        match (message.get("id").and_then(Value::as_u64), message.get("method").and_then(Value::as_str)) {
            (Some(id), None) => {
                let Some(open) = self.open.remove(&id) else {
                    let when = if id <= self.asked { "twice" } else { "without having been asked" };
                    return Err(format!("request {id} was answered {when}: {message}"));
                };
                self.answered += 1;
                let what = client::answer(message).map_err(|error| format!("request {id}: {error:#}"))?;
                // A caller that has gone does not want it.
                drop(open.to.send(Event::Answer(id, Arrived { what, at })));
                Ok(())
            }
            (None, Some("notifications/progress")) => {
                let token = message.pointer("/params/progressToken").and_then(Value::as_u64);
                let Some((id, open)) = token.and_then(|id| Some((id, self.open.get(&id)?))) else {
                    return Err(format!("progress of a request that is not open: {message}"));
                };
                drop(open.to.send(Event::Progress(id)));
                Ok(())
            }
            // What plugins log. A session has all of it from `info` on, because it asked for no other level.
            (None, Some("notifications/message"))
                if message.pointer("/params/logger").is_some_and(Value::is_string) =>
            {
                Ok(())
            }
            (None, None) if message.get("error").is_some() && self.garbage.answered < self.garbage.sent => {
                self.garbage.answered += 1;
                Ok(())
            }
            _ => Err(format!("the server said what nobody expects: {message}")),
        }
    }
}

impl Faults {
    fn add(&mut self, what: &str) {
        self.count += 1;
        if self.first.len() < DESCRIBED {
            // A megabyte of text is no description.
            self.first.push(what.chars().take(600).collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use serde_json::json;

    use super::*;

    fn faults(books: &Books) -> u64 {
        books.faults().count
    }

    #[test]
    fn an_answer_finds_its_caller_and_a_second_one_is_a_fault() {
        let (books, (to, events)) = (Books::default(), channel());
        let (first, second) = (books.asks(&to), books.asks(&to));
        books.came(json!({"id": second, "result": {}}), Instant::now());
        assert!(matches!(events.try_recv().unwrap(), Event::Answer(id, _) if id == second));
        assert_eq!((books.unanswered(), faults(&books)), (vec![first], 0));
        books.came(json!({"id": second, "result": {}}), Instant::now());
        books.came(json!({"id": 99, "result": {}}), Instant::now());
        books.came(json!({"method": "forged"}), Instant::now());
        assert_eq!((books.answered(), faults(&books)), (1, 3));
    }

    #[test]
    fn a_cancelled_request_may_be_answered_but_need_not_be() {
        let (books, (to, _events)) = (Books::default(), channel());
        let id = books.asks(&to);
        books.cancelled(id);
        assert!(books.unanswered().is_empty());
        books.came(json!({"id": id, "error": {"code": 1, "message": "late"}}), Instant::now());
        assert_eq!(faults(&books), 0);
        books.came(json!({"id": id, "result": {}}), Instant::now());
        assert_eq!(faults(&books), 1);
    }

    #[test]
    fn progress_belongs_to_an_open_request() {
        let (books, (to, events)) = (Books::default(), channel());
        let id = books.asks(&to);
        let progress = json!({"method": "notifications/progress", "params": {"progressToken": id, "progress": 1}});
        books.came(progress.clone(), Instant::now());
        assert!(matches!(events.try_recv().unwrap(), Event::Progress(running) if running == id));
        books.came(json!({"id": id, "result": {}}), Instant::now());
        books.came(progress, Instant::now());
        assert_eq!(faults(&books), 1);
    }

    #[test]
    fn garbage_is_answered_as_often_as_it_is_sent() {
        let books = Books::default();
        books.garbage_sent();
        assert_eq!(books.garbage_unanswered(Duration::ZERO), 1);
        books.came(json!({"id": null, "error": {"code": -32700, "message": "no"}}), Instant::now());
        assert_eq!((books.garbage_unanswered(Duration::ZERO), faults(&books)), (0, 0));
        books.came(json!({"error": {"code": -32700, "message": "no"}}), Instant::now());
        assert_eq!(faults(&books), 1);
    }

    #[test]
    fn the_end_is_told_to_who_waits() {
        let (books, (to, events)) = (Books::default(), channel());
        books.asks(&to);
        books.ended();
        assert!(matches!(events.try_recv().unwrap(), Event::Gone));
        assert!(books.wait_for_end(Duration::ZERO));
    }
}
