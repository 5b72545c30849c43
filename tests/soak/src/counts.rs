//! What a soak has done so far.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use toolbay_testkit::Answer;
use toolbay_testkit::latency::Latencies;
use toolbay_testkit::message;

/// What a call came to that nobody waited for any more.
pub(crate) const CANCELLED: &str = "cancelled";

/// Counters that all threads share.
pub(crate) struct Counts(Mutex<Totals>);

/// The counters at one moment.
#[derive(Clone)]
pub(crate) struct Totals {
    /// Calls that have come to an end.
    pub(crate) calls: u64,
    /// The same, by what they came to.
    pub(crate) kinds: BTreeMap<String, u64>,
    /// Changes of files that the server has taken in.
    pub(crate) reloads: u64,
    /// The same, by what was changed.
    pub(crate) changes: BTreeMap<&'static str, u64>,
    /// How long after a change of a file its effect was seen.
    pub(crate) seen: Latencies,
}

impl Counts {
    pub(crate) fn new() -> Result<Self> {
        let (kinds, changes, seen) = (BTreeMap::new(), BTreeMap::new(), Latencies::new()?);
        Ok(Self(Mutex::new(Totals { calls: 0, kinds, reloads: 0, changes, seen })))
    }

    /// A call has come to an end.
    pub(crate) fn call(&self, kind: &str) {
        let mut totals = self.lock();
        totals.calls += 1;
        match totals.kinds.get_mut(kind) {
            Some(count) => *count += 1,
            None => drop(totals.kinds.insert(kind.to_owned(), 1)),
        }
    }

    /// The effect of a change was seen.
    pub(crate) fn reload(&self, change: &'static str, after: Duration) {
        let mut totals = self.lock();
        totals.reloads += 1;
        *totals.changes.entry(change).or_default() += 1;
        totals.seen.add(after);
    }

    /// The counters now.
    pub(crate) fn now(&self) -> Totals {
        self.lock().clone()
    }

    /// Calls and reloads now.
    pub(crate) fn done(&self) -> (u64, u64) {
        let totals = self.lock();
        (totals.calls, totals.reloads)
    }

    fn lock(&self) -> MutexGuard<'_, Totals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How much a part is of a whole; all of it where there is none.
#[expect(clippy::cast_precision_loss, reason = "nobody counts beyond 2^52")]
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

/// What a call came to, in one word.
pub(crate) fn kind(answer: &Answer) -> String {
    match answer {
        Ok(result) if message::is_error(result) => message::error_kind(result).unwrap_or("failed").to_owned(),
        Ok(_) => "ok".to_owned(),
        Err(refusal) => refusal.code.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use toolbay_testkit::Refusal;

    #[test]
    fn what_a_call_came_to_is_one_word() {
        assert_eq!(kind(&Ok(json!({"content": []}))), "ok");
        assert_eq!(kind(&Ok(json!({"isError": true, "_meta": {"dev.toolbay/error": "fuel"}}))), "fuel");
        assert_eq!(kind(&Ok(json!({"isError": true}))), "failed");
        assert_eq!(kind(&Err(Refusal { code: -32602, message: String::new() })), "-32602");
    }

    #[test]
    fn everything_is_counted_twice_over() {
        let counts = Counts::new().unwrap();
        for kind in ["ok", "fuel", "ok"] {
            counts.call(kind);
        }
        counts.reload("removed", Duration::from_millis(50));
        let totals = counts.now();
        assert_eq!(counts.done(), (3, 1));
        assert_eq!((totals.kinds["ok"], totals.kinds["fuel"], totals.changes["removed"]), (2, 1, 1));
    }
}
