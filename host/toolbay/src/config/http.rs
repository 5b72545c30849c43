//! `[http]`: settings of MCP over HTTP.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytesize::ByteSize;
use serde::de::{Error as _, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use toolbay_mcp::http::ListenAddress;
use toolbay_mcp::{CallerRights, NamePattern, http};
use toolbay_model::setting::{SettingValue as _, any, positive, size, time};
use toolbay_model::{ArgumentCheck, CallerPreferences, SchemaForm};
use toolbay_socket::MAX_PATH_BYTES as LONGEST_PATH;
use toolbay_tls::{CertificateFiles, ReloadingTls};
use url::Url;

use super::bounds::{MAX_COUNT, many};

/// Minimum [`Http::stream_keep_alive`]. More frequent comments would be a load in themselves.
const MIN_KEEP_ALIVE: Duration = Duration::from_millis(100);

/// Maximum [`OAuth::max_token_lifetime`]: one year.
const MAX_TOKEN_LIFETIME: Duration = Duration::from_hours(8766);

/// Settings of MCP over HTTP (`[http]`).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Http {
    /// Address to listen on, or the path of a Unix socket. A relative path is relative to the
    /// configuration file. `None`: the server uses stdio.
    #[serde(deserialize_with = "address")]
    pub listen: Option<ListenAddress>,
    /// File mode of a Unix socket. Users with write permission can connect. Default: 0600.
    #[serde(deserialize_with = "mode")]
    pub socket_mode: u32,
    /// Accepted values of `Host`, in addition to loopback names and the address itself. Compared
    /// without the port.
    #[serde(deserialize_with = "allowed_hosts")]
    pub allowed_hosts: Vec<String>,
    /// Accepted values of `Origin`, such as `https://app.example.com`. On a loopback address, pages
    /// of this machine are also accepted.
    #[serde(deserialize_with = "allowed_origins")]
    pub allowed_origins: Vec<String>,
    /// If set, callers without a token are accepted on an address that is not loopback. Default:
    /// false.
    pub anonymous: bool,
    /// If set, the HTTP+SSE transport of 2024-11-05 is served at `/sse`. Default: false.
    pub sse: bool,
    /// Maximum number of open connections, 1 to 1,000,000. A few more wait briefly. Default: 1,024.
    #[serde(deserialize_with = "many")]
    pub connections: usize,
    /// Maximum number of connections from one address, from one IPv6 network of 64 bits, or from
    /// one account of this machine, 1 to 1,000,000. `None`: half of `connections`, but at least 64.
    #[serde(deserialize_with = "some")]
    pub connections_per_address: Option<usize>,
    /// Maximum number of open requests of one caller, including its streams, 1 to 1,000,000.
    /// `None`: half of `connections`, but at least 64.
    #[serde(deserialize_with = "some")]
    pub requests_per_caller: Option<usize>,
    /// Maximum number of open sessions, 1 to 1,000,000. 0 (`false`) turns sessions off, so that
    /// each request is independent. Default: 1,000.
    #[serde(deserialize_with = "sessions")]
    pub sessions: usize,
    /// Maximum number of sessions of one caller, 1 to 1,000,000. A new session replaces the
    /// caller's session that was idle longest. `None`: a quarter of `sessions`, but at least 64.
    #[serde(deserialize_with = "some")]
    pub sessions_per_caller: Option<usize>,
    /// Maximum number of sessions from one address, or from one IPv6 network of 64 bits, 1 to
    /// 1,000,000. `None`: half of `sessions`, but at least 64.
    #[serde(deserialize_with = "some")]
    pub sessions_per_address: Option<usize>,
    /// Timeout of a session without a request or an open stream. Default: 30 min.
    #[serde(deserialize_with = "positive")]
    pub session_idle_timeout: Duration,
    /// Interval of comments on an idle stream, so that proxies do not close it. Default: 15 s.
    #[serde(deserialize_with = "keep_alive")]
    pub stream_keep_alive: Duration,
    /// Timeout for receiving the head or body of a request, and for a connection without a request.
    /// Default: 1 min.
    #[serde(deserialize_with = "positive")]
    pub idle_timeout: Duration,
    /// Timeout for a client that accepts no data while there is data to send. Its connection is
    /// then closed. Default: 30 s.
    #[serde(deserialize_with = "positive")]
    pub write_timeout: Duration,
    /// Time for which a client can resume a stream of its session after the connection ended, and
    /// for which the messages of the stream are retained. 0 turns resumption off. Default: 1 min.
    #[serde(deserialize_with = "any")]
    pub resume: Duration,
    /// Maximum total size of messages retained for resumption, 64 KiB to 4 TiB. One caller can use
    /// a quarter of it. Default: 64 MiB.
    #[serde(deserialize_with = "resume_size")]
    pub resume_size: ByteSize,
    /// Time for which the response stream of a request in a session stays open, at least 100 ms.
    /// Then the stream ends, and a client of 2025-11-25 polls. `None`: until the response.
    #[serde(deserialize_with = "poll_after")]
    pub poll_after: Option<Duration>,
    /// TLS on every connection. `None` if there is no TLS, or a proxy terminates it.
    pub tls: Option<TlsConfig>,
    /// The accepted bearer tokens.
    pub tokens: Vec<Token>,
    /// The authorization servers whose tokens are accepted. `None` if there are none.
    pub oauth: Option<OAuth>,
    /// If set, callers need a token although none is configured any more: some were configured when
    /// the server started.
    #[serde(skip)]
    pub closed: bool,
}

