//! Counters of a soak test.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use parking_lot::{Mutex, MutexGuard};
use toolbay_testkit::RequestResult;
use toolbay_testkit::latency::LatencyHistogram;
use toolbay_testkit::message;

/// The outcome of a call that was cancelled.
pub(crate) const CANCELLED: &str = "cancelled";

/// Counters that all threads share.
pub(crate) struct Counts(Mutex<Totals>);

/// A snapshot of the counters.
#[derive(Clone)]
pub(crate) struct Totals {
    /// Number of completed calls.
    pub(crate) calls: u64,
    /// Number of completed calls by outcome.
    pub(crate) kinds: BTreeMap<String, u64>,
    /// Number of file changes that the server has applied.
    pub(crate) reloads: u64,
    /// Number of file changes by kind.
    pub(crate) changes: BTreeMap<&'static str, u64>,
    /// Time from a change of a file until its effect was observed.
    pub(crate) seen: LatencyHistogram,
}

impl Counts {
    pub(crate) fn new() -> Result<Self> {
        let kinds = BTreeMap::new();
        let changes = BTreeMap::new();
        let seen = LatencyHistogram::new()?;
        Ok(Self(Mutex::new(Totals {
            calls: 0,
            kinds,
            reloads: 0,
            changes,
            seen,
        })))
    }

    /// Records a completed call.
    pub(crate) fn call(&self, kind: &str) {
        let mut totals = self.lock();
        totals.calls += 1;
        match totals.kinds.get_mut(kind) {
            Some(count) => *count += 1,
            None => drop(totals.kinds.insert(kind.to_owned(), 1)),
        }
    }

    /// Records the observed effect of a change.
    pub(crate) fn reload(&self, change: &'static str, after: Duration) {
        let mut totals = self.lock();
        totals.reloads += 1;
        *totals.changes.entry(change).or_default() += 1;
        totals.seen.add(after);
    }

    /// Returns the current counters.
    pub(crate) fn now(&self) -> Totals {
        self.lock().clone()
    }

    /// Returns the current numbers of calls and reloads.
    pub(crate) fn done(&self) -> (u64, u64) {
        let totals = self.lock();
        (totals.calls, totals.reloads)
    }

    fn lock(&self) -> MutexGuard<'_, Totals> {
        self.0.lock()
    }
}

/// Returns the ratio of a part to the whole, or 1 if the whole is zero.
#[expect(clippy::cast_precision_loss, reason = "nobody counts beyond 2^52")]
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        1.0
    } else {
        part as f64 / whole as f64
    }
}

/// Returns the outcome of a call in one word.
pub(crate) fn kind(answer: &RequestResult) -> String {
    match answer {
        Ok(result) if message::is_error(result) => {
            message::error_kind(result).unwrap_or("failed").to_owned()
        }
        Ok(_) => "ok".to_owned(),
        Err(refusal) => refusal.code.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use toolbay_testkit::RpcError;

    #[test]
    fn what_a_call_came_to_is_one_word() {
        assert_eq!(kind(&Ok(json!({"content": []}))), "ok");
        assert_eq!(
            kind(&Ok(
                json!({"isError": true, "_meta": {"dev.toolbay/error": "fuel"}})
            )),
            "fuel"
        );
        assert_eq!(kind(&Ok(json!({"isError": true}))), "failed");
        assert_eq!(
            kind(&Err(RpcError {
                code: -32602,
                message: String::new()
            })),
            "-32602"
        );
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
        assert_eq!(
            (
                totals.kinds["ok"],
                totals.kinds["fuel"],
                totals.changes["removed"]
            ),
            (2, 1, 1)
        );
    }
}
