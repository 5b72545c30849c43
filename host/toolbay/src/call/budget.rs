//! The budget of a plugin's grant (`[budget]`): what its calls have used today, in the state of the
//! server.
//!
//! A call of a plugin with a budget begins only when it is counted durably, and when its maximum is
//! reserved durably. So calls that run at once cannot exceed the budget together: a call whose limits
//! allow more than the rest of the budget gets lower limits. When its guest has returned, its usage
//! replaces the reservation. If a call is dropped before that, or the server ends, the
//! reservation stays for the rest of the day, so that cancelling a call saves nothing. If the state
//! cannot be read or written, no such call begins.
//!
//! The first such call of each day deletes the records of days that are long over.

mod used_budget;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytesize::ByteSize;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};
use toolbay_catalog::{BudgetScope, Plugin};
use toolbay_model::{CallFailure, CallRejection, CallUsage, CallerIdentity, RejectionReason};
use toolbay_sandbox::PluginContext;
use toolbay_state::{
    BucketChange, ChangeOutcome, StateBucket, StateOwner, StateQuota, StateStore, UnmeteredPayer,
    ValueVersion,
};

use self::used_budget::{CallMaximum, UsedBudget, time_until_midnight, today};

/// Prefix of the owners of budgets. The id of a plugin contains no slash.
pub(crate) const OWNER_PREFIX: &str = "budgets/";

/// Key of the used part.
const USED_KEY: &str = "used";

/// Maximum size of an owner's state.
pub(crate) const OWNER_QUOTA: StateQuota = StateQuota {
    size: ByteSize::kib(4),
    keys: 4,
};

/// Maximum number of attempts to change a record that other processes change as well.
const MAX_ATTEMPTS: usize = 100;

/// Timeout for adding what a call has used.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Time after which a call can try again if running calls have reserved the rest of the budget.
const RESERVED_RETRY: Duration = Duration::from_secs(1);

/// Number of locks that the records share.
const LOCKS: usize = 64;

/// The used parts of all budgets.
#[derive(Debug, Default)]
pub(crate) struct BudgetLedger {
    store: OnceLock<Arc<dyn StateStore>>,
    locks: RecordLocks,
    /// The last day on which old records were deleted.
    tidied: AtomicU64,
}

/// Locks of the records. Calls of this server change a record one after the other, so that many
/// calls at once do not make each other fail. Changes by other processes are noticed and repeated.
#[derive(Debug)]
struct RecordLocks([Arc<Mutex<()>>; LOCKS]);

/// An account in the ledger.
#[derive(Clone, Debug)]
struct BudgetAccount {
    store: Arc<dyn StateStore>,
    bucket: StateBucket,
    lock: Arc<Mutex<()>>,
}

/// A call that is counted, with its reservation.
#[derive(Debug)]
pub(crate) struct BudgetCharge {
    account: BudgetAccount,
    /// The day of the reservation.
    day: u64,
    reserved: CallMaximum,
}

/// The reason that a record was not changed.
#[derive(Debug, PartialEq, Eq)]
enum LedgerError {
    Rejected(RejectionReason),
    /// The text is for the log.
    Unavailable(String),
}

impl BudgetLedger {
    /// Sets the store, if the server has one. Only the first counts.
    pub(crate) fn set_store(&self, store: Arc<dyn StateStore>) {
        drop(self.store.set(store));
    }