/// TLS on every connection (`[http.tls]`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// A PEM file with the server's certificate, followed by its chain. A relative path is relative
    /// to the configuration file. Like the key, it is read again every 5 seconds.
    pub certificate: PathBuf,
    /// A PEM file with the private key, which only its owner can read.
    pub key: PathBuf,
}

/// A bearer token, stored as a hash (`[[http.tokens]]`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Name of the token's owner, for the log. Unique and not empty.
    #[serde(deserialize_with = "name")]
    pub name: String,
    /// SHA-256 of the token: 64 hexadecimal digits.
    #[serde(deserialize_with = "sha256")]
    pub sha256: [u8; 32],
    /// The tools that the token may list and call. `None` means all.
    pub tools: Option<Vec<NamePattern>>,
    /// If set, the owner is an operator, who may access data of all callers (`/metrics`). Default:
    /// false.
    #[serde(default)]
    pub admin: bool,
    /// The check of arguments in calls with this token, see
    /// [`ServerConfig::arguments`](super::ServerConfig::arguments). `None`: the server's setting.
    #[serde(default)]
    pub arguments: Option<ArgumentCheck>,
    /// The form of schemas in responses to this token, see
    /// [`ServerConfig::schemas`](super::ServerConfig::schemas). `None`: the server's setting.
    #[serde(default)]
    pub schemas: Option<SchemaForm>,
}

/// Settings that make the server an OAuth 2.0 protected resource (RFC 9728).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OAuth {
    /// The URL of `/mcp` that clients use.
    #[serde(deserialize_with = "resource")]
    pub resource: String,
    /// The accepted issuers (`iss`). At least one.
    #[serde(deserialize_with = "issuers")]
    pub authorization_servers: Vec<String>,
    /// The keys that sign tokens: the path of a JWK set file for each issuer. A relative path is
    /// relative to the configuration file. The files are read again every 5 seconds.
    pub jwks: Jwks,
    /// Required audience (`aud`) of tokens. `None` means `resource`.
    pub audience: Option<String>,
    /// Maximum remaining lifetime of a token, at most one year. A token that is valid for longer is
    /// rejected. Default: 1 day.
    #[serde(default = "day", deserialize_with = "max_token_lifetime")]
    pub max_token_lifetime: Duration,
    /// Scopes that every token must have.
    #[serde(default)]
    pub required_scopes: BTreeSet<String>,
    /// The tools that each scope allows. If missing, every valid token allows all tools.
    #[serde(default, deserialize_with = "scope_tools")]
    pub tools: BTreeMap<String, Vec<NamePattern>>,
    /// If set, a call without the required scope is rejected with the missing scopes (403), so that
    /// the client can request them. This discloses to the caller that the tool exists. Default:
    /// false.
    #[serde(default)]
    pub step_up: bool,
}

