//! Results that were too large for their callers. They are stored for a limited time, so that
//! callers can read them as resources.
//!
//! Memory is bounded per caller and in total. The oldest results are evicted first, starting with
//! the caller that uses the most memory.

mod result_uri;
mod stored_result;
mod truncation;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};

use bytesize::ByteSize;
use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::Handle;
use tokio::time::Instant;
use toolbay_model::{Limits, OversizePolicy, ResourceItem};

use self::result_uri::{ResultAddress, ResultPortion};
use self::stored_result::{MissingPart, WholeResult};
pub(crate) use self::truncation::{FittedOutput, ResultLink, truncate_message, truncate_output};
use crate::call::client_permits::ClientAdmission;
use crate::config::{MIN_SHOWN_RESULT, ResultsConfig};

/// Memory of a stored result in addition to its bytes: its table entries and the names of its
/// parts.
const ENTRY_OVERHEAD_BYTES: usize = 1 << 10;

/// Stored results, which their callers can read as resources.
#[derive(Clone, Debug)]
pub(crate) struct StoredResults {
    inner: Arc<ResultsState>,
}

#[derive(Debug)]
struct ResultsState {
    config: ResultsConfig,
    table: Mutex<ResultTable>,
    /// Runtime of the task that removes expired results.
    runtime: Handle,
}

#[derive(Debug, Default)]
struct ResultTable {
    /// Results by caller name. No caller has an empty name.
    by_caller: HashMap<Arc<str>, CallerResults>,
    bytes: usize,
    /// True while a task waits for the next result to expire.
    has_expiry_task: bool,
}

/// Stored results of one caller.
#[derive(Debug, Default)]
struct CallerResults {
    /// Results, oldest first, which is also the order in which they expire.
    entries: VecDeque<StoredResult>,
    bytes: usize,
}

#[derive(Debug)]
struct StoredResult {
    id: String,
    whole: Arc<WholeResult>,
    until: Instant,
}

impl StoredResult {
    fn size(&self) -> usize {
        ENTRY_OVERHEAD_BYTES + self.whole.size()
    }
}

impl StoredResults {
    /// Creates an empty store. Must be called on a Tokio runtime.
    pub(crate) fn new(config: ResultsConfig) -> Self {
        Self {
            inner: Arc::new(ResultsState {
                config,
                table: Mutex::default(),
                runtime: Handle::current(),
            }),
        }
    }

    /// Returns the sizes that a tool's result within these limits may have.
    pub(crate) fn capacity(&self, client: &ClientAdmission, limits: &Limits) -> ResultCapacity {
        let most = self
            .inner
            .config
            .shown
            .map_or(limits.output, |shown| shown.min(limits.output));
        if limits.oversize == OversizePolicy::Error || most < MIN_SHOWN_RESULT {
            return ResultCapacity {
                max_shown: None,
                kept: None,
            };
        }
        let shown = Some(bytes(most.as_u64())).filter(|_| !client.is_embedder);
        ResultCapacity {
            max_shown: shown,
            kept: Some(self.inner.config.size),
        }
    }

    /// Stores a result for the caller with this name. Returns its address and its time to live.
    /// Returns `None` if the result exceeds one caller's share, or the system provides no random
    /// bytes.
    pub(crate) fn store(&self, caller: &str, whole: WholeResult) -> Option<ResultLink> {
        self.store_at(Instant::now(), caller, whole)
    }

    fn store_at(&self, now: Instant, caller: &str, whole: WholeResult) -> Option<ResultLink> {
        let address = ResultAddress::new()?;
        let until = now + self.inner.config.ttl;
        let entry = StoredResult {
            id: address.id().to_owned(),
            whole: Arc::new(whole),
            until,
        };
        let all = bytes(self.inner.config.memory.as_u64());
        if entry.size() > all / 2 {
            return None;
        }
        let mut kept = self.inner.lock_table();
        kept.expire(now);
        while kept.by_caller.get(caller).map_or(0, |own| own.bytes) + entry.size() > all / 2 {
            kept.drop_oldest(caller);
        }
        while kept.bytes + entry.size() > all {
            let most = kept
                .by_caller
                .iter()
                .max_by_key(|(_, own)| own.bytes)
                .map(|(name, _)| Arc::clone(name));
            kept.drop_oldest(&most?);
        }
        kept.bytes += entry.size();
        let own = kept.by_caller.entry(caller.into()).or_default();
        own.bytes += entry.size();
        own.entries.push_back(entry);
        if !kept.has_expiry_task {
            kept.has_expiry_task = true;
            self.inner
                .runtime
                .spawn(expire_results(Arc::downgrade(&self.inner)));
        }
        Some(ResultLink {
            address,
            ttl: self.inner.config.ttl,
        })
    }

