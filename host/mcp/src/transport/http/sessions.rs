//! Sessions created by `initialize`: a bounded table with eviction of idle sessions.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolbay_background::{QuotaExhausted, QuotaPortion, SharedQuota};

use super::credential_validity::CredentialValidity;
use super::options::HttpOptions;
use super::peer::PeerSource;
use super::response_streams::ResponseStreams;
use super::standalone_messages::StandaloneMessages;
use crate::exchange::outbox::Outbox;
use crate::host::caller::Caller;
use crate::lists::access_rights::CallerRights;
use crate::session::change_notifications;
use crate::session::client_session::Session;

/// Random bytes in a session id. 128 bits cannot be guessed.
const SESSION_ID_BYTES: usize = 16;

/// Maximum number of open streams per session for messages that belong to no request. Beyond this,
/// the oldest ends.
const MAX_STREAMS_PER_SESSION: usize = 4;

/// All sessions.
pub(super) struct SessionTable {
    table: Mutex<HashMap<String, Arc<HttpSession>>>,
    /// Session quota per caller.
    callers: Arc<SharedQuota>,
    /// Session quota per network of origin.
    addresses: Arc<SharedQuota>,
    /// Quota per caller for bytes retained for resumable streams.
    kept: Arc<SharedQuota>,
    idle: Duration,
    resume: Duration,
}

/// One session.
pub(super) struct HttpSession {
    pub(super) session: Arc<Session>,
    /// Quota key of the origin: an address or a network.
    network: String,
    used: Mutex<Instant>,
    /// Open streams for messages that belong to no request, in opening order.
    streams: watch::Sender<BTreeSet<u64>>,
    /// Messages sent on these streams.
    pub(super) news: Arc<StandaloneMessages>,
    /// Response streams of the session's requests.
    pub(super) responses: Arc<ResponseStreams>,
    /// Shares of the caller's and the network's quotas. Released as soon as the session leaves the
    /// table.
    places: Mutex<[QuotaPortion; 2]>,
}

/// The sessions that are candidates for eviction.
#[derive(Clone, Copy)]
enum EvictionScope<'a> {
    Caller(&'a str),
    Network(&'a str),
    All,
}

impl SessionTable {
    /// Creates an empty table with these limits.
    pub(super) fn new(options: &HttpOptions) -> Self {
        Self {
            table: Mutex::default(),
            callers: SharedQuota::new(options.sessions, options.sessions_per_caller),
            addresses: SharedQuota::new(options.sessions, options.sessions_per_address),
            kept: SharedQuota::new(options.resume_size, options.caller_resume_size()),
            idle: options.session_idle_timeout,
            resume: options.resume,
        }
    }

    /// Adds a session that was opened from `source`. Returns false if the table has no capacity for
    /// it.
    ///
    /// If the caller is at its quota, its own longest-idle session is evicted. If the table or the
    /// network's quota is full, the caller with the most sessions loses one, but only if that is
    /// the caller itself or a caller with more sessions. A caller can therefore never evict
    /// sessions of callers that have fewer.
    pub(super) fn insert(&self, id: String, session: Arc<Session>, source: PeerSource) -> bool {
        let network = source.network();
        let caller = session.opener.name.clone();
        let mut table = self.table();
        let places = loop {
            let full = match (
                self.callers.try_reserve(&caller, 1),
                self.addresses.try_reserve(&network, 1),
            ) {
                (Ok(place), Ok(other)) => break [place, other],
                (Err(QuotaExhausted::Own(_)), _) => EvictionScope::Caller(&caller),
                (_, Err(QuotaExhausted::Own(_))) => EvictionScope::Network(&network),
                _ => EvictionScope::All,
            };
            let Some(entry) =
                find_eviction_candidate(&table, &caller, full).and_then(|id| table.remove(&id))
            else {
                return false;
            };
            entry.end();
        };
        // Without resumption, the quota is empty.
        let kept = if self.resume.is_zero() {
            SharedQuota::new(0, 0)
        } else {
            Arc::clone(&self.kept)
        };
        let Ok(held) = kept.try_reserve(&caller, 0) else {
            return false;
        };
        let entry = HttpSession {
            session,
            network,
            used: Mutex::new(Instant::now()),
            streams: watch::Sender::default(),
            news: Arc::new(StandaloneMessages::new(held)),
            responses: ResponseStreams::new(kept, self.resume),
            places: Mutex::new(places),
        };
        table.insert(id, Arc::new(entry));
        true
    }

    /// Returns the number of sessions.
    pub(super) fn count(&self) -> usize {
        self.callers.total_used()
    }

    /// Returns the session with this id, if it belongs to `caller`.
    pub(super) fn get(&self, id: &str, caller: &Caller) -> Option<Arc<HttpSession>> {
        let entry = self
            .table()
            .get(id)
            .filter(|entry| entry.session.is_owned_by(caller))
            .cloned()?;
        entry.touch();
        Some(entry)
    }

    /// Ends the session with this id, if it belongs to `caller`.
    pub(super) fn remove(&self, id: &str, caller: &Caller) -> bool {
        let mut table = self.table();
        if table
            .get(id)
            .is_none_or(|entry| !entry.session.is_owned_by(caller))
        {
            return false;
        }
        let removed = table.remove(id);
        drop(table);
        if let Some(entry) = &removed {
            entry.end();
        }
        removed.is_some()
    }

    /// Ends all sessions of the caller with this name.
    pub(super) fn remove_caller(&self, caller: &str) {
        let removed: Vec<_> = self
            .table()
            .extract_if(|_, entry| entry.session.is_owned_by_name(caller))
            .collect();
        for (_, entry) in removed {
            entry.end();
        }
    }

    /// Ends sessions that were idle for too long, and streams that no client resumed in time, until
    /// `stop` is cancelled.
    pub(super) async fn expire_idle(&self, stop: CancellationToken) {
        // Precision does not matter here.
        let shortest = if self.resume.is_zero() {
            self.idle
        } else {
            self.idle.min(self.resume)
        };
        let every = (shortest / 4).clamp(Duration::from_millis(50), Duration::from_mins(1));
        while stop
            .run_until_cancelled(tokio::time::sleep(every))
            .await
            .is_some()
        {
            self.table().retain(|_, entry| {
                let keep = entry.is_in_use() || entry.last_used().elapsed() < self.idle;
                if keep {
                    entry.responses.expire();
                } else {
                    entry.end();
                }
                keep
            });
        }
    }

    // Held for a few instructions and never across an await.
    fn table(&self) -> parking_lot::MutexGuard<'_, HashMap<String, Arc<HttpSession>>> {
        self.table.lock()
    }
}

