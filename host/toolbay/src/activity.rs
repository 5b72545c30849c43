//! The mutable state of each loaded plugin: slots, rates, crashes and usage. The immutable part is in the catalog.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Semaphore;
use toolbay_catalog::Plugin;

use crate::breaker::Breaker;
use crate::rate_counter::RateCounter;
use crate::recent_usage::RecentUsage;

/// The mutable state of one loaded version of a plugin.
#[derive(Debug)]
pub(crate) struct Activity {
    /// One permit for each call that may run at once.
    pub(crate) slots: Arc<Semaphore>,
    /// Rate counters by tool name without the prefix; a tool without a rate limit has no entry.
    pub(crate) rates: HashMap<String, RateCounter>,
    /// The plugin's circuit breaker.
    pub(crate) breaker: Breaker,
    /// The usage of its most recent calls.
    pub(crate) usage: RecentUsage,
}

impl Activity {
    fn of(plugin: &Plugin) -> Self {
        let terms = &plugin.terms;
        let names = plugin.tools.iter().map(|definition| definition.tool.name.clone());
        Self {
            slots: Arc::new(Semaphore::new(terms.environment.limits.concurrency)),
            rates: names.filter_map(|name| Some((name, RateCounter::new(terms.rate_limit?)?))).collect(),
            breaker: Breaker::default(),
            usage: RecentUsage::default(),
        }
    }
}

/// The activity of every plugin that has been called. A reloaded plugin starts with a new one, so that calls of the old
/// version do not delay those of the new.
#[derive(Debug, Default)]
pub(crate) struct Activities {
    /// By the address of the plugin, which cannot be reused while the weak reference exists.
    table: Mutex<HashMap<usize, Called>>,
}

/// A plugin that has been called, and its activity.
type Called = (Weak<Plugin>, Arc<Activity>);

impl Activities {
    /// The activity of this version of a plugin.
    pub(crate) fn of(&self, plugin: &Arc<Plugin>) -> Arc<Activity> {
        let address = Arc::as_ptr(plugin).addr();
        // Held for a few instructions and never across an await; no reload holds it.
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, activity)) = table.get(&address) {
            return Arc::clone(activity);
        }
        table.retain(|_, (plugin, _)| plugin.strong_count() > 0);
        let activity = Arc::new(Activity::of(plugin));
        table.insert(address, (Arc::downgrade(plugin), Arc::clone(&activity)));
        activity
    }
}

#[cfg(test)]
mod tests {
    use toolbay_catalog::{Component, Terms};

    use super::*;

    fn plugin() -> Arc<Plugin> {
        Arc::new(Plugin::new("p".to_owned(), Arc::new(Component::without_code(Vec::new())), Terms::default()))
    }

    #[test]
    fn each_version_has_its_own_and_keeps_it() {
        let (activities, old) = (Activities::default(), plugin());
        let first = activities.of(&old);
        assert!(Arc::ptr_eq(&first, &activities.of(&old)));
        let new = plugin();
        assert!(!Arc::ptr_eq(&first, &activities.of(&new)), "a reload begins anew");
        assert!(Arc::ptr_eq(&first, &activities.of(&old)), "calls of the old version still share theirs");
        drop(old);
        activities.of(&plugin());
        assert!(activities.table.lock().unwrap().len() <= 2, "nothing is kept for a version that is gone");
    }
}