/// Deserializes the tools of each scope. A table without scopes is an error: its lines may be
/// missing by mistake, and without them every token allows all tools.
fn scope_tools<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Vec<NamePattern>>, D::Error> {
    let tools = BTreeMap::deserialize(deserializer)?;
    if tools.is_empty() {
        return Err(D::Error::custom(
            "the table names no scope; add lines such as read = [\"time_*\"], or remove the table to let every token \
             use all tools",
        ));
    }
    Ok(tools)
}

/// The files with the keys of issuers. A key is trusted only for tokens of its issuer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(
    untagged,
    expecting = "expected the path of a file, or a table with one for each issuer"
)]
pub enum Jwks {
    /// The keys of the only issuer.
    File(PathBuf),
    /// The keys of each issuer.
    ByIssuer(BTreeMap<String, PathBuf>),
}

impl Default for Http {
    fn default() -> Self {
        let http::HttpOptions {
            connections,
            sessions,
            session_idle_timeout,
            stream_keep_alive,
            idle_timeout,
            write_timeout,
            resume,
            ..
        } = http::HttpOptions::default();
        let resume_size = ByteSize::b(http::HttpOptions::default().resume_size as u64);
        Self {
            listen: None,
            socket_mode: 0o600,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            anonymous: false,
            sse: false,
            connections,
            connections_per_address: None,
            requests_per_caller: None,
            sessions,
            sessions_per_caller: None,
            sessions_per_address: None,
            session_idle_timeout,
            stream_keep_alive,
            idle_timeout,
            write_timeout,
            resume,
            resume_size,
            poll_after: None,
            tls: None,
            tokens: Vec::new(),
            oauth: None,
            closed: false,
        }
    }
}

impl Http {
    /// Returns whether requests must carry a token: tokens or OAuth are configured, or were.
    pub fn needs_token(&self) -> bool {
        !self.tokens.is_empty() || self.oauth.is_some() || self.closed
    }

    /// Returns whether all tokens were removed at run time, so that no caller is accepted.
    pub(crate) fn rejects_every_caller(&self) -> bool {
        self.closed && self.tokens.is_empty() && self.oauth.is_none()
    }

    /// Resolves relative paths against `folder`.
    pub(super) fn resolve(&mut self, folder: &Path) {
        if let Some(ListenAddress::Unix(path)) = &mut self.listen {
            *path = folder.join(&*path);
        }
        if let Some(TlsConfig { certificate, key }) = &mut self.tls {
            *certificate = folder.join(&*certificate);
            *key = folder.join(&*key);
        }
        match self.oauth.as_mut().map(|oauth| &mut oauth.jwks) {
            Some(Jwks::File(path)) => *path = folder.join(&path),
            Some(Jwks::ByIssuer(paths)) => paths
                .values_mut()
                .for_each(|path| *path = folder.join(&path)),
            None => {}
        }
    }

    /// Returns the files with the keys of issuers.
    pub(super) fn key_files(&self) -> impl Iterator<Item = &PathBuf> {
        let (file, files) = match self.oauth.as_ref().map(|oauth| &oauth.jwks) {
            Some(Jwks::File(file)) => (Some(file), None),
            Some(Jwks::ByIssuer(files)) => (None, Some(files.values())),
            None => (None, None),
        };
        file.into_iter().chain(files.into_iter().flatten())
    }

    /// Loads TLS from the current files. `None` if TLS is off. Blocks.
    ///
    /// # Errors
    ///
    /// A file cannot be used.
    pub(crate) fn open_tls(&self) -> Result<Option<Arc<ReloadingTls>>, String> {
        let Some(TlsConfig { certificate, key }) = self.tls.clone() else {
            return Ok(None);
        };
        let tls = ReloadingTls::open(CertificateFiles { certificate, key })
            .map_err(|why| format!("http.tls: {why}"))?;
        Ok(Some(Arc::new(tls)))
    }

