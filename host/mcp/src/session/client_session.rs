//! A session with one client, independent of the transport: negotiated settings, requests in
//! progress, and shutdown.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolbay_background::SharedQuota;
use toolbay_model::LogLevel;

use crate::exchange::in_flight::InFlight;
use crate::exchange::outbox::{Outbox, OutgoingMessage};
use crate::exchange::resource_subscriptions::UpdateSubscriber;
use crate::exchange::server_requests::PendingClientRequests;
use crate::host::caller::Caller;
use crate::host::list_source::LoadedPart;
use crate::host::mcp_server::McpServer;
use crate::lists::client_lists::ClientLists;
use crate::protocol::capabilities::CapabilityNames;
use crate::protocol::jsonrpc::{self, Error, RequestId};
use crate::protocol::message_context::RequestContext;
use crate::protocol::revision::Revision;
use crate::response::server_description;

/// Maximum number of open requests of one client. Calls have a separate, smaller limit.
const MAX_OPEN_REQUESTS: usize = 4096;

/// Maximum time that a list waits for plugins that are still loading, for a client that requests
/// the list again when it changes. Clients allow a server five seconds or more to start.
const LIST_WAIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum time to write the responses to stopped calls.
const MAX_FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// Minimum time to write the responses to stopped calls: a client that reads gets them even without
/// a grace period.
const MIN_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Returns the maximum time to write the responses to stopped calls after a grace period of
/// `grace`.
pub(crate) fn flush_timeout(grace: Duration) -> Duration {
    grace.clamp(MIN_FLUSH_TIMEOUT, MAX_FLUSH_TIMEOUT)
}

/// A session with one client.
pub(crate) struct Session {
    /// Identifies the session within the process.
    number: u64,
    pub(crate) server: Arc<McpServer>,
    /// The caller that started the session. Each request has its own caller, whose rights may
    /// differ.
    pub(crate) opener: Arc<Caller>,
    pub(crate) channel: SessionChannel,
    pub(crate) negotiated: watch::Sender<NegotiatedSession>,
    /// The quota on bytes of requests, shared by all sessions of the server.
    pub(crate) request_quota: Arc<SharedQuota>,
    /// The requests that are running or waiting.
    pub(crate) in_flight: InFlight,
    /// The requests that the server has sent to the client.
    pub(crate) pending: PendingClientRequests,
    /// The state of the lists that the client has, so that it is not notified of changes that it
    /// has already received.
    pub(crate) client_lists: ClientLists,
    /// The subscriptions of the client to changes of resources. A change that cannot be sent yet
    /// waits here.
    pub(crate) subscriptions: UpdateSubscriber,
    tasks: TaskTracker,
    pub(crate) shutdown: ShutdownTokens,
}

/// The three steps of shutdown. The creator of the session takes them in order; no step can be
/// undone.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShutdownTokens {
    /// Shutdown starts: subscriptions notify their client and end.
    pub(crate) closing: CancellationToken,
    /// The grace period has ended: calls that are still running fail with an error.
    pub(crate) stopped: CancellationToken,
    /// The client no longer reads: everything that belongs to the session is dropped.
    pub(crate) ended: CancellationToken,
}

impl ShutdownTokens {
    /// Returns tokens that are cancelled with these ones, or earlier.
    pub(crate) fn child(&self) -> Self {
        Self {
            closing: self.closing.child_token(),
            stopped: self.stopped.child_token(),
            ended: self.ended.child_token(),
        }
    }
}

/// The transport from a session to its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionChannel {
    /// One channel for all messages.
    Shared,
    /// One channel per request; other messages use a separate stream.
    PerRequest,
    /// One channel for the only request: there is no stream for other messages, and no state is
    /// retained.
    OneRequest,
}

/// The settings that server and client negotiated.
#[derive(Clone, Debug, Default)]
pub(crate) struct NegotiatedSession {
    /// The revision that `initialize` negotiated; `None` before.
    pub(crate) revision: Option<Revision>,
    /// The capabilities that the client declared in `initialize`.
    pub(crate) capabilities: CapabilityNames,
    /// True if the client has sent `notifications/initialized`.
    pub(crate) is_initialized: bool,
    /// True if the client requests a list again when it is notified of a change.
    pub(crate) follows_lists: bool,
    /// The lowest level of log messages to send.
    pub(crate) min_log_level: LogLevel,
}

