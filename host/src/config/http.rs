//! `[http]`: where the server listens, whom it answers, and what it holds for them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Uri;
use serde::de::{Error as _, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

use super::many;
use crate::access::{Pattern, Rights};
use crate::toml_file::setting::{Setting as _, positive};

/// The shortest [`Http::keep_alive`]: comments more often than this are a load of their own.
const BRISK: Duration = Duration::from_millis(100);

/// What an operator can set for MCP over HTTP.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Http {
    /// The address to listen on; absent serves standard input and output.
    #[serde(deserialize_with = "address")]
    pub listen: Option<SocketAddr>,
    /// Names that clients may call this server by, beside loopback's and the address itself.
    #[serde(deserialize_with = "list")]
    pub hosts: Vec<String>,
    /// Origins whose pages may call, beside those of this machine.
    #[serde(deserialize_with = "list")]
    pub origins: Vec<String>,
    /// Whether callers without a token are served on an address that others can reach.
    pub anonymous: bool,
    /// Whether the transport of 2024-11-05 is served, at `/sse`.
    pub sse: bool,
    /// Connections at once.
    #[serde(deserialize_with = "many")]
    pub connections: usize,
    /// Sessions at once.
    #[serde(deserialize_with = "many")]
    pub sessions: usize,
    /// How long a session without a request or an open stream is kept.
    #[serde(deserialize_with = "positive")]
    pub session_idle: Duration,
    /// How often a comment keeps a quiet stream from being closed on the way.
    #[serde(deserialize_with = "keep_alive")]
    pub keep_alive: Duration,
    /// How long the head of a request, or its body, may take to arrive, and a connection may be without one.
    #[serde(deserialize_with = "positive")]
    pub idle: Duration,
    /// Who may call with which secret.
    pub tokens: Vec<Token>,
    /// Who may call with a token of an authorization server.
    pub oauth: Option<OAuth>,
}

/// A bearer token, of which only the hash is known.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Whose it is, for the log.
    pub name: String,
    /// SHA-256 of the token, in hexadecimal.
    pub sha256: String,
    /// The tools that it may see and call; absent is all.
    pub tools: Option<Vec<Pattern>>,
}

/// What makes the server a protected resource (RFC 9728).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OAuth {
    /// The address that clients know this server's `/mcp` by.
    pub resource: String,
    /// Who issues tokens: the issuer of each authorization server.
    pub authorization_servers: Vec<String>,
    /// Where the keys are that tokens are signed with: a file with a JWK set; a relative path starts at the
    /// configuration file.
    pub jwks: PathBuf,
    /// What tokens must be meant for; absent is `resource`.
    pub audience: Option<String>,
    /// Scopes that every token must have.
    #[serde(default)]
    pub scopes: BTreeSet<String>,
    /// The tools that a scope opens; without this table every token opens all.
    #[serde(default)]
    pub tools: BTreeMap<String, Vec<Pattern>>,
}

impl Default for Http {
    fn default() -> Self {
        Self {
            listen: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            anonymous: false,
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

impl Http {
    /// Whether a caller must say who it is.
    pub fn needs_token(&self) -> bool {
        !self.tokens.is_empty() || self.oauth.is_some()
    }

    /// Has relative paths start at `folder`.
    pub(super) fn resolve(&mut self, folder: &Path) {
        if let Some(oauth) = &mut self.oauth {
            oauth.jwks = folder.join(&oauth.jwks);
        }
    }

    /// # Errors
    ///
    /// What cannot be used, and what would be right.
    pub(super) fn check(&self) -> Result<(), String> {
        for origin in &self.origins {
            if !is_origin(origin) {
                return Err(format!("http.origins: {origin:?} is no origin; one is \"https://app.example.com\""));
            }
        }
        for host in &self.hosts {
            if host.is_empty() || host.contains(['/', ' ', '@']) {
                return Err(format!("http.hosts: {host:?} is no host; one is \"tools.example.com\""));
            }
        }
        let mut names = BTreeSet::new();
        for token in &self.tokens {
            let hex = token.sha256.len() == 64 && token.sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
            if !hex {
                let name = &token.name;
                return Err(format!(
                    "http.tokens: the sha256 of {name:?} is not 64 hexadecimal digits; `toolbay token {name}` makes one"
                ));
            }
            if token.name.is_empty() || !names.insert(&token.name) {
                return Err(format!("http.tokens: the name {:?} is empty or given twice", token.name));
            }
        }
        if let Some(oauth) = &self.oauth {
            oauth.check()?;
        }
        if self.anonymous && self.needs_token() {
            return Err("http.anonymous is true, but there are tokens: take one of them away".to_owned());
        }
        match self.listen {
            Some(address) if !address.ip().is_loopback() && !self.anonymous && !self.needs_token() => Err(format!(
                "others can reach {address}: give them tokens (http.tokens, http.oauth), or set http.anonymous = true"
            )),
            _ => Ok(()),
        }
    }
}

impl Token {
    /// What the token opens.
    pub fn rights(&self) -> Rights {
        self.tools.clone().map_or(Rights::All, Rights::Only)
    }
}

impl OAuth {
    fn check(&self) -> Result<(), String> {
        let uri = self.resource.parse::<Uri>().ok();
        if uri.is_none_or(|uri| uri.scheme().is_none() || uri.host().is_none()) || self.resource.contains('#') {
            let text = &self.resource;
            return Err(format!("http.oauth.resource: {text:?} is not as \"https://tools.example.com/mcp\""));
        }
        if self.authorization_servers.is_empty() {
            return Err("http.oauth.authorization_servers must name at least one issuer".to_owned());
        }
        Ok(())
    }

    /// What tokens must be meant for.
    pub fn audience(&self) -> &str {
        self.audience.as_deref().unwrap_or(&self.resource)
    }

    /// What a token with these scopes opens.
    pub fn rights<'a>(&self, scopes: impl IntoIterator<Item = &'a str>) -> Rights {
        if self.tools.is_empty() {
            return Rights::All;
        }
        let patterns = scopes.into_iter().filter_map(|scope| self.tools.get(scope)).flatten();
        Rights::Only(patterns.cloned().collect())
    }
}

fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    deserializer.deserialize_str(Address).map(Some)
}

struct Address;

impl Visitor<'_> for Address {
    type Value = SocketAddr;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address with its port such as \"127.0.0.1:8931\"")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<SocketAddr, E> {
        text.parse().map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }
}

