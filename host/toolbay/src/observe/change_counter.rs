//! Counts published changes.

use std::sync::Arc;

use toolbay_audit::AuditEvent;
use toolbay_catalog::{PublishListener, Snapshot};

use crate::observe::metrics::{PluginChange, ServerMetrics};
use crate::observe::server_audit::change_events;

/// Counts changes of plugins, and removes the meters of tools that are no longer offered.
#[derive(Debug)]
pub(crate) struct ChangeCounter(pub(crate) Arc<ServerMetrics>);

impl PublishListener for ChangeCounter {
    fn before_publish(&self, previous: &Snapshot, next: &Snapshot) {
        for event in change_events(previous, next) {
            match event {
                AuditEvent::Load { .. } => self.0.count_change(PluginChange::Load),
                AuditEvent::Grant { .. } => self.0.count_change(PluginChange::Grant),
                AuditEvent::Refused { .. } | AuditEvent::Held { .. } => {
                    self.0.count_change(PluginChange::Refused);
                }
                AuditEvent::Removed { .. } => self.0.count_change(PluginChange::Removed),
                _ => {}
            }
        }
        self.0.tools.retain(|name| next.tools.contains_key(name));
    }
}
