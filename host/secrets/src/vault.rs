//! The secrets of a plugin, with their values.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;
use toolbay_model::CallerIdentity;

use crate::callers::{CallerCache, CallerSecrets};
use crate::credential::RequestCredential;
use crate::fixed::{FixedSecrets, NoValue};
use crate::opened::CallSecrets;
use crate::secret::SecretSpec;
use crate::secrets::{SecretFilter, SecretFinder};
use crate::source::SecretSource;
use crate::value::SecretValue;
use crate::watched::WatchedFile;
use crate::withheld::WithheldCredential;

/// Most bytes of a file with a secret.
const FILE: usize = 64 << 10;

/// Most bytes of a file with a caller's own secret: as much as a request can carry. Those of many callers are kept.
const CALLERS_FILE: usize = 8 << 10;

/// The secrets of a plugin, with their values. Clones share them. The default has none.
#[derive(Clone, Default)]
pub struct SecretVault(Option<Arc<VaultState>>);

struct VaultState {
    /// The grant's file name, for messages.
    place: String,
    /// The plugin folder.
    base: PathBuf,
    secrets: Vec<SecretSpec>,
    fixed: FixedSecrets,
    /// Whether none of them is in a file.
    is_fixed: bool,
    /// The names of those with a value.
    names: Mutex<Vec<String>>,
    /// Held while files are read.
    state: Mutex<VaultCache>,
    /// One thread at a time looks at the files: a file system that hangs takes one thread from others, and not all.
    turn: Arc<Semaphore>,
}

/// What was last read.
struct VaultCache {
    /// The files of secrets, in the order of the secrets; `None` for all others.
    files: Vec<Option<WatchedFile>>,
    /// What finds the values that all callers share.
    finder: Option<Arc<SecretFinder>>,
    /// What a caller gets who is not authenticated.
    opened: Arc<CallSecrets>,
    /// How often the shared secrets have changed.
    version: u64,
    callers: CallerCache,
}

impl SecretVault {
    /// The secrets of the grant with the file name `place`. `fixed` are their values as far as they are taken once;
    /// relative paths are relative to the plugin folder `base`. Reads no file yet.
    ///
    /// # Errors
    ///
    /// A value that was taken once cannot be redacted or carried. The text does not repeat it.
    pub fn new(place: &str, base: &Path, secrets: Vec<SecretSpec>, fixed: FixedSecrets) -> Result<Self, String> {
        if secrets.is_empty() {
            return Ok(Self(None));
        }
        for (secret, value) in secrets.iter().zip(&fixed.0) {
            let wrong = match value {
                Some(Ok(value)) => usable(secret, value).err(),
                Some(Err(NoValue::Wrong(why))) => Some(why.clone()),
                Some(Err(NoValue::Absent(_))) | None => None,
            };
            if let Some(why) = wrong {
                return Err(format!("secrets.{}: {} {why}", secret.name, secret.source));
            }
        }
        let file = |secret: &SecretSpec| match &secret.source {
            SecretSource::File(path) => Some(WatchedFile::new(base.join(path), FILE)),
            _ => None,
        };
        let state = VaultCache {
            files: secrets.iter().map(file).collect(),
            finder: None,
            opened: Arc::default(),
            version: 0,
            callers: CallerCache::default(),
        };
        let in_file = |secret: &SecretSpec| !secret.source.is_fixed();
        let is_fixed = !secrets.iter().any(in_file);
        let (place, base, turn) = (place.to_owned(), base.to_owned(), Arc::new(Semaphore::new(1)));
        let (state, names) = (Mutex::new(state), Mutex::default());
        let inner = VaultState { place, base, secrets, fixed, is_fixed, names, state, turn };
        inner.make(&mut inner.state())?;
        inner.name(&inner.state());
        Ok(Self(Some(Arc::new(inner))))
    }

    /// The same secrets with the same values, of which requests carry others: `secrets` are these, in the same order.
    ///
    /// # Errors
    ///
    /// They are not the same, or are too long.
    pub fn carrying(&self, secrets: Vec<SecretSpec>) -> Result<Self, String> {
        let own = self.secrets();
        let same = |(one, two): (&SecretSpec, &SecretSpec)| one.name == two.name && one.source == two.source;
        if own.len() != secrets.len() || !own.iter().zip(&secrets).all(same) {
            return Err("the secrets are not those of the version in service".to_owned());
        }
        match &self.0 {
            Some(inner) if inner.secrets != secrets => {
                Self::new(&inner.place, &inner.base, secrets, inner.fixed.clone())
            }
            _ => Ok(self.clone()),
        }
    }

