//! Options of MCP over HTTP.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolbay_model::CallerPreferences;
use toolbay_tls::ReloadingTls;

use super::trusted_proxies::TrustedProxy;
use crate::lists::access_rights::{CallerRights, NamePattern};

/// Options of MCP over HTTP.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Accepted values of `Host`, in addition to loopback names and the address itself. Compared
    /// without the port.
    pub allowed_hosts: Vec<String>,
    /// Accepted values of `Origin`, such as `https://app.example.com`, in addition to pages of this
    /// machine on a loopback address.
    pub allowed_origins: Vec<String>,
    /// Reverse proxies whose `X-Forwarded-For` states the address of a request. Connections still
    /// count as those of the proxy.
    pub trusted_proxies: Vec<TrustedProxy>,
    /// If set, the HTTP+SSE transport of 2024-11-05 is served at `/sse`.
    pub sse: bool,
    /// If set, metrics are served at [`METRICS_PATH`](super::METRICS_PATH).
    pub metrics: bool,
    /// Pages for operators, which do their own access control; `None` if there are none. Requests
    /// to them pass the check of `Host` and `Origin`.
    pub pages: Option<axum::Router>,
    /// Maximum number of open connections. A few more can wait briefly or send health probes. The
    /// rest is rejected.
    pub connections: usize,
    /// Maximum number of connections of one address, of one IPv6 network of 64 bits, or of one
    /// account of this machine.
    pub connections_per_address: usize,
    /// Maximum number of open requests of one caller, including its streams.
    pub requests_per_caller: usize,
    /// Maximum number of open sessions. If 0, there are no sessions, and each request of a revision
    /// with sessions is independent.
    pub sessions: usize,
    /// Maximum number of sessions of one caller. A new session replaces the caller's own session
    /// that was idle longest.
    pub sessions_per_caller: usize,
    /// Maximum number of sessions from one address, or from one IPv6 network of 64 bits.
    pub sessions_per_address: usize,
    /// Time for which a session without a request or an open stream is retained.
    pub session_idle_timeout: Duration,
    /// Interval of comments on a quiet stream, so that proxies do not close it.
    pub stream_keep_alive: Duration,
    /// Timeout for receiving the head or the body of a request, and for a connection without a
    /// request.
    pub idle_timeout: Duration,
    /// Timeout for a client that accepts no data while there is data to send.
    pub write_timeout: Duration,
    /// Time for which a client can resume a stream of its session after its connection has ended.
    /// If 0, it cannot resume.
    pub resume: Duration,
    /// Maximum bytes that are retained of all streams for resumption. One caller can use a quarter
    /// of it.
    pub resume_size: usize,
    /// Time for which the stream with the response to a request stays open until its client polls,
    /// if its revision supports polling. If `None`, it stays open until the response.
    pub poll_after: Option<Duration>,
    /// TLS for every connection; `None` if a proxy does it, or if connections are not encrypted.
    pub tls: Option<Arc<ReloadingTls>>,
    /// The accepted bearer tokens.
    pub tokens: Vec<BearerToken>,
    /// The authorization servers whose tokens are accepted; `None` if there are none.
    pub oauth: Option<OAuth>,
}

/// The options that can change at runtime.
#[derive(Clone, Debug, Default)]
pub struct AccessSettings {
    /// See [`HttpOptions::allowed_hosts`].
    pub allowed_hosts: Vec<String>,
    /// See [`HttpOptions::allowed_origins`].
    pub allowed_origins: Vec<String>,
    /// See [`HttpOptions::tokens`]. The sessions and streams that a token opened end when it is
    /// removed or its rights change.
    pub tokens: Vec<BearerToken>,
}

/// A bearer token, of which only the hash is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BearerToken {
    /// Name of the token's owner, for the log.
    pub name: String,
    /// SHA-256 of the token.
    pub sha256: [u8; 32],
    /// The tools that the token allows.
    pub rights: CallerRights,
    /// If set, the owner is an operator of the server and may see the activity of all callers.
    pub admin: bool,
    /// The owner's settings for argument checks and schemas.
    pub preferences: CallerPreferences,
}