    /// Checks that the settings are consistent.
    ///
    /// # Errors
    ///
    /// Settings contradict each other. Mistakes in a single value are reported while parsing.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        if let Some(token) = self.tokens.iter().find(|token| !names.insert(&token.name)) {
            return Err(format!(
                "http.tokens: the name {:?} is used twice",
                token.name
            ));
        }
        let mut hashes = BTreeMap::new();
        if let Some((token, other)) = self
            .tokens
            .iter()
            .find_map(|token| Some((token, hashes.insert(token.sha256, &token.name)?)))
        {
            return Err(format!(
                "http.tokens: {:?} and {other:?} have the same sha256: which rights apply is ambiguous; remove one",
                token.name
            ));
        }
        if self.anonymous && self.needs_token() {
            return Err(
                "http.anonymous = true contradicts http.tokens and http.oauth: remove one or the other".to_owned()
            );
        }
        if let Some(oauth) = &self.oauth {
            oauth.issuers_with_keys()?;
        }
        if self.poll_after.is_some() && self.resume.is_zero() {
            return Err(
                "http.poll_after: a client that polls continues its stream; set http.resume above 0s".to_owned()
            );
        }
        if let Some(path) = self.listen.as_ref().and_then(ListenAddress::socket_path) {
            if self.tls.is_some() {
                return Err(
                    "http.tls: a Unix socket has no TLS, because it does not use the network; remove http.tls, or listen on a port"
                        .to_owned(),
                );
            }
            let length = path.as_os_str().len();
            if length > LONGEST_PATH {
                return Err(format!(
                    "http.listen: the path of a Unix socket has at most {LONGEST_PATH} bytes, and this one {length}: {}",
                    path.display()
                ));
            }
        }
        match &self.listen {
            Some(address) if !address.is_local() && !self.anonymous && !self.needs_token() => Err(format!(
                "{address} is reachable from other machines: set up tokens (http.tokens or http.oauth), or set http.anonymous = true"
            )),
            Some(_) if !self.allowed_hosts.is_empty() && !self.anonymous && !self.needs_token() => Err(
                "http.allowed_hosts names the hosts by which others reach this server: set up tokens (http.tokens or http.oauth), \
                 or set http.anonymous = true"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }

    /// Returns the access settings that can change while clients are served.
    pub(crate) fn access_policy(&self) -> http::AuthSettings {
        http::AuthSettings {
            allowed_hosts: self.allowed_hosts.clone(),
            allowed_origins: self.allowed_origins.clone(),
            tokens: self.tokens.iter().map(Token::options).collect(),
        }
    }

    /// Returns the options for [`http::serve`], with or without metrics and TLS.
    pub(crate) fn options(
        &self,
        metrics: bool,
        tls: Option<Arc<ReloadingTls>>,
    ) -> http::HttpOptions {
        http::HttpOptions {
            tls,
            metrics,
            pages: None,
            allowed_hosts: self.allowed_hosts.clone(),
            allowed_origins: self.allowed_origins.clone(),
            sse: self.sse,
            connections: self.connections,
            connections_per_address: limit_or_share(
                self.connections_per_address,
                self.connections,
                2,
            ),
            requests_per_caller: limit_or_share(self.requests_per_caller, self.connections, 2),
            sessions: self.sessions,
            sessions_per_caller: limit_or_share(self.sessions_per_caller, self.sessions, 4),
            sessions_per_address: limit_or_share(self.sessions_per_address, self.sessions, 2),
            session_idle_timeout: self.session_idle_timeout,
            stream_keep_alive: self.stream_keep_alive,
            idle_timeout: self.idle_timeout,
            write_timeout: self.write_timeout,
            resume: self.resume,
            resume_size: usize::try_from(self.resume_size.as_u64()).unwrap_or(usize::MAX),
            poll_after: self.poll_after,
            tokens: self.tokens.iter().map(Token::options).collect(),
            oauth: self.oauth.as_ref().map(OAuth::options),
        }
    }
}

impl Token {
    fn options(&self) -> http::BearerToken {
        let rights = self
            .tools
            .clone()
            .map_or(CallerRights::All, CallerRights::Only);
        let preferences = CallerPreferences {
            arguments: self.arguments,
            schemas: self.schemas,
        };
        http::BearerToken {
            name: self.name.clone(),
            sha256: self.sha256,
            rights,
            admin: self.admin,
            preferences,
        }
    }
}

