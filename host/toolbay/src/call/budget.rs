//! The budget of a plugin's grant (`[budget]`): what its calls have used today, in the state of the
//! server.
//!
//! The used part survives a restart. A call of a plugin with a budget begins only when it is counted
//! durably, and its fuel and traffic are added when its guest has returned. If a call is dropped
//! before that, its limits are added instead, so that cancelling a call saves nothing. If the state
//! cannot be read or written, no such call begins.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytesize::ByteSize;
use tokio::time::{Instant, timeout_at};
use toolbay_catalog::{BudgetScope, GrantBudget, Plugin};
use toolbay_model::{
    CallFailure, CallRejection, CallUsage, CallerIdentity, Limits, RejectionReason,
};
use toolbay_state::{
    BucketChange, ChangeOutcome, StateBucket, StateOwner, StateQuota, StateStore, UnmeteredPayer,
    ValueVersion,
};

/// Prefix of the owners of budgets. The id of a plugin contains no slash.
const OWNER_PREFIX: &str = "budgets/";

/// Key of the used part.
const USED_KEY: &str = "used";

/// Maximum size of an owner's state.
const OWNER_QUOTA: StateQuota = StateQuota {
    size: ByteSize::kib(4),
    keys: 4,
};

/// Maximum number of attempts to change a record that other calls change as well.
const MAX_ATTEMPTS: usize = 100;

/// Seconds of a day.
const DAY_SECONDS: u64 = 86_400;

/// Timeout for adding what a call has used.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(10);

/// The used parts of all budgets.
#[derive(Debug, Default)]
pub(crate) struct BudgetLedger(OnceLock<Arc<dyn StateStore>>);

/// The used part of a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct UsedBudget {
    /// The day, in days since 1970.
    day: u64,
    calls: u64,
    fuel: u64,
    network_bytes: u64,
}

/// An account in the ledger.
#[derive(Clone, Debug)]
struct BudgetAccount {
    store: Arc<dyn StateStore>,
    bucket: StateBucket,
}

/// A call that is counted. If it is dropped, what it may have used is added.
#[derive(Debug)]
pub(crate) struct BudgetCharge {
    account: BudgetAccount,
    /// The fuel and the traffic to add; `None` once they are added.
    pending: Option<(u64, u64)>,
}

/// The reason that a record was not changed.
#[derive(Debug, PartialEq, Eq)]
enum LedgerError {
    Used(RejectionReason),
    /// The text is for the log.
    Unavailable(String),
}

impl BudgetLedger {
    /// Sets the store, if the server has one. Only the first counts.
    pub(crate) fn set_store(&self, store: Arc<dyn StateStore>) {
        drop(self.0.set(store));
    }

    /// Counts a call of the plugin, unless its budget is used up. Returns `None` if it has no
    /// budget. `is_new` is false if the call continues after a question.
    ///
    /// # Errors
    ///
    /// The budget is used up, or it is unknown how much of it is used.
    pub(crate) async fn begin(
        &self,
        plugin: &Plugin,
        caller: Option<&CallerIdentity>,
        limits: &Limits,
        is_new: bool,
        deadline: Instant,
    ) -> Result<Option<BudgetCharge>, CallFailure> {
        let budget = plugin.terms.budget;
        if !budget.is_set() {
            return Ok(None);
        }
        let account = self.account(&plugin.id, budget.scope, caller);
        let begun = async {
            let account = account?;
            let calls = u64::from(is_new);
            account
                .change(|used| {
                    check(&budget, used, is_new)?;
                    Ok(UsedBudget {
                        calls: used.calls.saturating_add(calls),
                        ..used
                    })
                })
                .await?;
            Ok::<_, LedgerError>(account)
        };
        let begun = timeout_at(deadline, begun)
            .await
            .unwrap_or_else(|_| Err(LedgerError::Unavailable("no response in time".to_owned())));
        match begun {
            Ok(account) => Ok(Some(BudgetCharge {
                account,
                pending: Some((limits.fuel, max_network_bytes(limits))),
            })),
            Err(LedgerError::Used(reason)) => Err(rejected(reason, Some(time_until_midnight()))),
            Err(LedgerError::Unavailable(why)) => {
                tracing::warn!(
                    plugin = plugin.id,
                    "a call is rejected, because the used part of the budget is unknown: {why}"
                );
                Err(rejected(RejectionReason::BudgetUnknown, None))
            }
        }
    }

