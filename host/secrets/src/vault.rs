//! Secrets of a plugin, with their values.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Semaphore;
use toolbay_model::CallerIdentity;

use crate::call_secrets::CallSecrets;
use crate::caller_cache::{CallerCache, CallerSecrets};
use crate::credential::RequestCredential;
use crate::fixed_secrets::{FixedSecrets, NoValue};
use crate::secret_spec::SecretSpec;
use crate::secrets::{SecretFilter, SecretFinder};
use crate::source::SecretSource;
use crate::value::SecretValue;
use crate::watched_file::WatchedFile;
use crate::withheld_credential::WithheldCredential;

/// Maximum size of a secret file, in bytes.
const MAX_FILE_BYTES: usize = 64 << 10;

/// Maximum size of a caller's secret file, in bytes: the largest secret that a request can carry.
/// The limit is lower because the secrets of many callers are cached.
const MAX_CALLER_FILE_BYTES: usize = 8 << 10;

/// Secrets of a plugin, with their values. Clones share them. The default has none.
#[derive(Clone, Default)]
pub struct SecretVault(Option<Arc<VaultState>>);

struct VaultState {
    /// File name of the grant, for messages.
    grant_name: String,
    /// Plugin folder.
    plugin_folder: PathBuf,
    secrets: Vec<SecretSpec>,
    fixed: FixedSecrets,
    /// True if no secret is in a file.
    is_fixed: bool,
    /// Names of the secrets that have a value.
    names: Mutex<Vec<String>>,
    /// Locked while files are read.
    cache: Mutex<VaultCache>,
    /// Permit for reading files. A file system that hangs blocks only one thread.
    read_permit: Arc<Semaphore>,
}

/// Values that were last read.
struct VaultCache {
    /// Files of secrets, in the order of the secrets; `None` for all others.
    files: Vec<Option<WatchedFile>>,
    /// Finder of the values that all callers share.
    finder: Option<Arc<SecretFinder>>,
    /// Secrets for calls of unauthenticated callers.
    anonymous: Arc<CallSecrets>,
    /// Number of changes of the shared secrets.
    version: u64,
    callers: CallerCache,
}

impl SecretVault {
    /// Creates a vault for the secrets of the grant with the file name `grant_name`. `fixed`
    /// contains the values that are read once. Relative paths are relative to `plugin_folder`.
    /// Reads no files yet.
    ///
    /// # Errors
    ///
    /// Returns an error if a fixed value cannot be redacted or carried. The message does not
    /// contain the value.
    pub fn new(
        grant_name: &str,
        plugin_folder: &Path,
        secrets: Vec<SecretSpec>,
        fixed: FixedSecrets,
    ) -> Result<Self, String> {
        if secrets.is_empty() {
            return Ok(Self(None));
        }
        for (secret, value) in secrets.iter().zip(&fixed.0) {
            let defect = match value {
                Some(Ok(value)) => check_value(secret, value).err(),
                Some(Err(NoValue::Invalid(why))) => Some(why.clone()),
                Some(Err(NoValue::Absent(_) | NoValue::Unread)) | None => None,
            };
            if let Some(why) = defect {
                return Err(format!("secrets.{}: {} {why}", secret.name, secret.source));
            }
        }
        let file = |secret: &SecretSpec| match &secret.source {
            SecretSource::File(path) => {
                Some(WatchedFile::new(plugin_folder.join(path), MAX_FILE_BYTES))
            }
            _ => None,
        };
        let cache = VaultCache {
            files: secrets.iter().map(file).collect(),
            finder: None,
            anonymous: Arc::default(),
            version: 0,
            callers: CallerCache::default(),
        };
        let in_file = |secret: &SecretSpec| !secret.source.is_fixed();
        let is_fixed = !secrets.iter().any(in_file);
        let owned_grant_name = grant_name.to_owned();
        let owned_folder = plugin_folder.to_owned();
        let read_permit = Arc::new(Semaphore::new(1));
        let cache_mutex = Mutex::new(cache);
        let names = Mutex::default();
        let inner = VaultState {
            grant_name: owned_grant_name,
            plugin_folder: owned_folder,
            secrets,
            fixed,
            is_fixed,
            names,
            cache: cache_mutex,
            read_permit,
        };
        inner.rebuild(&mut inner.lock_cache())?;
        inner.update_names(&inner.lock_cache());
        Ok(Self(Some(Arc::new(inner))))
    }