impl HttpSession {
    /// Sends notifications of changes that `rights` make visible through `outbox`, while the client
    /// reads and `trust` is valid. Both are those of the request that opened the stream. If the
    /// client has several streams open, only the newest is used. Unlike a request, a stream has no
    /// response to deliver to a client that has `half_closed` its connection: pending notifications
    /// wait for the next stream.
    pub(super) async fn serve_stream(
        self: Arc<Self>,
        rights: CallerRights,
        trust: CredentialValidity,
        half_closed: CancellationToken,
        outbox: Outbox,
    ) {
        let mut number = 0;
        self.streams.send_modify(|streams| {
            number = streams.last().map_or(0, |newest| newest + 1);
            streams.insert(number);
        });
        let mut streams = self.streams.subscribe();
        let mut newer_streams = self.streams.subscribe();
        let mut negotiated = self.session.negotiated.subscribe();
        let telling = async {
            // Nothing is sent before the client has sent `notifications/initialized`.
            if negotiated
                .wait_for(|negotiated| negotiated.is_initialized)
                .await
                .is_err()
            {
                return;
            }
            while streams
                .wait_for(|streams| streams.last() == Some(&number))
                .await
                .is_ok()
            {
                tokio::select! {
                    () = change_notifications::notify_session(&self.session, &rights, &outbox) => return,
                    _ = streams.wait_for(|streams| streams.last() != Some(&number)) => {}
                }
            }
        };
        tokio::select! {
            () = telling => {}
            () = outbox.closed() => {}
            () = half_closed.cancelled() => {}
            // Newer streams have replaced this one, and a client needs only one.
            _ = newer_streams.wait_for(|streams| streams.iter().rev().nth(MAX_STREAMS_PER_SESSION - 1) > Some(&number)) => {}
            () = trust.wait_until_invalid() => {}
            () = self.session.shutdown.closing.cancelled() => {}
            () = self.session.shutdown.ended.cancelled() => {}
        }
        self.streams.send_modify(|streams| {
            streams.remove(&number);
        });
        self.touch();
    }

    fn is_in_use(&self) -> bool {
        !self.streams.borrow().is_empty() || !self.session.in_flight.is_empty()
    }