impl OAuth {
    /// Returns the issuers with their keys.
    ///
    /// # Errors
    ///
    /// An issuer has no separate keys, or keys are configured for an unknown issuer.
    fn issuers_with_keys(&self) -> Result<Vec<http::AuthorizationServer>, String> {
        let issuers = &self.authorization_servers;
        let (mut servers, mut names) = (Vec::new(), BTreeSet::new());
        if let Some(issuer) = issuers.iter().find(|issuer| !names.insert(*issuer)) {
            return Err(format!(
                "http.oauth.authorization_servers: {issuer:?} is named twice"
            ));
        }
        for issuer in issuers {
            let jwks = match &self.jwks {
                Jwks::File(path) if issuers.len() == 1 => path,
                Jwks::File(_) => {
                    return Err(format!(
                        "http.oauth.jwks: each issuer needs its own keys, because a key is trusted for one issuer: \
                         write jwks = {{ {issuer:?} = \"keys.json\", … }}"
                    ));
                }
                Jwks::ByIssuer(paths) => paths.get(issuer).ok_or_else(|| {
                    format!("http.oauth.jwks: the keys of {issuer:?} are missing")
                })?,
            };
            servers.push(http::AuthorizationServer {
                issuer: issuer.clone(),
                jwks: jwks.clone(),
            });
        }
        let Jwks::ByIssuer(paths) = &self.jwks else {
            return Ok(servers);
        };
        if let Some(unknown) = paths.keys().find(|issuer| !names.contains(issuer)) {
            return Err(format!(
                "http.oauth.jwks: {unknown:?} is not one of http.oauth.authorization_servers"
            ));
        }
        let mut files = BTreeSet::new();
        match paths.values().find(|path| !files.insert(*path)) {
            Some(path) => Err(format!(
                "http.oauth.jwks: two issuers have the same file {}; each needs its own keys",
                path.display()
            )),
            None => Ok(servers),
        }
    }

    fn options(&self) -> http::OAuth {
        http::OAuth {
            resource: self.resource.clone(),
            // The servers were checked when the configuration was read.
            authorization_servers: self.issuers_with_keys().unwrap_or_default(),
            audience: self
                .audience
                .clone()
                .unwrap_or_else(|| self.resource.clone()),
            max_token_lifetime: self.max_token_lifetime,
            required_scopes: self.required_scopes.clone(),
            tools: self.tools.clone(),
            step_up: self.step_up,
        }
    }
}

/// Minimum default share of a limit for one caller or address.
const MIN_DEFAULT_SHARE: usize = 64;

/// Returns the configured value, or else `all / parts`, but at least [`MIN_DEFAULT_SHARE`].
fn limit_or_share(set: Option<usize>, all: usize, parts: usize) -> usize {
    set.unwrap_or_else(|| (all / parts).max(MIN_DEFAULT_SHARE))
}

fn some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    many(deserializer).map(Some)
}

fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ListenAddress>, D::Error> {
    let expected = "an address with a port, such as \"127.0.0.1:8931\", or a Unix socket, such as \"unix:/run/toolbay/mcp.sock\"";
    deserializer
        .deserialize_str(StringVisitor {
            expected,
            read: |text| text.parse().ok(),
        })
        .map(Some)
}

fn mode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let expected = "four octal digits from \"0000\" to \"0777\", such as \"0660\"";
    let read = |text: &str| {
        let digits = Some(text).filter(|text| text.len() == 4 && text.starts_with('0'));
        u32::from_str_radix(digits?, 8).ok()
    };
    deserializer.deserialize_str(StringVisitor { expected, read })
}

/// A visitor that parses a string into another type.
struct StringVisitor<T> {
    expected: &'static str,
    read: fn(&str) -> Option<T>,
}

impl<T> Visitor<'_> for StringVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        (self.read)(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

fn keep_alive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    match Duration::read(deserializer, false)? {
        brisk if brisk < MIN_KEEP_ALIVE => {
            let [least, found] = [MIN_KEEP_ALIVE, brisk].map(toolbay_model::text::format_duration);
            Err(D::Error::custom(format_args!(
                "expected a duration of at least {least}, not {found}"
            )))
        }
        time => Ok(time),
    }
}

