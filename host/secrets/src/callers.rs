//! The secrets of the callers that made the last calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolbay_model::CallerIdentity;

use crate::opened::CallSecrets;
use crate::secrets::SecretFinder;
use crate::watched::WatchedFile;

/// Callers whose secrets are kept.
const CALLERS: usize = 256;

/// Bytes of memory that the searches for their secrets take together.
const MEMORY: usize = 16 << 20;

/// The secrets of one caller.
pub(crate) struct CallerSecrets {
    /// Their files, in the order of the secrets.
    pub(crate) files: Vec<WatchedFile>,
    /// What finds their values; `None` if there are none.
    pub(crate) finder: Option<Arc<SecretFinder>>,
    /// What a call gets, made of them and of the shared secrets with this number.
    pub(crate) opened: Option<(u64, Arc<CallSecrets>)>,
    used: u64,
}

impl CallerSecrets {
    /// Secrets in these files, none of which has been read.
    pub(crate) fn new(files: Vec<WatchedFile>) -> Self {
        Self { files, finder: None, opened: None, used: 0 }
    }

    fn memory(&self) -> usize {
        self.finder.as_ref().map_or(0, |finder| finder.memory())
    }
}

/// The secrets of the callers that made the last calls. Those of others are read again.
#[derive(Default)]
pub(crate) struct CallerCache {
    known: BTreeMap<CallerIdentity, CallerSecrets>,
    clock: u64,
}

impl CallerCache {
    /// Takes out what is known of a caller.
    pub(crate) fn take(&mut self, caller: &CallerIdentity) -> Option<CallerSecrets> {
        self.known.remove(caller)
    }

    /// Keeps it as that of the last caller, and forgets those that made no call for longest if it is too much.
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