    /// Finds the result that a URI of the caller with this name refers to. Returns `None` if no
    /// such result is stored for the caller.
    pub(crate) fn find(&self, caller: &str, uri: &str) -> Option<ResultRead> {
        let (address, portion) = ResultAddress::parse(uri)?;
        Some(ResultRead {
            whole: self.find_at(Instant::now(), caller, &address)?,
            uri: uri.to_owned(),
            address,
            portion,
        })
    }

    /// Removes all results of the caller with this name.
    pub(crate) fn remove_caller(&self, caller: &str) {
        let mut kept = self.inner.lock_table();
        if let Some(own) = kept.by_caller.remove(caller) {
            kept.bytes -= own.bytes;
        }
    }

    fn find_at(
        &self,
        now: Instant,
        caller: &str,
        address: &ResultAddress,
    ) -> Option<Arc<WholeResult>> {
        let kept = self.inner.lock_table();
        let is_it = |entry: &&StoredResult| entry.id == address.id() && entry.until > now;
        Some(Arc::clone(
            &kept
                .by_caller
                .get(caller)?
                .entries
                .iter()
                .find(is_it)?
                .whole,
        ))
    }

    /// Returns the number of results, and their bytes.
    #[cfg(test)]
    fn held(&self) -> (usize, usize) {
        let max_stored = self.inner.lock_table();
        (
            max_stored
                .by_caller
                .values()
                .map(|own| own.entries.len())
                .sum(),
            max_stored.bytes,
        )
    }
}

/// Sizes that a tool's result may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResultCapacity {
    /// Maximum number of bytes that the client receives, with a link to the whole result; `None` if
    /// it receives everything.
    pub(crate) max_shown: Option<usize>,
    /// Maximum size of the whole result, if that can exceed `limits.output`.
    pub(crate) kept: Option<ByteSize>,
}

/// A request to read a stored result.
#[derive(Debug)]
pub(crate) struct ResultRead {
    whole: Arc<WholeResult>,
    uri: String,
    address: ResultAddress,
    /// The requested portion; `None` if the rest of the URI is invalid.
    portion: Option<ResultPortion>,
}

impl ResultRead {
    /// Returns the number of bytes to read.
    pub(crate) fn size(&self) -> usize {
        self.portion
            .map_or(0, |portion| self.whole.readable_size(portion))
    }

    /// Returns all parts, or the requested portion of one.
    ///
    /// # Errors
    ///
    /// The result does not have the requested portion.
    pub(crate) fn read(&self) -> Result<Vec<ResourceItem>, MissingPart> {
        self.whole.read(
            &self.uri,
            &self.address,
            self.portion.ok_or(MissingPart::Portion)?,
        )
    }
}

impl ResultsState {
    fn lock_table(&self) -> MutexGuard<'_, ResultTable> {
        self.table.lock()
    }
}

impl ResultTable {
    fn drop_oldest(&mut self, caller: &str) {
        let Some(own) = self.by_caller.get_mut(caller) else {
            return;
        };
        if let Some(entry) = own.entries.pop_front() {
            own.bytes -= entry.size();
            self.bytes -= entry.size();
        }
        if own.entries.is_empty() {
            self.by_caller.remove(caller);
        }
    }

    /// Removes expired results. Returns when the next one expires.
    fn expire(&mut self, now: Instant) -> Option<Instant> {
        let over =
            |own: &CallerResults| own.entries.front().is_some_and(|entry| entry.until <= now);
        let callers: Vec<Arc<str>> = self
            .by_caller
            .iter()
            .filter(|(_, own)| over(own))
            .map(|(name, _)| Arc::clone(name))
            .collect();
        for caller in callers {
            while self.by_caller.get(&caller).is_some_and(over) {
                self.drop_oldest(&caller);
            }
        }
        self.by_caller
            .values()
            .filter_map(|own| own.entries.front())
            .map(|entry| entry.until)
            .min()
    }
}

