//! What one call does with what its plugin keeps: whose it is, and what operations are drawn from.

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

/// Why a bucket cannot be opened.
pub(crate) enum Closed {
    /// The grant does not allow to keep anything.
    Denied,
    /// Each caller has a state of their own, and this one is not authenticated.
    NoCaller,
    /// The server keeps no state.
    Off,
    /// The name is none of a bucket.
    Name,
}

/// What one call does with what its plugin keeps.
pub(crate) struct Kept {
    granted: KeyValue,
    caller: Option<Identity>,
    account: Account,
    meter: Meter,
    deadline: Instant,
    timeout: Duration,
    /// What a quota refused first.
    refused: Option<Limit>,
    /// Whether the log says that the state is not available.
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

    /// The bucket with this name, if the call may use it.
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

    /// The bucket with this name in a call that is run again from a recording: nothing is read from it, and nothing is
    /// changed. `None` if there is none of this name.
    pub(crate) fn bucket_again(name: &str) -> Option<Bucket> {
        Bucket::new(Owner { plugin: Arc::default(), caller: None }, name).ok()
    }

    /// The store, and the quota of each owner. Whoever has a bucket has these.
    pub(crate) fn store(&self) -> Option<(Arc<dyn Store>, Quota)> {
        let granted = self.granted.granted()?;
        let StateGrant { size, keys, .. } = granted.grant;
        Some((Arc::clone(granted.store.as_ref()?), Quota { size, keys }))
    }

    /// What pays for one operation.
    pub(crate) fn paying(&self) -> Paying {
        Paying(Arc::new(Operation {
            account: self.account.clone(),
            meter: self.meter.clone(),
            interrupt: Interrupt::at(self.deadline),
            held: Mutex::default(),
        }))
    }

    /// The limit of a call whose time is over.
    pub(crate) fn too_late(&self) -> Limit {
        Limit::Deadline(self.timeout)
    }

    /// Takes note of why an operation failed.
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

    /// What was first refused to the guest: it may explain a failure.
    pub(crate) fn hindrance(&self) -> Option<Hindrance> {
        self.refused.map(Hindrance::Limit)
    }
}

/// What pays for one operation. Dropping it stops the operation.
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
