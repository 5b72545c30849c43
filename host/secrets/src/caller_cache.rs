//! Cache of the secrets of recent callers.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolbay_model::CallerIdentity;

use crate::call_secrets::CallSecrets;
use crate::secrets::SecretFinder;
use crate::watched_file::WatchedFile;

/// Maximum number of callers whose secrets are cached.
const MAX_CALLERS: usize = 256;

/// Maximum total memory of the search automata of cached callers, in bytes.
const MAX_MEMORY_BYTES: usize = 16 << 20;

/// Secrets of one caller.
pub(crate) struct CallerSecrets {
    /// Files of the caller, in the order of the secrets.
    pub(crate) files: Vec<WatchedFile>,
    /// Finder of the secret values; `None` if there are none.
    pub(crate) finder: Option<Arc<SecretFinder>>,
    /// Secrets for a call, built from these and from the version of the shared secrets that the
    /// number identifies.
    pub(crate) call_secrets: Option<(u64, Arc<CallSecrets>)>,
    last_used: u64,
}

impl CallerSecrets {
    /// Creates secrets in these files, which have not been read yet.
    pub(crate) fn new(files: Vec<WatchedFile>) -> Self {
        Self {
            files,
            finder: None,
            call_secrets: None,
            last_used: 0,
        }
    }

    fn memory_bytes(&self) -> usize {
        self.finder
            .as_ref()
            .map_or(0, |finder| finder.memory_bytes())
    }
}

/// Cache of the secrets of recent callers. The secrets of other callers are read again.
#[derive(Default)]
pub(crate) struct CallerCache {
    entries: BTreeMap<CallerIdentity, CallerSecrets>,
    use_counter: u64,
}

impl CallerCache {
    /// Removes and returns the secrets of a caller.
    pub(crate) fn remove(&mut self, caller: &CallerIdentity) -> Option<CallerSecrets> {
        self.entries.remove(caller)
    }

    /// Inserts the secrets of the most recent caller. Evicts the least recently used callers if the
    /// cache is full.
    pub(crate) fn insert(&mut self, caller: CallerIdentity, mut secrets: CallerSecrets) {
        self.use_counter += 1;
        secrets.last_used = self.use_counter;
        self.entries.insert(caller, secrets);
        while self.entries.len() > MAX_CALLERS
            || (self.entries.len() > 1 && self.memory_bytes() > MAX_MEMORY_BYTES)
        {
            let oldest = self
                .entries
                .iter()
                .min_by_key(|(_, cached)| cached.last_used)
                .map(|(caller, _)| caller.clone());
            oldest.and_then(|caller| self.entries.remove(&caller));
        }
    }

    fn memory_bytes(&self) -> usize {
        self.entries.values().map(CallerSecrets::memory_bytes).sum()
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::SecretValue;

    fn caller(index: usize) -> CallerIdentity {
        CallerIdentity::from_name(&format!("token:{index}")).unwrap()
    }

    #[test]
    fn least_recently_used_callers_are_evicted() {
        let mut callers = CallerCache::default();
        for index in 0..MAX_CALLERS {
            callers.insert(caller(index), CallerSecrets::new(Vec::new()));
        }
        let first = callers.remove(&caller(0)).unwrap();
        callers.insert(caller(0), first);
        callers.insert(caller(MAX_CALLERS), CallerSecrets::new(Vec::new()));
        assert_eq!(callers.count(), MAX_CALLERS);
        assert!(callers.remove(&caller(0)).is_some() && callers.remove(&caller(1)).is_none());
    }

    #[test]
    fn memory_is_bounded_but_the_newest_caller_stays() {
        let value = SecretValue::parse("x\u{e9}y ".repeat(1600).as_bytes()).unwrap();
        let mut callers = CallerCache::default();
        for index in 0..64 {
            let mut secrets = CallerSecrets::new(Vec::new());
            secrets.finder = SecretFinder::new([("key", &value)]).unwrap().map(Arc::new);
            callers.insert(caller(index), secrets);
            assert!(callers.memory_bytes() <= MAX_MEMORY_BYTES || callers.count() == 1);
        }
        assert!(
            callers.count() < 64 && callers.remove(&caller(63)).is_some(),
            "{}",
            callers.count()
        );
    }
}
