//! Writes requests to a guest: the body of a message, and the HTTP headers that belong to it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use toolbay_model::{CompletionReference, HeaderKind, ParamHeader};

use crate::guest_method::GuestMethod;
use crate::question_answers::QuestionAnswers;

/// Protocol revision without sessions.
pub const STATELESS: &str = "2026-07-28";

/// Newest protocol revision with sessions.
pub const NEWEST_WITH_SESSIONS: &str = "2025-11-25";

/// Protocol revisions with sessions, oldest first. The flag states whether requests name the
/// revision in a header.
const SESSION_REVISIONS: [(&str, bool); 4] = [
    ("2024-11-05", false),
    ("2025-03-26", false),
    ("2025-06-18", true),
    (NEWEST_WITH_SESSIONS, true),
];

/// Returns whether the host supports this revision with sessions.
pub fn supports_revision(revision: &str) -> bool {
    SESSION_REVISIONS
        .iter()
        .any(|(known, _)| *known == revision)
}

/// Description of the client on whose behalf the host calls a guest.
#[derive(Clone, Debug, Default)]
pub struct ClientDescription {
    /// Declared client capabilities, in MCP's form.
    pub capabilities: Map<String, Value>,
}

/// Message to a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientMessage {
    /// Id of the request; `None` for a notification.
    pub id: Option<u64>,
    /// HTTP headers, except those that the host adds.
    pub headers: Vec<(Cow<'static, str>, String)>,
    /// Message, on one line.
    pub body: String,
}

/// Conversation with a guest.
#[derive(Clone, Debug)]
pub struct GuestConversation {
    revision: String,
    client: ClientDescription,
    session: Option<String>,
    last_id: u64,
}

impl GuestConversation {
    /// Creates a conversation in this revision.
    pub fn new(revision: &str, client: ClientDescription) -> Self {
        Self {
            revision: revision.to_owned(),
            client,
            session: None,
            last_id: 0,
        }
    }

    /// Returns whether the revision has no sessions.
    pub fn is_stateless(&self) -> bool {
        self.revision == STATELESS
    }

    /// Completes the handshake with the revision and the session that the guest chose.
    pub fn complete_handshake(&mut self, revision: &str, session: Option<String>) {
        revision.clone_into(&mut self.revision);
        self.session = session;
    }

    /// Builds the next message. `answers` are the answers to questions that the guest asked
    /// earlier.
    pub fn next_message(
        &mut self,
        method: &GuestMethod<'_>,
        answers: &QuestionAnswers<'_>,
    ) -> ClientMessage {
        let id = (!matches!(method, GuestMethod::Initialized)).then(|| {
            self.last_id += 1;
            self.last_id
        });
        let mut message = MemberWriter::default();
        message.insert("jsonrpc", "2.0");
        if let Some(id) = id {
            message.insert("id", &id);
        }
        message.insert("method", method.method());
        let params = self.params(method, answers, id);
        if !params.0.is_empty() {
            message.insert("params", &params.0);
        }
        let body = serde_json::to_string(&message.0).unwrap_or_default();
        // Line breaks can occur between the tokens of raw arguments, but not within strings.
        let body = if body.contains(['\n', '\r']) {
            body.replace(['\n', '\r'], " ")
        } else {
            body
        };
        ClientMessage {
            id,
            headers: self.headers(method),
            body,
        }
    }

    fn params(
        &self,
        method: &GuestMethod<'_>,
        answers: &QuestionAnswers<'_>,
        id: Option<u64>,
    ) -> MemberWriter {
        let mut params = MemberWriter::default();
        match method {
            GuestMethod::Discover | GuestMethod::Initialized => {}
            GuestMethod::Initialize => {
                params.insert("protocolVersion", &self.revision);
                params.insert("capabilities", &self.client.capabilities);
                params.insert("clientInfo", &client_info());
            }
            GuestMethod::List(_, cursor) => {
                if let Some(cursor) = cursor {
                    params.insert("cursor", cursor);
                }
            }
            GuestMethod::Tool {
                name, arguments, ..
            } => {
                params.insert("name", name);
                params.insert_raw("arguments", arguments);
            }
            GuestMethod::Prompt { name, arguments } => {
                params.insert("name", name);
                params.insert("arguments", arguments);
            }
            GuestMethod::Resource { uri } => params.insert("uri", uri),
            GuestMethod::Completion(request) => {
                params.insert(
                    "ref",
                    &match &request.reference {
                        CompletionReference::Prompt(name) => {
                            json!({"type": "ref/prompt", "name": name})
                        }
                        CompletionReference::Resource(uri) => {
                            json!({"type": "ref/resource", "uri": uri})
                        }
                    },
                );
                params.insert(
                    "argument",
                    &json!({"name": request.argument, "value": request.value}),
                );
                if !request.context.is_empty() {
                    params.insert("context", &json!({"arguments": request.context}));
                }
            }
        }
        if method.is_call() && self.is_stateless() {
            params.0.extend(answers.to_params());
        }
        if let Some(meta) = self.meta(method, id) {
            params.insert("_meta", &meta);
        }
        params
    }