    /// Returns a vault with the same values and other credential rules. `secrets` must have the
    /// same names and sources, in the same order.
    ///
    /// # Errors
    ///
    /// Returns an error if the names or sources differ, or if the values are too long.
    pub fn with_rules(&self, secrets: Vec<SecretSpec>) -> Result<Self, String> {
        let current = self.secrets();
        let is_same = |(one, two): (&SecretSpec, &SecretSpec)| {
            one.name == two.name && one.source == two.source
        };
        if current.len() != secrets.len() || !current.iter().zip(&secrets).all(is_same) {
            return Err("the secrets are not those of the version in service".to_owned());
        }
        match &self.0 {
            Some(inner) if inner.secrets != secrets => Self::new(
                &inner.grant_name,
                &inner.plugin_folder,
                secrets,
                inner.fixed.clone(),
            ),
            _ => Ok(self.clone()),
        }
    }

    /// Returns a warning for each secret that currently has no value. Reads files and blocks.
    pub fn missing_value_warnings(&self) -> Vec<String> {
        let Some(inner) = &self.0 else {
            return Vec::new();
        };
        let mut cache = inner.lock_cache();
        inner.reload_files(&mut cache, false);
        inner.update_names(&cache);
        let shared = inner.secrets.iter().zip(inner.shared_values(&cache));
        let read = shared
            .enumerate()
            .filter(|(index, _)| !inner.is_unread(*index));
        let problems = read.filter_map(|(_, (secret, value))| {
            let why = value?.err()?;
            Some(format!(
                "secrets.{}: {} {why}, {}",
                secret.name,
                secret.source,
                secret.missing_value_effect()
            ))
        });
        problems.collect()
    }

    /// Returns the secrets, without their values.
    pub fn secrets(&self) -> &[SecretSpec] {
        self.0.as_ref().map_or(&[], |inner| &inner.secrets)
    }

    /// Returns the names of the secrets that had a value when
    /// [`missing_value_warnings`](Self::missing_value_warnings) last checked, or that have one for
    /// each caller. Does not read files.
    pub fn available_names(&self) -> Vec<String> {
        let names = self.0.as_ref().map(|inner| inner.names.lock().clone());
        names.unwrap_or_default()
    }

    /// Returns the secrets for a call of `caller`, after checking the files for changes. Waits for
    /// concurrent checks.
    ///
    /// # Errors
    ///
    /// Returns an error if the check was aborted because the server shuts down.
    pub async fn open(&self, caller: Option<&CallerIdentity>) -> Result<Arc<CallSecrets>, String> {
        let Some(inner) = &self.0 else {
            return Ok(Arc::default());
        };
        if inner.is_fixed {
            return Ok(Arc::clone(&inner.lock_cache().anonymous));
        }
        let inner = Arc::clone(inner);
        let caller = caller.cloned();
        // The semaphore is never closed.
        let permit = Arc::clone(&inner.read_permit).acquire_owned().await;
        let task = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            inner.open(caller.as_ref())
        });
        task.await
            .map_err(|error| format!("reading its secrets failed: {error}"))
    }
}

