//! Holds the current snapshot: one writer, any number of readers.

use std::fmt::Debug;
use std::sync::Arc;

use tokio::sync::watch;

use crate::publish::snapshot::Snapshot;

/// Reading end of the catalog. A read holds a lock only while it copies a pointer.
#[derive(Clone, Debug)]
pub struct Catalog {
    snapshots: watch::Receiver<Arc<Snapshot>>,
}

/// Writing end of the catalog. There is only one, and the reloader owns it.
#[derive(Debug)]
pub struct CatalogPublisher {
    snapshots: watch::Sender<Arc<Snapshot>>,
    listeners: Vec<Arc<dyn PublishListener>>,
}

/// Listener for published snapshots. Its methods must not block.
pub trait PublishListener: Debug + Send + Sync {
    /// Called before `next` replaces `previous`. No reader can observe `next` yet.
    fn before_publish(&self, _previous: &Snapshot, _next: &Snapshot) {}

    /// Called after a publication, with the URIs of resources that are files and were changed,
    /// added or removed. The published snapshot already has their current state.
    fn resources_updated(&self, _uris: &[String]) {}
}

/// Creates an empty catalog and its publisher.
pub fn channel() -> (CatalogPublisher, Catalog) {
    let (sender, receiver) = watch::channel(Arc::default());
    (
        CatalogPublisher {
            snapshots: sender,
            listeners: Vec::new(),
        },
        Catalog {
            snapshots: receiver,
        },
    )
}

impl Catalog {
    /// Returns the current snapshot.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshots.borrow())
    }

    /// Waits until a snapshot satisfies `condition`, starting with the current one.
    ///
    /// If the publisher is dropped before that, returns the last snapshot.
    pub async fn wait_for(&self, mut condition: impl FnMut(&Snapshot) -> bool) -> Arc<Snapshot> {
        let mut snapshots = self.snapshots.clone();
        match snapshots.wait_for(|snapshot| condition(snapshot)).await {
            Ok(snapshot) => Arc::clone(&snapshot),
            Err(_closed) => self.snapshot(),
        }
    }
}

impl CatalogPublisher {
    /// Adds a listener for published snapshots.
    #[must_use]
    pub fn with_listener(mut self, listener: Arc<dyn PublishListener>) -> Self {
        self.listeners.push(listener);
        self
    }

    /// Publishes `next` and sets its `generation` and `list_generation`.
    ///
    /// Returns whether the result of a list method has changed.
    pub fn publish(&self, mut next: Snapshot) -> bool {
        let previous = Arc::clone(&self.snapshots.borrow());
        let changed = !previous.has_same_lists(&next);
        next.generation = previous.generation + 1;
        next.list_generation = previous.list_generation + u64::from(changed);
        for witness in &self.listeners {
            witness.before_publish(&previous, &next);
        }
        let updated = next.updated_files_since(&previous);
        self.snapshots.send_replace(Arc::new(next));
        if !updated.is_empty() {
            self.listeners
                .iter()
                .for_each(|witness| witness.resources_updated(&updated));
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publish::snapshot::tests::snapshot;

    #[test]
    fn only_a_changed_listing_counts() {
        let (publisher, catalog) = channel();
        assert!(!publisher.publish(snapshot(&[])));
        assert!(publisher.publish(snapshot(&["a"])));
        assert!(
            !publisher.publish(snapshot(&["a"])),
            "another plugin with the same tools"
        );
        assert_eq!(
            (
                catalog.snapshot().generation,
                catalog.snapshot().list_generation
            ),
            (3, 1)
        );
    }
}
