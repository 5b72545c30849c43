//! `[http]`: where the server listens, whom it answers, and what it holds for them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::{Error as _, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use toolbay_mcp::{Pattern, Rights, http};
use toolbay_model::setting::{Setting as _, positive};
use url::Url;

use super::bounds::many;

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
    #[serde(deserialize_with = "hosts")]
    pub hosts: Vec<String>,
    /// Origins whose pages may call, beside those of this machine.
    #[serde(deserialize_with = "origins")]
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
    #[serde(deserialize_with = "name")]
    pub name: String,
    /// SHA-256 of the token: 64 hexadecimal digits.
    #[serde(deserialize_with = "sha256")]
    pub sha256: [u8; 32],
    /// The tools that it may see and call; absent is all.
    pub tools: Option<Vec<Pattern>>,
}

/// What makes the server a protected resource (RFC 9728).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OAuth {
    /// The address that clients know this server's `/mcp` by.
    #[serde(deserialize_with = "resource")]
    pub resource: String,
    /// Who issues tokens: the issuer of each authorization server; at least one.
    #[serde(deserialize_with = "issuers")]
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
        let http::Options { connections, sessions, session_idle, keep_alive, idle, .. } = http::Options::default();
        Self {
            listen: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            anonymous: false,
            sse: false,
            connections,
            sessions,
            session_idle,
            keep_alive,
            idle,
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
    /// What cannot be used together, and what would be right. Mistakes in a single value have been found by now.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        if let Some(token) = self.tokens.iter().find(|token| !names.insert(&token.name)) {
            return Err(format!("http.tokens: the name {:?} is used twice", token.name));
        }
        if self.anonymous && self.needs_token() {
            return Err(
                "http.anonymous = true contradicts http.tokens and http.oauth: remove one or the other".to_owned()
            );
        }
        match self.listen {
            Some(address) if !address.ip().is_loopback() && !self.anonymous && !self.needs_token() => Err(format!(
                "{address} is reachable from other machines: set up tokens (http.tokens or http.oauth), or set http.anonymous = true"
            )),
            _ => Ok(()),
        }
    }

    /// How MCP is served by it.
    pub(crate) fn options(&self) -> http::Options {
        http::Options {
            hosts: self.hosts.clone(),
            origins: self.origins.clone(),
            sse: self.sse,
            connections: self.connections,
            sessions: self.sessions,
            session_idle: self.session_idle,
            keep_alive: self.keep_alive,
            idle: self.idle,
            tokens: self.tokens.iter().map(Token::options).collect(),
            oauth: self.oauth.as_ref().map(OAuth::options),
        }
    }
}

impl Token {
    fn options(&self) -> http::Token {
        let rights = self.tools.clone().map_or(Rights::All, Rights::Only);
        http::Token { name: self.name.clone(), sha256: self.sha256, rights }
    }
}

impl OAuth {
    fn options(&self) -> http::OAuth {
        http::OAuth {
            resource: self.resource.clone(),
            authorization_servers: self.authorization_servers.clone(),
            jwks: self.jwks.clone(),
            audience: self.audience.clone().unwrap_or_else(|| self.resource.clone()),
            scopes: self.scopes.clone(),
            tools: self.tools.clone(),
        }
    }
}

fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    deserializer.deserialize_str(Address).map(Some)
}

struct Address;

impl Visitor<'_> for Address {
    type Value = SocketAddr;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address with a port, such as \"127.0.0.1:8931\"")
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

/// Names that are hosts.
fn hosts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let hosts = list(deserializer)?;
    // A pattern would be taken for a name that nobody has.
    match hosts.iter().find(|host| host.is_empty() || host.contains(['/', ' ', '@', '*'])) {
        Some(host) => Err(D::Error::custom(format_args!(
            "{host:?} is not a host name; expected one such as \"tools.example.com\""
        ))),
        None => Ok(hosts),
    }
}

/// Texts that are a scheme, a host and perhaps a port, and nothing else.
fn origins<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let origins = list(deserializer)?;
    let is_origin = |text: &&String| {
        let url = Url::parse(text).ok().filter(Url::has_host);
        url.is_some_and(|url| url.path() == "/" && url.query().is_none() && url.username().is_empty())
            && !text.ends_with('/')
            && !text.contains(['*', '#'])
    };
    match origins.iter().find(|origin| !is_origin(origin)) {
        Some(origin) => Err(D::Error::custom(format_args!(
            "{origin:?} is not an origin; expected one such as \"https://app.example.com\""
        ))),
        None => Ok(origins),
    }
}

fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    if name.is_empty() { Err(D::Error::custom("the name is empty")) } else { Ok(name) }
}

fn sha256<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 32], D::Error> {
    let text = String::deserialize(deserializer)?;
    let mut bytes = [0; 32];
    let wrong =
        |_| D::Error::custom("expected 64 hexadecimal digits; `toolbay token NAME` generates a token and its hash");
    hex::decode_to_slice(text, &mut bytes).map_err(wrong)?;
    Ok(bytes)
}

fn resource<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if Url::parse(&text).is_ok_and(|url| url.has_host() && url.fragment().is_none()) {
        return Ok(text);
    }
    Err(D::Error::custom(format_args!("{text:?} is not a URL such as \"https://tools.example.com/mcp\"")))
}

fn issuers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let issuers = Vec::<String>::deserialize(deserializer)?;
    if issuers.is_empty() { Err(D::Error::custom("expected at least one issuer")) } else { Ok(issuers) }
}

/// A list, or one text with commas, as a variable has it.
fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a list of strings, or one string with commas")]
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
    use toolbay_settings::toml_file;

    use super::*;

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
            said("hosts = [\"*\"]"),
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
}