    /// A warning for each secret that has no value now. Reads files, and blocks.
    pub fn problems(&self) -> Vec<String> {
        let Some(inner) = &self.0 else { return Vec::new() };
        let mut state = inner.state();
        inner.look(&mut state, false);
        inner.name(&state);
        let shared = inner.secrets.iter().zip(inner.values(&state));
        let problem = |(secret, value): (&SecretSpec, Option<Result<&SecretValue, &str>>)| {
            let why = value?.err()?;
            Some(format!("secrets.{}: {} {why}, {}", secret.name, secret.source, secret.lost()))
        };
        shared.filter_map(problem).collect()
    }

    /// The secrets, without their values.
    pub fn secrets(&self) -> &[SecretSpec] {
        self.0.as_ref().map_or(&[], |inner| &inner.secrets)
    }

    /// The names of the secrets that had a value when [`problems`](Self::problems) looked, or have one for each caller.
    /// Does not wait for files.
    pub fn names(&self) -> Vec<String> {
        let names = self.0.as_ref().map(|inner| inner.names.lock().unwrap_or_else(PoisonError::into_inner).clone());
        names.unwrap_or_default()
    }

    /// The secrets for a call of `caller`, after a look at the files. Waits while others look.
    ///
    /// # Errors
    ///
    /// The thread that looks has ended, because the server does.
    pub async fn open(&self, caller: Option<&CallerIdentity>) -> Result<Arc<CallSecrets>, String> {
        let Some(inner) = &self.0 else { return Ok(Arc::default()) };
        if inner.is_fixed {
            return Ok(Arc::clone(&inner.state().opened));
        }
        let (inner, caller) = (Arc::clone(inner), caller.cloned());
        // The semaphore is never closed.
        let turn = Arc::clone(&inner.turn).acquire_owned().await;
        let looked = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            inner.open(caller.as_ref())
        });
        looked.await.map_err(|error| format!("reading its secrets failed: {error}"))
    }
}

