//! A client for tests: a session with the stub, without a transport.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::dispatch::dispatcher;
use crate::exchange::outbox::{self, Outbox, OutboxReceiver};
use crate::host::caller::Caller;
use crate::lists::access_rights::{CallerRights, NamePattern};
use crate::protocol::jsonrpc;
use crate::protocol::revision::Revision;
use crate::session::client_session::{Session, SessionChannel, ShutdownTokens};
use crate::testing::stub_host::StubServer;

/// Timeout for a message.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);

/// A test client.
pub(crate) struct TestPeer {
    pub(crate) host: Arc<StubServer>,
    pub(crate) session: Arc<Session>,
    caller: Caller,
    revision: Revision,
    /// Capabilities that the client declares.
    capabilities: Value,
    outbox: Outbox,
    messages: OutboxReceiver,
    /// The id of the last request.
    id: u64,
    /// Notifications that arrived before a response.
    earlier_notifications: Vec<Value>,
}

impl TestPeer {
    /// Creates a client of a stub, with a session if the revision has sessions.
    pub(crate) async fn new(revision: Revision) -> Self {
        Self::with_rights(StubServer::new(), revision, CallerRights::All).await
    }

    /// Creates a client of this stub with these rights.
    pub(crate) async fn with_rights(
        host: Arc<StubServer>,
        revision: Revision,
        rights: CallerRights,
    ) -> Self {
        Self::begin_session(host, revision, rights, json!({})).await
    }

    /// Creates a client of this stub that declares these capabilities.
    pub(crate) async fn with_capabilities(
        host: Arc<StubServer>,
        revision: Revision,
        capabilities: Value,
    ) -> Self {
        Self::begin_session(host, revision, CallerRights::All, capabilities).await
    }

    /// Creates a client of the caller with this name.
    pub(crate) async fn with_caller_name(
        host: Arc<StubServer>,
        name: &str,
        revision: Revision,
        capabilities: Value,
    ) -> Self {
        let caller = Caller {
            name: name.to_owned(),
            ..Caller::local(host.client(name))
        };
        Self::with_caller(host, revision, caller, capabilities).await
    }

    async fn begin_session(
        host: Arc<StubServer>,
        revision: Revision,
        rights: CallerRights,
        capabilities: Value,
    ) -> Self {
        let caller = Caller {
            rights,
            ..Caller::local(host.client(Caller::LOCAL))
        };
        Self::with_caller(host, revision, caller, capabilities).await
    }

    async fn with_caller(
        host: Arc<StubServer>,
        revision: Revision,
        caller: Caller,
        capabilities: Value,
    ) -> Self {
        let request_quota = host.options().request_quota(true);
        let session = Session::new(
            host.server(),
            Arc::new(caller.clone()),
            request_quota,
            SessionChannel::Shared,
            ShutdownTokens::default(),
        );
        let (outbox, messages) = outbox::channel();
        let id = 0;
        let earlier_notifications = Vec::new();
        let mut peer = Self {
            host,
            session,
            caller,
            revision,
            capabilities,
            outbox,
            messages,
            id,
            earlier_notifications,
        };
        if revision.features().sessions {
            let hello =
                json!({"protocolVersion": revision.as_str(), "capabilities": peer.capabilities});
            peer.result("initialize", hello).await;
            peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
                .await;
        }
        peer
    }

    /// Sends a message.
    pub(crate) async fn send(&mut self, message: &Value) {
        self.send_text(&message.to_string()).await;
    }

    /// Sends a message unchanged.
    pub(crate) async fn send_text(&mut self, text: &str) {
        dispatcher::receive(
            &self.session,
            &self.caller,
            jsonrpc::decode(text.as_bytes()),
            &self.outbox,
        )
        .await;
    }

    /// Sends a request and returns its id. If the revision has no sessions, the request contains
    /// its context.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> u64 {
        self.id += 1;
        let params = self.with_context(params);
        self.send(&json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}))
            .await;
        self.id
    }

    /// Adds the context that the revision requires to the parameters.
    pub(crate) fn with_context(&self, mut params: Value) -> Value {
        if !self.revision.features().sessions {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] =
                self.revision.as_str().into();
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
                self.capabilities.clone();
        }
        params
    }

    /// Calls the tool `a`, and returns the id of the request.
    pub(crate) async fn call(&mut self) -> u64 {
        self.request("tools/call", json!({"name": "a"})).await
    }

    /// Responds to a request from the server.
    pub(crate) async fn answer(&mut self, request: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
            .await;
    }

    /// Cancels a request.
    pub(crate) async fn cancel(&mut self, id: u64) {
        let params = json!({"requestId": id});
        self.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}),
        )
        .await;
    }

    /// Stops reading, like a client that was killed.
    pub(crate) fn disconnect(&mut self) {
        self.messages = outbox::channel().1;
    }

    /// Sends a request and returns the response.
    pub(crate) async fn request_response(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        loop {
            let message = self.receive().await;
            if message["id"] == id {
                return message;
            }
            self.earlier_notifications.push(message);
        }
    }

    /// Sends a request and returns the result.
    pub(crate) async fn result(&mut self, method: &str, params: Value) -> Value {
        let response = self.request_response(method, params).await;
        response
            .get("result")
            .unwrap_or_else(|| panic!("{method}: {response}"))
            .clone()
    }

    /// Sends a request and returns the error.
    pub(crate) async fn error(&mut self, method: &str, params: Value) -> Value {
        let response = self.request_response(method, params).await;
        response
            .get("error")
            .unwrap_or_else(|| panic!("{method}: {response:.200}"))
            .clone()
    }

    /// Returns the next notification.
    pub(crate) async fn next_notification(&mut self) -> Value {
        if self.earlier_notifications.is_empty() {
            self.receive().await
        } else {
            self.earlier_notifications.remove(0)
        }
    }

    /// Returns the next message.
    pub(crate) async fn receive(&mut self) -> Value {
        let message = tokio::time::timeout(MESSAGE_TIMEOUT, self.messages.recv())
            .await
            .expect("a message in time");
        serde_json::from_slice(&message.expect("a message").text).unwrap()
    }
}

impl TestPeer {
    /// Returns the next message if one is queued.
    pub(crate) fn try_receive(&mut self) -> Option<Value> {
        Some(serde_json::from_slice(&self.messages.try_recv()?.text).unwrap())
    }
}

/// Returns rights to names that match one pattern.
pub(crate) fn rights_to(pattern: &str) -> CallerRights {
    CallerRights::Only(vec![NamePattern::try_from(pattern.to_owned()).unwrap()])
}
