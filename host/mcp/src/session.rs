//! One client's conversation, whatever carries it: what was agreed on, what is in flight, and its end.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolbay_model::LogLevel;

use crate::access::Caller;
use crate::host::Host;
use crate::jsonrpc::{self, Error, Id};
use crate::outbox::{Outbox, Outgoing};
use crate::revision::Revision;
use crate::rules::Rules;
use crate::shape;

/// What may go on for one client at once. Calls have a smaller bound of their own.
const TASKS: usize = 4096;

/// A conversation with one client.
pub(crate) struct Session {
    pub(crate) host: Arc<dyn Host>,
    /// Who speaks: the same one with every message, with what it may use by now.
    caller: Mutex<Arc<Caller>>,
    pub(crate) channel: Channel,
    pub(crate) negotiated: watch::Sender<Negotiated>,
    /// The requests that are running or waiting, by their id.
    in_flight: Mutex<HashMap<Id, CancellationToken>>,
    /// The listing that the client knows without being told of it.
    pub(crate) known_listing: AtomicU64,
    tasks: TaskTracker,
    pub(crate) life: Life,
}

/// The three steps of an end. Each is taken by whoever made the session, and none is taken back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Life {
    /// The end is near: what would go on for ever says so to its client.
    pub(crate) closing: CancellationToken,
    /// The grace time is over: calls that are still running are answered with that.
    pub(crate) stopped: CancellationToken,
    /// Nobody listens any more: everything that belongs to the session is dropped.
    pub(crate) ended: CancellationToken,
}

impl Life {
    /// A life that ends no later than this one, and on its own before.
    pub(crate) fn child(&self) -> Self {
        Self {
            closing: self.closing.child_token(),
            stopped: self.stopped.child_token(),
            ended: self.ended.child_token(),
        }
    }
}

/// How a session reaches its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// By one channel for everything.
    Shared,
    /// By a channel for each request; what belongs to none goes elsewhere.
    PerRequest,
}

/// What a session and its client have agreed on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Negotiated {
    /// The revision that `initialize` agreed on.
    pub(crate) revision: Option<Revision>,
    /// The capabilities that the client declared in `initialize`.
    pub(crate) capabilities: Map<String, Value>,
    /// The client said `notifications/initialized`.
    pub(crate) initialized: bool,
    /// The client has listed tools at least once.
    pub(crate) listed: bool,
    /// The least severity of log messages that the client wants.
    pub(crate) log: LogLevel,
}

impl Session {
    /// A session of `caller`.
    pub(crate) fn new(host: Arc<dyn Host>, caller: Arc<Caller>, channel: Channel, life: Life) -> Arc<Self> {
        Arc::new(Self {
            host,
            caller: Mutex::new(caller),
            channel,
            negotiated: watch::Sender::default(),
            in_flight: Mutex::default(),
            known_listing: AtomicU64::new(0),
            tasks: TaskTracker::new(),
            life,
        })
    }

    /// Who speaks.
    pub(crate) fn caller(&self) -> Arc<Caller> {
        Arc::clone(&self.caller.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The same one with other rights.
    pub(crate) fn set_caller(&self, caller: Arc<Caller>) {
        *self.caller.lock().unwrap_or_else(PoisonError::into_inner) = caller;
    }

    /// Waits for what is in flight, for at most `grace` and as long as `gone` is not ready; then has it answered, and
    /// at last drops it.
    pub(crate) async fn end(&self, grace: Duration, gone: impl Future<Output = ()>) {
        self.life.closing.cancel();
        self.tasks.close();
        tokio::select! {
            () = self.tasks.wait() => {}
            // Nobody is left to answer.
            () = gone => tracing::debug!("the client disconnected; its calls were stopped"),
            () = tokio::time::sleep(grace) => {
                tracing::warn!("stopped calls that were still running when the grace time ended (server.grace)");
                self.life.stopped.cancel();
                // Only as long as it takes to write the answers.
                drop(tokio::time::timeout(grace, self.tasks.wait()).await);
            }
        }
        self.life.ended.cancel();
        self.tasks.wait().await;
    }

    /// By which rules a request is answered, decided anew for each; `None` before `initialize`.
    ///
    /// # Errors
    ///
    /// The request states rules of its own, badly.
    pub(crate) fn rules(&self, params: Option<&RawValue>) -> Result<Option<Rules>, Error> {
        if let Some(rules) = Rules::stated(params)? {
            return Ok(Some(rules));
        }
        let negotiated = self.negotiated.borrow();
        Ok(negotiated.revision.map(|revision| Rules {
            revision,
            capabilities: negotiated.capabilities.clone(),
            // Nothing that nobody asked for comes before the client is ready.
            log: negotiated.initialized.then_some(negotiated.log),
            trace: None,
        }))
    }

    /// Runs work that makes calls, and has the end of the session wait for it.
    pub(crate) fn spawn_call(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.host.spawn(Box::pin(self.tasks.track_future(work)));
    }

    /// Runs work of the protocol, and has the end of the session wait for it.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(self.tasks.track_future(work));
    }

    /// Whether there is room for one more request that stays open.
    pub(crate) fn has_room(&self) -> bool {
        self.tasks.len() < TASKS
    }

    /// Remembers a request; false when one with this id is in flight already.
    pub(crate) fn begin(&self, id: &Id, request: CancellationToken) -> bool {
        let mut in_flight = self.in_flight();
        if in_flight.contains_key(id) {
            return false;
        }
        in_flight.insert(id.clone(), request);
        true
    }

    /// Forgets a request that has ended.
    pub(crate) fn finish(&self, id: &Id) -> Option<CancellationToken> {
        self.in_flight().remove(id)
    }

    /// Whether anything is running for the client.
    pub(crate) fn is_busy(&self) -> bool {
        !self.in_flight().is_empty()
    }

    /// A result as a message.
    pub(crate) fn result(id: &Id, mut result: Map<String, Value>, revision: Option<Revision>) -> Outgoing {
        if let Some(revision) = revision {
            shape::complete(&mut result, revision);
        }
        Outgoing::answer(jsonrpc::result(id, &result))
    }

    /// Answers what is not even tried.
    pub(crate) async fn refuse(&self, error: Error, reply: &Outbox) {
        reply.send(self.refusal(&error)).await;
    }

    /// An error as a message, of a request that was not even tried.
    pub(crate) fn refusal(&self, error: &Error) -> Outgoing {
        Outgoing::refusal(self.encode_error(error), error.code)
    }

    /// An error as bytes.
    pub(crate) fn encode_error(&self, error: &Error) -> Vec<u8> {
        let features = self.negotiated.borrow().revision.map(Revision::features);
        jsonrpc::error(error, !features.is_some_and(|features| features.errors_without_id))
    }

    // Held for a few instructions and never across an await.
    fn in_flight(&self) -> MutexGuard<'_, HashMap<Id, CancellationToken>> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
