//! One client's conversation, whatever carries it: takes messages in, keeps what is in flight, and ends.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::call::Work;
use super::jsonrpc::{self, Error, INVALID_PARAMS, INVALID_REQUEST, Id, Incoming, Message, Request};
use super::outbox::{Outbox, Outgoing};
use super::revision::Revision;
use super::rules::Rules;
use super::shape;
use crate::access::Caller;
use crate::sandbox::LogLevel;
use crate::service::Service;

/// Messages in one batch. Clients that batch send a handful.
const BATCH: usize = 100;

/// A conversation with one client.
pub(super) struct Session {
    pub(super) service: Arc<Service>,
    /// Who speaks: the same one with every message, with what it may use by now.
    caller: Mutex<Arc<Caller>>,
    pub(super) channel: Channel,
    pub(super) state: watch::Sender<State>,
    /// The requests that are running or waiting, by their id.
    in_flight: Mutex<HashMap<Id, CancellationToken>>,
    /// The listing that the client knows without being told of it.
    pub(super) known_listing: AtomicU64,
    pub(super) tasks: TaskTracker,
    /// The end is near: what would go on for ever says so to its client.
    pub(super) closing: CancellationToken,
    /// Ends everything that belongs to the session.
    pub(super) ended: CancellationToken,
}

/// How a session reaches its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    /// By one channel for everything.
    Shared,
    /// By a channel for each request; what belongs to none goes elsewhere.
    PerRequest,
}

/// What a session knows of its client.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// What `initialize` agreed on.
    pub(super) revision: Option<Revision>,
    /// What `initialize` said that the client can do.
    pub(super) capabilities: Map<String, Value>,
    /// The client said `notifications/initialized`.
    pub(super) initialized: bool,
    /// The client has listed tools at least once.
    pub(super) listed: bool,
    /// The least severity of log lines that the client wants.
    pub(super) log: LogLevel,
}