    fn touch(&self) {
        *self.used.lock() = Instant::now();
    }

    fn last_used(&self) -> Instant {
        *self.used.lock()
    }

    /// Ends the session after its removal from the table. Requests may still hold a reference.
    fn end(&self) {
        self.session.shutdown.ended.cancel();
        self.session.subscriptions.clear();
        self.responses.close();
        for place in self.places.lock().iter_mut() {
            place.shrink_to(0);
        }
    }
}

/// Returns the id of the session to evict for `caller`.
fn find_eviction_candidate(
    table: &HashMap<String, Arc<HttpSession>>,
    caller: &str,
    scope: EvictionScope<'_>,
) -> Option<String> {
    let within = || {
        table.iter().filter(move |(_, entry)| match scope {
            EvictionScope::Caller(name) => entry.session.opener.name == name,
            EvictionScope::Network(network) => entry.network == network,
            EvictionScope::All => true,
        })
    };
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for (_, entry) in within() {
        *counts.entry(&entry.session.opener.name).or_default() += 1;
    }
    let own = counts.get(caller).copied().unwrap_or(0);
    let idle = within()
        .filter(|(_, entry)| !entry.is_in_use())
        .filter_map(|(id, entry)| {
            let owner = entry.session.opener.name.as_str();
            let has = counts.get(owner).copied().unwrap_or(0);
            (owner == caller || has > own).then_some((id, has, entry.last_used()))
        });
    idle.min_by_key(|(_, has, used)| (Reverse(*has), *used))
        .map(|(id, ..)| id.clone())
}

/// Returns a random session id.
pub(super) fn new_id() -> Result<String, getrandom::Error> {
    let mut bytes = [0; SESSION_ID_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(hex::encode(bytes))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::protocol::revision::Revision;
    use crate::testing::stub_host::StubServer;
    use crate::testing::test_http_client::TestHttpClient;

    async fn subscribe(client: &TestHttpClient, session: &str, method: &str, uri: &str) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"uri": uri}});
        client.post(session, &body).await.body
    }

    #[tokio::test]
    async fn what_changes_while_no_stream_is_open_waits_for_one() {
        let host = StubServer::new();
        let client = TestHttpClient::new(Arc::clone(&host), HttpOptions::default()).await;
        let session = client.session(Revision::NEWEST_SESSION).await;
        for uri in ["test://a", "test://b"] {
            assert_eq!(
                subscribe(&client, &session, "resources/subscribe", uri).await["result"],
                json!({})
            );
        }
        host.change_view(|view| view.prompts = 2);
        for uri in ["test://b", "test://c/d", "test://a", "test://b"] {
            host.updates().notify_changed(uri);
        }
        let mut events = client.events(&session).await;
        let mut told = Vec::new();
        for _ in 0..3 {
            let event = events.next().await;
            told.push(
                event["params"]["uri"]
                    .as_str()
                    .or(event["method"].as_str())
                    .unwrap()
                    .to_owned(),
            );
        }
        // Lists and resources are reported independently.
        told.sort_by_key(|told| told.starts_with("test:"));
        assert_eq!(
            told,
            ["notifications/prompts/list_changed", "test://b", "test://a"]
        );
        host.updates().notify_changed("test://a");
        assert_eq!(events.next().await["params"]["uri"], "test://a");
        client.stop().await;
    }

    #[tokio::test]
    async fn a_caller_has_so_many_subscriptions_over_all_sessions_and_gets_them_back() {
        let host = StubServer::new();
        let client = TestHttpClient::new(Arc::clone(&host), HttpOptions::default()).await;
        let caller = "ip:127.0.0.1";
        let mut sessions = Vec::new();
        for n in 1..=2 {
            let session = client.session(Revision::NEWEST_SESSION).await;
            subscribe(&client, &session, "resources/subscribe", "test://a").await;
            sessions.push(session);
            assert_eq!(
                host.updates().bytes_of(caller),
                n * (256 + "test://a".len())
            );
        }
        subscribe(&client, &sessions[0], "resources/unsubscribe", "test://a").await;
        assert_eq!(host.updates().bytes_of(caller), 256 + "test://a".len());
        // A session releases its quota as soon as it ends.
        assert_eq!(
            client.exchange("DELETE", &sessions[1], "").await.status,
            204
        );
        assert_eq!(host.updates().bytes_of(caller), 0);
        client.stop().await;
    }
}