fn keep_alive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    match Duration::read(deserializer, false)? {
        brisk if brisk < BRISK => {
            let [least, found] = [BRISK, brisk].map(humantime::format_duration);
            Err(D::Error::custom(format_args!("expected a duration of at least {least}, not {found}")))
        }
        time => Ok(time),
    }
}

/// Whether `text` is a scheme, a host and perhaps a port, and nothing else.
fn is_origin(text: &str) -> bool {
    let uri = text.parse::<Uri>().ok();
    uri.is_some_and(|uri| uri.host().is_some() && uri.scheme().is_some() && uri.path() == "/") && !text.ends_with('/')
}

/// A list, or one text with commas, as a variable has it.
fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a list of texts, or one text with commas")]
    enum List {
        Items(Vec<String>),
        Text(String),
    }
    Ok(match List::deserialize(deserializer)? {
        List::Items(items) => items,
        List::Text(text) => {
            text.split(',').map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toml_file;

    fn said(text: &str) -> String {
        match toml_file::parse::<Http>("a.toml", text) {
            Ok(http) => http.check().unwrap_err(),
            Err(mistake) => mistake,
        }
    }

    #[test]
    fn what_cannot_be_used_is_told_with_what_would_be_right() {
        let hash = "0".repeat(64);
        let token = |name: &str, hash: &str| format!("[[tokens]]\nname = \"{name}\"\nsha256 = \"{hash}\"\n");
        let oauth = "[oauth]\nresource = \"tools\"\nauthorization_servers = []\njwks = \"keys.json\"";
        let cases = [
            said("sessions = 0"),
            said("connections = \"many\""),
            said("connections = 10_000_000"),
            said("keep_alive = \"1ms\""),
            said("keep_alive = \"0s\""),
            said("session_idle = \"2days\""),
            said("session_idle = \"0s\""),
            said("idle = 30"),
            said("sse = \"yes\""),
            said("listen = 8931"),
            said("listen = \"localhost\""),
            said("hosts = 7"),
            said("tokens = 7"),
            said("oauth = true"),
            said("origins = [\"https://a.example/\"]"),
            said("origins = \"a.example\""),
            said("hosts = [\"http://a.example\"]"),
            said(&token("ci", "secret")),
            said(&[token("ci", &hash), token("ci", &hash)].concat()),
            said(oauth),
            said(&oauth.replace("\"tools\"", "\"https://a.example/mcp\"")),
            said(&format!("anonymous = true\n{}", token("ci", &hash))),
            said("listen = \"0.0.0.0:1\""),
        ];
        insta::assert_snapshot!(cases.join("\n"));
        toml::from_str::<Http>("listen = \"0.0.0.0:1\"\nanonymous = true\nhosts = \"a, b\"").unwrap().check().unwrap();
    }

    #[test]
    fn scopes_open_tools() {
        let text =
            "resource = \"https://a.example/mcp\"\nauthorization_servers = [\"https://b.example\"]\njwks = \"k\"";
        let all: OAuth = toml::from_str(text).unwrap();
        assert_eq!((all.rights([]), all.audience()), (Rights::All, "https://a.example/mcp"));
        let some: OAuth = toml::from_str(&format!("{text}\n[tools]\nread = [\"time_*\"]\nwrite = [\"sum\"]")).unwrap();
        assert_eq!(some.rights(["other"]), Rights::Only(Vec::new()));
        let Rights::Only(patterns) = some.rights(["read", "other"]) else { panic!("all") };
        assert_eq!(patterns.iter().map(ToString::to_string).collect::<Vec<_>>(), ["time_*"]);
    }
}
