//! Cache of the secrets of recent callers.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolbay_model::CallerIdentity;

use crate::opened::CallSecrets;
use crate::secrets::SecretFinder;
use crate::watched::WatchedFile;

/// Maximum number of callers whose secrets are cached.
const CALLERS: usize = 256;

/// Maximum total memory of the search automata of cached callers, in bytes.
const MEMORY: usize = 16 << 20;

/// Secrets of one caller.
pub(crate) struct CallerSecrets {
    /// Files of the caller, in the order of the secrets.
    pub(crate) files: Vec<WatchedFile>,
    /// Finder of the secret values; `None` if there are none.
    pub(crate) finder: Option<Arc<SecretFinder>>,
    /// Secrets for a call, built from these and from the version of the shared secrets that the
    /// number identifies.
    pub(crate) opened: Option<(u64, Arc<CallSecrets>)>,
    used: u64,
}

impl CallerSecrets {
    /// Creates secrets in these files, which have not been read yet.
    pub(crate) fn new(files: Vec<WatchedFile>) -> Self {
        Self { files, finder: None, opened: None, used: 0 }
    }

    fn memory(&self) -> usize {
        self.finder.as_ref().map_or(0, |finder| finder.memory())
    }
}

/// Cache of the secrets of recent callers. The secrets of other callers are read again.
#[derive(Default)]
pub(crate) struct CallerCache {
    known: BTreeMap<CallerIdentity, CallerSecrets>,
    clock: u64,
}

impl CallerCache {
    /// Removes and returns the secrets of a caller.
    pub(crate) fn take(&mut self, caller: &CallerIdentity) -> Option<CallerSecrets> {
        self.known.remove(caller)
    }

    /// Inserts the secrets of the most recent caller. Evicts the least recently used callers if the
    /// cache is full.
    pub(crate) fn keep(&mut self, caller: CallerIdentity, mut own: CallerSecrets) {
        self.clock += 1;
        own.used = self.clock;
        self.known.insert(caller, own);
        while self.known.len() > CALLERS || (self.known.len() > 1 && self.memory() > MEMORY) {
            let oldest = self.known.iter().min_by_key(|(_, own)| own.used).map(|(caller, _)| caller.clone());
            oldest.and_then(|caller| self.known.remove(&caller));
        }
    }

    fn memory(&self) -> usize {
        self.known.values().map(CallerSecrets::memory).sum()
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::SecretValue;

    fn caller(index: usize) -> CallerIdentity {
        CallerIdentity::of(&format!("token:{index}")).unwrap()
    }

    #[test]
    fn those_without_a_call_for_longest_are_forgotten() {
        let mut callers = CallerCache::default();
        for index in 0..CALLERS {
            callers.keep(caller(index), CallerSecrets::new(Vec::new()));
        }
        let first = callers.take(&caller(0)).unwrap();
        callers.keep(caller(0), first);
        callers.keep(caller(CALLERS), CallerSecrets::new(Vec::new()));
        assert_eq!(callers.count(), CALLERS);
        assert!(callers.take(&caller(0)).is_some() && callers.take(&caller(1)).is_none());
    }

    #[test]
    fn their_memory_is_bounded_and_the_last_one_stays() {
        let value = SecretValue::parse("x\u{e9}y ".repeat(1600).as_bytes()).unwrap();
        let mut callers = CallerCache::default();
        for index in 0..64 {
            let mut own = CallerSecrets::new(Vec::new());
            own.finder = SecretFinder::new([("key", &value)]).unwrap().map(Arc::new);
            callers.keep(caller(index), own);
            assert!(callers.memory() <= MEMORY || callers.count() == 1);
        }
        assert!(callers.count() < 64 && callers.take(&caller(63)).is_some(), "{}", callers.count());
    }
}