    /// Counts a call of the plugin and reserves its maximum in `context`, unless the budget is
    /// used up. Returns `None` if the plugin has no budget. `is_new` is false if the call continues
    /// after a question.
    ///
    /// # Errors
    ///
    /// The budget is used up or reserved, or it is unknown how much of it is used.
    pub(crate) async fn begin(
        &self,
        plugin: &Plugin,
        caller: Option<&CallerIdentity>,
        context: &PluginContext,
        is_new: bool,
        deadline: Instant,
    ) -> Result<Option<BudgetCharge>, CallFailure> {
        let budget = plugin.terms.budget;
        if !budget.is_set() {
            return Ok(None);
        }
        let most = CallMaximum::of_context(context);
        let account = self.account(&plugin.id, budget.scope, caller);
        let begun = async {
            let account = account?;
            let (day, reserved) = account
                .change(|used| {
                    let (record, reserved) = used
                        .reserve(&budget, most, is_new)
                        .map_err(LedgerError::Rejected)?;
                    Ok((record, (record.day, reserved)))
                })
                .await?;
            Ok::<_, LedgerError>(BudgetCharge {
                account,
                day,
                reserved,
            })
        };
        let begun = timeout_at(deadline, begun)
            .await
            .unwrap_or_else(|_| Err(LedgerError::Unavailable("no response in time".to_owned())));
        match begun {
            Ok(charge) => {
                self.tidy_once_a_day(&charge.account.store);
                Ok(Some(charge))
            }
            Err(LedgerError::Rejected(reason)) => {
                let retry_after = match reason {
                    RejectionReason::BudgetReserved { .. } => RESERVED_RETRY,
                    _ => time_until_midnight(),
                };
                Err(rejected(reason, Some(retry_after)))
            }
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
            .store
            .get()
            .ok_or_else(|| LedgerError::Unavailable("the server stores no state".to_owned()))?;
        let owner = StateOwner {
            plugin: format!("{OWNER_PREFIX}{plugin}").into(),
            caller: caller.filter(|_| scope == BudgetScope::Caller).cloned(),
        };
        let lock = self.locks.of_owner(&owner);
        let bucket = StateBucket::new(owner, "")
            .map_err(|error| LedgerError::Unavailable(error.details()))?;
        Ok(BudgetAccount {
            store: Arc::clone(store),
            bucket,
            lock,
        })
    }

    /// Starts to delete the records of days that are long over, unless that was done today. Callers
    /// can be many, and each has a record.
    fn tidy_once_a_day(&self, store: &Arc<dyn StateStore>) {
        let day = today();
        if self.tidied.swap(day, Ordering::Relaxed) == day {
            return;
        }
        let deleting = store.delete_where(
            OWNER_PREFIX,
            Arc::new(move |key: &str, value: &[u8]| {
                key == USED_KEY && UsedBudget::is_expired(value, day)
            }),
        );
        tokio::spawn(async move {
            match deleting.await {
                Ok(deleted) if deleted.keys > 0 => {
                    tracing::debug!("deleted {} old records of budgets", deleted.keys);
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(
                    "old records of budgets could not be deleted: {}",
                    error.details()
                ),
            }
        });
    }
}

impl Default for RecordLocks {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Arc::default()))
    }
}

impl RecordLocks {
    fn of_owner(&self, owner: &StateOwner) -> Arc<Mutex<()>> {
        let mut hasher = DefaultHasher::new();
        owner.hash(&mut hasher);
        let index = usize::try_from(hasher.finish() % LOCKS as u64).unwrap_or_default();
        self.0.get(index).cloned().unwrap_or_default()
    }
}

impl BudgetCharge {
    /// Returns the context of the call, whose limits allow no more than the reservation.
    pub(crate) fn restrict(&self, context: &PluginContext) -> PluginContext {
        self.reserved.restrict(context)
    }

    /// Replaces the reservation by the usage of the call. After the day of the reservation, there
    /// is nothing to replace.
    pub(crate) async fn settle(self, usage: &CallUsage) {
        let Self {
            account,
            day,
            reserved,
        } = self;
        let settling = account.change(|used| {
            let record = if used.day == day {
                used.settle(reserved, usage)
            } else {
                used
            };
            Ok((record, ()))
        });
        let settled = timeout_at(Instant::now() + SETTLE_TIMEOUT, settling)
            .await
            .unwrap_or_else(|_| Err(LedgerError::Unavailable("no response in time".to_owned())));
        if let Err(LedgerError::Unavailable(why)) = settled {
            tracing::warn!(
                "the usage of a call could not be added to its budget, so its limits count instead: {why}"
            );
        }
    }
}

