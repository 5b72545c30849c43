//! Records the requests of a connection and checks that each gets exactly one response.

use std::collections::HashMap;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::event::Event;
use crate::message::{self, Arrived};
use crate::signal::Signal;

/// Maximum number of faults that are described. Further faults are only counted.
const DESCRIBED: usize = 20;

/// The recorded requests, responses and faults of a connection.
#[derive(Debug, Default)]
pub struct Books {
    state: Signal<State>,
}

#[derive(Debug, Default)]
struct State {
    asked: u64,
    answered: u64,
    /// The pending requests, by id.
    open: HashMap<u64, Open>,
    garbage: Garbage,
    faults: Faults,
}

/// A request without a response so far.
#[derive(Debug)]
struct Open {
    to: Sender<Event>,
    /// If set, the request was cancelled: a response is allowed but not required.
    cancelled: bool,
}

/// The number of invalid lines that were sent, and of the errors that the server returned for them.
#[derive(Debug, Default)]
struct Garbage {
    sent: u64,
    answered: u64,
}

/// Violations of the protocol by the server.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Total number of faults.
    pub count: u64,
    /// Descriptions of the first faults.
    pub first: Vec<String>,
}

impl Books {
    /// Registers a request whose response goes to `to`, and returns its id.
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

    /// Records that the server's output has ended.
    pub(super) fn ended(&self) {
        self.state.read(|state| {
            for open in state.open.values() {
                // If the caller was dropped, the event is discarded.
                drop(open.to.send(Event::Gone));
            }
        });
    }

    /// Processes a message from the server. Returns the message if it belongs to no caller's
    /// request.
    pub(super) fn came(&self, message: Value, at: Instant) -> Option<Value> {
        self.state.update(|state| state.came(message, at))
    }

    /// Checks a message that belongs to no caller's request.
    pub(super) fn judge(&self, message: &Value) {
        self.state.update(|state| {
            if let Err(fault) = state.judge(message) {
                state.faults.add(&fault);
            }
        });
    }

    /// Records a fault.
    pub fn fault(&self, what: &str) {
        self.state.update(|state| state.faults.add(what));
    }

    /// Returns the faults so far.
    pub fn faults(&self) -> Faults {
        self.state.read(|state| state.faults.clone())
    }

    /// Returns the number of requests.
    pub fn asked(&self) -> u64 {
        self.state.read(|state| state.asked)
    }

    /// Returns the number of responses.
    pub fn answered(&self) -> u64 {
        self.state.read(|state| state.answered)
    }

    /// Returns the ids of the requests that have no response and were not cancelled.
    pub fn unanswered(&self) -> Vec<u64> {
        self.state.read(|state| {
            let open = state.open.iter().filter(|(_, open)| !open.cancelled);
            let mut ids: Vec<u64> = open.map(|(id, _)| *id).collect();
            ids.sort_unstable();
            ids
        })
    }

    /// Waits until the server has returned an error for every invalid line. Returns the number of
    /// missing errors after at most `patience`.
    pub fn garbage_unanswered(&self, patience: Duration) -> u64 {
        self.state.wait_until(patience, |state| state.garbage.sent <= state.garbage.answered);
        self.state.read(|state| state.garbage.sent - state.garbage.answered)
    }
}

impl State {
    /// Delivers a response or a progress notification to its caller. Returns any other message.
    fn came(&mut self, message: Value, at: Instant) -> Option<Value> {
        match (message.get("id").and_then(Value::as_u64), message.get("method").and_then(Value::as_str)) {
            (Some(id), None) => {
                let Some(open) = self.open.remove(&id) else { return Some(message) };
                self.answered += 1;
                match message::answer(message) {
                    // If the caller was dropped, the response is discarded.
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

    /// Checks whether the server may send a message that belongs to no caller's request.
    fn judge(&mut self, message: &Value) -> Result<(), String> {
        match (message.get("id").and_then(Value::as_u64), message.get("method").and_then(Value::as_str)) {
            (Some(id), None) => {
                let when = if id <= self.asked { "twice" } else { "without having been asked" };
                Err(format!("request {id} was answered {when}: {message}"))
            }
            (None, Some("notifications/progress")) => Err(format!("progress of a request that is not open: {message}")),
            // Log messages of plugins. The session receives those of level `info` and above,
            // because it has not set another level.
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
            // Descriptions are truncated, because a message may have any size.
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

    /// Processes a message as a strict connection does.
    fn hears(books: &Books, message: Value) {
        if let Some(unclaimed) = books.came(message, Instant::now()) {
            books.judge(&unclaimed);
        }
    }

    #[test]
    fn a_response_reaches_its_caller_and_a_second_one_is_a_fault() {
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
    fn a_response_to_a_cancelled_request_is_optional() {
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
    fn each_invalid_line_gets_one_error() {
        let books = Books::default();
        books.garbage_sent();
        assert_eq!(books.garbage_unanswered(Duration::ZERO), 1);
        hears(&books, json!({"id": null, "error": {"code": -32700, "message": "no"}}));
        assert_eq!((books.garbage_unanswered(Duration::ZERO), faults(&books)), (0, 0));
        hears(&books, json!({"error": {"code": -32700, "message": "no"}}));
        assert_eq!(faults(&books), 1);
    }

    #[test]
    fn waiting_callers_learn_of_the_end() {
        let (books, (to, events)) = (Books::default(), channel());
        books.asks(&to);
        books.ended();
        assert!(matches!(events.try_recv().unwrap(), Event::Gone));
    }
}
