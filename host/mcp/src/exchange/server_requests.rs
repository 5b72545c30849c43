//! Requests that the server has sent to a client and that have no response yet.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::value::RawValue;
use tokio::sync::Notify;
use toolbay_background::{QuotaPortion, SharedQuota};

use crate::protocol::json_memory;
use crate::protocol::jsonrpc::{Error, INTERNAL_ERROR, RequestId};

/// Maximum number of pending requests per session.
pub(crate) const MAX_PENDING_REQUESTS: usize = 4096;

/// Maximum length of a response, in bytes: the default ceiling of `limits.journal`.
const MAX_RESPONSE_BYTES: usize = 1 << 20;

/// Maximum size of a parsed response, in bytes.
const MAX_DECODED_BYTES: usize = 8 << 20;

/// The requests of one session that have no response yet.
///
/// Only the session's client can respond: each session has its own table. The ids begin with random
/// digits, so that a client that confuses its sessions does not match a request by accident.
#[derive(Default)]
pub(crate) struct PendingClientRequests {
    table: Mutex<PendingTable>,
}

#[derive(Default)]
struct PendingTable {
    /// Prefix of every id; empty before the first request.
    prefix: Box<str>,
    /// Number of requests registered so far.
    count: u64,
    waiting: HashMap<u64, WaitingRequest>,
}

/// A pending request: its responses and its index among the requests of its call.
struct WaitingRequest {
    responses: Arc<PendingResponses>,
    index: usize,
}

/// The responses to the requests of one call.
struct PendingResponses {
    received: Mutex<Vec<Option<PendingResponse>>>,
    notify: Notify,
}

/// A response: the result's text, a JSON object, with its quota reservation, or the client's error.
pub(crate) type PendingResponse = Result<(Box<str>, QuotaPortion), Error>;

/// The requests of one call. Dropping it removes those that have no response.
pub(crate) struct CallRequests<'a> {
    pending: &'a PendingClientRequests,
    first_number: u64,
    responses: Arc<PendingResponses>,
    count: usize,
}

impl PendingClientRequests {
    /// Registers `count` requests of one call. Returns `None` if too many are pending.
    pub(crate) fn register(&self, count: usize) -> Option<CallRequests<'_>> {
        let responses = PendingResponses {
            received: Mutex::new((0..count).map(|_| None).collect()),
            notify: Notify::new(),
        };
        let responses = Arc::new(responses);
        let mut table = self.table();
        if table.waiting.len() + count > MAX_PENDING_REQUESTS {
            return None;
        }
        if table.prefix.is_empty() {
            let mut random = [0; 8];
            getrandom::fill(&mut random).ok()?;
            table.prefix = format!("{}-", hex::encode(random)).into();
        }
        let first = table.count;
        table.count += count as u64;
        for (id, index) in (first..).zip(0..count) {
            table.waiting.insert(
                id,
                WaitingRequest {
                    responses: Arc::clone(&responses),
                    index,
                },
            );
        }
        Some(CallRequests {
            pending: self,
            first_number: first,
            responses,
            count,
        })
    }

    /// Accepts the response of `caller` to the request with this id. Ignores a response to a
    /// request that is not pending, and returns false.
    pub(crate) fn respond(
        &self,
        id: Option<&RequestId>,
        outcome: Result<&RawValue, Error>,
        request_quota: &Arc<SharedQuota>,
        caller: &str,
    ) -> bool {
        let mut table = self.table();
        let Some(RequestId::Text(id)) = id else {
            return false;
        };
        let number = id
            .strip_prefix(&*table.prefix)
            .filter(|_| !table.prefix.is_empty());
        let waiting = number
            .and_then(|number| number.parse().ok())
            .and_then(|number: u64| table.waiting.remove(&number));
        drop(table);
        let Some(WaitingRequest { responses, index }) = waiting else {
            return false;
        };
        let response = outcome.and_then(|result| check_result(result, request_quota, caller));
        if let Some(slot) = responses.lock_received().get_mut(index) {
            *slot = Some(response);
        }
        responses.notify.notify_one();
        true
    }

    /// Returns whether no request is pending.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.table().waiting.is_empty()
    }

    // Held for a few instructions and never across an await.
    fn table(&self) -> MutexGuard<'_, PendingTable> {
        self.table.lock()
    }
}