fn poll_after<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    keep_alive(deserializer).map(Some)
}

fn resume_size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
    size(deserializer, ByteSize::kib(64), ByteSize::tib(4))
}

/// The default of [`OAuth::max_token_lifetime`].
const fn day() -> Duration {
    Duration::from_hours(24)
}

fn max_token_lifetime<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    time(deserializer, MAX_TOKEN_LIFETIME)
}

/// Parses a list of host names.
fn allowed_hosts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let hosts = parse_list(deserializer)?;
    // Patterns are not supported. A pattern would never match.
    match hosts
        .iter()
        .find(|host| host.is_empty() || host.contains(['/', ' ', '@', '*']))
    {
        Some(host) => Err(D::Error::custom(format_args!(
            "{host:?} is not a host name; expected one such as \"tools.example.com\""
        ))),
        None => Ok(hosts),
    }
}

/// Parses a number of sessions, or `false` for none.
fn sessions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    struct SessionsVisitor;

    impl Visitor<'_> for SessionsVisitor {
        type Value = usize;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(
                f,
                "a number from 1 to {MAX_COUNT}, or false for no sessions"
            )
        }

        fn visit_bool<E: serde::de::Error>(self, any: bool) -> Result<usize, E> {
            if any {
                Err(E::invalid_value(Unexpected::Bool(any), &self))
            } else {
                Ok(0)
            }
        }

        fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<usize, E> {
            let sessions = usize::try_from(number)
                .ok()
                .filter(|number| (1..=MAX_COUNT).contains(number));
            sessions.ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
        }

        fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<usize, E> {
            self.visit_i64(i64::try_from(number).unwrap_or(i64::MAX))
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<usize, E> {
            // Variables contain the number as text.
            match (text, text.parse()) {
                ("false", _) => Ok(0),
                (_, Ok(number)) => self.visit_i64(number),
                _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
            }
        }
    }

    deserializer.deserialize_any(SessionsVisitor)
}

/// Parses a list of origins. Each has any scheme, a host and an optional port.
fn allowed_origins<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let origins = parse_list(deserializer)?;
    let is_origin = |text: &&String| {
        let url = Url::parse(text).ok().filter(Url::has_host);
        // The path of a non-web origin, such as an extension's, is empty.
        url.is_some_and(|url| {
            matches!(url.path(), "/" | "") && url.query().is_none() && url.username().is_empty()
        }) && !text.ends_with('/')
            && !text.contains(['*', '#', '@'])
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
    if name.is_empty() {
        Err(D::Error::custom("the name is empty"))
    } else {
        Ok(name)
    }
}

fn sha256<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 32], D::Error> {
    let text = String::deserialize(deserializer)?;
    let mut bytes = [0; 32];
    let wrong = |_| {
        D::Error::custom(
            "expected 64 hexadecimal digits; `toolbay token NAME` generates a token and its hash",
        )
    };
    hex::decode_to_slice(text, &mut bytes).map_err(wrong)?;
    Ok(bytes)
}

fn resource<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if Url::parse(&text).is_ok_and(|url| url.has_host() && url.fragment().is_none()) {
        return Ok(text);
    }
    Err(D::Error::custom(format_args!(
        "{text:?} is not a URL such as \"https://tools.example.com/mcp\""
    )))
}

fn issuers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let issuers = Vec::<String>::deserialize(deserializer)?;
    if issuers.is_empty() {
        Err(D::Error::custom("expected at least one issuer"))
    } else {
        Ok(issuers)
    }
}

/// Parses a list of strings, or one string with commas, as in a variable.
pub(super) fn parse_list<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "expected a list of strings, or one string with commas"
    )]
    enum ListInput {
        Items(Vec<String>),
        Text(String),
    }
    Ok(match ListInput::deserialize(deserializer)? {
        ListInput::Items(items) => items,
        ListInput::Text(text) => text
            .split(',')
            .map(|item| item.trim().to_owned())
            .filter(|item| !item.is_empty())
            .collect(),
    })
}

#[cfg(test)]
mod tests;
