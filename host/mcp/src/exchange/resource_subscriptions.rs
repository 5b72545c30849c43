//! Subscriptions to changes of resources.
//!
//! A plugin reports that a resource changed in the middle of a call. That only marks the resource
//! for its subscribers and for the subscribers to its ancestors. Each subscriber sends the marked
//! URIs as fast as its client reads, so several changes of one resource become one notification.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use toolbay_background::{QuotaExhausted, QuotaPortion, SharedQuota};

/// Maximum number of subscriptions of one subscriber: a session, or a listen stream.
pub(crate) const MAX_SUBSCRIPTIONS: usize = 256;

/// Maximum size of the URI of a subscription, in bytes.
pub(crate) const MAX_URI_BYTES: usize = 2 << 10;

/// Size of a subscription in addition to its URI, in bytes: its entries in the tables.
const SUBSCRIPTION_OVERHEAD_BYTES: usize = 256;

/// Maximum size of all subscriptions of one caller, in bytes, in all of its sessions and streams:
/// some thousands with URIs of usual length.
const MAX_CALLER_BYTES: usize = 1 << 20;

/// Maximum size of all subscriptions of the server, in bytes.
const MAX_TOTAL_BYTES: usize = 32 << 20;

/// Maximum number of ancestors that are looked up when a resource changes. The URI comes from a
/// plugin.
const MAX_ANCESTORS: usize = 32;

/// The subscribers to changes of resources. Cheap to clone.
#[derive(Clone)]
pub struct ResourceUpdates {
    shared: Arc<UpdatesState>,
}

struct UpdatesState {
    subscriptions: Mutex<SubscriptionTable>,
    /// The number of the next subscriber.
    next_number: AtomicU64,
    /// The quota on bytes of subscriptions.
    quota: Arc<SharedQuota>,
}

/// The subscribers by subscribed URI. The cost of a change is proportional to its number of
/// subscribers.
type SubscriptionTable = HashMap<Arc<str>, BTreeMap<u64, Arc<MarkedUris>>>;

/// The resources that changed since the last notification to a subscriber.
#[derive(Default)]
struct MarkedUris {
    uris: Mutex<MarkQueue>,
    added: Notify,
}

/// URIs in the order in which they were marked, each once.
#[derive(Default)]
struct MarkQueue {
    order: VecDeque<Arc<str>>,
    members: HashSet<Arc<str>>,
}

/// A subscriber. Dropping it ends all of its subscriptions.
pub(crate) struct UpdateSubscriber {
    updates: ResourceUpdates,
    number: u64,
    marked: Arc<MarkedUris>,
    /// The subscribed URIs, and the bytes that each occupies in the caller's quota.
    portions: Mutex<HashMap<Arc<str>, QuotaPortion>>,
}

/// The reason that a subscription was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubscriptionRefused {
    /// The URI is longer than [`MAX_URI_BYTES`].
    TooLong,
    /// The subscriber has [`MAX_SUBSCRIPTIONS`] subscriptions.
    TooMany,
    /// The subscriptions of the caller, or of all callers, have reached their limit in bytes.
    OverQuota(QuotaExhausted),
}

impl Default for ResourceUpdates {
    fn default() -> Self {
        let shared = UpdatesState {
            subscriptions: Mutex::default(),
            next_number: AtomicU64::default(),
            quota: SharedQuota::new(MAX_TOTAL_BYTES, MAX_CALLER_BYTES),
        };
        Self {
            shared: Arc::new(shared),
        }
    }
}

impl fmt::Debug for ResourceUpdates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceUpdates").finish_non_exhaustive()
    }
}

impl fmt::Display for SubscriptionRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(
                f,
                "the URI of a subscription may have at most {MAX_URI_BYTES} bytes"
            ),
            Self::TooMany => {
                write!(
                    f,
                    "there are {MAX_SUBSCRIPTIONS} subscriptions already, which is the maximum: unsubscribe from some first"
                )
            }
            Self::OverQuota(exhausted) => {
                let owner = if matches!(exhausted, QuotaExhausted::Own(_)) {
                    "this caller"
                } else {
                    "all callers"
                };
                let limit = exhausted.limit();
                write!(
                    f,
                    "the subscriptions of {owner} may take {limit} bytes together: unsubscribe from some first"
                )
            }
        }
    }
}

impl ResourceUpdates {
    /// Notifies the subscribers to `uri` or to one of its ancestors that its content changed. They
    /// receive the URI that they subscribed to. Never waits.
    pub fn notify_changed(&self, uri: &str) {
        let subscriptions = self.subscriptions();
        for named in ancestors_and_self(uri) {
            let Some((ancestor, subscribers)) = subscriptions.get_key_value(named) else {
                continue;
            };
            for marked in subscribers.values() {
                marked.mark(ancestor);
            }
        }
    }

    /// Creates a subscriber without subscriptions.
    pub(crate) fn subscriber(&self) -> UpdateSubscriber {
        let number = self.shared.next_number.fetch_add(1, Ordering::Relaxed);
        UpdateSubscriber {
            updates: self.clone(),
            number,
            marked: Arc::default(),
            portions: Mutex::default(),
        }
    }

    /// Reserves bytes in the subscription quota of the caller with this name, for a subscription of
    /// another kind.
    ///
    /// # Errors
    ///
    /// The quota is exhausted.
    pub(crate) fn reserve_bytes(
        &self,
        caller: &str,
        bytes: usize,
    ) -> Result<QuotaPortion, QuotaExhausted> {
        self.shared.quota.try_reserve(caller, bytes)
    }

    /// Returns the bytes that the subscriptions of the caller with this name occupy.
    #[cfg(test)]
    pub(crate) fn bytes_of(&self, caller: &str) -> usize {
        self.shared.quota.of(caller)
    }

