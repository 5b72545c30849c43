//! The key-value operations of one call: the owner of the buckets, and the budgets that operations
//! draw from.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use toolbay_model::{Identity, Interrupt, Limit};
use toolbay_policy::{StateBy, StateGrant};
use toolbay_state::{Bucket, Error, Owner, Payer, Quota, Store};

use crate::account::{Account, Held};
use crate::coop::Meter;
use crate::environment::Entry;
use crate::hindrance::Hindrance;
use crate::keyvalue::KeyValue;

/// The reason why a bucket cannot be opened.
pub(crate) enum Closed {
    /// The grant does not include a key-value store.
    Denied,
    /// Each caller has a separate state, and this caller is not authenticated.
    NoCaller,
    /// The server stores no state.
    Off,
    /// The name is not a valid bucket name.
    Name,
}

/// The key-value state of one call.
pub(crate) struct Kept {
    granted: KeyValue,
    caller: Option<Identity>,
    account: Account,
    meter: Meter,
    deadline: Instant,
    timeout: Duration,
    /// The first quota that was exceeded.
    refused: Option<Limit>,
    /// True if the unavailability of the store was logged.
    is_reported: bool,
}

impl Kept {
    pub(crate) fn new(entry: &Entry<'_>, account: Account, meter: Meter) -> Self {
        Self {
            granted: entry.environment.key_value.clone(),
            caller: entry.caller.cloned(),
            account,
            meter,
            deadline: entry.deadline,
            timeout: entry.environment.limits.timeout,
            refused: None,
            is_reported: false,
        }
    }

    /// Opens the bucket with this name, if the call may use it.
    pub(crate) fn bucket(&self, name: &str) -> Result<Bucket, Closed> {
        let Some(granted) = self.granted.granted() else { return Err(Closed::Denied) };
        let caller = match (granted.grant.by, &self.caller) {
            (StateBy::Plugin, _) => None,
            (StateBy::Caller, Some(caller)) => Some(caller.clone()),
            (StateBy::Caller, None) => return Err(Closed::NoCaller),
        };
        if granted.store.is_none() {
            return Err(Closed::Off);
        }
        Bucket::new(Owner { plugin: Arc::clone(&granted.plugin), caller }, name).map_err(|_| Closed::Name)
    }

    /// Returns the bucket with this name in a replayed call. Nothing is read from it or written to
    /// it. Returns `None` if the name is not valid.
    pub(crate) fn bucket_again(name: &str) -> Option<Bucket> {
        Bucket::new(Owner { plugin: Arc::default(), caller: None }, name).ok()
    }

    /// Returns the store, and the quota of each owner. Both exist if a bucket could be opened.
    pub(crate) fn store(&self) -> Option<(Arc<dyn Store>, Quota)> {
        let granted = self.granted.granted()?;
        let StateGrant { size, keys, .. } = granted.grant;
        Some((Arc::clone(granted.store.as_ref()?), Quota { size, keys }))
    }

    /// Returns the payer of one operation.
    pub(crate) fn paying(&self) -> Paying {
        Paying(Arc::new(Operation {
            account: self.account.clone(),
            meter: self.meter.clone(),
            interrupt: Interrupt::at(self.deadline),
            held: Mutex::default(),
        }))
    }

    /// Returns the limit that is reported if the deadline of the call has passed.
    pub(crate) fn too_late(&self) -> Limit {
        Limit::Deadline(self.timeout)
    }

    /// Records an exceeded quota, and logs that the store is unavailable.
    pub(crate) fn failed(&mut self, error: &Error) {
        let limit = match error {
            Error::Size(size) => Limit::StateSize(*size),
            Error::Keys(keys) => Limit::StateKeys(*keys),
            Error::Total(size) => Limit::StateTotal(*size),
            Error::Unavailable(why) => {
                if !std::mem::replace(&mut self.is_reported, true) {
                    let plugin = self.granted.granted().map_or("", |granted| &granted.plugin);
                    tracing::error!(plugin, "{why}");
                }
                return;
            }
            _ => return,
        };
        self.refused.get_or_insert(limit);
    }

    /// Returns the first denial, which may explain a failure.
    pub(crate) fn hindrance(&self) -> Option<Hindrance> {
        self.refused.map(Hindrance::Limit)
    }
}

/// Guard that pays for one operation. Dropping it stops the operation.
pub(crate) struct Paying(Arc<Operation>);

impl Paying {
    pub(crate) fn payer(&self) -> Arc<dyn Payer> {
        Arc::clone(&self.0) as Arc<dyn Payer>
    }
}

impl Drop for Paying {
    fn drop(&mut self) {
        self.0.interrupt.raise();
    }
}

#[derive(Debug)]
struct Operation {
    account: Account,
    meter: Meter,
    interrupt: Interrupt,
    held: Mutex<Vec<Held>>,
}

impl Payer for Operation {
    fn hold(&self, bytes: usize) -> bool {
        let Ok(held) = self.account.hold(bytes) else { return false };
        self.held.lock().unwrap_or_else(PoisonError::into_inner).push(held);
        true
    }

    fn spend(&self, time: Duration) {
        self.meter.add(time);
    }

    fn is_due(&self) -> bool {
        self.interrupt.is_due()
    }
}
