//! `[http_client]`: how the server sends the HTTP requests of plugins.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use toolbay_sandbox::NetworkOptions;

/// How the server sends the HTTP requests of plugins (`[http_client]`). What they may request is in their grants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpClient {
    /// PEM files with certificates of authorities that are trusted in addition to the system's. Relative paths are
    /// relative to the configuration file.
    pub extra_ca: Vec<PathBuf>,
}

impl HttpClient {
    /// Resolves relative paths against `folder`.
    pub(super) fn resolve(&mut self, folder: &Path) {
        self.extra_ca.iter_mut().for_each(|path| *path = folder.join(&path));
    }

    /// The options of the client.
    pub(super) fn options(&self) -> NetworkOptions {
        NetworkOptions { extra_ca: self.extra_ca.clone(), ..NetworkOptions::default() }
    }

    /// # Errors
    ///
    /// A file of certificates that cannot be used.
    pub(super) fn check(&self) -> Result<(), String> {
        self.options().check().map_err(|why| format!("http_client.extra_ca: {why}"))
    }
}