impl VaultState {
    fn state(&self) -> MutexGuard<'_, VaultCache> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value of each secret, or why it has none; `None` for those that each caller has.
    fn values<'a>(&'a self, state: &'a VaultCache) -> impl Iterator<Item = Option<Result<&'a SecretValue, &'a str>>> {
        self.secrets.iter().enumerate().map(|(index, secret)| match &secret.source {
            SecretSource::CallerFolder(_) => None,
            SecretSource::File(_) => {
                let file = state.files.get(index).and_then(Option::as_ref);
                file.map(|file| file.value.as_ref().map_err(String::as_str))
            }
            SecretSource::Environment(_) | SecretSource::Keyring { .. } | SecretSource::Command(_) => {
                let value = self.fixed.0.get(index).and_then(Option::as_ref);
                Some(value.map_or(Err("has not been read"), |value| value.as_ref().map_err(NoValue::why)))
            }
        })
    }

    /// Notes which secrets have a value.
    fn name(&self, state: &VaultCache) {
        let has = |value: &Option<Result<&SecretValue, &str>>| value.is_none_or(|value| value.is_ok());
        let known = self.secrets.iter().zip(self.values(state)).filter(|(_, value)| has(value));
        let names = known.map(|(secret, _)| secret.name.clone()).collect();
        *self.names.lock().unwrap_or_else(PoisonError::into_inner) = names;
    }

    /// Reads the shared files that have changed. Says what became of them if `aloud`.
    fn look(&self, state: &mut VaultCache, aloud: bool) {
        let mut changed = false;
        for (secret, file) in self.secrets.iter().zip(&mut state.files) {
            let Some(file) = file else { continue };
            if file.look(&self.base, |value| usable(secret, value)) {
                changed = true;
                if aloud {
                    self.say(secret, &secret.source, file);
                }
            }
        }
        if changed && let Err(why) = self.make(state) {
            // A value that cannot be redacted is not used.
            tracing::warn!("{}: {why}, so the secrets in files have no value", self.place);
            state.files.iter_mut().flatten().for_each(|file| file.value = Err("cannot be redacted".to_owned()));
            // This makes it of the fixed ones alone, as at first.
            let _made = self.make(state);
        }
    }

    /// Makes what calls get out of the shared values.
    fn make(&self, state: &mut VaultCache) -> Result<(), String> {
        let values = self.secrets.iter().zip(self.values(state));
        let known = values.filter_map(|(secret, value)| Some((secret.name.as_str(), value?.ok()?)));
        state.finder = SecretFinder::new(known)?.map(Arc::new);
        state.version += 1;
        state.opened = Arc::new(self.opened(state, None, &[], None));
        Ok(())
    }

    /// What a call gets: the shared values and those of the caller's own files.
    fn opened(
        &self,
        state: &VaultCache,
        caller: Option<&CallerIdentity>,
        own: &[WatchedFile],
        finder: Option<&Arc<SecretFinder>>,
    ) -> CallSecrets {
        let secrets = SecretFilter::of(state.finder.iter().chain(finder).cloned());
        let mut opened = CallSecrets { secrets: Arc::new(secrets), ..CallSecrets::default() };
        let mut own = own.iter();
        for (secret, value) in self.secrets.iter().zip(self.values(state)) {
            let (value, caller, without) = match value {
                Some(value) => (value.ok(), None, WithheldCredential::NoValue(secret.name.clone())),
                None => match caller {
                    Some(caller) => {
                        let value = own.next().and_then(|file| file.value.as_ref().ok());
                        (value, Some(caller.clone()), WithheldCredential::NotForCaller(secret.name.clone()))
                    }
                    None => (None, None, WithheldCredential::NoCaller(secret.name.clone())),
                },
            };
            let Some(carried) = &secret.carried else { continue };
            match value {
                Some(value) => {
                    opened.credentials.push(RequestCredential::new(
                        &secret.name,
                        carried.clone(),
                        caller,
                        value.clone(),
                    ));
                }
                None => opened.withheld.push((carried.origins().to_vec(), without)),
            }
        }
        opened
    }

    /// What a call of `caller` gets. Blocks.
    fn open(&self, caller: Option<&CallerIdentity>) -> Arc<CallSecrets> {
        let mut guard = self.state();
        let state = &mut *guard;
        self.look(state, true);
        let Some(caller) = caller else { return Arc::clone(&state.opened) };
        let mut own = match state.callers.take(caller) {
            Some(own) => own,
            None => match self.own(caller) {
                Some(own) => own,
                // No file can have a name of this length.
                None => return Arc::new(self.opened(state, Some(caller), &[], None)),
            },
        };
        let mut changed = false;
        for ((secret, folder), file) in self.callers_own().zip(&mut own.files) {
            if file.look(&self.base, |value| usable(secret, value)) {
                changed = true;
                let path = folder.join(caller.path().unwrap_or_default());
                self.say(secret, &SecretSource::File(path), file);
            }
        }
        if changed {
            let values = self.callers_own().zip(&own.files);
            let known =
                values.filter_map(|((secret, _), file)| Some((secret.name.as_str(), file.value.as_ref().ok()?)));
            match SecretFinder::new(known) {
                Ok(finder) => own.finder = finder.map(Arc::new),
                Err(why) => {
                    tracing::warn!("{}: {why}", self.place);
                    own.files.iter_mut().for_each(|file| file.value = Err("cannot be redacted".to_owned()));
                    own.finder = None;
                }
            }
        }
        let opened = match &own.opened {
            Some((version, opened)) if !changed && *version == state.version => Arc::clone(opened),
            _ => {
                let opened = Arc::new(self.opened(state, Some(caller), &own.files, own.finder.as_ref()));
                own.opened = Some((state.version, Arc::clone(&opened)));
                opened
            }
        };
        state.callers.keep(caller.clone(), own);
        opened
    }

    /// The secrets that each caller has of its own, and their folders.
    fn callers_own(&self) -> impl Iterator<Item = (&SecretSpec, &PathBuf)> {
        self.secrets.iter().filter_map(|secret| match &secret.source {
            SecretSource::CallerFolder(folder) => Some((secret, folder)),
            _ => None,
        })
    }

    /// The files of a caller; `None` if no file can have the caller's name.
    fn own(&self, caller: &CallerIdentity) -> Option<CallerSecrets> {
        let path = caller.path()?;
        let file = |folder: &PathBuf| WatchedFile::new(self.base.join(folder).join(&path), CALLERS_FILE);
        Some(CallerSecrets::new(self.callers_own().map(|(_, folder)| file(folder)).collect()))
    }

    /// Logs what became of a file, without its value.
    fn say(&self, secret: &SecretSpec, source: &SecretSource, file: &WatchedFile) {
        let (place, name) = (&self.place, &secret.name);
        match &file.value {
            Ok(_) => tracing::info!("{place}: secrets.{name}: {source} was read"),
            Err(why) => tracing::warn!("{place}: secrets.{name}: {source} {why}, {}", secret.lost()),
        }
    }
}

/// Whether requests can carry the value.
fn usable(secret: &SecretSpec, value: &SecretValue) -> Result<(), String> {
    secret.carried.as_ref().map_or(Ok(()), |carried| carried.check(value))
}

/// Equal if the same secrets have the same values, except for those in files, which change by themselves.
impl PartialEq for SecretVault {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(two)) => one.secrets == two.secrets && one.fixed.0 == two.fixed.0 && one.base == two.base,
            _ => false,
        }
    }
}

/// The secrets without their values.
impl fmt::Debug for SecretVault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.secrets()).finish()
    }
}

#[cfg(test)]
mod tests;
