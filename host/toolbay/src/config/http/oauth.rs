//! `[http.oauth]`: the server as an OAuth 2.0 protected resource.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toolbay_mcp::{NamePattern, http};
use toolbay_model::setting::time;
use url::Url;

use crate::config::error::ConfigError;

/// Maximum [`OAuth::max_token_lifetime`]: one year.
const MAX_TOKEN_LIFETIME: Duration = Duration::from_hours(8766);

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

impl OAuth {
    /// Returns the issuers with their keys.
    ///
    /// # Errors
    ///
    /// An issuer has no separate keys, or keys are configured for an unknown issuer.
    pub(super) fn issuers_with_keys(&self) -> Result<Vec<http::AuthorizationServer>, ConfigError> {
        let issuers = &self.authorization_servers;
        let mut servers = Vec::new();
        let mut names = BTreeSet::new();
        if let Some(issuer) = issuers.iter().find(|issuer| !names.insert(*issuer)) {
            return Err(ConfigError(format!(
                "http.oauth.authorization_servers: {issuer:?} is named twice"
            )));
        }
        for issuer in issuers {
            let jwks = match &self.jwks {
                Jwks::File(path) if issuers.len() == 1 => path,
                Jwks::File(_) => {
                    return Err(ConfigError(format!(
                        "http.oauth.jwks: each issuer needs its own keys, because a key is trusted for one issuer: \
                         write jwks = {{ {issuer:?} = \"keys.json\", … }}"
                    )));
                }
                Jwks::ByIssuer(paths) => paths.get(issuer).ok_or_else(|| {
                    ConfigError(format!(
                        "http.oauth.jwks: the keys of {issuer:?} are missing"
                    ))
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
            return Err(ConfigError(format!(
                "http.oauth.jwks: {unknown:?} is not one of http.oauth.authorization_servers"
            )));
        }
        let mut files = BTreeSet::new();
        match paths.values().find(|path| !files.insert(*path)) {
            Some(path) => Err(ConfigError(format!(
                "http.oauth.jwks: two issuers have the same file {}; each needs its own keys",
                path.display()
            ))),
            None => Ok(servers),
        }
    }

    /// Returns the settings for the HTTP server.
    pub(super) fn options(&self) -> http::OAuth {
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

/// The default of [`OAuth::max_token_lifetime`].
const fn day() -> Duration {
    Duration::from_hours(24)
}

fn max_token_lifetime<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    time(deserializer, MAX_TOKEN_LIFETIME)
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