/// Settings that make the server an OAuth 2.0 protected resource (RFC 9728).
#[derive(Clone, Debug)]
pub struct OAuth {
    /// The URL of `/mcp` as clients use it.
    pub resource: String,
    /// The accepted issuers of tokens. Each has its own keys.
    pub authorization_servers: Vec<AuthorizationServer>,
    /// Required audience (`aud`) of tokens.
    pub audience: String,
    /// Maximum time until a token expires. A token that is valid for longer is rejected.
    pub max_token_lifetime: Duration,
    /// Scopes that every token must have.
    pub required_scopes: BTreeSet<String>,
    /// The tools that each scope allows. If empty, every valid token allows all tools.
    pub tools: BTreeMap<String, Vec<NamePattern>>,
    /// If set, the response (403) to a call of a tool that another scope allows names that scope,
    /// and so reveals that the tool exists.
    pub step_up: bool,
}

/// An issuer of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizationServer {
    /// Its name in tokens (`iss`), which is also its URL.
    pub issuer: String,
    /// Path of a file with a JWK set: the keys that sign tokens of this issuer only. Reloaded every
    /// 5 seconds.
    pub jwks: PathBuf,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            trusted_proxies: Vec::new(),
            sse: false,
            metrics: true,
            pages: None,
            connections: 1024,
            connections_per_address: 512,
            requests_per_caller: 512,
            sessions: 1000,
            sessions_per_caller: 250,
            sessions_per_address: 500,
            session_idle_timeout: Duration::from_mins(30),
            stream_keep_alive: Duration::from_secs(15),
            idle_timeout: Duration::from_mins(1),
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
    /// Returns the maximum bytes that are retained of the streams of one caller.
    pub(super) fn caller_resume_size(&self) -> usize {
        self.resume_size / 4
    }
}

impl OAuth {
    /// Returns every scope that has a meaning for the server.
    pub(super) fn all_scopes(&self) -> BTreeSet<&str> {
        self.required_scopes
            .iter()
            .chain(self.tools.keys())
            .map(String::as_str)
            .collect()
    }

    /// Returns the scopes of a token that allows `tool`: one scope that allows it, and the scopes
    /// that every token has. Empty if no scope allows it.
    pub(super) fn scopes_of(&self, tool: &str) -> Vec<String> {
        let mut allowing = self
            .tools
            .iter()
            .filter(|(_, tools)| tools.iter().any(|pattern| pattern.matches(tool)));
        // The most restrictive scope is requested.
        let narrowest = allowing
            .by_ref()
            .min_by_key(|(_, tools)| tools.iter().map(NamePattern::breadth).max());
        let Some((narrowest, _)) = narrowest else {
            return Vec::new();
        };
        self.required_scopes
            .iter()
            .chain([narrowest])
            .cloned()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect()
    }

    /// Returns the tools that a token with these scopes allows.
    pub(super) fn rights<'a>(&self, scopes: impl IntoIterator<Item = &'a str>) -> CallerRights {
        if self.tools.is_empty() {
            return CallerRights::All;
        }
        let patterns = scopes
            .into_iter()
            .filter_map(|scope| self.tools.get(scope))
            .flatten();
        CallerRights::Only(patterns.cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_allow_tools() {
        let patterns = |names: &[&str]| {
            names
                .iter()
                .map(|name| NamePattern::try_from((*name).to_owned()).unwrap())
                .collect()
        };
        let mut oauth = OAuth {
            resource: "https://a.example/mcp".into(),
            authorization_servers: Vec::new(),
            audience: "https://a.example/mcp".into(),
            max_token_lifetime: Duration::from_hours(24),
            required_scopes: BTreeSet::new(),
            tools: BTreeMap::new(),
            step_up: false,
        };
        assert_eq!(oauth.rights([]), CallerRights::All);
        oauth.tools = [
            ("read".into(), patterns(&["time_*"])),
            ("write".into(), patterns(&["sum"])),
        ]
        .into();
        assert_eq!(oauth.rights(["other"]), CallerRights::Only(Vec::new()));
        let CallerRights::Only(opened) = oauth.rights(["read", "other"]) else {
            panic!("all")
        };
        assert_eq!(
            opened.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["time_*"]
        );
        oauth.required_scopes = ["base".to_owned()].into();
        oauth.tools.insert("admin".into(), patterns(&["*"]));
        assert_eq!(
            oauth.scopes_of("time_now"),
            ["base", "read"],
            "not the one that allows everything"
        );
        assert_eq!(oauth.scopes_of("sum"), ["base", "write"]);
        assert_eq!(oauth.scopes_of("other"), ["admin", "base"]);
        oauth.tools.remove("admin");
        assert!(oauth.scopes_of("other").is_empty());
    }
}
