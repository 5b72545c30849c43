//! The server's rules for loading plugins, and their application to a grant.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytesize::ByteSize;
use tokio::sync::Notify;
use toolbay_confine::ReachableFiles;
use toolbay_model::{Limits, ToolRateLimit};
use toolbay_sandbox::{KeyValue, MountRoots, PluginConnections, PluginContext, PluginHttp};

use crate::approve::ApprovalSetting;
use crate::bounds::DescriptionLimits;
use crate::component::LoadedComponent;
use crate::grant::{Grant, GrantSecrets, ToolOverride};
use crate::guard::{GuardedPath, MountPlan};
use crate::terms::{PluginTerms, ToolTerms};
use crate::writable::WritablePaths;

/// The server's limits for loading, and the values that apply where a grant sets none.
#[derive(Clone, Debug)]
pub struct LoadPolicy {
    /// The limits that apply where a grant sets none.
    pub limits: Limits,
    /// The ceilings of the limits.
    pub ceiling: Limits,
    /// The limits of listing a plugin's tools.
    pub describe: Limits,
    /// The rate limit of each tool where a grant sets none; `None` means no limit.
    pub rate_limit: Option<ToolRateLimit>,
    /// Which calls of tools a person must allow first where a grant does not say it.
    pub approve: ApprovalSetting,
    /// The largest size of a component file.
    pub component: ByteSize,
    /// What mounts must not contain, besides what belongs to plugins.
    pub guarded: Vec<GuardedPath>,
    /// How much a plugin may say of its tools.
    pub bounds: DescriptionLimits,
    /// Which files the server can still use if it has confined itself.
    pub reach: Option<Arc<ReachableFiles>>,
    /// What the server may still write if it has confined itself.
    pub writable: Option<Arc<WritablePaths>>,
}

/// The rules as they are now.
#[derive(Debug)]
pub struct LiveRules {
    pub(crate) rules: ArcSwap<LoadPolicy>,
    /// Whoever loads plugins applies new rules to those that are loaded.
    pub(crate) changed: Notify,
}

impl LiveRules {
    /// The rules as they are now. A load asks once for each thing that it does.
    pub(crate) fn now(&self) -> Arc<LoadPolicy> {
        self.rules.load_full()
    }

    /// Has these apply where a grant says nothing, from now on: the limits, the rate limit of tools and whether calls must be
    /// allowed. Everything else of the rules stays. Plugins that are loaded get them, and calls that run do not.
    pub fn set(&self, limits: &Limits, rate_limit: Option<ToolRateLimit>, approve: ApprovalSetting) {
        self.rules.rcu(|rules| LoadPolicy { limits: limits.clone(), rate_limit, approve, ..LoadPolicy::clone(rules) });
        self.changed.notify_one();
    }
}

/// Said where a grant has folders for a plugin that would not find them.
const FOLDERLESS: &str = "permissions.mounts and permissions.scratch: the plugin looks for files through WASI 0.3, where it \
                          gets none (build it for WASI 0.2)";

impl LoadPolicy {
    /// The grant clamped to the server's ceilings, and warnings for the operator.
    pub fn terms(&self, component: &LoadedComponent, grant: Grant, kept: GrantSecrets) -> (PluginTerms, Vec<String>) {
        let source = Arc::new(grant.clone());
        let (limits, clamps) = self.limits.with(&grant.limits, &self.ceiling);
        let GrantSecrets { secrets, mut remarks } = kept;
        remarks.extend(clamps.iter().map(ToString::to_string));
        let (config, approvals) = (Arc::new(grant.config_values()), grant.approvals(self.approve));
        let has_folders = !grant.permissions.mounts.is_empty() || grant.permissions.scratch.is_some();
        if has_folders && component.callable.as_ref().is_some_and(|callable| !callable.has_files()) {
            remarks.push(FOLDERLESS.to_owned());
        }
        let own = component.contents.tools.iter().filter(|_| !component.is_command()).map(|known| &known.tool.name);
        let left_out = own.filter(|name| !grant.offers(name));
        let hidden = || ToolOverride { hidden: true, ..ToolOverride::default() };
        let mut shown: BTreeMap<String, ToolOverride> = left_out.map(|name| (name.clone(), hidden())).collect();
        let roots = MountRoots::new(&grant.permissions.mounts);
        let (requests, connections, key_value) =
            (PluginHttp::default(), PluginConnections::default(), KeyValue::default());
        let permissions = grant.permissions;
        let environment =
            PluginContext { limits, permissions, roots, requests, connections, key_value, config, secrets };
        let mut tools = BTreeMap::new();
        for (name, tool) in grant.tools {
            let (limits, clamps) = environment.limits.with(&tool.limits.patch(), &self.ceiling);
            remarks.extend(clamps.iter().map(|clamp| format!("tools.{name}.{clamp}")));
            let hidden = tool.hidden || shown.contains_key(&name);
            let look = ToolOverride { hidden, ..tool.shown() };
            if look != ToolOverride::default() {
                shown.insert(name.clone(), look);
            }
            let own = tool.limits.keys();
            tools.insert(name, ToolTerms { environment: PluginContext { limits, ..environment.clone() }, own });
        }
        let rate_limit = grant.rate_limit.or(self.rate_limit);
        let (prefix, separator, arguments, places) =
            (grant.prefix, grant.separator, grant.arguments, MountPlan::default());
        let grant = grant.digest;
        let terms = PluginTerms {
            environment,
            tools,
            shown,
            prefix,
            separator,
            arguments,
            rate_limit,
            approvals,
            places,
            grant,
            source,
        };
        (terms, remarks)
    }
}
