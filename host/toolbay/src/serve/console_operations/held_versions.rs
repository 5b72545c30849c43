//! The versions that the lock file holds back, and their approval in the console.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use toolbay_catalog::{HeldVersion, Plugin, Snapshot, VersionApprover, pin_plugin};
use toolbay_console::{HeldPlugin, VersionApproval, VersionApprovalOutcome};
use toolbay_lock::{LockFile, ToolOwners};
use toolbay_model::Digest;

use crate::config::Config;
use crate::observe::server_audit::ServerAudit;

/// Approval of held versions in the console.
#[derive(Clone)]
pub(super) struct HeldVersions {
    approver: Option<VersionApprover>,
    /// Reason why no version can be approved, as a clause.
    obstacle: Option<&'static str>,
}

impl HeldVersions {
    pub(super) fn new(config: &Config, approver: Option<VersionApprover>) -> Self {
        let obstacle = if config.locked {
            Some(
                "the server was started with --locked, so that it serves exactly what toolbay.lock has",
            )
        } else if approver.is_none() || config.approval_file().is_none() {
            Some("the server has no state folder to store the approval in (state.folder)")
        } else {
            None
        };
        Self { approver, obstacle }
    }

    /// Returns the version of this plugin that is held.
    pub(super) fn find(&self, snapshot: &Snapshot, id: &str) -> Option<HeldPlugin> {
        let report = snapshot.plugins.get(id)?;
        let held = report.held.as_ref()?;
        let difference = held.difference();
        let signs = difference.warning_signs(&tools_of_others(snapshot, id));
        Some(HeldPlugin {
            id: id.to_owned(),
            base: held.base,
            version: held.version,
            difference,
            signs,
            is_served: report.version.is_some(),
            obstacle: self.obstacle.map(str::to_owned),
        })
    }

    /// Returns the approval of the version in service, if it was approved in the console. Blocks,
    /// because it reads the plain files of an approved version.
    pub(super) fn approval(&self, plugin: &Plugin) -> Option<VersionApproval> {
        let approval = self.approver.as_ref()?.approval(&plugin.id)?;
        let sources = plugin.source_digests();
        if (approval.component, approval.grant) != (sources.component, sources.grant) {
            return None;
        }
        // The pinned version can have the same component and grant.
        let pin = pin_plugin(plugin).ok()?;
        if LockFile::pin_digest(&plugin.id, &pin) != approval.version {
            return None;
        }
        Some(VersionApproval {
            by: approval.by,
            at: UNIX_EPOCH.checked_add(Duration::from_secs(approval.at))?,
        })
    }

    /// Approves the held version of this plugin in the name of `operator`, if it has these digests.
    /// Blocks.
    pub(super) fn approve(
        &self,
        snapshot: &Snapshot,
        id: &str,
        digests: (Option<Digest>, Digest),
        operator: &str,
        audit: Option<&ServerAudit>,
    ) -> VersionApprovalOutcome {
        let report = snapshot.plugins.get(id);
        let held: Option<&Arc<HeldVersion>> = report.and_then(|report| report.held.as_ref());
        let Some((report, held)) = report
            .zip(held)
            .filter(|(_, held)| (held.base, held.version) == digests)
        else {
            return VersionApprovalOutcome::Changed;
        };
        let approver = match (&self.approver, self.obstacle) {
            (Some(approver), None) => approver,
            (_, why) => {
                return VersionApprovalOutcome::Refused(why.unwrap_or_default().to_owned());
            }
        };
        let outcome = approver.approve(id, held, operator);
        if let Some(audit) = audit {
            audit.record_version_approval(operator, id, report, held, outcome.is_ok());
        }
        match outcome {
            Ok(()) => VersionApprovalOutcome::Done,
            Err(why) => {
                tracing::warn!(
                    plugin = id,
                    "console: a held version was not approved: {why}"
                );
                VersionApprovalOutcome::Refused(why)
            }
        }
    }
}

/// Returns the tools of all plugins but this one.
fn tools_of_others(snapshot: &Snapshot, id: &str) -> ToolOwners {
    snapshot
        .tools
        .iter()
        .filter(|(_, offer)| offer.plugin.id != id)
        .map(|(name, offer)| (name.clone(), offer.plugin.id.clone()))
        .collect()
}
