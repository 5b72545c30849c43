//! The requests of a session that are running or queued, by id.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use crate::protocol::jsonrpc::RequestId;

/// Requests that are running or queued.
#[derive(Default)]
pub(crate) struct InFlight {
    table: Mutex<RequestTable>,
}

#[derive(Default)]
struct RequestTable {
    /// Sequence number and cancellation token of each request, by request id.
    requests: HashMap<RequestId, (u64, CancellationToken)>,
    /// Number of requests registered so far.
    count: u64,
}

/// A registered request. Its sequence number distinguishes it from an earlier request with the same
/// id: a client can reuse an id as soon as it has cancelled the request.
#[derive(Clone, Debug)]
pub(crate) struct RegisteredRequest {
    pub(crate) id: RequestId,
    number: u64,
    /// Cancelled when the client cancels the request.
    pub(crate) cancelled: CancellationToken,
}

impl InFlight {
    /// Registers a request. Returns `None` if one with this id is already in progress.
    pub(crate) fn register(
        &self,
        id: &RequestId,
        cancelled: CancellationToken,
    ) -> Option<RegisteredRequest> {
        let mut table = self.table();
        if table.requests.contains_key(id) {
            return None;
        }
        table.count += 1;
        let number = table.count;
        table
            .requests
            .insert(id.clone(), (number, cancelled.clone()));
        Some(RegisteredRequest {
            id: id.clone(),
            number,
            cancelled,
        })
    }

    /// Removes a request that has ended. Returns false if the client has cancelled it.
    pub(crate) fn finish(&self, request: &RegisteredRequest) -> bool {
        let mut table = self.table();
        let is_registered = table
            .requests
            .get(&request.id)
            .is_some_and(|(number, _)| *number == request.number);
        if is_registered {
            table.requests.remove(&request.id);
        }
        is_registered
    }

    /// Cancels the request with this id and frees the id. Returns false if there is no such
    /// request.
    pub(crate) fn cancel(&self, id: &RequestId) -> bool {
        let request = self.table().requests.remove(id);
        request.is_some_and(|(_, cancelled)| {
            cancelled.cancel();
            true
        })
    }

    /// Returns whether no request is in progress.
    pub(crate) fn is_empty(&self) -> bool {
        self.table().requests.is_empty()
    }

    // Held for a few instructions and never across an await.
    fn table(&self) -> MutexGuard<'_, RequestTable> {
        self.table.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_cancelled_request_can_be_reused() {
        let in_flight = InFlight::default();
        let id = RequestId::Text("a".into());
        let begin = || in_flight.register(&id, CancellationToken::new());
        let first = begin().unwrap();
        assert!(begin().is_none(), "it is in progress");
        assert!(in_flight.cancel(&id) && first.cancelled.is_cancelled());
        let second = begin().unwrap();
        // The first request ends only now.
        assert!(!in_flight.finish(&first));
        assert!(begin().is_none(), "the second one is still in progress");
        assert!(in_flight.cancel(&id) && second.cancelled.is_cancelled());
        assert!(!in_flight.cancel(&id) && in_flight.is_empty());
    }
}
