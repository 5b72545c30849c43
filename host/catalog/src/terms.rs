//! The terms of a plugin: its grant after clamping.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolbay_model::{ArgumentCheck, Digest, ToolRateLimit};
use toolbay_sandbox::{KeyValue, PluginConnections, PluginContext, PluginHttp};

use crate::approve::ToolApprovals;
use crate::grant::{Grant, ToolOverride};
use crate::guard::MountPlan;
use crate::separator::NameSeparator;

/// What applies to a plugin: its grant, clamped to the server's ceilings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PluginTerms {
    /// What applies to each call of the plugin.
    pub environment: PluginContext,
    /// What applies instead to calls of single tools, by the tool's name without the prefix.
    pub tools: BTreeMap<String, ToolTerms>,
    /// Changes to the definitions of single tools, by the tool's name without the prefix.
    pub shown: BTreeMap<String, ToolOverride>,
    /// The prefix of its tools' names.
    pub prefix: Option<String>,
    /// What stands between the prefix and a name.
    pub separator: NameSeparator,
    /// How the arguments of its tools are checked, if the grant says it.
    pub arguments: Option<ArgumentCheck>,
    /// The rate limit of each tool; `None` means no limit.
    pub rate_limit: Option<ToolRateLimit>,
    /// Which calls of its tools a person must allow first.
    pub approvals: ToolApprovals,
    /// Where its mounts and files are.
    pub places: MountPlan,
    /// SHA-256 of the text of the grant; `None` if there is none.
    pub grant: Option<Digest>,
    /// The grant.
    pub source: Arc<Grant>,
}

impl PluginTerms {
    /// Has all calls of the plugin send their HTTP requests, make their TCP connections and keep their state here.
    pub(crate) fn share(&mut self, requests: &PluginHttp, connections: &PluginConnections, key_value: &KeyValue) {
        let tools = self.tools.values_mut().map(|tool| &mut tool.environment);
        for environment in tools.chain([&mut self.environment]) {
            environment.requests = requests.clone();
            environment.connections = connections.clone();
            environment.key_value = key_value.clone();
        }
    }
}

/// The terms of one tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolTerms {
    /// What applies to each call of the tool.
    pub environment: PluginContext,
    /// The keys of `[tools.NAME.limits]` that the grant sets.
    pub own: Vec<&'static str>,
}