impl BudgetAccount {
    /// Changes the record of today. `change` returns the new record and a result.
    async fn change<T>(
        &self,
        change: impl Fn(UsedBudget) -> Result<(UsedBudget, T), LedgerError>,
    ) -> Result<T, LedgerError> {
        let payer = Arc::new(UnmeteredPayer);
        let unavailable =
            |error: toolbay_state::StateError| LedgerError::Unavailable(error.details());
        // If the store hangs, the timeout of the caller drops this.
        let _turn = self.lock.lock().await;
        for _ in 0..MAX_ATTEMPTS {
            let keys = vec![USED_KEY.to_owned()];
            let values = self.store.get(&self.bucket, keys, payer.clone()).await;
            let value = values.map_err(unavailable)?.into_iter().next().flatten();
            let used = UsedBudget::parse(value.as_deref())
                .ok_or_else(|| LedgerError::Unavailable("the record is damaged".to_owned()))?
                .on_day(today());
            let (record, result) = change(used)?;
            let swap = BucketChange::Swap {
                key: USED_KEY.to_owned(),
                expected: ValueVersion::from_value(value.as_deref()),
                value: record.to_text().into_bytes(),
            };
            let outcome = self
                .store
                .change(&self.bucket, OWNER_QUOTA, swap, payer.clone());
            if !matches!(
                outcome.await.map_err(unavailable)?,
                ChangeOutcome::Conflict(_)
            ) {
                return Ok(result);
            }
        }
        Err(LedgerError::Unavailable(
            "too many processes change the record at once".to_owned(),
        ))
    }
}

fn rejected(reason: RejectionReason, retry_after: Option<Duration>) -> CallFailure {
    CallFailure::Rejected(CallRejection {
        reason,
        retry_after,
    })
}

#[cfg(test)]
mod tests {
    use toolbay_catalog::{ComponentContents, GrantBudget, LoadedComponent, PluginTerms};

    use super::*;

    fn plugin(budget: GrantBudget) -> Plugin {
        let component = Arc::new(LoadedComponent::without_code(ComponentContents::default()));
        let terms = PluginTerms {
            budget,
            ..PluginTerms::default()
        };
        Plugin::new("a".to_owned(), component, Arc::default(), terms)
    }

    fn ledger(folder: &tempfile::TempDir) -> BudgetLedger {
        let ledger = BudgetLedger::default();
        assert!(ledger.account("a", BudgetScope::Plugin, None).is_err());
        ledger.set_store(Arc::new(toolbay_state::StateDatabase::new(
            folder.path().join("state"),
            ByteSize::mib(1),
        )));
        ledger
    }

    async fn record(ledger: &BudgetLedger, caller: Option<&CallerIdentity>) -> Option<UsedBudget> {
        let account = ledger.account("a", BudgetScope::Caller, caller).unwrap();
        let keys = vec![USED_KEY.to_owned()];
        let payer = Arc::new(UnmeteredPayer);
        let values = account.store.get(&account.bucket, keys, payer).await;
        let value = values.unwrap().into_iter().next().unwrap();
        value.map(|value| UsedBudget::parse(Some(&value)).unwrap())
    }

    async fn begin(
        ledger: &BudgetLedger,
        plugin: &Plugin,
        context: &PluginContext,
    ) -> Result<BudgetCharge, CallFailure> {
        let deadline = Instant::now() + Duration::from_mins(1);
        let begun = ledger.begin(plugin, None, context, true, deadline).await;
        begun.map(Option::unwrap)
    }

