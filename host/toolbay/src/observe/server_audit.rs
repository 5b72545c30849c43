//! The audit log of a server, and its records of plugins and operators.

use std::sync::Arc;
use std::time::Duration;

use toolbay_audit::{
    AuditEvent, AuditLog, OperatorRecord, PluginRecord, VersionApprovalRecord, truncate_name,
};
use toolbay_catalog::{
    HeldVersion, Plugin, PluginFileStatus, PluginReport, PublishListener, Snapshot,
};

/// Timeout for closing the log when the server stops.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// The audit log of a server.
#[derive(Clone, Debug)]
pub(crate) struct ServerAudit {
    audit: AuditLog,
    /// If set, complete arguments are recorded instead of only their digest.
    full: bool,
}

/// Closes the log on drop.
#[derive(Debug)]
pub(crate) struct AuditGuard(pub(crate) ServerAudit);

impl Drop for AuditGuard {
    fn drop(&mut self) {
        self.0.audit.end(SHUTDOWN_TIMEOUT);
    }
}

impl ServerAudit {
    /// Creates a sink that records complete arguments if `full` is set, otherwise their digest.
    pub(crate) fn new(audit: AuditLog, full: bool) -> Self {
        Self { audit, full }
    }

    /// Returns the number of lost lines.
    pub(crate) fn lost_lines(&self) -> u64 {
        self.audit.lost_records()
    }

    /// Returns the log.
    pub(crate) fn log(&self) -> &AuditLog {
        &self.audit
    }

    /// Returns whether complete arguments are recorded.
    pub(crate) fn records_full_arguments(&self) -> bool {
        self.full
    }

    /// Records an operator's action on a plugin or on the whole server, and whether it succeeded.
    /// Does not wait.
    pub(crate) fn record_operator_action(
        &self,
        caller: &str,
        action: &'static str,
        of: Option<&Arc<Plugin>>,
        done: bool,
    ) {
        let outcome = if done { "ok" } else { "failed" };
        let plugin = of.map(|of| plugin_record(of));
        let did = OperatorRecord {
            caller: truncate_name(caller),
            action,
            plugin,
            outcome,
        };
        self.audit
            .record_server_event(AuditEvent::Operator(Box::new(did)));
    }

    /// Records that an operator approved a held version of the plugin `id`, and whether the approval
    /// was stored. Does not wait.
    pub(crate) fn record_version_approval(
        &self,
        operator: &str,
        id: &str,
        report: &PluginReport,
        held: &HeldVersion,
        done: bool,
    ) {
        let approval = VersionApprovalRecord {
            caller: truncate_name(operator),
            plugin: report_record(id, report),
            base: held.base,
            version: Some(held.version),
            component: held.digests.component,
            grant: held.digests.grant,
            outcome: if done { "ok" } else { "failed" },
        };
        self.audit
            .record_server_event(AuditEvent::VersionApproval(Box::new(approval)));
    }
}

/// Returns the record of a plugin.
pub(crate) fn plugin_record(plugin: &Plugin) -> PluginRecord {
    let digest = plugin.digest();
    let grant = plugin.terms.grant_digest;
    PluginRecord {
        plugin: truncate_name(&plugin.id),
        digest,
        grant,
    }
}

/// Records the changes of each snapshot.
impl PublishListener for ServerAudit {
    fn before_publish(&self, previous: &Snapshot, next: &Snapshot) {
        change_events(previous, next).for_each(|event| self.audit.record_server_event(event));
    }
}

/// Returns the events for replacing one snapshot by another.
pub(crate) fn change_events(
    previous: &Snapshot,
    next: &Snapshot,
) -> impl Iterator<Item = AuditEvent> {
    let changed = next
        .plugins
        .iter()
        .filter_map(|(id, report)| plugin_change(id, previous.plugins.get(id), report));
    let removed = previous
        .plugins
        .iter()
        .filter(|(id, _)| !next.plugins.contains_key(*id));
    changed.chain(removed.map(|(id, report)| AuditEvent::Removed {
        plugin: report_record(id, report),
    }))
}

/// Returns the event for the change of a plugin's file, if any.
fn plugin_change(
    id: &str,
    before: Option<&PluginReport>,
    now: &PluginReport,
) -> Option<AuditEvent> {
    let plugin = report_record(id, now);
    let served = |report: &PluginReport| report.status == PluginFileStatus::Ready;
    match now.status {
        PluginFileStatus::Loading => None,
        PluginFileStatus::Refused | PluginFileStatus::Stale => {
            let is_recorded = before.is_some_and(|before| {
                before.status == now.status
                    && before.problems == now.problems
                    && before.held == now.held
            });
            if is_recorded {
                return None;
            }
            let reason = now.problems.join("; ");
            Some(match &now.held {
                Some(held) => AuditEvent::Held {
                    plugin,
                    component: held.digests.component,
                    grant: held.digests.grant,
                    reason,
                },
                None => AuditEvent::Refused { plugin, reason },
            })
        }
        PluginFileStatus::Ready => {
            let before = before.filter(|before| before.source_digests.is_some());
            let same = |part: fn(&PluginReport) -> Option<_>| {
                before.is_some_and(|before| part(before) == part(now))
            };
            let component = same(|report| report.source_digests.map(|from| from.component));
            let previous = before.and_then(|before| before.source_digests?.grant);
            let offers = |report: &PluginReport| (report.tools.clone(), report.prompts.clone());
            if !component
                || before
                    .is_some_and(|before| offers(before) != offers(now) && previous == plugin.grant)
            {
                return Some(AuditEvent::Load {
                    plugin,
                    tools: now.tools.len(),
                });
            }
            if previous != plugin.grant {
                return Some(AuditEvent::Grant { plugin, previous });
            }
            // The served file is back after a rejected one, or its mounts now refer to other
            // folders.
            (!before.is_some_and(served)).then_some(AuditEvent::Load {
                plugin,
                tools: now.tools.len(),
            })
        }
    }
}

fn report_record(id: &str, report: &PluginReport) -> PluginRecord {
    let digest = report.source_digests.and_then(|from| from.component);
    PluginRecord {
        plugin: truncate_name(id),
        digest,
        grant: report.source_digests.and_then(|from| from.grant),
    }
}

#[cfg(test)]
mod tests;
