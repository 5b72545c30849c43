//! Counts what is published.

use std::sync::Arc;

use toolbay_audit::Event;
use toolbay_catalog::{Snapshot, Witness};

use crate::audited::changes;
use crate::metrics::{Change, Metrics};

/// Counts changes of plugins, and forgets the tools that are offered no more.
#[derive(Debug)]
pub(crate) struct Counting(pub(crate) Arc<Metrics>);

impl Witness for Counting {
    fn publishing(&self, previous: &Snapshot, next: &Snapshot) {
        for event in changes(previous, next) {
            match event {
                Event::Load { .. } => self.0.changed(Change::Load),
                Event::Grant { .. } => self.0.changed(Change::Grant),
                Event::Refused { .. } => self.0.changed(Change::Refused),
                Event::Removed { .. } => self.0.changed(Change::Removed),
                _ => {}
            }
        }
        self.0.tools.keep(|name| next.tools.contains_key(name));
    }
}