    fn meta(&self, method: &GuestMethod<'_>, id: Option<u64>) -> Option<Value> {
        let mut meta = Map::new();
        if let Some(id) = id.filter(|_| method.is_call()) {
            meta.insert("progressToken".to_owned(), json!(id));
        }
        if self.is_stateless() {
            let mut put = |name: &str, value| {
                drop(meta.insert(format!("io.modelcontextprotocol/{name}"), value));
            };
            put("protocolVersion", json!(self.revision));
            put("clientCapabilities", json!(self.client.capabilities));
            put("clientInfo", client_info());
            if method.is_call() {
                put("logLevel", json!("debug"));
            }
        }
        (!meta.is_empty()).then_some(Value::Object(meta))
    }

    fn headers(&self, method: &GuestMethod<'_>) -> Vec<(Cow<'static, str>, String)> {
        let mut headers = vec![
            ("content-type".into(), "application/json".to_owned()),
            (
                "accept".into(),
                "application/json, text/event-stream".to_owned(),
            ),
        ];
        let names_revision = SESSION_REVISIONS
            .iter()
            .any(|(known, named)| *known == self.revision && *named);
        if self.is_stateless() || (names_revision && !matches!(method, GuestMethod::Initialize)) {
            headers.push(("mcp-protocol-version".into(), self.revision.clone()));
        }
        if self.is_stateless() {
            headers.push(("mcp-method".into(), method.method().to_owned()));
            if let Some(name) = method.name() {
                headers.push(("mcp-name".into(), encode_header_value(name)));
            }
            if let GuestMethod::Tool {
                arguments,
                headers: param_headers,
                ..
            } = method
            {
                headers.extend(repeated_headers(arguments, param_headers));
            }
        }
        if let Some(session) = &self.session {
            headers.push(("mcp-session-id".into(), session.clone()));
        }
        headers
    }
}

/// Builds the response to a request from the guest, on one line. Rejects every method except
/// `ping`: the host declares no such capability. `id` is JSON text.
pub fn respond_to_request(id: &str, method: &str) -> String {
    let mut message = MemberWriter::default();
    message.insert("jsonrpc", "2.0");
    message.insert_raw("id", id);
    if method == "ping" {
        message.insert("result", &json!({}));
    } else {
        message.insert(
            "error",
            &json!({"code": -32601, "message": "The client does not support this method."}),
        );
    }
    serde_json::to_string(&message.0).unwrap_or_default()
}

/// Returns the client info.
fn client_info() -> Value {
    json!({"name": "toolbay", "version": env!("CARGO_PKG_VERSION")})
}

/// Returns the headers that repeat arguments. Arguments that are absent, null or of another type
/// have no header.
fn repeated_headers<'a>(
    arguments: &str,
    headers: &'a [ParamHeader],
) -> impl Iterator<Item = (Cow<'static, str>, String)> + use<'a> {
    let arguments: Value = if headers.is_empty() {
        Value::Null
    } else {
        serde_json::from_str(arguments).unwrap_or_default()
    };
    headers.iter().filter_map(move |header| {
        let value = header
            .path
            .iter()
            .try_fold(&arguments, |value, name| value.get(name))?;
        let text = match (header.kind, value) {
            (HeaderKind::String, Value::String(text)) => encode_header_value(text),
            (HeaderKind::Integer, Value::Number(number)) => number.to_string(),
            (HeaderKind::Boolean, Value::Bool(flag)) => flag.to_string(),
            _ => return None,
        };
        Some((
            format!("mcp-param-{}", header.name.to_ascii_lowercase()).into(),
            text,
        ))
    })
}

/// Encodes text as a header value: unchanged, or in base64 if a header cannot contain it.
fn encode_header_value(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && text.trim() == text
        && !text.is_empty()
        && !text.starts_with("=?base64?");
    if is_plain {
        text.to_owned()
    } else {
        format!("=?base64?{}?=", STANDARD.encode(text))
    }
}

/// Members of a JSON object, in the order in which they are written.
#[derive(Default)]
struct MemberWriter(BTreeMap<&'static str, Box<RawValue>>);

impl MemberWriter {
    fn insert(&mut self, name: &'static str, value: &(impl Serialize + ?Sized)) {
        if let Ok(value) = to_raw_value(value) {
            self.0.insert(name, value);
        }
    }

    /// Adds a member whose value is JSON text.
    fn insert_raw(&mut self, name: &'static str, json: &str) {
        if let Ok(value) = RawValue::from_string(json.to_owned()) {
            self.0.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests;
