//! The terms of a plugin: its grant after clamping.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolbay_model::{ArgumentCheck, Digest, GrantEnd, ToolRateLimit};
use toolbay_sandbox::{KeyValue, PluginConnections, PluginContext, PluginHttp};

use crate::rules::approval::ToolApprovals;
use crate::rules::budget::GrantBudget;
use crate::rules::grant::{Grant, ToolOverride};
use crate::rules::mount_policy::MountPlan;
use crate::rules::name_separator::NameSeparator;

/// The terms that apply to a plugin: its grant, clamped to the server's ceilings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PluginTerms {
    /// The context of each call of the plugin.
    pub context: PluginContext,
    /// Terms of individual tools that replace those of the plugin, by the tool's name without the
    /// prefix.
    pub tools: BTreeMap<String, ToolTerms>,
    /// Changes to the definitions of individual tools, by the tool's name without the prefix.
    pub tool_overrides: BTreeMap<String, ToolOverride>,
    /// The prefix of its tools' names.
    pub prefix: Option<String>,
    /// The separator between the prefix and a name.
    pub separator: NameSeparator,
    /// The strictness with which the arguments of its tools are checked, if the grant sets it.
    pub argument_check: Option<ArgumentCheck>,
    /// The rate limit of each tool; `None` means no limit.
    pub rate_limit: Option<ToolRateLimit>,
    /// The time at which the grant ends; `None` means no end.
    pub until: Option<GrantEnd>,
    /// What the calls may use per day.
    pub budget: GrantBudget,
    /// The tools whose calls require approval.
    pub approvals: ToolApprovals,
    /// The resolved locations of its mounts and files.
    pub mount_plan: MountPlan,
    /// SHA-256 of the text of the grant; `None` if there is none.
    pub grant_digest: Option<Digest>,
    /// The grant.
    pub source_grant: Arc<Grant>,
}

impl PluginTerms {
    /// Sets the shared state for HTTP requests, TCP connections and the key-value store in all call
    /// contexts of the plugin.
    pub(crate) fn set_shared_state(
        &mut self,
        requests: &PluginHttp,
        connections: &PluginConnections,
        key_value: &KeyValue,
    ) {
        let tools = self.tools.values_mut().map(|tool| &mut tool.context);
        for environment in tools.chain([&mut self.context]) {
            environment.requests = requests.clone();
            environment.connections = connections.clone();
            environment.key_value = key_value.clone();
        }
    }
}

/// The terms of one tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolTerms {
    /// The context of each call of the tool.
    pub context: PluginContext,
    /// The keys of `[tools.NAME.limits]` that the grant sets.
    pub limit_keys: Vec<&'static str>,
}
