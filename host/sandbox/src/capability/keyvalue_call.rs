//! The key-value operations of one call: the owner of the buckets, and the budgets that operations
//! draw from.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use toolbay_model::{ByteReservation, CallerIdentity, Interrupt, Limit};
use toolbay_policy::{StateGrant, StateScope};
use toolbay_state::{StateBucket, StateError, StateOwner, StateQuota, StateStore, WorkPayer};

use crate::capability::host_denial::HostDenial;
use crate::capability::memory_budget::MemoryBudget;
use crate::capability::yielding::CpuMeter;
use crate::context::call_context::CallContext;
use crate::context::keyvalue::KeyValue;

/// The reason why a bucket cannot be opened.
pub(crate) enum BucketError {
    /// The grant does not include a key-value store.
    Denied,
    /// Each caller has a separate state, and this caller is not authenticated.
    NoCaller,
    /// The server stores no state.
    Disabled,
    /// The name is not a valid bucket name.
    InvalidName,
}

/// The key-value state of one call.
pub(crate) struct KeyValueCall {
    key_value: KeyValue,
    caller: Option<CallerIdentity>,
    memory_budget: MemoryBudget,
    meter: CpuMeter,
    deadline: Instant,
    timeout: Duration,
    /// The first quota that was exceeded.
    exceeded_quota: Option<Limit>,
    /// True if the unavailability of the store was logged.
    is_outage_logged: bool,
}

impl KeyValueCall {
    pub(crate) fn new(
        call_context: &CallContext<'_>,
        memory_budget: MemoryBudget,
        meter: CpuMeter,
    ) -> Self {
        Self {
            key_value: call_context.environment.key_value.clone(),
            caller: call_context.caller.cloned(),
            memory_budget,
            meter,
            deadline: call_context.deadline,
            timeout: call_context.environment.limits.timeout,
            exceeded_quota: None,
            is_outage_logged: false,
        }
    }

    /// Opens the bucket with this name, if the call may use it.
    pub(crate) fn open_bucket(&self, name: &str) -> Result<StateBucket, BucketError> {
        let Some(access) = self.key_value.access() else {
            return Err(BucketError::Denied);
        };
        let caller = match (access.grant.scope, &self.caller) {
            (StateScope::Plugin, _) => None,
            (StateScope::Caller, Some(caller)) => Some(caller.clone()),
            (StateScope::Caller, None) => return Err(BucketError::NoCaller),
        };
        if access.store.is_none() {
            return Err(BucketError::Disabled);
        }
        StateBucket::new(
            StateOwner {
                plugin: Arc::clone(&access.plugin),
                caller,
            },
            name,
        )
        .map_err(|_| BucketError::InvalidName)
    }

    /// Returns the bucket with this name in a replayed call. Nothing is read from it or written to
    /// it. Returns `None` if the name is not valid.
    pub(crate) fn replayed_bucket(name: &str) -> Option<StateBucket> {
        StateBucket::new(
            StateOwner {
                plugin: Arc::default(),
                caller: None,
            },
            name,
        )
        .ok()
    }

    /// Returns the store, and the quota of each owner. Both exist if a bucket could be opened.
    pub(crate) fn store(&self) -> Option<(Arc<dyn StateStore>, StateQuota)> {
        let access = self.key_value.access()?;
        let StateGrant { size, keys, .. } = access.grant;
        Some((
            Arc::clone(access.store.as_ref()?),
            StateQuota { size, keys },
        ))
    }

    /// Returns the payer of one operation.
    pub(crate) fn start_operation(&self) -> OperationGuard {
        OperationGuard(Arc::new(OperationPayer {
            memory: Mutex::new(self.memory_budget.empty_reservation()),
            meter: self.meter.clone(),
            interrupt: Interrupt::with_deadline(self.deadline),
        }))
    }

    /// Returns the limit that is reported if the deadline of the call has passed.
    pub(crate) fn deadline_limit(&self) -> Limit {
        Limit::Deadline(self.timeout)
    }

    /// Records an exceeded quota, and logs that the store is unavailable.
    pub(crate) fn record_error(&mut self, error: &StateError) {
        let limit = match error {
            StateError::Size(size) => Limit::StateSize(*size),
            StateError::Keys(keys) => Limit::StateKeys(*keys),
            StateError::Total(size) => Limit::StateTotal(*size),
            StateError::Unavailable(why) => {
                if !std::mem::replace(&mut self.is_outage_logged, true) {
                    let plugin = self
                        .key_value
                        .access()
                        .map_or("", |granted| &granted.plugin);
                    tracing::error!(plugin, "{why}");
                }
                return;
            }
            _ => return,
        };
        self.exceeded_quota.get_or_insert(limit);
    }

    /// Returns the first denial, which may explain a failure.
    pub(crate) fn first_denial(&self) -> Option<HostDenial> {
        self.exceeded_quota.map(HostDenial::Limit)
    }
}

/// Guard that pays for one operation. Dropping it stops the operation.
pub(crate) struct OperationGuard(Arc<OperationPayer>);

impl OperationGuard {
    pub(crate) fn payer(&self) -> Arc<dyn WorkPayer> {
        Arc::clone(&self.0) as Arc<dyn WorkPayer>
    }
}

impl Drop for OperationGuard {
    fn drop(&mut self) {
        self.0.interrupt.raise();
    }
}

#[derive(Debug)]
struct OperationPayer {
    memory: Mutex<ByteReservation>,
    meter: CpuMeter,
    interrupt: Interrupt,
}

impl WorkPayer for OperationPayer {
    fn charge_memory(&self, bytes: usize) -> bool {
        self.memory.lock().grow(bytes).is_ok()
    }

    fn charge_cpu_time(&self, time: Duration) {
        self.meter.add(time);
    }

    fn is_due(&self) -> bool {
        self.interrupt.is_due()
    }
}
