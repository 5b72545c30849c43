//! Components in use.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};
use toolbay_model::Digest;

use crate::component::loaded_component::LoadedComponent;

/// Components in use, by digest, so that identical files are compiled once.
#[derive(Default)]
pub(crate) struct ComponentRegistry {
    components: Mutex<HashMap<Digest, Weak<LoadedComponent>>>,
}

impl ComponentRegistry {
    /// Returns the component in use with this digest.
    pub(crate) fn find(&self, digest: Digest) -> Option<Arc<LoadedComponent>> {
        self.lock().get(&digest).and_then(Weak::upgrade)
    }

    /// Shares a component with plugins whose files are identical.
    pub(crate) fn intern(&self, component: LoadedComponent) -> Arc<LoadedComponent> {
        let component = Arc::new(component);
        let mut components = self.lock();
        components.retain(|_, other| other.strong_count() > 0);
        components.insert(component.digest, Arc::downgrade(&component));
        component
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, Weak<LoadedComponent>>> {
        self.components.lock()
    }
}
