//! One client's conversation, whatever carries it: decides the revision, dispatches, keeps what is in flight.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::cursor;
use super::jsonrpc::{self, Error, INVALID_PARAMS, INVALID_REQUEST, Id, Incoming, METHOD_NOT_FOUND, Message, Request};
use super::outbox::Outbox;
use super::revision::Revision;
use super::shape;
use crate::admission::Client;
use crate::service::Service;

/// Marks a request of the stateless revisions: its version.
const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// A revision that is not served (2026-07-28, "Error Codes").
const UNSUPPORTED_VERSION: i32 = -32022;

/// Messages in one batch. Clients that batch send a handful.
const BATCH: usize = 100;

/// A conversation with one client.
pub(super) struct Session {
    pub(super) service: Arc<Service>,
    pub(super) outbox: Outbox,
    pub(super) client: Client,
    state: Mutex<State>,
    /// The calls that are running or waiting, by request id.
    in_flight: Mutex<HashMap<Id, CancellationToken>>,
    /// The listing that the client knows without being told of it.
    known_listing: AtomicU64,
    tasks: TaskTracker,
    /// Ends everything that belongs to the session.
    pub(super) ended: CancellationToken,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// What `initialize` agreed on.
    revision: Option<Revision>,
    /// The client said `notifications/initialized`.
    initialized: bool,
    /// The client has listed tools at least once.
    listed: bool,
}

/// By which rules a message is to be answered.
pub(super) enum Era {
    /// By those of the session that `initialize` began.
    Session(Revision),
    /// Before `initialize`.
    Before,
    /// By those of a stateless revision that the message itself names.
    Stateless(String),
}

#[derive(Deserialize)]
struct InitializeParams {
    #[serde(rename = "protocolVersion")]
    protocol_version: String,
    #[serde(rename = "clientInfo")]
    client_info: Option<Value>,
}

#[derive(Default, Deserialize)]
struct ListParams {
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct CancelledParams {
    #[serde(rename = "requestId")]
    request_id: Id,
    reason: Option<String>,
}

/// The part of any message's parameters that says which revision it follows.
#[derive(Deserialize)]
struct Envelope {
    #[serde(rename = "_meta")]
    meta: Option<Map<String, Value>>,
}

impl Session {
    /// A session that answers through `outbox`.
    pub(super) fn new(service: Arc<Service>, outbox: Outbox) -> Arc<Self> {
        Arc::new(Self {
            client: service.admission().client(),
            service,
            outbox,
            state: Mutex::default(),
            in_flight: Mutex::default(),
            known_listing: AtomicU64::new(0),
            tasks: TaskTracker::new(),
            ended: CancellationToken::new(),
        })
    }

    /// Takes in one line or body. Returns when the next may be read: calls go on in the background.
    pub(super) async fn receive(self: &Arc<Self>, bytes: &[u8]) {
        match jsonrpc::decode(bytes) {
            Ok(Incoming::Single(message)) => self.single(message).await,
            Ok(Incoming::Batch(messages)) => self.batch(messages).await,
            Err(error) => self.refuse(error).await,
        }
    }

    /// Answers a message that could not be read.
    pub(super) async fn refuse(&self, error: Error) {
        self.outbox.send(self.encode_error(&error)).await;
    }

    /// Waits for the calls in flight, for at most `grace`, then drops them.
    pub(super) async fn end(&self, grace: Duration) {
        self.tasks.close();
        tokio::select! {
            () = self.tasks.wait() => {}
            // Nobody is left to answer.
            () = self.outbox.closed() => tracing::debug!("the client is gone; its calls are stopped"),
            () = tokio::time::sleep(grace) => {
                tracing::warn!("calls were still running at the end of the session and were stopped");
            }
        }
        self.ended.cancel();
        self.tasks.wait().await;
    }

    async fn single(self: &Arc<Self>, message: Message<'_>) {
        match message {
            Message::Request(request) if request.method == "tools/call" => {
                let work = match self.prepare_call(&request) {
                    Ok(work) => work,
                    Err(error) => return self.refuse(error).await,
                };
                let session = Arc::clone(self);
                self.spawn(async move {
                    if let Some(answer) = session.run_call(work).await {
                        session.outbox.send(answer).await;
                    }
                });
            }
            Message::Request(request) if request.method == "tools/list" && !self.service.is_complete() => {
                // It waits for the plugins that were there at start, and nothing else waits with it.
                let (session, id, params) = (Arc::clone(self), request.id, request.params.map(ToOwned::to_owned));
                tokio::spawn(self.tasks.track_future(async move {
                    let request = Request { id, method: "tools/list".into(), params: params.as_deref() };
                    let answer = session.answer(&request).await;
                    session.outbox.send(answer).await;
                }));
            }
            Message::Request(request) => {
                let answer = self.answer(&request).await;
                self.outbox.send(answer).await;
            }
            Message::Notification { method, params } => self.notified(&method, params),
            Message::Response => tracing::debug!("ignored an answer to a request that was never made"),
        }
    }