/// Returns the text of a result, within bounds. Estimates its size without parsing: the sandbox
/// parses it, at the guest's expense.
fn check_result(
    result: &RawValue,
    request_quota: &Arc<SharedQuota>,
    caller: &str,
) -> PendingResponse {
    let text = result.get();
    let rejection = |what: &str| Error::new(INTERNAL_ERROR, what);
    if !text.starts_with('{') {
        return Err(rejection("a result that is not an object"));
    }
    if text.len() > MAX_RESPONSE_BYTES || json_memory::decoded_size(text) > MAX_DECODED_BYTES {
        return Err(rejection(
            "a result that is larger than 1 MiB as text, or than 8 MiB in memory",
        ));
    }
    let reservation = request_quota
        .try_reserve(caller, text.len())
        .map_err(|_| rejection("a result for which there is no capacity"))?;
    Ok((text.into(), reservation))
}

impl PendingResponses {
    // Held for a few instructions and never across an await.
    fn lock_received(&self) -> MutexGuard<'_, Vec<Option<PendingResponse>>> {
        self.received.lock()
    }
}

impl CallRequests<'_> {
    /// Returns the ids of the requests.
    pub(crate) fn ids(&self) -> Vec<RequestId> {
        let prefix = self.pending.table().prefix.clone();
        (self.first_number..)
            .take(self.count)
            .map(|number| format_id(&prefix, number))
            .collect()
    }

    /// Returns the ids of those among the first `sent` requests that have no response.
    pub(crate) fn unanswered(&self, sent: usize) -> Vec<RequestId> {
        let table = self.pending.table();
        let open = (self.first_number..)
            .take(self.count.min(sent))
            .filter(|number| table.waiting.contains_key(number));
        open.map(|number| format_id(&table.prefix, number))
            .collect()
    }

    /// Waits until each request has a response, or one has an error. Returns the available
    /// responses, in the order of the requests.
    pub(crate) async fn responses(&self) -> Vec<Option<PendingResponse>> {
        loop {
            {
                let mut received = self.responses.lock_received();
                if received.iter().all(Option::is_some)
                    || received.iter().flatten().any(Result::is_err)
                {
                    return std::mem::take(&mut *received);
                }
            }
            self.responses.notify.notified().await;
        }
    }
}

fn format_id(prefix: &str, number: u64) -> RequestId {
    let mut id = prefix.to_owned();
    let _ = write!(id, "{number}");
    RequestId::Text(id)
}

