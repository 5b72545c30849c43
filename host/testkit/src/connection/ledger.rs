//! Records the requests of a connection and checks that each gets exactly one response.

use std::collections::HashMap;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::event::CallerEvent;
use crate::message::{self, TimedMessage};
use crate::observable_value::ObservableValue;

/// Maximum number of faults that are described. Further faults are only counted.
const MAX_DESCRIBED_FAULTS: usize = 20;

/// The recorded requests, responses and faults of a connection.
#[derive(Debug, Default)]
pub struct RequestLedger {
    state: ObservableValue<LedgerState>,
}

#[derive(Debug, Default)]
struct LedgerState {
    requests: u64,
    responses: u64,
    /// The pending requests, by id.
    pending: HashMap<u64, UnansweredRequest>,
    invalid_lines: InvalidLines,
    faults: FaultSummary,
}

/// A request without a response so far.
#[derive(Debug)]
struct UnansweredRequest {
    events: Sender<CallerEvent>,
    /// If set, the request was cancelled: a response is allowed but not required.
    cancelled: bool,
}

/// The number of invalid lines that were sent, and of the errors that the server returned for them.
#[derive(Debug, Default)]
struct InvalidLines {
    sent: u64,
    errors: u64,
}

/// Violations of the protocol by the server.
#[derive(Clone, Debug, Default)]
pub struct FaultSummary {
    /// Total number of faults.
    pub count: u64,
    /// Descriptions of the first faults.
    pub first: Vec<String>,
}

impl RequestLedger {
    /// Registers a request whose response goes to `events`, and returns its id.
    pub(super) fn register_request(&self, to: &Sender<CallerEvent>) -> u64 {
        self.state.update(|state| {
            state.requests += 1;
            state.pending.insert(
                state.requests,
                UnansweredRequest {
                    events: to.clone(),
                    cancelled: false,
                },
            );
            state.requests
        })
    }

    pub(super) fn mark_cancelled(&self, id: u64) {
        self.state.update(|state| {
            if let Some(open) = state.pending.get_mut(&id) {
                open.cancelled = true;
            }
        });
    }

    pub(super) fn record_invalid_line(&self) {
        self.state.update(|state| state.invalid_lines.sent += 1);
    }

    /// Records that the server's output has ended.
    pub(super) fn notify_server_exit(&self) {
        self.state.read(|state| {
            for open in state.pending.values() {
                // If the caller was dropped, the event is discarded.
                drop(open.events.send(CallerEvent::ServerExited));
            }
        });
    }

    /// Processes a message from the server. Returns the message if it belongs to no caller's
    /// request.
    pub(super) fn handle_message(&self, message: Value, at: Instant) -> Option<Value> {
        self.state.update(|state| state.handle_message(message, at))
    }

    /// Checks a message that belongs to no caller's request.
    pub(super) fn check_unclaimed(&self, message: &Value) {
        self.state.update(|state| {
            if let Err(fault) = state.check_unclaimed(message) {
                state.faults.add(&fault);
            }
        });
    }

    /// Records a fault.
    pub fn record_fault(&self, what: &str) {
        self.state.update(|state| state.faults.add(what));
    }

    /// Returns the faults so far.
    pub fn faults(&self) -> FaultSummary {
        self.state.read(|state| state.faults.clone())
    }

    /// Returns the number of requests.
    pub fn request_count(&self) -> u64 {
        self.state.read(|state| state.requests)
    }

    /// Returns the number of responses.
    pub fn response_count(&self) -> u64 {
        self.state.read(|state| state.responses)
    }

    /// Returns the ids of the requests that have no response and were not cancelled.
    pub fn unanswered_requests(&self) -> Vec<u64> {
        self.state.read(|state| {
            let open = state.pending.iter().filter(|(_, open)| !open.cancelled);
            let mut ids: Vec<u64> = open.map(|(id, _)| *id).collect();
            ids.sort_unstable();
            ids
        })
    }

    /// Waits until the server has returned an error for every invalid line. Returns the number of
    /// missing errors after at most `patience`.
    pub fn wait_for_invalid_line_errors(&self, patience: Duration) -> u64 {
        self.state.wait_until(patience, |state| {
            state.invalid_lines.sent <= state.invalid_lines.errors
        });
        self.state
            .read(|state| state.invalid_lines.sent - state.invalid_lines.errors)
    }
}

impl LedgerState {
    /// Delivers a response or a progress notification to its caller. Returns any other message.
    fn handle_message(&mut self, message: Value, at: Instant) -> Option<Value> {
        match (
            message.get("id").and_then(Value::as_u64),
            message.get("method").and_then(Value::as_str),
        ) {
            (Some(id), None) => {
                let Some(open) = self.pending.remove(&id) else {
                    return Some(message);
                };
                self.responses += 1;
                match message::parse_response(message) {
                    // If the caller was dropped, the response is discarded.
                    Ok(what) => drop(open.events.send(CallerEvent::Response(
                        id,
                        TimedMessage {
                            message: what,
                            received_at: at,
                        },
                    ))),
                    Err(error) => self.faults.add(&format!("request {id}: {error:#}")),
                }
            }
            (None, Some("notifications/progress")) => {
                let token = message
                    .pointer("/params/progressToken")
                    .and_then(Value::as_u64);
                let Some((id, open)) = token.and_then(|id| Some((id, self.pending.get(&id)?)))
                else {
                    return Some(message);
                };
                drop(open.events.send(CallerEvent::Progress(id)));
            }
            _ => return Some(message),
        }
        None
    }