    fn account(
        &self,
        plugin: &str,
        scope: BudgetScope,
        caller: Option<&CallerIdentity>,
    ) -> Result<BudgetAccount, LedgerError> {
        let store = self
            .0
            .get()
            .ok_or_else(|| LedgerError::Unavailable("the server stores no state".to_owned()))?;
        let owner = StateOwner {
            plugin: format!("{OWNER_PREFIX}{plugin}").into(),
            caller: caller.filter(|_| scope == BudgetScope::Caller).cloned(),
        };
        let bucket = StateBucket::new(owner, "")
            .map_err(|error| LedgerError::Unavailable(error.details()))?;
        Ok(BudgetAccount {
            store: Arc::clone(store),
            bucket,
        })
    }
}

impl BudgetCharge {
    /// Adds what the call has used.
    pub(crate) async fn settle(mut self, usage: &CallUsage) {
        let network_bytes = usage.http_bytes.saturating_add(usage.tcp_bytes);
        self.pending = Some((usage.fuel, network_bytes));
        self.account.add(usage.fuel, network_bytes).await;
        self.pending = None;
    }
}

impl Drop for BudgetCharge {
    fn drop(&mut self) {
        let Some((fuel, network_bytes)) = self.pending.take() else {
            return;
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let account = self.account.clone();
            runtime.spawn(async move { account.add(fuel, network_bytes).await });
        }
    }
}

impl BudgetAccount {
    /// Adds fuel and traffic, which are already used.
    async fn add(&self, fuel: u64, network_bytes: u64) {
        let adding = self.change(|used| {
            Ok(UsedBudget {
                fuel: used.fuel.saturating_add(fuel),
                network_bytes: used.network_bytes.saturating_add(network_bytes),
                ..used
            })
        });
        let added = timeout_at(Instant::now() + SETTLE_TIMEOUT, adding)
            .await
            .unwrap_or_else(|_| Err(LedgerError::Unavailable("no response in time".to_owned())));
        if let Err(LedgerError::Unavailable(why)) = added {
            tracing::warn!("what a call has used could not be added to its budget: {why}");
        }
    }

    /// Changes the record of today.
    async fn change(
        &self,
        change: impl Fn(UsedBudget) -> Result<UsedBudget, LedgerError>,
    ) -> Result<(), LedgerError> {
        let payer = Arc::new(UnmeteredPayer);
        let unavailable =
            |error: toolbay_state::StateError| LedgerError::Unavailable(error.details());
        for _ in 0..MAX_ATTEMPTS {
            let keys = vec![USED_KEY.to_owned()];
            let values = self.store.get(&self.bucket, keys, payer.clone()).await;
            let value = values.map_err(unavailable)?.into_iter().next().flatten();
            let used = UsedBudget::parse(value.as_deref())
                .ok_or_else(|| LedgerError::Unavailable("the record is damaged".to_owned()))?
                .on_day(today());
            let swap = BucketChange::Swap {
                key: USED_KEY.to_owned(),
                expected: ValueVersion::from_value(value.as_deref()),
                value: change(used)?.to_text().into_bytes(),
            };
            let outcome = self
                .store
                .change(&self.bucket, OWNER_QUOTA, swap, payer.clone());
            if !matches!(
                outcome.await.map_err(unavailable)?,
                ChangeOutcome::Conflict(_)
            ) {
                return Ok(());
            }
        }
        Err(LedgerError::Unavailable(
            "too many calls change the record at once".to_owned(),
        ))
    }
}

impl UsedBudget {
    /// Parses a record. Returns `None` if it is damaged; without a record, nothing is used.
    fn parse(value: Option<&[u8]>) -> Option<Self> {
        let Some(value) = value else {
            return Some(Self::default());
        };
        let numbers: Option<Vec<u64>> = std::str::from_utf8(value)
            .ok()?
            .split(' ')
            .map(|number| number.parse().ok())
            .collect();
        let [day, calls, fuel, network_bytes] = numbers?.try_into().ok()?;
        Some(Self {
            day,
            calls,
            fuel,
            network_bytes,
        })
    }

    fn to_text(self) -> String {
        let Self {
            day,
            calls,
            fuel,
            network_bytes,
        } = self;
        format!("{day} {calls} {fuel} {network_bytes}")
    }

    /// Returns what is used on this day. If the clock was set back, the later day counts.
    fn on_day(self, day: u64) -> Self {
        if self.day >= day {
            self
        } else {
            Self {
                day,
                ..Self::default()
            }
        }
    }
}

