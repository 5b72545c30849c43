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
use crate::session::client_session::{Session, SessionChannel, SessionLife};
use crate::testing::stub_host::Stub;

/// Timeout for a message.
const PATIENCE: Duration = Duration::from_secs(10);

/// A test client.
pub(crate) struct Peer {
    pub(crate) host: Arc<Stub>,
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
    heard: Vec<Value>,
}

impl Peer {
    /// Creates a client of a stub, with a session if the revision has sessions.
    pub(crate) async fn new(revision: Revision) -> Self {
        Self::of(Stub::new(), revision, CallerRights::All).await
    }

    /// Creates a client of this stub with these rights.
    pub(crate) async fn of(host: Arc<Stub>, revision: Revision, rights: CallerRights) -> Self {
        Self::begin(host, revision, rights, json!({})).await
    }

    /// Creates a client of this stub that declares these capabilities.
    pub(crate) async fn declaring(
        host: Arc<Stub>,
        revision: Revision,
        capabilities: Value,
    ) -> Self {
        Self::begin(host, revision, CallerRights::All, capabilities).await
    }

    /// Creates a client of the caller with this name.
    pub(crate) async fn named(
        host: Arc<Stub>,
        name: &str,
        revision: Revision,
        capabilities: Value,
    ) -> Self {
        let caller = Caller {
            name: name.to_owned(),
            ..Caller::local(host.client(name))
        };
        Self::of_caller(host, revision, caller, capabilities).await
    }

    async fn begin(
        host: Arc<Stub>,
        revision: Revision,
        rights: CallerRights,
        capabilities: Value,
    ) -> Self {
        let caller = Caller {
            rights,
            ..Caller::local(host.client(Caller::LOCAL))
        };
        Self::of_caller(host, revision, caller, capabilities).await
    }

    async fn of_caller(
        host: Arc<Stub>,
        revision: Revision,
        caller: Caller,
        capabilities: Value,
    ) -> Self {
        let intake = host.options().request_quota(true);
        let session = Session::new(
            host.server(),
            Arc::new(caller.clone()),
            intake,
            SessionChannel::Shared,
            SessionLife::default(),
        );
        let (outbox, messages) = outbox::channel();
        let id = 0;
        let heard = Vec::new();
        let mut peer = Self {
            host,
            session,
            caller,
            revision,
            capabilities,
            outbox,
            messages,
            id,
            heard,
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
        let params = self.stating(params);
        self.send(&json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}))
            .await;
        self.id
    }

    /// Adds the context that the revision requires to the parameters.
    pub(crate) fn stating(&self, mut params: Value) -> Value {
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
    pub(crate) fn go_away(&mut self) {
        self.messages = outbox::channel().1;
    }

    /// Sends a request and returns the response.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        loop {
            let message = self.receive().await;
            if message["id"] == id {
                return message;
            }
            self.heard.push(message);
        }
    }

    /// Sends a request and returns the result.
    pub(crate) async fn result(&mut self, method: &str, params: Value) -> Value {
        let response = self.ask(method, params).await;
        response
            .get("result")
            .unwrap_or_else(|| panic!("{method}: {response}"))
            .clone()
    }

    /// Sends a request and returns the error.
    pub(crate) async fn error(&mut self, method: &str, params: Value) -> Value {
        let response = self.ask(method, params).await;
        response
            .get("error")
            .unwrap_or_else(|| panic!("{method}: {response:.200}"))
            .clone()
    }

    /// Returns the next notification.
    pub(crate) async fn hear(&mut self) -> Value {
        if self.heard.is_empty() {
            self.receive().await
        } else {
            self.heard.remove(0)
        }
    }

    /// Returns the next message.
    pub(crate) async fn receive(&mut self) -> Value {
        let message = tokio::time::timeout(PATIENCE, self.messages.recv())
            .await
            .expect("a message in time");
        serde_json::from_slice(&message.expect("a message").text).unwrap()
    }
}

impl Peer {
    /// Returns the next message if one is queued.
    pub(crate) fn already(&mut self) -> Option<Value> {
        Some(serde_json::from_slice(&self.messages.try_recv()?.text).unwrap())
    }
}

/// Returns rights to names that match one pattern.
pub(crate) fn only(pattern: &str) -> CallerRights {
    CallerRights::Only(vec![NamePattern::try_from(pattern.to_owned()).unwrap()])
}
