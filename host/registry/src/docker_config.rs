//! The credentials in Docker's `config.json`, which other tools for registries also use.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::credential::RegistryCredential;
use crate::credential_helper::ask_helper;
use crate::registry_error::RegistryError;
use crate::settings_file::read_settings_file;

/// The key of Docker's own registry.
const DOCKER_HUB_KEY: &str = "https://index.docker.io/v1/";

/// Docker's own registry, as references name it.
pub(crate) const DOCKER_HUB: &str = "docker.io";

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ConfigDocument {
    auths: BTreeMap<String, AuthEntry>,
    cred_helpers: BTreeMap<String, String>,
    creds_store: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AuthEntry {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
    registrytoken: Option<String>,
}

/// Docker's `config.json`. It is read only when a registry asks for credentials.
#[derive(Clone, Debug)]
pub struct DockerConfig {
    /// `None` if there is no folder for it.
    file: Option<PathBuf>,
    /// Time for a credential helper to answer.
    helper_timeout: Duration,
}

impl DockerConfig {
    /// Creates a reader of this file, if there is one. A credential helper has `helper_timeout` to
    /// answer.
    pub fn new(file: Option<PathBuf>, helper_timeout: Duration) -> Self {
        Self {
            file,
            helper_timeout,
        }
    }

    /// Returns the place of the file for this user: in the folder `DOCKER_CONFIG`, or in `.docker`
    /// in the home folder.
    pub fn default_file() -> Option<PathBuf> {
        let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let folder = of("DOCKER_CONFIG")
            .map(PathBuf::from)
            .or_else(|| Some(Path::new(&of("HOME")?).join(".docker")))?;
        Some(folder.join("config.json"))
    }

    /// Returns the credentials for a registry, `host` or `host:port`: those of its helper, of the
    /// helper for all, or those in the file. Returns `None` if there are none.
    ///
    /// # Errors
    ///
    /// The file or a helper cannot be used.
    pub(crate) async fn find(
        &self,
        registry: &str,
    ) -> Result<Option<RegistryCredential>, RegistryError> {
        let Some(document) = self.read()? else {
            return Ok(None);
        };
        let keys = keys_of(registry);
        let helper_key = keys.first().map_or(registry, String::as_str);
        if let Some(helper) = keys.iter().find_map(|key| document.cred_helpers.get(key)) {
            return ask_helper(helper, helper_key, self.helper_timeout).await;
        }
        if let Some(helper) = document.creds_store.filter(|name| !name.is_empty()) {
            let found = ask_helper(&helper, helper_key, self.helper_timeout).await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        let entry = keys.iter().find_map(|key| document.auths.get(key));
        Ok(entry.and_then(AuthEntry::credential))
    }

    fn read(&self) -> Result<Option<ConfigDocument>, RegistryError> {
        let Some(path) = &self.file else {
            return Ok(None);
        };
        let failed = |why: &str| {
            RegistryError::Credentials(format!("the credentials in {}: {why}", path.display()))
        };
        let Some(text) = read_settings_file(path).map_err(|why| failed(&why))? else {
            return Ok(None);
        };
        // The message of the parser can quote a secret.
        let at = |error: serde_json::Error| {
            failed(&format!(
                "the file is not valid at line {}, column {}",
                error.line(),
                error.column()
            ))
        };
        serde_json::from_str(&text).map(Some).map_err(at)
    }
}

impl AuthEntry {
    fn credential(&self) -> Option<RegistryCredential> {
        let filled = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        if let Some(token) = filled(&self.registrytoken) {
            return Some(RegistryCredential::Access(token));
        }
        if let Some(token) = filled(&self.identitytoken) {
            return Some(RegistryCredential::Refresh(token));
        }
        if let (Some(username), Some(password)) = (filled(&self.username), filled(&self.password)) {
            return Some(RegistryCredential::new(username, password));
        }
        RegistryCredential::from_basic(&filled(&self.auth)?)
    }
}

/// Returns the keys under which a registry can be in the file, the usual one first.
fn keys_of(registry: &str) -> Vec<String> {
    if registry == DOCKER_HUB {
        return vec![
            DOCKER_HUB_KEY.to_owned(),
            DOCKER_HUB.to_owned(),
            "index.docker.io".to_owned(),
        ];
    }
    let schemes = ["", "https://", "http://"].into_iter();
    schemes
        .flat_map(|scheme| {
            ["", "/", "/v1/", "/v2/"].map(|path| format!("{scheme}{registry}{path}"))
        })
        .collect()
}

#[cfg(test)]
mod tests;