/// Checks that a call may begin.
fn check(budget: &GrantBudget, used: UsedBudget, is_new: bool) -> Result<(), LedgerError> {
    let network_bytes = budget.network_bytes.map(|bytes| bytes.as_u64());
    let rows = [
        ("budget.calls", budget.calls.filter(|_| is_new), used.calls),
        ("budget.fuel", budget.fuel, used.fuel),
        ("budget.network_bytes", network_bytes, used.network_bytes),
    ];
    for (key, amount, used) in rows {
        if let Some(amount) = amount.filter(|amount| used >= *amount) {
            return Err(LedgerError::Used(RejectionReason::BudgetUsed {
                key,
                amount,
            }));
        }
    }
    Ok(())
}

fn max_network_bytes(limits: &Limits) -> u64 {
    let http = limits.http_bytes.as_u64();
    http.saturating_add(limits.tcp_bytes.as_u64())
}

fn rejected(reason: RejectionReason, retry_after: Option<Duration>) -> CallFailure {
    CallFailure::Rejected(CallRejection {
        reason,
        retry_after,
    })
}

fn unix_seconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

fn today() -> u64 {
    unix_seconds() / DAY_SECONDS
}

fn time_until_midnight() -> Duration {
    Duration::from_secs(DAY_SECONDS - unix_seconds() % DAY_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_and_a_damaged_one_is_not_empty() {
        let used = UsedBudget {
            day: 20_000,
            calls: 3,
            fuel: u64::MAX,
            network_bytes: 7,
        };
        assert_eq!(
            UsedBudget::parse(Some(used.to_text().as_bytes())),
            Some(used)
        );
        assert_eq!(UsedBudget::parse(None), Some(UsedBudget::default()));
        for damaged in ["", "1 2 3", "1 2 3 4 5", "1 2 3 x", "-1 2 3 4", "1  2 3 4"] {
            assert_eq!(
                UsedBudget::parse(Some(damaged.as_bytes())),
                None,
                "{damaged}"
            );
        }
    }

    #[test]
    fn a_new_day_renews_the_budget_and_a_clock_that_is_set_back_does_not() {
        let used = UsedBudget {
            day: 10,
            calls: 3,
            ..UsedBudget::default()
        };
        assert_eq!(used.on_day(10), used);
        assert_eq!(used.on_day(9), used);
        assert_eq!(used.on_day(11).calls, 0);
    }

    #[test]
    fn each_key_of_a_budget_is_checked() {
        let used = UsedBudget {
            day: 1,
            calls: 2,
            fuel: 100,
            network_bytes: 50,
        };
        let reached = |budget: GrantBudget, is_new| check(&budget, used, is_new).is_err();
        let calls = |calls| GrantBudget {
            calls: Some(calls),
            ..GrantBudget::default()
        };
        assert!(reached(calls(2), true) && !reached(calls(3), true) && !reached(calls(2), false));
        let fuel = |fuel| GrantBudget {
            fuel: Some(fuel),
            ..GrantBudget::default()
        };
        assert!(reached(fuel(100), false) && !reached(fuel(101), true));
        let bytes = |bytes| GrantBudget {
            network_bytes: Some(ByteSize::b(bytes)),
            ..GrantBudget::default()
        };
        assert!(reached(bytes(50), true) && !reached(bytes(51), true));
        assert!(!reached(GrantBudget::default(), true));
    }

    #[tokio::test]
    async fn a_call_that_is_dropped_counts_with_its_limits() {
        let dir = tempfile::tempdir().unwrap();
        let store: Arc<dyn StateStore> = Arc::new(toolbay_state::StateDatabase::new(
            dir.path().join("state"),
            ByteSize::mib(1),
        ));
        let ledger = BudgetLedger::default();
        assert!(ledger.account("a", BudgetScope::Plugin, None).is_err());
        ledger.set_store(store);
        let account = ledger.account("a", BudgetScope::Plugin, None).unwrap();
        let used = async || {
            let keys = vec![USED_KEY.to_owned()];
            let values = account
                .store
                .get(&account.bucket, keys, Arc::new(UnmeteredPayer))
                .await
                .unwrap();
            UsedBudget::parse(values[0].as_deref()).unwrap()
        };
        let charge = |pending| BudgetCharge {
            account: account.clone(),
            pending,
        };
        let usage = CallUsage {
            fuel: 5,
            http_bytes: 2,
            tcp_bytes: 1,
            ..CallUsage::default()
        };
        charge(Some((100, 100))).settle(&usage).await;
        assert_eq!((used().await.fuel, used().await.network_bytes), (5, 3));
        drop(charge(Some((100, 10))));
        while used().await.fuel == 5 {
            tokio::task::yield_now().await;
        }
        assert_eq!((used().await.fuel, used().await.network_bytes), (105, 13));
    }
}