impl Drop for CallRequests<'_> {
    fn drop(&mut self) {
        let mut table = self.pending.table();
        for number in (self.first_number..).take(self.count) {
            table.waiting.remove(&number);
        }
        if table.waiting.is_empty() {
            // A thousand questions at once must not hold memory for the rest of the session.
            table.waiting.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn respond(
        pending: &PendingClientRequests,
        id: &RequestId,
        outcome: Result<&str, Error>,
    ) -> bool {
        let quota = SharedQuota::new(1 << 21, 1 << 21);
        let outcome = outcome.map(raw);
        pending.respond(
            Some(id),
            outcome.as_deref().map_err(Clone::clone),
            &quota,
            "stdio",
        )
    }

    #[test]
    fn responses_match_their_requests_in_any_order() {
        let pending = PendingClientRequests::default();
        let one = pending.register(2).unwrap();
        let two = pending.register(1).unwrap();
        let ids = [one.ids(), two.ids()].concat();
        assert!(
            respond(&pending, &ids[2], Ok("{\"c\":3}"))
                && respond(&pending, &ids[1], Ok("{\"b\":2}"))
        );
        assert!(one.responses().now_or_never().is_none());
        assert_eq!(
            (one.unanswered(2), one.unanswered(0)),
            (vec![ids[0].clone()], vec![])
        );
        assert!(respond(&pending, &ids[0], Ok("{\"a\":1}")));
        let texts = |responses: Vec<Option<PendingResponse>>| {
            responses
                .into_iter()
                .map(|response| response.unwrap().unwrap().0)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            texts(one.responses().now_or_never().unwrap()),
            ["{\"a\":1}".into(), "{\"b\":2}".into()]
        );
        assert_eq!(
            texts(two.responses().now_or_never().unwrap()),
            ["{\"c\":3}".into()]
        );
        assert!(!respond(&pending, &ids[0], Ok("{}")), "it has a response");
    }

    #[test]
    fn one_error_ends_the_wait() {
        let pending = PendingClientRequests::default();
        let requests = pending.register(3).unwrap();
        let ids = requests.ids();
        assert!(respond(&pending, &ids[1], Err(Error::new(-1, "no"))));
        let responses = requests.responses().now_or_never().unwrap();
        assert!(matches!(&responses[..], [None, Some(Err(error)), None] if error.code == -1));
        assert_eq!(requests.unanswered(3), [ids[0].clone(), ids[2].clone()]);
    }

    #[test]
    fn responses_without_a_request_are_ignored() {
        let pending = PendingClientRequests::default();
        let other = PendingClientRequests::default();
        let nobody = RequestId::Text("0".into());
        assert!(!respond(&pending, &nobody, Ok("{}")), "nothing was sent");
        let requests = pending.register(1).unwrap();
        let id = requests.ids().remove(0);
        let foreign = other.register(1).unwrap();
        assert!(!respond(&pending, &foreign.ids()[0], Ok("{}")));
        for number in 0..10_000_u64 {
            assert!(!respond(
                &pending,
                &RequestId::Number(number.into()),
                Ok("{}")
            ));
            assert!(!respond(
                &pending,
                &RequestId::Text(number.to_string()),
                Ok("{}")
            ));
        }
        assert_eq!(pending.table().waiting.len(), 1);
        drop(requests);
        assert!(!respond(&pending, &id, Ok("{}")), "the call has ended");
        assert!(pending.table().waiting.is_empty());
    }

    #[test]
    fn a_hostile_response_is_an_error() {
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_RESPONSE_BYTES));
        let many = format!("{{\"a\":[{}0]}}", "[],".repeat(100_000));
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(50_000), "]".repeat(50_000));
        let large = "a result that is larger than 1 MiB as text, or than 8 MiB in memory";
        for (text, what) in [
            ("[]", "a result that is not an object"),
            ("null", "a result that is not an object"),
            ("\"text\"", "a result that is not an object"),
            (&*long, large),
            (&*many, large),
            (&*deep, large),
        ] {
            let pending = PendingClientRequests::default();
            let requests = pending.register(1).unwrap();
            assert!(respond(&pending, &requests.ids()[0], Ok(text)));
            let responses = requests.responses().now_or_never().unwrap();
            assert!(matches!(&responses[..], [Some(Err(error))] if error.message == what));
        }
    }

    #[test]
    fn requests_and_responses_are_bounded() {
        let pending = PendingClientRequests::default();
        let most = pending.register(MAX_PENDING_REQUESTS).unwrap();
        assert!(pending.register(1).is_none());
        drop(most);
        let two = pending.register(2).unwrap();
        let quota = SharedQuota::new(100, 100);
        let text = raw(&format!("{{\"a\":\"{}\"}}", "x".repeat(50)));
        for id in two.ids() {
            assert!(pending.respond(Some(&id), Ok(&text), &quota, "stdio"));
        }
        let responses = two.responses().now_or_never().unwrap();
        assert!(matches!(&responses[..], [Some(Ok(_)), Some(Err(_))]));
        assert_eq!(quota.of("stdio"), 58);
        drop(responses);
        assert_eq!(quota.of("stdio"), 0);
    }
}
