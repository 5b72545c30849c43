//! Options of MCP over HTTP.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolbay_model::CallerPreferences;
use toolbay_tls::ReloadingTls;

use crate::access::{CallerRights, NamePattern};

/// Options of MCP over HTTP.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Accepted values of `Host`, besides loopback names and the address itself. Compared without the port.
    pub hosts: Vec<String>,
    /// Accepted values of `Origin`, such as `https://app.example.com`, besides pages of this machine on a loopback
    /// address.
    pub origins: Vec<String>,
    /// Whether the HTTP+SSE transport of 2024-11-05 is served at `/sse`.
    pub sse: bool,
    /// Whether metrics are served at [`METRICS`](super::METRICS).
    pub metrics: bool,
    /// Pages for operators, which decide themselves who may see them; `None` if there are none. Requests to them pass the
    /// check of `Host` and `Origin`.
    pub pages: Option<axum::Router>,
    /// Connections open at once. A few more wait for a moment or ask whether the server is well; the rest is rejected.
    pub connections: usize,
    /// Connections of one address, or of one network of 64 bits of IPv6.
    pub address_connections: usize,
    /// Requests that one caller has open at once, with its streams.
    pub caller_requests: usize,
    /// Sessions open at once. 0: there are none, and each request of a revision with sessions stands for itself.
    pub sessions: usize,
    /// Sessions of one caller; a new one replaces its own that was idle longest.
    pub caller_sessions: usize,
    /// Sessions that came from one address, or from one network of 64 bits of IPv6.
    pub address_sessions: usize,
    /// How long a session without a request or an open stream is kept.
    pub session_idle: Duration,
    /// Interval of comments on a quiet stream, so that proxies do not close it.
    pub keep_alive: Duration,
    /// How long the head or body of a request may take to arrive, and a connection may stay without a request.
    pub idle: Duration,
    /// How long a client may accept nothing while there is something to send to it.
    pub write_timeout: Duration,
    /// How long a client can go on with a stream of its session whose connection has ended. 0: not at all.
    pub resume: Duration,
    /// Bytes that are kept of all streams for that. A caller has a quarter of it.
    pub resume_size: usize,
    /// How long the stream with the response to a request stays open until its client polls, if its revision knows that.
    /// `None`: until the response.
    pub poll_after: Option<Duration>,
    /// TLS on every connection; `None` if a proxy does that, or nobody.
    pub tls: Option<Arc<ReloadingTls>>,
    /// The accepted bearer tokens.
    pub tokens: Vec<BearerToken>,
    /// The authorization servers whose tokens are accepted; `None` if there are none.
    pub oauth: Option<OAuth>,
}

/// What of the options can change while clients are served.
#[derive(Clone, Debug, Default)]
pub struct AuthSettings {
    /// See [`HttpOptions::hosts`].
    pub hosts: Vec<String>,
    /// See [`HttpOptions::origins`].
    pub origins: Vec<String>,
    /// See [`HttpOptions::tokens`]. What a token opened ends when it is no longer there, or allows something else.
    pub tokens: Vec<BearerToken>,
}

/// A bearer token, known by its hash only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BearerToken {
    /// Name of the token's owner, for the log.
    pub name: String,
    /// SHA-256 of the token.
    pub sha256: [u8; 32],
    /// The tools that the token allows.
    pub rights: CallerRights,
    /// Whether its owner operates the server, and may see what all callers do.
    pub admin: bool,
    /// How its models are met.
    pub preferences: CallerPreferences,
}

/// Settings that make the server an OAuth 2.0 protected resource (RFC 9728).
#[derive(Clone, Debug)]
pub struct OAuth {
    /// The URL of `/mcp` as clients use it.
    pub resource: String,
    /// The accepted issuers of tokens. Each has keys of its own.
    pub authorization_servers: Vec<AuthorizationServer>,
    /// Required audience (`aud`) of tokens.
    pub audience: String,
    /// The longest time until a token expires. One that is valid for longer is rejected.
    pub lifetime: Duration,
    /// Scopes that every token must have.
    pub scopes: BTreeSet<String>,
    /// The tools that each scope allows. Empty: every valid token allows all tools.
    pub tools: BTreeMap<String, Vec<NamePattern>>,
    /// Whether a call of a tool that another scope allows names that scope (403), and so tells that the tool exists.
    pub step_up: bool,
}

