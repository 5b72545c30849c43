//! `[http]`: settings of MCP over HTTP.

mod oauth;
mod tokens;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytesize::ByteSize;
use serde::Deserialize;
use toolbay_mcp::http;
use toolbay_mcp::http::ListenAddress;
use toolbay_model::setting::{any, positive};
use toolbay_socket::MAX_PATH_BYTES;
use toolbay_tls::{CertificateFiles, ReloadingTls};

pub use self::oauth::{Jwks, OAuth};
pub use self::tokens::Token;
use self::values::{
    address, allowed_hosts, allowed_origins, keep_alive, mode, poll_after, resume_size, sessions,
    some, trusted_proxies,
};
use super::bounds::many;
use super::error::ConfigError;

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
    /// Addresses and networks of reverse proxies, or `unix`, whose `X-Forwarded-For` states the
    /// address of a caller. Default: none.
    #[serde(deserialize_with = "trusted_proxies")]
    pub trusted_proxies: Vec<http::TrustedProxy>,
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
    pub always_needs_token: bool,
    /// Tokens with `tools` that were removed while the server runs. A token that is added again
    /// without `tools` keeps them: the file may be truncated there.
    #[serde(skip)]
    pub removed_tokens: Vec<Token>,
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
            trusted_proxies: Vec::new(),
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
            always_needs_token: false,
            removed_tokens: Vec::new(),
        }
    }
}

impl Http {
    /// Returns whether requests must carry a token: tokens or OAuth are configured, or were.
    pub fn needs_token(&self) -> bool {
        !self.tokens.is_empty() || self.oauth.is_some() || self.always_needs_token
    }

    /// Returns whether all tokens were removed at run time, so that no caller is accepted.
    pub(crate) fn rejects_every_caller(&self) -> bool {
        self.always_needs_token && self.tokens.is_empty() && self.oauth.is_none()
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
    pub(crate) fn open_tls(&self) -> Result<Option<Arc<ReloadingTls>>, ConfigError> {
        let Some(TlsConfig { certificate, key }) = self.tls.clone() else {
            return Ok(None);
        };
        let tls = ReloadingTls::open(CertificateFiles { certificate, key })
            .map_err(|why| ConfigError(format!("http.tls: {why}")))?;
        Ok(Some(Arc::new(tls)))
    }

    /// Checks that the settings are consistent.
    ///
    /// # Errors
    ///
    /// Settings contradict each other. Mistakes in a single value are reported while parsing.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.check_tokens()?;
        if self.poll_after.is_some() && self.resume.is_zero() {
            return Err(ConfigError(
                "http.poll_after: a client that polls resumes its stream, so http.resume \
                 must be above 0s"
                    .to_owned(),
            ));
        }
        let socket = self.listen.as_ref().and_then(ListenAddress::socket_path);
        if let Some(path) = socket {
            self.check_socket(path)?;
        } else if self.listen.is_some() && self.trusted_proxies.contains(&http::TrustedProxy::Unix)
        {
            return Err(ConfigError(
                "http.trusted_proxies: \"unix\" is for a server that listens on a Unix socket; name the addresses \
                 of the proxies"
                    .to_owned(),
            ));
        }
        self.check_reach()
    }

    /// Checks that it is clear who may call.
    fn check_tokens(&self) -> Result<(), ConfigError> {
        let mut names = BTreeSet::new();
        if let Some(token) = self.tokens.iter().find(|token| !names.insert(&token.name)) {
            return Err(ConfigError(format!(
                "http.tokens: the name {:?} is used twice",
                token.name
            )));
        }
        let mut hashes = BTreeMap::new();
        if let Some((token, other)) = self
            .tokens
            .iter()
            .find_map(|token| Some((token, hashes.insert(token.sha256, &token.name)?)))
        {
            return Err(ConfigError(format!(
                "http.tokens: {:?} and {other:?} have the same sha256: which rights apply is \
                 ambiguous; remove one",
                token.name
            )));
        }
        if self.anonymous && self.needs_token() {
            return Err(ConfigError(
                "http.anonymous = true contradicts http.tokens and http.oauth: remove one or the \
                 other"
                    .to_owned(),
            ));
        }
        if let Some(oauth) = &self.oauth {
            oauth.issuers_with_keys()?;
        }
        Ok(())
    }

    /// Checks that the server can listen on the Unix socket `path`.
    fn check_socket(&self, path: &Path) -> Result<(), ConfigError> {
        if self.tls.is_some() {
            return Err(ConfigError(
                "http.tls: a Unix socket has no TLS, because it does not use the network; remove \
                 http.tls, or listen on a port"
                    .to_owned(),
            ));
        }
        let length = path.as_os_str().len();
        if length > MAX_PATH_BYTES {
            return Err(ConfigError(format!(
                "http.listen: the path of a Unix socket has at most {MAX_PATH_BYTES} bytes, and \
                 this one {length}: {}",
                path.display()
            )));
        }
        Ok(())
    }

    /// Checks that callers need a token if other machines can reach the server.
    fn check_reach(&self) -> Result<(), ConfigError> {
        match &self.listen {
            Some(address) if !address.is_local() && !self.anonymous && !self.needs_token() => {
                Err(ConfigError(format!(
                    "{address} is reachable from other machines: set up tokens (http.tokens or \
                     http.oauth), or set http.anonymous = true"
                )))
            }
            Some(_)
                if !self.trusted_proxies.is_empty() && !self.anonymous && !self.needs_token() =>
            {
                Err(ConfigError(
                    "http.trusted_proxies names the proxies by which others reach this server: set up tokens \
                     (http.tokens or http.oauth), or set http.anonymous = true"
                        .to_owned(),
                ))
            }
            Some(_) if !self.allowed_hosts.is_empty() && !self.anonymous && !self.needs_token() => {
                Err(ConfigError(
                    "http.allowed_hosts names the hosts by which others reach this server: set up tokens \
                     (http.tokens or http.oauth), or set http.anonymous = true"
                        .to_owned(),
                ))
            }
            _ => Ok(()),
        }
    }

    /// Returns the access settings that can change while clients are served.
    pub(crate) fn access_policy(&self) -> http::AccessSettings {
        http::AccessSettings {
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
            trusted_proxies: self.trusted_proxies.clone(),
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

/// Minimum default share of a limit for one caller or address.
const MIN_DEFAULT_SHARE: usize = 64;

/// Returns the configured value, or else `all / parts`, but at least [`MIN_DEFAULT_SHARE`].
fn limit_or_share(configured: Option<usize>, limit: usize, parts: usize) -> usize {
    configured.unwrap_or_else(|| (limit / parts).max(MIN_DEFAULT_SHARE))
}

#[cfg(test)]
mod tests;