impl VaultState {
    fn lock_cache(&self) -> MutexGuard<'_, VaultCache> {
        self.cache.lock()
    }

    /// Returns the value of each secret, or the reason that it has none; `None` for the secrets
    /// that each caller has.
    fn shared_values<'a>(
        &'a self,
        cache: &'a VaultCache,
    ) -> impl Iterator<Item = Option<Result<&'a SecretValue, &'a str>>> {
        self.secrets
            .iter()
            .enumerate()
            .map(|(index, secret)| match &secret.source {
                SecretSource::CallerFolder(_) => None,
                SecretSource::File(_) => {
                    let file = cache.files.get(index).and_then(Option::as_ref);
                    file.map(|file| file.value.as_ref().map_err(String::as_str))
                }
                SecretSource::Environment(_)
                | SecretSource::Keyring { .. }
                | SecretSource::Command(_) => {
                    let value = self.fixed.0.get(index).and_then(Option::as_ref);
                    Some(value.map_or(Err("has not been read"), |value| {
                        value.as_ref().map_err(NoValue::reason)
                    }))
                }
            })
    }

    /// Returns whether the program of the secret with this index was deliberately not run.
    fn is_unread(&self, index: usize) -> bool {
        matches!(self.fixed.0.get(index), Some(Some(Err(NoValue::Unread))))
    }

    /// Stores the names of the secrets that have a value, or whose value was not read.
    fn update_names(&self, cache: &VaultCache) {
        let has_value =
            |value: &Option<Result<&SecretValue, &str>>| value.is_none_or(|value| value.is_ok());
        let available = self
            .secrets
            .iter()
            .zip(self.shared_values(cache))
            .enumerate()
            .filter(|(index, (_, value))| has_value(value) || self.is_unread(*index));
        let names = available
            .map(|(_, (secret, _))| secret.name.clone())
            .collect();
        *self.names.lock() = names;
    }

    /// Reads the shared files that have changed. Logs the changes if `log_changes` is set.
    fn reload_files(&self, cache: &mut VaultCache, log_changes: bool) {
        let mut changed = false;
        for (secret, file) in self.secrets.iter().zip(&mut cache.files) {
            let Some(file) = file else { continue };
            if file.reload(&self.plugin_folder, |value| check_value(secret, value)) {
                changed = true;
                if log_changes {
                    self.log_file(secret, &secret.source, file);
                }
            }
        }
        if changed && let Err(why) = self.rebuild(cache) {
            // Do not use a value that cannot be redacted.
            tracing::warn!(
                "{}: {why}, so the secrets in files have no value",
                self.grant_name
            );
            cache
                .files
                .iter_mut()
                .flatten()
                .for_each(|file| file.value = Err("cannot be redacted".to_owned()));
            // Rebuild with only the fixed values. This succeeded in `new`.
            let _rebuilt = self.rebuild(cache);
        }
    }

    /// Rebuilds the finder and the secrets for calls from the shared values.
    fn rebuild(&self, cache: &mut VaultCache) -> Result<(), String> {
        let values = self.secrets.iter().zip(self.shared_values(cache));
        let available =
            values.filter_map(|(secret, value)| Some((secret.name.as_str(), value?.ok()?)));
        cache.finder = SecretFinder::new(available)?.map(Arc::new);
        cache.version += 1;
        cache.anonymous = Arc::new(self.build_call_secrets(cache, None, &[], None));
        Ok(())
    }

    /// Builds the secrets for a call: the shared values and those of the caller's files.
    fn build_call_secrets(
        &self,
        cache: &VaultCache,
        caller: Option<&CallerIdentity>,
        caller_files: &[WatchedFile],
        finder: Option<&Arc<SecretFinder>>,
    ) -> CallSecrets {
        let secrets = SecretFilter::from_finders(cache.finder.iter().chain(finder).cloned());
        let mut call_secrets = CallSecrets {
            filter: Arc::new(secrets),
            ..CallSecrets::default()
        };
        let mut remaining_files = caller_files.iter();
        for (secret, value) in self.secrets.iter().zip(self.shared_values(cache)) {
            let (value, caller, withheld) = match value {
                Some(value) => (
                    value.ok(),
                    None,
                    WithheldCredential::NoValue(secret.name.clone()),
                ),
                None => match caller {
                    Some(caller) => {
                        let value = remaining_files
                            .next()
                            .and_then(|file| file.value.as_ref().ok());
                        (
                            value,
                            Some(caller.clone()),
                            WithheldCredential::NotForCaller(secret.name.clone()),
                        )
                    }
                    None => (
                        None,
                        None,
                        WithheldCredential::NoCaller(secret.name.clone()),
                    ),
                },
            };
            let Some(rule) = &secret.credential_rule else {
                continue;
            };
            match value {
                Some(value) => {
                    call_secrets.credentials.push(RequestCredential::new(
                        &secret.name,
                        rule.clone(),
                        caller,
                        value.clone(),
                    ));
                }
                None => call_secrets
                    .withheld
                    .push((rule.origins().to_vec(), withheld)),
            }
        }
        call_secrets
    }

    /// Returns the secrets for a call of `caller`. Blocks.
    fn open(&self, caller: Option<&CallerIdentity>) -> Arc<CallSecrets> {
        let mut guard = self.lock_cache();
        let cache = &mut *guard;
        self.reload_files(cache, true);
        let Some(caller) = caller else {
            return Arc::clone(&cache.anonymous);
        };
        let mut caller_secrets = match cache.callers.remove(caller) {
            Some(own) => own,
            None => match self.caller_files(caller) {
                Some(own) => own,
                // The caller's name is too long for a file name.
                None => return Arc::new(self.build_call_secrets(cache, Some(caller), &[], None)),
            },
        };
        let mut changed = false;
        for ((secret, folder), file) in self.caller_secrets().zip(&mut caller_secrets.files) {
            if file.reload(&self.plugin_folder, |value| check_value(secret, value)) {
                changed = true;
                let path = folder.join(caller.path().unwrap_or_default());
                self.log_file(secret, &SecretSource::File(path), file);
            }
        }
        if changed {
            let values = self.caller_secrets().zip(&caller_secrets.files);
            let available = values.filter_map(|((secret, _), file)| {
                Some((secret.name.as_str(), file.value.as_ref().ok()?))
            });
            match SecretFinder::new(available) {
                Ok(finder) => caller_secrets.finder = finder.map(Arc::new),
                Err(why) => {
                    tracing::warn!("{}: {why}", self.grant_name);
                    caller_secrets
                        .files
                        .iter_mut()
                        .for_each(|file| file.value = Err("cannot be redacted".to_owned()));
                    caller_secrets.finder = None;
                }
            }
        }
        let call_secrets = match &caller_secrets.call_secrets {
            Some((version, cached)) if !changed && *version == cache.version => Arc::clone(cached),
            _ => {
                let built = Arc::new(self.build_call_secrets(
                    cache,
                    Some(caller),
                    &caller_secrets.files,
                    caller_secrets.finder.as_ref(),
                ));
                caller_secrets.call_secrets = Some((cache.version, Arc::clone(&built)));
                built
            }
        };
        cache.callers.insert(caller.clone(), caller_secrets);
        call_secrets
    }

    /// Returns the secrets that have a value for each caller, and their directories.
    fn caller_secrets(&self) -> impl Iterator<Item = (&SecretSpec, &PathBuf)> {
        self.secrets
            .iter()
            .filter_map(|secret| match &secret.source {
                SecretSource::CallerFolder(folder) => Some((secret, folder)),
                _ => None,
            })
    }

    /// Returns the files of a caller; `None` if the caller's name cannot be a file name.
    fn caller_files(&self, caller: &CallerIdentity) -> Option<CallerSecrets> {
        let path = caller.path()?;
        let file = |folder: &PathBuf| {
            WatchedFile::new(
                self.plugin_folder.join(folder).join(&path),
                MAX_CALLER_FILE_BYTES,
            )
        };
        Some(CallerSecrets::new(
            self.caller_secrets()
                .map(|(_, folder)| file(folder))
                .collect(),
        ))
    }

    /// Logs the result of reading a file, without its value.
    fn log_file(&self, secret: &SecretSpec, source: &SecretSource, file: &WatchedFile) {
        let grant_name = &self.grant_name;
        let name = &secret.name;
        match &file.value {
            Ok(_) => tracing::info!("{grant_name}: secrets.{name}: {source} was read"),
            Err(why) => tracing::warn!(
                "{grant_name}: secrets.{name}: {source} {why}, {}",
                secret.missing_value_effect()
            ),
        }
    }
}

/// Checks that requests can carry the value.
fn check_value(secret: &SecretSpec, value: &SecretValue) -> Result<(), String> {
    secret
        .credential_rule
        .as_ref()
        .map_or(Ok(()), |rule| rule.check_value(value))
}

/// Vaults are equal if the same secrets have the same values. Values in files are not compared,
/// because they can change at any time.
impl PartialEq for SecretVault {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(two)) => {
                one.secrets == two.secrets
                    && one.fixed.0 == two.fixed.0
                    && one.plugin_folder == two.plugin_folder
            }
            _ => false,
        }
    }
}

/// Writes the secrets without their values.
impl fmt::Debug for SecretVault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.secrets()).finish()
    }
}

#[cfg(test)]
mod tests;
