//! A table with a value for each called plugin version.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use toolbay_catalog::Plugin;

/// A table with a value for each loaded plugin version that has been called. A reloaded plugin
/// starts with a new value, so that calls of the old version do not affect those of the new one.
#[derive(Debug)]
pub(crate) struct PluginTable<T> {
    /// Entries by address of the plugin. An address is not reused while the weak reference exists.
    table: Mutex<HashMap<usize, PluginEntry<T>>>,
}

/// A plugin that has been called, and its value.
type PluginEntry<T> = (Weak<Plugin>, Arc<T>);

impl<T> Default for PluginTable<T> {
    fn default() -> Self {
        Self {
            table: Mutex::default(),
        }
    }
}

impl<T> PluginTable<T> {
    /// Returns the value for this version of a plugin. `new` creates it for the first call.
    pub(crate) fn get_or_insert_with(
        &self,
        plugin: &Arc<Plugin>,
        new: impl FnOnce() -> T,
    ) -> Arc<T> {
        let address = Arc::as_ptr(plugin).addr();
        // Held only for a few instructions, never across an await or by a reload.
        let mut table = self.table.lock();
        if let Some((_, value)) = table.get(&address) {
            return Arc::clone(value);
        }
        table.retain(|_, (plugin, _)| plugin.strong_count() > 0);
        let value = Arc::new(new());
        table.insert(address, (Arc::downgrade(plugin), Arc::clone(&value)));
        value
    }
}

#[cfg(test)]
mod tests {
    use toolbay_catalog::{ComponentContents, LoadedComponent, PluginTerms};

    use super::*;

    fn plugin() -> Arc<Plugin> {
        let component = Arc::new(LoadedComponent::without_code(ComponentContents::default()));
        Arc::new(Plugin::new(
            "p".to_owned(),
            component,
            Arc::default(),
            PluginTerms::default(),
        ))
    }

    #[test]
    fn each_plugin_version_keeps_its_own_value() {
        let values = PluginTable::default();
        let old = plugin();
        let first = values.get_or_insert_with(&old, || 1);
        assert!(Arc::ptr_eq(&first, &values.get_or_insert_with(&old, || 2)));
        let new = plugin();
        assert_eq!(
            *values.get_or_insert_with(&new, || 3),
            3,
            "a reloaded plugin has a new value"
        );
        assert_eq!(
            *values.get_or_insert_with(&old, || 4),
            1,
            "calls of the old version still share theirs"
        );
        drop(old);
        values.get_or_insert_with(&plugin(), || 5);
        assert!(
            values.table.lock().len() <= 2,
            "the value of a dropped version is removed"
        );
    }
}
