//! The books of a conversation: what was asked, and whether it was answered once.

use std::collections::HashMap;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::event::Event;
use crate::message::{self, Arrived};
use crate::signal::Signal;

/// Faults that are described; the others are only counted.
const DESCRIBED: usize = 20;

/// What was asked and answered, and what should not have happened.
#[derive(Debug, Default)]
pub struct Books {
    state: Signal<State>,
}

#[derive(Debug, Default)]
struct State {
    asked: u64,
    answered: u64,
    /// By the request's id.
    open: HashMap<u64, Open>,
    garbage: Garbage,
    faults: Faults,
}

/// A request that has not been answered yet.
#[derive(Debug)]
struct Open {
    to: Sender<Event>,
    /// Nobody waits for it: it may be answered, but need not be.
    cancelled: bool,
}

/// Lines that were no requests.
#[derive(Debug, Default)]
struct Garbage {
    sent: u64,
    answered: u64,
}

/// What should not have happened.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// How often.
    pub count: u64,
    /// What the first ones were.
    pub first: Vec<String>,
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
        self.state.read(|state| {
            for open in state.open.values() {
                // A caller that has gone already need not know.
                drop(open.to.send(Event::Gone));
            }
        });
    }

    /// Takes in a message of the server's, and gives it back if no caller's request is concerned.
    pub(super) fn came(&self, message: Value, at: Instant) -> Option<Value> {
        self.state.update(|state| state.came(message, at))
    }

    /// Judges a message that concerns no caller's request.
    pub(super) fn judge(&self, message: &Value) {
        self.state.update(|state| {
            if let Err(fault) = state.judge(message) {
                state.faults.add(&fault);
            }
        });
    }

    /// Notes something that should not have happened.
    pub fn fault(&self, what: &str) {
        self.state.update(|state| state.faults.add(what));
    }

    /// What should not have happened up to now.
    pub fn faults(&self) -> Faults {
        self.state.read(|state| state.faults.clone())
    }

    /// How many requests were made.
    pub fn asked(&self) -> u64 {
        self.state.read(|state| state.asked)
    }

    /// How many answers came.
    pub fn answered(&self) -> u64 {
        self.state.read(|state| state.answered)
    }

    /// The requests that should have been answered and were not.
    pub fn unanswered(&self) -> Vec<u64> {
        self.state.read(|state| {
            let open = state.open.iter().filter(|(_, open)| !open.cancelled);
            let mut ids: Vec<u64> = open.map(|(id, _)| *id).collect();
            ids.sort_unstable();
            ids
        })
    }

    /// Waits until every line that was no request has been answered; how many have not.
    pub fn garbage_unanswered(&self, patience: Duration) -> u64 {
        self.state.wait_until(patience, |state| state.garbage.sent <= state.garbage.answered);
        self.state.read(|state| state.garbage.sent - state.garbage.answered)
    }
}

impl State {
    /// Delivers answers and progress to whom they belong.
    fn came(&mut self, message: Value, at: Instant) -> Option<Value> {
        match (message.get("id").and_then(Value::as_u64), message.get("method").and_then(Value::as_str)) {
            (Some(id), None) => {
                let Some(open) = self.open.remove(&id) else { return Some(message) };
                self.answered += 1;
                match message::answer(message) {
                    // A caller that has gone does not want it.
                    Ok(what) => drop(open.to.send(Event::Answer(id, Arrived { what, at }))),
                    Err(error) => self.faults.add(&format!("request {id}: {error:#}")),
                }
            }
            (None, Some("notifications/progress")) => {
                let token = message.pointer("/params/progressToken").and_then(Value::as_u64);
                let Some((id, open)) = token.and_then(|id| Some((id, self.open.get(&id)?))) else {
                    return Some(message);
                };
                drop(open.to.send(Event::Progress(id)));
            }
            _ => return Some(message),
        }
        None
    }

    /// Whether a server may say this when no caller's request is concerned.
    fn judge(&mut self, message: &Value) -> Result<(), String> {
        match (message.get("id").and_then(Value::as_u64), message.get("method").and_then(Value::as_str)) {
            (Some(id), None) => {
                let when = if id <= self.asked { "twice" } else { "without having been asked" };
                Err(format!("request {id} was answered {when}: {message}"))
            }
            (None, Some("notifications/progress")) => Err(format!("progress of a request that is not open: {message}")),
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

    /// Takes in a message as a strict connection does.
    fn hears(books: &Books, message: Value) {
        if let Some(unclaimed) = books.came(message, Instant::now()) {
            books.judge(&unclaimed);
        }
    }

    #[test]
    fn an_answer_finds_its_caller_and_a_second_one_is_a_fault() {
        let (books, (to, events)) = (Books::default(), channel());
        let (first, second) = (books.asks(&to), books.asks(&to));
        hears(&books, json!({"id": second, "result": {}}));
        assert!(matches!(events.try_recv().unwrap(), Event::Answer(id, _) if id == second));
        assert_eq!((books.unanswered(), faults(&books)), (vec![first], 0));
        hears(&books, json!({"id": second, "result": {}}));
        hears(&books, json!({"id": 99, "result": {}}));
        hears(&books, json!({"method": "forged"}));
        assert_eq!((books.answered(), faults(&books)), (1, 3));
    }

    #[test]
    fn a_cancelled_request_may_be_answered_but_need_not_be() {
        let (books, (to, _events)) = (Books::default(), channel());
        let id = books.asks(&to);
        books.cancelled(id);
        assert!(books.unanswered().is_empty());
        hears(&books, json!({"id": id, "error": {"code": 1, "message": "late"}}));
        assert_eq!(faults(&books), 0);
        hears(&books, json!({"id": id, "result": {}}));
        assert_eq!(faults(&books), 1);
    }

    #[test]
    fn progress_belongs_to_an_open_request() {
        let (books, (to, events)) = (Books::default(), channel());
        let id = books.asks(&to);
        let progress = json!({"method": "notifications/progress", "params": {"progressToken": id, "progress": 1}});
        hears(&books, progress.clone());
        assert!(matches!(events.try_recv().unwrap(), Event::Progress(running) if running == id));
        hears(&books, json!({"id": id, "result": {}}));
        hears(&books, progress);
        assert_eq!(faults(&books), 1);
    }

    #[test]
    fn garbage_is_answered_as_often_as_it_is_sent() {
        let books = Books::default();
        books.garbage_sent();
        assert_eq!(books.garbage_unanswered(Duration::ZERO), 1);
        hears(&books, json!({"id": null, "error": {"code": -32700, "message": "no"}}));
        assert_eq!((books.garbage_unanswered(Duration::ZERO), faults(&books)), (0, 0));
        hears(&books, json!({"error": {"code": -32700, "message": "no"}}));
        assert_eq!(faults(&books), 1);
    }

    #[test]
    fn the_end_is_told_to_who_waits() {
        let (books, (to, events)) = (Books::default(), channel());
        books.asks(&to);
        books.ended();
        assert!(matches!(events.try_recv().unwrap(), Event::Gone));
    }
}