    /// A batch: every answer in one array; notifications have none.
    async fn batch(self: &Arc<Self>, messages: Vec<Result<Message<'_>, Error>>) {
        let revision = self.state().revision;
        if !revision.is_some_and(Revision::batches) {
            return self.refuse(Error::new(INVALID_REQUEST, "batches belong to revision 2025-03-26 alone")).await;
        }
        if messages.len() > BATCH {
            let what = format!("a batch has at most {BATCH} messages, not {}", messages.len());
            return self.refuse(Error::new(INVALID_REQUEST, what)).await;
        }
        let mut answers = Vec::new();
        let mut calls = Vec::new();
        for message in messages {
            match message {
                Ok(Message::Request(request)) if request.method == "initialize" => {
                    let error = Error::new(INVALID_REQUEST, "initialize must not be part of a batch");
                    answers.push(self.encode_error(&Error { id: Some(request.id), ..error }));
                }
                Ok(Message::Request(request)) if request.method == "tools/call" => match self.prepare_call(&request) {
                    Ok(work) => calls.push(work),
                    Err(error) => answers.push(self.encode_error(&error)),
                },
                Ok(Message::Request(request)) => answers.push(self.answer(&request).await),
                Ok(Message::Notification { method, params }) => self.notified(&method, params),
                Ok(Message::Response) => {}
                Err(error) => answers.push(self.encode_error(&error)),
            }
        }
        let session = Arc::clone(self);
        self.spawn(async move {
            let called = join_all(calls.into_iter().map(|work| session.run_call(work))).await;
            answers.extend(called.into_iter().flatten());
            if !answers.is_empty() {
                let mut array = vec![b'['];
                array.extend(answers.join(&b','));
                array.push(b']');
                session.outbox.send(array).await;
            }
        });
    }

    /// The answer to any request but `tools/call`.
    async fn answer(self: &Arc<Self>, request: &Request<'_>) -> Vec<u8> {
        match self.dispatch(request).await {
            Ok(result) => jsonrpc::result(&request.id, &result),
            Err(error) => self.encode_error(&Error { id: Some(request.id.clone()), ..error }),
        }
    }

    async fn dispatch(self: &Arc<Self>, request: &Request<'_>) -> Result<Value, Error> {
        let method = request.method.as_ref();
        if method == "initialize" {
            return self.initialize(request.params);
        }
        let revision = match self.era(request.params) {
            Era::Stateless(version) => return Err(unsupported(&version)),
            Era::Session(revision) => Some(revision),
            Era::Before => None,
        };
        match (method, revision) {
            ("ping", _) => Ok(json!({})),
            ("tools/list", Some(revision)) => self.list(read(request.params)?, revision).await,
            ("tools/list", None) => Err(not_initialized()),
            _ => Err(Error::new(METHOD_NOT_FOUND, format!("Method not found: {method}"))),
        }
    }

    /// By which rules a message is to be answered: decided anew for each.
    pub(super) fn era(&self, params: Option<&RawValue>) -> Era {
        // Every stateless request names its version; look no further than the key's text for all others.
        if let Some(params) = params.filter(|params| params.get().contains(PROTOCOL_VERSION))
            && let Ok(Envelope { meta: Some(meta) }) = serde_json::from_str(params.get())
            && let Some(version) = meta.get(PROTOCOL_VERSION)
        {
            return Era::Stateless(version.as_str().unwrap_or_default().to_owned());
        }
        self.state().revision.map_or(Era::Before, Era::Session)
    }

    fn initialize(&self, params: Option<&RawValue>) -> Result<Value, Error> {
        let params: InitializeParams = read(params)?;
        let revision = Revision::parse(&params.protocol_version).unwrap_or(Revision::LATEST);
        *self.lock_state() = State { revision: Some(revision), ..State::default() };
        self.known_listing.store(self.service.catalog().snapshot().listing, Ordering::SeqCst);
        let client = params.client_info.unwrap_or_default();
        let name = client.get("name").and_then(Value::as_str).unwrap_or("unnamed");
        tracing::info!(client = name, asked = params.protocol_version, %revision, "a client connected");
        let mut server = json!({"name": "toolbay", "version": env!("CARGO_PKG_VERSION")});
        if revision.structured()
            && let Some(server) = server.as_object_mut()
        {
            server.insert("title".into(), "Toolbay".into());
        }
        Ok(json!({
            "protocolVersion": revision.as_str(),
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": server,
        }))
    }

