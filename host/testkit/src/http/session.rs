//! MCP sessions over HTTP, from the client's side.

use std::cell::Cell;

use serde_json::{Value, json};

use super::{HttpResponse, HttpServer};
use crate::{message, revision};

/// A session that follows the rules of its revision.
#[derive(Debug)]
pub struct HttpSession<'a> {
    server: &'a HttpServer,
    /// The session's id.
    pub id: String,
    revision: String,
    /// Additional headers of every request, for example a token.
    extra_headers: Vec<(String, String)>,
    next_id: Cell<u64>,
}

impl HttpServer {
    /// Returns the revisions with sessions that the server supports, oldest first.
    pub fn session_revisions(&self) -> Vec<String> {
        let discovered = self.result("server/discover", json!({}));
        revision::session_revisions(&discovered).unwrap_or_else(|error| panic!("{error:#}"))
    }

    /// Like [`session_revisions`](Self::session_revisions), for a server that needs a token.
    pub fn session_revisions_of(&self, authorization: &str) -> Vec<String> {
        let headers = [("Authorization", authorization)];
        let discovered = self
            .post_stateless("server/discover", json!({}), &headers)
            .response_message();
        revision::session_revisions(&discovered["result"])
            .unwrap_or_else(|error| panic!("{error:#}"))
    }

    /// Starts a session: sends `initialize` and `notifications/initialized`.
    pub fn start_session(&self, revision: &str) -> HttpSession<'_> {
        self.start_session_with_headers(revision, &[])
    }

    /// Like [`start_session`](Self::start_session), with additional headers.
    pub fn start_session_with_headers(
        &self,
        revision: &str,
        headers: &[(&str, &str)],
    ) -> HttpSession<'_> {
        self.start_session_with_capabilities(revision, json!({}), headers)
    }

    /// Like [`start_session_with_headers`](Self::start_session_with_headers), for a client with
    /// these capabilities.
    pub fn start_session_with_capabilities(
        &self,
        revision: &str,
        capabilities: Value,
        headers: &[(&str, &str)],
    ) -> HttpSession<'_> {
        let mut hello = message::request(0, "initialize", &message::initialize_params(revision));
        if let Some(declared) = hello.pointer_mut("/params/capabilities") {
            *declared = capabilities;
        }
        let response = self.post(headers, hello.to_string().as_bytes());
        assert_eq!(response.status, 200);
        let id = response.header("mcp-session-id").unwrap().to_owned();
        let answer = response.response_message();
        assert_eq!(answer["result"]["protocolVersion"], revision, "{answer}");
        let session = HttpSession::new(self, id, revision, headers);
        let response = session.post(&message::notification(
            "notifications/initialized",
            &json!({}),
        ));
        assert_eq!((response.status, response.text()), (202, String::new()));
        session
    }
}

impl<'a> HttpSession<'a> {
    fn new(server: &'a HttpServer, id: String, revision: &str, headers: &[(&str, &str)]) -> Self {
        let more = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Self {
            server,
            id,
            revision: revision.to_owned(),
            extra_headers: more,
            next_id: Cell::new(1),
        }
    }

    /// Sends a message of the session in a POST request.
    pub fn post(&self, message: &Value) -> HttpResponse {
        self.server
            .post(&self.headers(), message.to_string().as_bytes())
    }

    /// Returns the headers of every request of the session.
    pub fn headers(&self) -> Vec<(&str, &str)> {
        let mut headers = vec![("Mcp-Session-Id", self.id.as_str())];
        if self.revision.as_str() >= "2025-06-18" {
            headers.push(("MCP-Protocol-Version", &self.revision));
        }
        headers.extend(
            self.extra_headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
        );
        headers
    }

    /// Sends an MCP request in a POST request.
    pub fn request(&self, method: &str, params: Value) -> HttpResponse {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        self.post(&message::request(id, method, &params))
    }

    /// Sends a request and returns the result.
    pub fn result(&self, method: &str, params: Value) -> Value {
        let response = self.request(method, params);
        assert_eq!(response.status, 200);
        let mut answer = response.response_message();
        assert!(answer.get("result").is_some(), "{method} failed: {answer}");
        answer["result"].take()
    }

    /// Opens the event stream for messages that belong to no request.
    pub fn open_stream(&self) -> HttpResponse {
        let response = self.server.get(
            "/mcp",
            &[self.headers(), vec![("Accept", "text/event-stream")]].concat(),
        );
        assert_eq!(response.status, 200);
        response
    }

    /// Returns the names of all tools.
    pub fn tool_names(&self) -> Vec<String> {
        let result = self.result("tools/list", json!({}));
        message::tool_names(result["tools"].as_array().unwrap())
    }
}