impl Session {
    /// Creates a session for `opener`.
    pub(crate) fn new(
        server: Arc<McpServer>,
        opener: Arc<Caller>,
        request_quota: Arc<SharedQuota>,
        channel: SessionChannel,
        shutdown: ShutdownTokens,
    ) -> Arc<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        Self::with_number(
            COUNT.fetch_add(1, Ordering::Relaxed),
            server,
            opener,
            request_quota,
            channel,
            shutdown,
        )
    }

    /// Returns a session for a call that outlives this one, on behalf of `opener`. It has the same
    /// number, so the host treats it as the same session.
    pub(crate) fn detached(&self, opener: Arc<Caller>) -> Arc<Self> {
        let server = Arc::clone(&self.server);
        let request_quota = Arc::clone(&self.request_quota);
        Self::with_number(
            self.number,
            server,
            opener,
            request_quota,
            SessionChannel::PerRequest,
            ShutdownTokens::default(),
        )
    }

    fn with_number(
        number: u64,
        server: Arc<McpServer>,
        opener: Arc<Caller>,
        request_quota: Arc<SharedQuota>,
        channel: SessionChannel,
        shutdown: ShutdownTokens,
    ) -> Arc<Self> {
        let subscriptions = server.updates().subscriber();
        Arc::new(Self {
            number,
            server,
            opener,
            channel,
            request_quota,
            negotiated: watch::Sender::default(),
            in_flight: InFlight::default(),
            pending: PendingClientRequests::default(),
            client_lists: ClientLists::default(),
            subscriptions,
            tasks: TaskTracker::new(),
            shutdown,
        })
    }

    /// Returns the number of the session for a request with this context; `None` if the revision
    /// has no sessions.
    pub(crate) fn number_for(&self, context: &RequestContext) -> Option<u64> {
        context.revision.features().sessions.then_some(self.number)
    }

    /// Returns whether the session belongs to `caller`: to the same identity, regardless of its
    /// rights.
    pub(crate) fn is_owned_by(&self, caller: &Caller) -> bool {
        self.is_owned_by_name(&caller.name)
    }

    /// Returns whether the session belongs to the caller with this name.
    pub(crate) fn is_owned_by_name(&self, caller: &str) -> bool {
        self.opener.name == caller
    }

    /// Ends the session. Waits for running requests for at most `grace`, and fails the rest. Then
    /// waits for their responses to be written for at most [`flush_timeout`], and drops the
    /// remaining ones. Drops everything as soon as `disconnect` is ready.
    pub(crate) async fn end(&self, grace: Duration, disconnect: impl Future<Output = ()>) {
        let mut disconnected = pin!(disconnect);
        self.shutdown.closing.cancel();
        self.tasks.close();
        tokio::select! {
            () = self.tasks.wait() => {}
            // No client is left to respond to.
            () = &mut disconnected => tracing::debug!("the client disconnected; its calls were stopped"),
            () = tokio::time::sleep(grace) => {
                tracing::warn!(
                    "stopped calls that were still running when the grace period ended (server.grace_period)"
                );
                self.shutdown.stopped.cancel();
                // Wait only for the responses to be written.
                tokio::select! {
                    () = self.tasks.wait() => {}
                    () = &mut disconnected => {}
                    () = tokio::time::sleep(flush_timeout(grace)) => {}
                }
            }
        }
        self.shutdown.ended.cancel();
        self.tasks.wait().await;
    }

    /// Returns the context of a request; `None` before `initialize`.
    ///
    /// # Errors
    ///
    /// The request contains its own context, and it is malformed.
    pub(crate) fn request_context(
        &self,
        params: Option<&RawValue>,
    ) -> Result<Option<RequestContext>, Error> {
        if let Some(context) = RequestContext::from_params(params)? {
            return Ok(Some(context));
        }
        let negotiated = self.negotiated.borrow();
        Ok(negotiated.revision.map(|revision| RequestContext {
            revision,
            capabilities: negotiated.capabilities.clone(),
            // Send no log messages before the client is ready, nor to a client that cannot set a
            // level.
            min_log_level: (negotiated.is_initialized
                && self.channel != SessionChannel::OneRequest)
                .then_some(negotiated.min_log_level),
            trace: None,
        }))
    }

    /// Waits until the client accepts requests, that is, until it has sent
    /// `notifications/initialized`.
    pub(crate) async fn wait_until_ready(&self) {
        // The sender lives as long as the session.
        drop(
            self.negotiated
                .subscribe()
                .wait_for(|negotiated| negotiated.is_initialized)
                .await,
        );
    }

    /// Waits for the plugins that existed at startup, before a list is answered. A client that
    /// requests the list again when it changes gets the items that are loaded when
    /// [`LIST_WAIT_TIMEOUT`] has passed.
    pub(crate) async fn wait_for_plugins(&self) {
        let loaded = self.server.loading().wait_for(LoadedPart::Everything);
        if self.negotiated.borrow().follows_lists {
            // The client is notified when the other plugins are loaded.
            drop(tokio::time::timeout(LIST_WAIT_TIMEOUT, loaded).await);
        } else {
            loaded.await;
        }
    }

    /// Spawns a future that makes calls. [`Session::end`] waits for it.
    pub(crate) fn spawn_call(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.server
            .calls()
            .spawn(Box::pin(self.tasks.track_future(work)));
    }

    /// Spawns a future of the protocol. [`Session::end`] waits for it.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(self.tasks.track_future(work));
    }

    /// Returns whether the client can have another open request.
    pub(crate) fn can_accept_request(&self) -> bool {
        self.tasks.len() < MAX_OPEN_REQUESTS
    }

    /// Adds the members that every result of the revision has.
    pub(crate) fn add_common_members(&self, result: &mut Map<String, Value>, revision: Revision) {
        server_description::add_common_members(result, &self.server.options().server, revision);
    }

    /// Encodes a result.
    pub(crate) fn encode_result(
        &self,
        id: &RequestId,
        mut result: Map<String, Value>,
        revision: Option<Revision>,
    ) -> OutgoingMessage {
        if let Some(revision) = revision {
            self.add_common_members(&mut result, revision);
        }
        OutgoingMessage::response(jsonrpc::result(id, &result))
    }

    /// Sends an error for a message that was rejected before it was processed.
    pub(crate) async fn reject(&self, error: Error, reply: &Outbox) {
        reply.send(self.encode_rejection(&error)).await;
    }

    /// Encodes an error for a request that was rejected before it was processed.
    pub(crate) fn encode_rejection(&self, error: &Error) -> OutgoingMessage {
        OutgoingMessage::rejection(self.encode_error(error), error.code)
    }

    /// Encodes an error.
    pub(crate) fn encode_error(&self, error: &Error) -> Vec<u8> {
        let features = self.negotiated.borrow().revision.map(Revision::features);
        jsonrpc::error(
            error,
            !features.is_some_and(|features| features.errors_without_id),
        )
    }
}
