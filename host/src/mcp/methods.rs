//! The methods that are answered at once, and the notifications of a client.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::cursor;
use super::jsonrpc::{Error, Id, METHOD_NOT_FOUND, Request};
use super::outbox::Outbox;
use super::revision::Revision;
use super::rules::{Rules, unattached};
use super::session::{Channel, Session, State, read};
use super::shape;
use crate::access::Rights;
use crate::sandbox::LogLevel;

/// How long a client may take our word for what `server/discover` says: it is what this process is.
const DISCOVERY_MS: u64 = 3_600_000;

/// How long it may take our word for the list of tools: the folder may change at any moment.
const LISTING_MS: u64 = 0;

#[derive(Deserialize)]
struct InitializeParams {
    #[serde(rename = "protocolVersion")]
    protocol_version: String,
    #[serde(default)]
    capabilities: Map<String, Value>,
    #[serde(rename = "clientInfo")]
    client_info: Option<Value>,
}

#[derive(Default, Deserialize)]
struct ListParams {
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct SetLevelParams {
    level: LogLevel,
}

#[derive(Deserialize)]
struct CancelledParams {
    #[serde(rename = "requestId")]
    request_id: Id,
    reason: Option<String>,
}

type Answer = Result<Map<String, Value>, Error>;

impl Session {
    pub(super) async fn dispatch(&self, request: &Request<'_>, rules: Option<Rules>) -> Answer {
        let method = request.method.as_ref();
        let unknown = || Err(Error::new(METHOD_NOT_FOUND, format!("Method not found: {method}")));
        let Some(rules) = rules else {
            return match method {
                "initialize" => self.initialize(request.params),
                "ping" => Ok(Map::new()),
                "tools/list" | "tools/call" | "logging/setLevel" | "server/discover" | "subscriptions/listen" => {
                    Err(unattached())
                }
                _ => unknown(),
            };
        };
        match (method, rules.revision.stateless()) {
            ("tools/list", _) => self.list(read(request.params)?, rules.revision).await,
            ("server/discover", true) => Ok(discovery()),
            ("initialize", false) => self.initialize(request.params),
            ("ping", false) => Ok(Map::new()),
            ("logging/setLevel", false) => Ok(self.set_level(&read(request.params)?)),
            _ => unknown(),
        }
    }

    fn initialize(&self, params: Option<&RawValue>) -> Answer {
        let params: InitializeParams = read(params)?;
        let asked = Revision::parse(&params.protocol_version).filter(|revision| !revision.stateless());
        let revision = asked.unwrap_or(Revision::LATEST_SESSION);
        let capabilities = params.capabilities;
        self.state.send_replace(State { revision: Some(revision), capabilities, ..State::default() });
        self.known_listing.store(self.service.catalog().snapshot().listing, Ordering::SeqCst);
        let client = params.client_info.unwrap_or_default();
        let name = client.get("name").and_then(Value::as_str).unwrap_or("unnamed");
        tracing::info!(client = name, caller = self.caller().name, asked = params.protocol_version, %revision, "a client connected");
        let mut result = Map::new();
        result.insert("protocolVersion".into(), revision.as_str().into());
        result.insert("capabilities".into(), capabilities_json());
        result.insert("serverInfo".into(), shape::server_info(revision));
        Ok(result)
    }

    async fn list(&self, params: ListParams, revision: Revision) -> Answer {
        let after = params.cursor.as_deref().map(cursor::decode).transpose()?;
        let snapshot = self.service.listing().await;
        let caller = self.caller();
        let visible = |name: &str| caller.may_use(name);
        let (tools, more) = snapshot.page(after.as_deref(), self.service.config().page_size, visible);
        let next = if more { tools.last().map(|tool| cursor::encode(&tool.name)) } else { None };
        let tools: Vec<Value> = tools.into_iter().map(|tool| shape::tool(tool, revision)).collect();
        let mut result = Map::new();
        result.insert("tools".into(), tools.into());
        if revision.stateless() {
            result.insert("ttlMs".into(), LISTING_MS.into());
            // Another caller would see another list.
            let shared = matches!(caller.rights, Rights::All);
            result.insert("cacheScope".into(), if shared { "public" } else { "private" }.into());
        } else {
            self.state.send_if_modified(|state| {
                if !state.listed && after.is_none() && next.is_none() {
                    // What came between `initialize` and here is in this answer already.
                    self.known_listing.fetch_max(snapshot.listing, Ordering::SeqCst);
                }
                state.listed = true;
                false
            });
        }
        if let Some(next) = next {
            result.insert("nextCursor".into(), next.into());
        }
        Ok(result)
    }

    fn set_level(&self, params: &SetLevelParams) -> Map<String, Value> {
        self.state.send_modify(|state| state.log = params.level);
        Map::new()
    }

    pub(super) fn notified(self: &Arc<Self>, method: &str, params: Option<&RawValue>, reply: &Outbox) {
        match method {
            "notifications/initialized" => {
                let first = self.state.send_if_modified(|state| {
                    let first = state.revision.is_some() && !state.initialized;
                    state.initialized = state.revision.is_some();
                    first
                });
                if first && self.channel == Channel::Shared {
                    let (session, reply) = (Arc::clone(self), reply.clone());
                    tokio::spawn(async move { session.tell_changes(&reply).await });
                }
            }
            "notifications/cancelled" => match read::<CancelledParams>(params) {
                Ok(cancelled) => {
                    // An unknown id is a request that has ended meanwhile: ignored.
                    if let Some(request) = self.finish(&cancelled.request_id) {
                        tracing::debug!(id = ?cancelled.request_id, reason = cancelled.reason, "cancelled by the client");
                        request.cancel();
                    }
                }
                Err(error) => tracing::debug!(error = error.message, "ignored a malformed notifications/cancelled"),
            },
            _ => tracing::debug!(method, "ignored a notification"),
        }
    }
}

fn capabilities_json() -> Value {
    json!({"tools": {"listChanged": true}, "logging": {}})
}

/// The result of `server/discover`.
fn discovery() -> Map<String, Value> {
    let mut result = Map::new();
    result.insert("supportedVersions".into(), json!(Revision::dates()));
    result.insert("capabilities".into(), capabilities_json());
    result.insert("ttlMs".into(), DISCOVERY_MS.into());
    result.insert("cacheScope".into(), "public".into());
    result
}