/// An issuer of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizationServer {
    /// Its name in tokens (`iss`), which is also its URL.
    pub issuer: String,
    /// Path of a file with a JWK set: the keys that sign its tokens, and no other issuer's. Read again every 5 seconds.
    pub jwks: PathBuf,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            origins: Vec::new(),
            sse: false,
            metrics: true,
            pages: None,
            connections: 1024,
            address_connections: 512,
            caller_requests: 512,
            sessions: 1000,
            caller_sessions: 250,
            address_sessions: 500,
            session_idle: Duration::from_mins(30),
            keep_alive: Duration::from_secs(15),
            idle: Duration::from_mins(1),
            write_timeout: Duration::from_secs(30),
            resume: Duration::from_mins(1),
            resume_size: 64 << 20,
            poll_after: None,
            tls: None,
            tokens: Vec::new(),
            oauth: None,
        }
    }
}

impl HttpOptions {
    /// Bytes that are kept of the streams of one caller.
    pub(super) fn caller_resume_size(&self) -> usize {
        self.resume_size / 4
    }
}

impl OAuth {
    /// Every scope that means something here.
    pub(super) fn all_scopes(&self) -> BTreeSet<&str> {
        self.scopes.iter().chain(self.tools.keys()).map(String::as_str).collect()
    }

    /// The scopes of a token that allows `tool`: one of those for it, besides those that every token has. Empty if no scope
    /// allows it.
    pub(super) fn scopes_of(&self, tool: &str) -> Vec<String> {
        let mut allowing = self.tools.iter().filter(|(_, tools)| tools.iter().any(|pattern| pattern.matches(tool)));
        // Whoever allows least is asked for first.
        let narrowest = allowing.by_ref().min_by_key(|(_, tools)| tools.iter().map(NamePattern::breadth).max());
        let Some((narrowest, _)) = narrowest else { return Vec::new() };
        self.scopes.iter().chain([narrowest]).cloned().collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The tools that a token with these scopes allows.
    pub(super) fn rights<'a>(&self, scopes: impl IntoIterator<Item = &'a str>) -> CallerRights {
        if self.tools.is_empty() {
            return CallerRights::All;
        }
        let patterns = scopes.into_iter().filter_map(|scope| self.tools.get(scope)).flatten();
        CallerRights::Only(patterns.cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_allow_tools() {
        let patterns =
            |names: &[&str]| names.iter().map(|name| NamePattern::try_from((*name).to_owned()).unwrap()).collect();
        let mut oauth = OAuth {
            resource: "https://a.example/mcp".into(),
            authorization_servers: Vec::new(),
            audience: "https://a.example/mcp".into(),
            lifetime: Duration::from_hours(24),
            scopes: BTreeSet::new(),
            tools: BTreeMap::new(),
            step_up: false,
        };
        assert_eq!(oauth.rights([]), CallerRights::All);
        oauth.tools = [("read".into(), patterns(&["time_*"])), ("write".into(), patterns(&["sum"]))].into();
        assert_eq!(oauth.rights(["other"]), CallerRights::Only(Vec::new()));
        let CallerRights::Only(opened) = oauth.rights(["read", "other"]) else { panic!("all") };
        assert_eq!(opened.iter().map(ToString::to_string).collect::<Vec<_>>(), ["time_*"]);
        oauth.scopes = ["base".to_owned()].into();
        oauth.tools.insert("admin".into(), patterns(&["*"]));
        assert_eq!(oauth.scopes_of("time_now"), ["base", "read"], "not the one that allows everything");
        assert_eq!(oauth.scopes_of("sum"), ["base", "write"]);
        assert_eq!(oauth.scopes_of("other"), ["admin", "base"]);
        oauth.tools.remove("admin");
        assert!(oauth.scopes_of("other").is_empty());
    }
}
