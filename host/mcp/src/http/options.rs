//! How MCP is served over HTTP.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use crate::access::{Pattern, Rights};

/// How MCP is served over HTTP.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names that clients may call this server by, beside those of loopback and the address itself.
    pub hosts: Vec<String>,
    /// Origins whose pages may call, beside those of this machine.
    pub origins: Vec<String>,
    /// Whether the transport of 2024-11-05 is served, at `/sse`.
    pub sse: bool,
    /// Connections at once.
    pub connections: usize,
    /// Sessions at once.
    pub sessions: usize,
    /// How long a session without a request or an open stream is kept.
    pub session_idle: Duration,
    /// How often a comment keeps a quiet stream from being closed on the way.
    pub keep_alive: Duration,
    /// How long the head of a request, or its body, may take to arrive, and a connection may be without one.
    pub idle: Duration,
    /// Who may call with which secret.
    pub tokens: Vec<Token>,
    /// Who may call with a token of an authorization server.
    pub oauth: Option<OAuth>,
}

/// A bearer token, of which only the hash is known.
#[derive(Clone, Debug)]
pub struct Token {
    /// Whose it is, for the log.
    pub name: String,
    /// SHA-256 of the token.
    pub sha256: [u8; 32],
    /// The tools that it opens.
    pub rights: Rights,
}

/// What makes the server a protected resource (RFC 9728).
#[derive(Clone, Debug)]
pub struct OAuth {
    /// The address that clients know this server's `/mcp` by.
    pub resource: String,
    /// The issuer of each authorization server that tokens may come from.
    pub authorization_servers: Vec<String>,
    /// A file with the JWK set that tokens are signed with.
    pub jwks: PathBuf,
    /// What tokens must be meant for.
    pub audience: String,
    /// Scopes that every token must have.
    pub scopes: BTreeSet<String>,
    /// The tools that a scope opens; empty opens all to every token.
    pub tools: BTreeMap<String, Vec<Pattern>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            origins: Vec::new(),
            sse: false,
            connections: 1024,
            sessions: 1000,
            session_idle: Duration::from_mins(30),
            keep_alive: Duration::from_secs(15),
            idle: Duration::from_mins(1),
            tokens: Vec::new(),
            oauth: None,
        }
    }
}

impl Options {
    /// Whether a caller must say who it is.
    pub(super) fn needs_token(&self) -> bool {
        !self.tokens.is_empty() || self.oauth.is_some()
    }
}

impl OAuth {
    /// What a token with these scopes opens.
    pub(super) fn rights<'a>(&self, scopes: impl IntoIterator<Item = &'a str>) -> Rights {
        if self.tools.is_empty() {
            return Rights::All;
        }
        let patterns = scopes.into_iter().filter_map(|scope| self.tools.get(scope)).flatten();
        Rights::Only(patterns.cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_open_tools() {
        let patterns =
            |names: &[&str]| names.iter().map(|name| Pattern::try_from((*name).to_owned()).unwrap()).collect();
        let mut oauth = OAuth {
            resource: "https://a.example/mcp".into(),
            authorization_servers: vec!["https://b.example".into()],
            jwks: "k".into(),
            audience: "https://a.example/mcp".into(),
            scopes: BTreeSet::new(),
            tools: BTreeMap::new(),
        };
        assert_eq!(oauth.rights([]), Rights::All);
        oauth.tools = [("read".into(), patterns(&["time_*"])), ("write".into(), patterns(&["sum"]))].into();
        assert_eq!(oauth.rights(["other"]), Rights::Only(Vec::new()));
        let Rights::Only(opened) = oauth.rights(["read", "other"]) else { panic!("all") };
        assert_eq!(opened.iter().map(ToString::to_string).collect::<Vec<_>>(), ["time_*"]);
    }
}
