//! Counts published changes.

use std::sync::Arc;

use toolbay_audit::AuditEvent;
use toolbay_catalog::{PublishListener, Snapshot};

use crate::audited::changes;
use crate::metrics::{PluginChange, ServerMetrics};

/// Counts changes of plugins, and removes the meters of tools that are no longer offered.
#[derive(Debug)]
pub(crate) struct ChangeCounter(pub(crate) Arc<ServerMetrics>);

impl PublishListener for ChangeCounter {
    fn publishing(&self, previous: &Snapshot, next: &Snapshot) {
        for event in changes(previous, next) {
            match event {
                AuditEvent::Load { .. } => self.0.changed(PluginChange::Load),
                AuditEvent::Grant { .. } => self.0.changed(PluginChange::Grant),
                AuditEvent::Refused { .. } => self.0.changed(PluginChange::Refused),
                AuditEvent::Removed { .. } => self.0.changed(PluginChange::Removed),
                _ => {}
            }
        }
        self.0.tools.keep(|name| next.tools.contains_key(name));
    }
}