/// Removes results when they expire, until none are left.
async fn expire_results(inner: Weak<ResultsState>) {
    loop {
        let next = {
            let Some(inner) = inner.upgrade() else { return };
            let mut kept = inner.lock_table();
            let next = kept.expire(Instant::now());
            kept.has_expiry_task = next.is_some();
            next
        };
        let Some(next) = next else { return };
        tokio::time::sleep_until(next).await;
    }
}

fn bytes(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::stored_result::StoredPart;
    use super::*;

    const TTL: Duration = Duration::from_mins(10);

    fn results(memory: ByteSize) -> StoredResults {
        StoredResults::new(ResultsConfig {
            memory,
            ttl: TTL,
            ..ResultsConfig::default()
        })
    }

    fn whole(bytes: usize) -> WholeResult {
        WholeResult::new(vec![StoredPart::text(None, "x".repeat(bytes))])
    }

    #[tokio::test]
    async fn a_result_is_there_for_its_caller_alone_and_until_its_time_is_over() {
        let results = results(ByteSize::mib(1));
        let now = Instant::now();
        let address = results.store_at(now, "ada", whole(1000)).unwrap().address;
        let is_there = |caller, at| results.find_at(at, caller, &address).is_some();
        assert!(is_there("ada", now) && !is_there("bob", now));
        assert!(is_there("ada", now + TTL - Duration::from_millis(1)));
        assert!(!is_there("ada", now + TTL));
        assert!(
            results
                .find("ada", &ResultAddress::new().unwrap().to_string())
                .is_none()
        );
    }

    #[tokio::test]
    async fn expired_results_are_freed_without_a_request() {
        let ttl = Duration::from_millis(20);
        let results = StoredResults::new(ResultsConfig {
            ttl,
            ..ResultsConfig::default()
        });
        // Twice, because the task ends when there is nothing left.
        for _ in 0..2 {
            results.store("ada", whole(1000)).unwrap();
            results.store("bob", whole(1000)).unwrap();
            while results.held().0 > 0 {
                tokio::task::yield_now().await;
            }
            assert_eq!(results.held(), (0, 0));
            assert!(!results.inner.lock_table().has_expiry_task);
        }
    }

    #[tokio::test]
    async fn a_caller_evicts_only_its_own_results_and_oversized_ones_are_not_stored() {
        let results = results(ByteSize::kib(64));
        assert!(
            results.store("ada", whole(32 << 10)).is_none(),
            "with its entry it is more than half"
        );
        let of_bob = results
            .store("bob", whole(10 << 10))
            .unwrap()
            .address
            .to_string();
        let of_ada: Vec<_> = (0..3)
            .map(|_| {
                results
                    .store("ada", whole(12 << 10))
                    .unwrap()
                    .address
                    .to_string()
            })
            .collect();
        assert!(results.find("ada", &of_ada[0]).is_none());
        assert!(
            results.find("ada", &of_ada[1]).is_some() && results.find("ada", &of_ada[2]).is_some()
        );
        assert!(results.find("bob", &of_bob).is_some());
    }

    #[tokio::test]
    async fn a_full_store_evicts_the_oldest_result_of_the_largest_caller() {
        let results = results(ByteSize::kib(64));
        let of_ada: Vec<_> = (0..2)
            .map(|_| {
                results
                    .store("ada", whole(14 << 10))
                    .unwrap()
                    .address
                    .to_string()
            })
            .collect();
        let of_bob = results
            .store("bob", whole(20 << 10))
            .unwrap()
            .address
            .to_string();
        let of_eve = results
            .store("eve", whole(20 << 10))
            .unwrap()
            .address
            .to_string();
        assert!(results.find("ada", &of_ada[0]).is_none());
        assert!(results.find("ada", &of_ada[1]).is_some());
        assert!(results.find("bob", &of_bob).is_some() && results.find("eve", &of_eve).is_some());
        assert!(results.held().1 <= 64 << 10);
    }

    #[tokio::test]
    async fn ten_thousand_callers_stay_within_the_total_memory() {
        let results = results(ByteSize::mib(1));
        for caller in 0..10_000 {
            results
                .store(&format!("ip:{caller}"), whole(1 << 10))
                .unwrap();
            assert!(results.held().1 <= 1 << 20);
        }
        let (entries, _) = results.held();
        assert!(entries > 400);
        assert_eq!(results.inner.lock_table().by_caller.len(), entries);
    }
}