impl Session {
    /// A session of `caller`, which ends well once `closing` is cancelled.
    pub(super) fn new(
        service: Arc<Service>,
        caller: Arc<Caller>,
        channel: Channel,
        closing: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            service,
            caller: Mutex::new(caller),
            channel,
            state: watch::Sender::default(),
            in_flight: Mutex::default(),
            known_listing: AtomicU64::new(0),
            tasks: TaskTracker::new(),
            closing,
            ended: CancellationToken::new(),
        })
    }

    /// Who speaks.
    pub(super) fn caller(&self) -> Arc<Caller> {
        Arc::clone(&self.caller.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The same one with other rights.
    pub(super) fn set_caller(&self, caller: Arc<Caller>) {
        *self.caller.lock().unwrap_or_else(PoisonError::into_inner) = caller;
    }

    /// Takes in what one line or body holds, and answers to `reply`. Returns
    /// when the next may be read: calls go on in the background.
    pub(super) async fn receive(self: &Arc<Self>, incoming: Result<Incoming<'_>, Error>, reply: &Outbox) {
        match incoming {
            Ok(Incoming::Single(message)) => self.single(message, reply).await,
            Ok(Incoming::Batch(messages)) => self.batch(messages, reply).await,
            Err(error) => self.refuse(error, reply).await,
        }
    }

    /// Answers what is not even tried.
    pub(super) async fn refuse(&self, error: Error, reply: &Outbox) {
        reply.send(self.refusal(&error)).await;
    }

    /// Waits for the calls in flight, for at most `grace` and as long as `here`, then drops them.
    pub(super) async fn end(&self, grace: Duration, here: impl Future<Output = ()>) {
        self.closing.cancel();
        self.tasks.close();
        tokio::select! {
            () = self.tasks.wait() => {}
            // Nobody is left to answer.
            () = here => tracing::debug!("the client is gone; its calls are stopped"),
            () = tokio::time::sleep(grace) => {
                tracing::warn!("calls were still running at the end of the session and were stopped");
            }
        }
        self.ended.cancel();
        self.tasks.wait().await;
    }

    async fn single(self: &Arc<Self>, message: Message<'_>, reply: &Outbox) {
        match message {
            Message::Request(request) => {
                let rules = self.rules(request.params);
                self.request(request, rules, reply).await;
            }
            Message::Notification { method, params } => self.notified(&method, params, reply),
            Message::Response => tracing::debug!("ignored an answer to a request that was never made"),
        }
    }

    /// Takes in a request that is answered by these rules.
    pub(super) async fn request(
        self: &Arc<Self>,
        request: Request<'_>,
        rules: Result<Option<Rules>, Error>,
        reply: &Outbox,
    ) {
        let rules = match rules {
            Ok(rules) => rules,
            Err(error) => return self.refuse(error.of(&request.id), reply).await,
        };
        match request.method.as_ref() {
            "tools/call" => match self.prepare_call(&request, rules) {
                Ok(work) => self.start_call(work, reply),
                Err(error) => self.refuse(error, reply).await,
            },
            "subscriptions/listen" if rules.as_ref().is_some_and(|rules| rules.revision.stateless()) => {
                if let Err(error) = self.listen(&request, reply) {
                    self.refuse(error.of(&request.id), reply).await;
                }
            }
            "tools/list" if !self.service.is_complete() => {
                // It waits for the plugins that were there at start, and nothing else waits with it.
                let (session, reply, id) = (Arc::clone(self), reply.clone(), request.id);
                let params = request.params.map(ToOwned::to_owned);
                tokio::spawn(self.tasks.track_future(async move {
                    let request = Request { id, method: "tools/list".into(), params: params.as_deref() };
                    reply.send(session.answer(&request, rules).await).await;
                }));
            }
            _ => reply.send(self.answer(&request, rules).await).await,
        }
    }

    /// A batch: every answer in one array; notifications have none.
    async fn batch(self: &Arc<Self>, messages: Vec<Result<Message<'_>, Error>>, reply: &Outbox) {
        let revision = self.state.borrow().revision;
        if !revision.is_some_and(Revision::batches) {
            let error = Error::new(INVALID_REQUEST, "batches belong to revision 2025-03-26 alone");
            return self.refuse(error, reply).await;
        }
        if messages.len() > BATCH {
            let what = format!("a batch has at most {BATCH} messages, not {}", messages.len());
            return self.refuse(Error::new(INVALID_REQUEST, what), reply).await;
        }
        let mut answers = Vec::new();
        let mut calls = Vec::new();
        for message in messages {
            match message {
                Ok(Message::Request(request)) if request.method == "initialize" => {
                    let error = Error::new(INVALID_REQUEST, "initialize must not be part of a batch");
                    answers.push(self.refusal(&error.of(&request.id)));
                }
                Ok(Message::Request(request)) => match self.rules(request.params) {
                    Ok(rules) if request.method == "tools/call" => match self.prepare_call(&request, rules) {
                        Ok(work) => calls.push(work),
                        Err(error) => answers.push(self.refusal(&error)),
                    },
                    Ok(rules) => answers.push(self.answer(&request, rules).await),
                    Err(error) => answers.push(self.refusal(&error.of(&request.id))),
                },
                Ok(Message::Notification { method, params }) => self.notified(&method, params, reply),
                Ok(Message::Response) => {}
                Err(error) => answers.push(self.refusal(&error)),
            }
        }
        let (session, reply) = (Arc::clone(self), reply.clone());
        self.spawn(async move {
            let called = join_all(calls.into_iter().map(|work| session.run_call(work, &reply))).await;
            answers.extend(called.into_iter().flatten());
            if !answers.is_empty() {
                let texts: Vec<Vec<u8>> = answers.into_iter().map(|answer| answer.text).collect();
                reply.send(Outgoing::answer([b"[".as_slice(), &texts.join(&b','), b"]"].concat())).await;
            }
        });
    }

    fn start_call(self: &Arc<Self>, work: Work, reply: &Outbox) {
        let (session, reply) = (Arc::clone(self), reply.clone());
        self.spawn(async move {
            if let Some(answer) = session.run_call(work, &reply).await {
                reply.send(answer).await;
            }
        });
    }

    /// The answer to a request that is answered at once.
    async fn answer(self: &Arc<Self>, request: &Request<'_>, rules: Option<Rules>) -> Outgoing {
        let revision = rules.as_ref().map(|rules| rules.revision);
        match self.dispatch(request, rules).await {
            Ok(result) => Self::result(&request.id, result, revision),
            Err(error) => self.refusal(&error.of(&request.id)),
        }
    }

    /// By which rules a request is answered, decided anew for each; `None` before `initialize`.
    pub(super) fn rules(&self, params: Option<&RawValue>) -> Result<Option<Rules>, Error> {
        if let Some(rules) = Rules::stated(params)? {
            return Ok(Some(rules));
        }
        let state = self.state.borrow();
        Ok(state.revision.map(|revision| Rules {
            revision,
            capabilities: state.capabilities.clone(),
            // Nothing that nobody asked for comes before the client is ready.
            log: state.initialized.then_some(state.log),
            trace: None,
        }))
    }

    /// Runs work on the guests' runtime, and has the end of the session wait for it.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.service.sandbox().spawn(self.tasks.track_future(work));
    }

    /// Remembers a request; false when one with this id is in flight already.
    pub(super) fn begin(&self, id: &Id, request: CancellationToken) -> bool {
        let mut in_flight = self.in_flight();
        if in_flight.contains_key(id) {
            return false;
        }
        in_flight.insert(id.clone(), request);
        true
    }

    /// Forgets a request that has ended.
    pub(super) fn finish(&self, id: &Id) -> Option<CancellationToken> {
        self.in_flight().remove(id)
    }

    /// Whether anything is running for the client.
    pub(super) fn is_busy(&self) -> bool {
        !self.in_flight().is_empty()
    }

    /// A result as a message.
    pub(super) fn result(id: &Id, mut result: Map<String, Value>, revision: Option<Revision>) -> Outgoing {
        if let Some(revision) = revision {
            shape::complete(&mut result, revision);
        }
        Outgoing::answer(jsonrpc::result(id, &result))
    }

    /// An error as a message, of a request that was not even tried.
    pub(super) fn refusal(&self, error: &Error) -> Outgoing {
        Outgoing::refusal(self.encode_error(error), error.code)
    }

    /// An error as bytes: without an id, it has `null` for one where the revision's schema knows no better.
    pub(super) fn encode_error(&self, error: &Error) -> Vec<u8> {
        let null_id = !self.state.borrow().revision.is_some_and(Revision::icons);
        jsonrpc::error(error, null_id)
    }

    // Held for a few instructions and never across an await.
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
