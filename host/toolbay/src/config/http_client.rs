//! `[http_client]`: settings for the HTTP requests of plugins.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toolbay_sandbox::NetworkOptions;
use url::Url;

use super::error::ConfigError;
use super::text_list::parse_list;

/// Settings for the HTTP requests of plugins (`[http_client]`). Grants decide which requests are
/// allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpClient {
    /// PEM files with certificates of authorities that are trusted in addition to the system's.
    /// Relative paths are relative to the configuration file.
    #[serde(deserialize_with = "paths")]
    pub extra_ca: Vec<PathBuf>,
    /// The HTTP proxy that every request goes through. `None` connects to servers directly.
    pub proxy: Option<ProxyUrl>,
}

/// The URL of a proxy, `http://[user:password@]host[:port]`. User and password are only allowed in
/// a variable.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyUrl(Url);

impl ProxyUrl {
    /// Returns whether the URL has a user or a password.
    fn has_credentials(&self) -> bool {
        !self.0.username().is_empty() || self.0.password().is_some()
    }
}

impl<'de> Deserialize<'de> for ProxyUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // Messages never repeat the text, which may contain a password.
        let wrong = "this is not a URL; expected one such as \"http://proxy.example.com:3128\"";
        let url = Url::parse(&text).map_err(|_| D::Error::custom(wrong))?;
        let options = NetworkOptions {
            proxy: Some(url.clone()),
            ..NetworkOptions::default()
        };
        options.check().map_err(D::Error::custom)?;
        Ok(Self(url))
    }
}

/// Omits the password.
impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProxyUrl({})", self.0.host_str().unwrap_or_default())
    }
}

/// Parses a list of paths, or one string with commas.
fn paths<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
    Ok(parse_list(deserializer)?
        .into_iter()
        .map(PathBuf::from)
        .collect())
}

impl HttpClient {
    /// Resolves relative paths against `folder`.
    pub(super) fn resolve(&mut self, folder: &Path) {
        self.extra_ca
            .iter_mut()
            .for_each(|path| *path = folder.join(&path));
    }

    /// Returns the options of the client.
    pub(crate) fn options(&self) -> NetworkOptions {
        NetworkOptions {
            extra_ca: self.extra_ca.clone(),
            proxy: self.proxy.clone().map(|ProxyUrl(url)| url),
        }
    }

    /// Checks that the configuration file contains no password.
    ///
    /// # Errors
    ///
    /// The file contains a password, which other users of the file could read.
    pub(super) fn check_file(&self) -> Result<(), ConfigError> {
        if self.proxy.as_ref().is_some_and(ProxyUrl::has_credentials) {
            return Err(ConfigError(
                "http_client.proxy: a file must not contain the user and password of the proxy; \
                 leave out the part before the @, or set the whole URL in the environment variable \
                 TOOLBAY_HTTP_CLIENT_PROXY"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// Checks that the certificate files can be used.
    ///
    /// # Errors
    ///
    /// A certificate file cannot be used.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.options()
            .check()
            .map_err(|why| ConfigError(format!("http_client.extra_ca: {why}")))
    }
}
