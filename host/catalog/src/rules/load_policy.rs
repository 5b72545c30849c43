//! The server's rules for loading plugins.

use std::sync::Arc;

use arc_swap::ArcSwap;
use bytesize::ByteSize;
use tokio::sync::Notify;
use toolbay_confine::ReachableFiles;
use toolbay_model::{Limits, ToolRateLimit};

use crate::folder::description_limits::DescribeLimits;
use crate::rules::approval::{ApprovalSetting, Approver};
use crate::rules::mount_policy::GuardedPath;
use crate::rules::writable_paths::WritablePaths;

/// The server's limits for loading, and the defaults for values that a grant does not set.
#[derive(Clone, Debug)]
pub struct LoadPolicy {
    /// The default limits, for values that a grant does not set.
    pub limits: Limits,
    /// The ceilings of the limits.
    pub ceiling: Limits,
    /// The limits of the call that lists a plugin's tools.
    pub describe_limits: Limits,
    /// The default rate limit of each tool; `None` means no limit.
    pub rate_limit: Option<ToolRateLimit>,
    /// The default approval setting, where a grant does not set it.
    pub require_approval: ApprovalSetting,
    /// The default approver, where a grant does not set it.
    pub approve_by: Approver,
    /// The maximum size of a component file.
    pub max_component_size: ByteSize,
    /// Paths that mounts must not contain, in addition to those of plugins.
    pub guarded_paths: Vec<GuardedPath>,
    /// Limits on what a plugin may list.
    pub description_limits: DescribeLimits,
    /// The files that the server can still use if it has confined itself.
    pub reachable_files: Option<Arc<ReachableFiles>>,
    /// The paths that the server may still write if it has confined itself.
    pub writable_paths: Option<Arc<WritablePaths>>,
}

/// The current rules, which can change while the server runs.
#[derive(Debug)]
pub struct LiveRules {
    pub(crate) rules: ArcSwap<LoadPolicy>,
    /// Notified when the rules change. The reloader then applies the new rules to the loaded
    /// plugins.
    pub(crate) changed: Notify,
}

impl LiveRules {
    /// Returns the current rules. A load calls this again for each of its steps.
    pub(crate) fn current(&self) -> Arc<LoadPolicy> {
        self.rules.load_full()
    }

    /// Replaces the defaults for values that a grant does not set: the limits, the rate limit of
    /// tools, and the approval settings. All other rules stay. The change applies to plugins that
    /// are already loaded, but not to running calls.
    pub fn update_defaults(
        &self,
        limits: &Limits,
        rate_limit: Option<ToolRateLimit>,
        require_approval: ApprovalSetting,
        approve_by: Approver,
    ) {
        self.rules.rcu(|rules| LoadPolicy {
            limits: limits.clone(),
            rate_limit,
            require_approval,
            approve_by,
            ..LoadPolicy::clone(rules)
        });
        self.changed.notify_one();
    }
}