    /// Checks whether the server may send a message that belongs to no caller's request.
    fn check_unclaimed(&mut self, message: &Value) -> Result<(), String> {
        match (
            message.get("id").and_then(Value::as_u64),
            message.get("method").and_then(Value::as_str),
        ) {
            (Some(id), None) => {
                let when = if id <= self.requests {
                    "twice"
                } else {
                    "without having been asked"
                };
                Err(format!("request {id} was answered {when}: {message}"))
            }
            (None, Some("notifications/progress")) => {
                Err(format!("progress of a request that is not open: {message}"))
            }
            // Log messages of plugins. The session receives those of level `info` and above,
            // because it has not set another level.
            (None, Some("notifications/message"))
                if message
                    .pointer("/params/logger")
                    .is_some_and(Value::is_string) =>
            {
                Ok(())
            }
            (None, None)
                if message.get("error").is_some()
                    && self.invalid_lines.errors < self.invalid_lines.sent =>
            {
                self.invalid_lines.errors += 1;
                Ok(())
            }
            _ => Err(format!("the server said what nobody expects: {message}")),
        }
    }
}

impl FaultSummary {
    fn add(&mut self, what: &str) {
        self.count += 1;
        if self.first.len() < MAX_DESCRIBED_FAULTS {
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

    fn faults(books: &RequestLedger) -> u64 {
        books.faults().count
    }

    /// Processes a message as a strict connection does.
    fn hears(books: &RequestLedger, message: Value) {
        if let Some(unclaimed) = books.handle_message(message, Instant::now()) {
            books.check_unclaimed(&unclaimed);
        }
    }

    #[test]
    fn a_response_reaches_its_caller_and_a_second_one_is_a_fault() {
        let books = RequestLedger::default();
        let (to, events) = channel();
        let first = books.register_request(&to);
        let second = books.register_request(&to);
        hears(&books, json!({"id": second, "result": {}}));
        assert!(matches!(events.try_recv().unwrap(), CallerEvent::Response(id, _) if id == second));
        assert_eq!(
            (books.unanswered_requests(), faults(&books)),
            (vec![first], 0)
        );
        hears(&books, json!({"id": second, "result": {}}));
        hears(&books, json!({"id": 99, "result": {}}));
        hears(&books, json!({"method": "forged"}));
        assert_eq!((books.response_count(), faults(&books)), (1, 3));
    }

    #[test]
    fn a_response_to_a_cancelled_request_is_optional() {
        let books = RequestLedger::default();
        let (to, _events) = channel();
        let id = books.register_request(&to);
        books.mark_cancelled(id);
        assert!(books.unanswered_requests().is_empty());
        hears(
            &books,
            json!({"id": id, "error": {"code": 1, "message": "late"}}),
        );
        assert_eq!(faults(&books), 0);
        hears(&books, json!({"id": id, "result": {}}));
        assert_eq!(faults(&books), 1);
    }

    #[test]
    fn progress_belongs_to_an_open_request() {
        let books = RequestLedger::default();
        let (to, events) = channel();
        let id = books.register_request(&to);
        let progress = json!({"method": "notifications/progress", "params": {"progressToken": id, "progress": 1}});
        hears(&books, progress.clone());
        assert!(
            matches!(events.try_recv().unwrap(), CallerEvent::Progress(running) if running == id)
        );
        hears(&books, json!({"id": id, "result": {}}));
        hears(&books, progress);
        assert_eq!(faults(&books), 1);
    }

    #[test]
    fn each_invalid_line_gets_one_error() {
        let books = RequestLedger::default();
        books.record_invalid_line();
        assert_eq!(books.wait_for_invalid_line_errors(Duration::ZERO), 1);
        hears(
            &books,
            json!({"id": null, "error": {"code": -32700, "message": "no"}}),
        );
        assert_eq!(
            (
                books.wait_for_invalid_line_errors(Duration::ZERO),
                faults(&books)
            ),
            (0, 0)
        );
        hears(&books, json!({"error": {"code": -32700, "message": "no"}}));
        assert_eq!(faults(&books), 1);
    }

    #[test]
    fn waiting_callers_learn_of_the_end() {
        let books = RequestLedger::default();
        let (to, events) = channel();
        books.register_request(&to);
        books.notify_server_exit();
        assert!(matches!(
            events.try_recv().unwrap(),
            CallerEvent::ServerExited
        ));
    }
}