    // Held while a URI is marked for its subscribers, and never across an await.
    fn subscriptions(&self) -> MutexGuard<'_, SubscriptionTable> {
        self.shared.subscriptions.lock()
    }
}

/// Returns `uri` and its ancestors: the text before each of its slashes, with and without the
/// slash. A scheme is not an ancestor.
fn ancestors_and_self(uri: &str) -> impl Iterator<Item = &str> {
    // No subscription is longer than this.
    let start = uri
        .get(..uri.floor_char_boundary(MAX_URI_BYTES))
        .unwrap_or_default();
    let exact = Some(uri).filter(|uri| uri.len() <= MAX_URI_BYTES);
    let slashes = start
        .match_indices('/')
        .map(|(place, _)| place)
        .filter(|position| !is_scheme_slash(start, *position));
    let ancestors = slashes
        .take(MAX_ANCESTORS)
        .flat_map(move |position| [start.get(..position), start.get(..=position)])
        .flatten();
    ancestors
        .filter(move |ancestor| Some(*ancestor) != exact)
        .chain(exact)
}

/// Returns whether the slash at this position is one of those in `scheme://`.
fn is_scheme_slash(uri: &str, position: usize) -> bool {
    uri.find("://")
        .is_some_and(|colon| position == colon + 1 || position == colon + 2)
}

impl MarkedUris {
    fn mark(&self, uri: &Arc<str>) {
        let mut queue = self.lock_queue();
        if queue.members.insert(Arc::clone(uri)) {
            queue.order.push_back(Arc::clone(uri));
            drop(queue);
            // Wake all waiters: one of them may be dropped before it sends the notification.
            self.added.notify_waiters();
        }
    }

    // Held for a few instructions and never across an await.
    fn lock_queue(&self) -> MutexGuard<'_, MarkQueue> {
        self.uris.lock()
    }
}

impl MarkQueue {
    fn remove(&mut self, uri: &str) -> bool {
        let was_marked = self.members.remove(uri);
        if was_marked {
            self.order.retain(|marked| **marked != *uri);
        }
        was_marked
    }
}

impl UpdateSubscriber {
    /// Subscribes to `uri` on behalf of the caller with this name. A repeated subscription has no
    /// effect.
    ///
    /// # Errors
    ///
    /// The URI is too long, or a limit is reached.
    pub(crate) fn add(&self, caller: &str, uri: &str) -> Result<(), SubscriptionRefused> {
        if uri.len() > MAX_URI_BYTES {
            return Err(SubscriptionRefused::TooLong);
        }
        let mut portions = self.lock_portions();
        if portions.contains_key(uri) {
            return Ok(());
        }
        if portions.len() >= MAX_SUBSCRIPTIONS {
            return Err(SubscriptionRefused::TooMany);
        }
        let portion = self
            .updates
            .shared
            .quota
            .try_reserve(caller, SUBSCRIPTION_OVERHEAD_BYTES + uri.len())
            .map_err(SubscriptionRefused::OverQuota)?;
        let mut subscriptions = self.updates.subscriptions();
        // All subscribers share one copy of the URI.
        let shared_uri = subscriptions
            .get_key_value(uri)
            .map(|(known, _)| Arc::clone(known));
        let uri = shared_uri.unwrap_or_else(|| uri.into());
        subscriptions
            .entry(Arc::clone(&uri))
            .or_default()
            .insert(self.number, Arc::clone(&self.marked));
        portions.insert(uri, portion);
        Ok(())
    }

    /// Ends the subscription to `uri`, if there is one.
    pub(crate) fn remove(&self, uri: &str) {
        let mut portions = self.lock_portions();
        if portions.remove(uri).is_some() {
            self.unregister(&mut self.updates.subscriptions(), uri);
            self.marked.lock_queue().remove(uri);
        }
    }

    /// Ends all subscriptions.
    pub(crate) fn clear(&self) {
        let mut portions = self.lock_portions();
        if portions.is_empty() {
            return;
        }
        let mut subscriptions = self.updates.subscriptions();
        for (uri, _portion) in portions.drain() {
            self.unregister(&mut subscriptions, &uri);
        }
        drop(subscriptions);
        *self.marked.lock_queue() = MarkQueue::default();
    }

    /// Waits until a resource changed whose URI satisfies `is_visible`, and returns the subscribed
    /// URI. The URI stays marked until it is [cleared](Self::clear_mark).
    pub(crate) async fn next_change(&self, is_visible: impl Fn(&str) -> bool) -> Arc<str> {
        loop {
            // Created before the check, so that a mark in between also wakes this future.
            let added = self.marked.added.notified();
            if let Some(uri) = self
                .marked
                .lock_queue()
                .order
                .iter()
                .find(|uri| is_visible(uri))
            {
                return Arc::clone(uri);
            }
            added.await;
        }
    }

    /// Removes the mark of `uri`. Returns false if it is not marked. Called when the notification
    /// has reserved capacity in the outbox: a later change is reported again.
    pub(crate) fn clear_mark(&self, uri: &str) -> bool {
        self.marked.lock_queue().remove(uri)
    }

    fn unregister(&self, subscriptions: &mut SubscriptionTable, uri: &str) {
        if let Some(subscribers) = subscriptions.get_mut(uri) {
            subscribers.remove(&self.number);
            if subscribers.is_empty() {
                subscriptions.remove(uri);
            }
        }
    }

    // Held for a few instructions and never across an await. Lock order: this before the table of
    // all subscriptions.
    fn lock_portions(&self) -> MutexGuard<'_, HashMap<Arc<str>, QuotaPortion>> {
        self.portions.lock()
    }
}

impl Drop for UpdateSubscriber {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests;