    async fn list(&self, params: ListParams, revision: Revision) -> Result<Value, Error> {
        let after = params.cursor.as_deref().map(cursor::decode).transpose()?;
        let snapshot = self.service.listing().await;
        let (tools, more) = snapshot.page(after.as_deref(), self.service.config().page_size);
        let next = if more { tools.last().map(|tool| cursor::encode(&tool.name)) } else { None };
        let tools: Vec<Value> = tools.into_iter().map(|tool| shape::tool(tool, revision)).collect();
        let mut state = self.lock_state();
        if !state.listed && after.is_none() && next.is_none() {
            // What came between `initialize` and here is in this answer already.
            self.known_listing.fetch_max(snapshot.listing, Ordering::SeqCst);
        }
        state.listed = true;
        drop(state);
        let mut result = json!({"tools": tools});
        if let (Some(next), Some(result)) = (next, result.as_object_mut()) {
            result.insert("nextCursor".into(), next.into());
        }
        Ok(result)
    }

    fn notified(self: &Arc<Self>, method: &str, params: Option<&RawValue>) {
        match method {
            "notifications/initialized" => {
                let mut state = self.lock_state();
                let first = state.revision.is_some() && !state.initialized;
                state.initialized = state.revision.is_some();
                drop(state);
                if first {
                    let session = Arc::clone(self);
                    tokio::spawn(async move { session.tell_changes().await });
                }
            }
            "notifications/cancelled" => match read::<CancelledParams>(params) {
                Ok(cancelled) => {
                    // An unknown id is a call that has ended meanwhile: ignored.
                    if let Some(call) = self.in_flight().remove(&cancelled.request_id) {
                        tracing::debug!(id = ?cancelled.request_id, reason = cancelled.reason, "cancelled by the client");
                        call.cancel();
                    }
                }
                Err(error) => tracing::debug!(error = error.message, "ignored a malformed notifications/cancelled"),
            },
            _ => tracing::debug!(method, "ignored a notification"),
        }
    }

    /// Tells the client about changes of the listing until the session ends.
    /// Bursts are one change already; while a slow peer reads, later ones join.
    async fn tell_changes(&self) {
        let mut told = self.known_listing.load(Ordering::SeqCst);
        loop {
            let changed = self.service.catalog().wait_for(|snapshot| snapshot.listing > told);
            tokio::select! {
                () = self.ended.cancelled() => return,
                () = self.outbox.closed() => return,
                snapshot = changed => {
                    if snapshot.listing <= told {
                        return;
                    }
                    let known = self.known_listing.load(Ordering::SeqCst);
                    told = snapshot.listing;
                    if told > known {
                        let message = jsonrpc::notification("notifications/tools/list_changed", None::<&Value>);
                        self.outbox.send(message).await;
                    }
                }
            }
        }
    }

    /// Runs work on the guests' runtime, and has the end of the session wait for it.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.service.sandbox().spawn(self.tasks.track_future(work));
    }

    /// Remembers a call; false when one with this id is in flight already.
    pub(super) fn begin(&self, id: &Id, call: CancellationToken) -> bool {
        let mut in_flight = self.in_flight();
        if in_flight.contains_key(id) {
            return false;
        }
        in_flight.insert(id.clone(), call);
        true
    }

    /// Forgets a call that has ended.
    pub(super) fn finish(&self, id: &Id) {
        self.in_flight().remove(id);
    }

    /// An error as bytes: without an id, it has `null` for one where the revision's schema knows no better.
    pub(super) fn encode_error(&self, error: &Error) -> Vec<u8> {
        let null_id = !self.state().revision.is_some_and(Revision::icons);
        jsonrpc::error(error, null_id)
    }

    fn state(&self) -> State {
        *self.lock_state()
    }

    // Both locks are held for a few instructions and never across an await.

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn in_flight(&self) -> MutexGuard<'_, HashMap<Id, CancellationToken>> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a method's parameters; absent ones are an empty object.
pub(super) fn read<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, Error> {
    let text = params.map_or("{}", RawValue::get);
    if !text.starts_with('{') {
        return Err(Error::new(INVALID_PARAMS, "params must be an object"));
    }
    serde_json::from_str(text).map_err(|error| Error::new(INVALID_PARAMS, format!("Invalid params: {error}")))
}

pub(super) fn unsupported(version: &str) -> Error {
    let supported: Vec<&str> = Revision::ALL.iter().map(|revision| revision.as_str()).collect();
    Error {
        data: Some(Box::new(json!({"supported": supported, "requested": version}))),
        ..Error::new(UNSUPPORTED_VERSION, format!("Unsupported protocol version: {version}"))
    }
}

pub(super) fn not_initialized() -> Error {
    Error::new(
        INVALID_PARAMS,
        format!("send initialize first: there is no session, and no _meta[\"{PROTOCOL_VERSION}\"]"),
    )
}