    #[tokio::test]
    async fn concurrent_calls_cannot_overrun_a_budget_and_a_dropped_one_saves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = ledger(&folder);
        let mut context = PluginContext::default();
        context.limits.fuel = 60;
        let plugin = plugin(GrantBudget {
            fuel: Some(100),
            ..GrantBudget::default()
        });
        let charges = [
            begin(&ledger, &plugin, &context).await.unwrap(),
            begin(&ledger, &plugin, &context).await.unwrap(),
        ];
        let fuel = |charge: &BudgetCharge| charge.restrict(&context).limits.fuel;
        assert_eq!((fuel(&charges[0]), fuel(&charges[1])), (60, 40));
        let refusal = begin(&ledger, &plugin, &context).await.unwrap_err();
        assert!(
            matches!(
                &refusal,
                CallFailure::Rejected(CallRejection {
                    reason: RejectionReason::BudgetReserved { .. },
                    retry_after: Some(retry),
                }) if *retry == RESERVED_RETRY
            ),
            "{refusal:?}"
        );
        let [first, dropped] = charges;
        let usage = CallUsage {
            fuel: 5,
            http_bytes: 2,
            tcp_bytes: 1,
            ..CallUsage::default()
        };
        first.settle(&usage).await;
        drop(dropped);
        let used = record(&ledger, None).await.unwrap();
        assert_eq!(
            (
                used.calls,
                used.fuel,
                used.network_bytes,
                used.reserved_fuel
            ),
            (2, 5, 3, 40)
        );
        let rest = begin(&ledger, &plugin, &context).await.unwrap();
        assert_eq!(fuel(&rest), 55);
    }

    #[tokio::test]
    async fn many_calls_at_once_do_not_make_each_other_fail() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = ledger(&folder);
        let context = PluginContext::default();
        let plugin = plugin(GrantBudget {
            calls: Some(1_000),
            ..GrantBudget::default()
        });
        let calls = (0..2 * MAX_ATTEMPTS).map(async |_| {
            let charge = begin(&ledger, &plugin, &context).await.unwrap();
            charge.settle(&CallUsage::default()).await;
        });
        futures_util::future::join_all(calls).await;
        let used = record(&ledger, None).await.unwrap();
        assert_eq!((used.calls, used.reserved_fuel), (200, 0));
    }

    #[tokio::test]
    async fn records_of_past_days_are_deleted_with_the_first_call_of_a_day() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = ledger(&folder);
        let callers: Vec<_> = ["token:old", "token:new", "token:damaged"]
            .into_iter()
            .map(|name| CallerIdentity::from_name(name).unwrap())
            .collect();
        let day = |day| UsedBudget {
            day,
            calls: 1,
            ..UsedBudget::default()
        };
        let texts = [
            day(today() - 20).to_text(),
            day(today() - 1).to_text(),
            "damaged".to_owned(),
        ];
        for (caller, text) in callers.iter().zip(texts) {
            let account = ledger
                .account("a", BudgetScope::Caller, Some(caller))
                .unwrap();
            let change = BucketChange::Set(vec![(USED_KEY.to_owned(), text.into_bytes())]);
            let payer = Arc::new(UnmeteredPayer);
            let set = account
                .store
                .change(&account.bucket, OWNER_QUOTA, change, payer);
            set.await.unwrap();
        }
        let plugin = plugin(GrantBudget {
            calls: Some(9),
            ..GrantBudget::default()
        });
        begin(&ledger, &plugin, &PluginContext::default())
            .await
            .unwrap();
        while record(&ledger, Some(&callers[0])).await.is_some() {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            record(&ledger, Some(&callers[1])).await,
            Some(day(today() - 1))
        );
        assert_eq!(record(&ledger, None).await.unwrap().calls, 1);
        // The usage of the caller of the damaged record stays unknown.
        let deadline = Instant::now() + Duration::from_mins(1);
        let budget = GrantBudget {
            scope: BudgetScope::Caller,
            ..plugin.terms.budget
        };
        let plugin = self::plugin(budget);
        let begun = ledger
            .begin(
                &plugin,
                Some(&callers[2]),
                &PluginContext::default(),
                true,
                deadline,
            )
            .await;
        assert!(matches!(
            begun,
            Err(CallFailure::Rejected(CallRejection {
                reason: RejectionReason::BudgetUnknown,
                ..
            }))
        ));
    }
}
