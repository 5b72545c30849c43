//! The status of each plugin file, for the operator and for programs.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use toolbay_model::{GrantEnd, LimitValue, Limits, ToolRateLimit, serialize_amounts};
use toolbay_policy::Permissions;

use crate::folder::load_error::HeldVersion;
use crate::folder::source_digests::SourceDigests;
use crate::publish::version_history::VersionHistory;
use crate::rules::approval::RequiredApproval;
use crate::rules::budget::GrantBudget;
use crate::version::plugin::Plugin;

/// The status of one plugin file.
#[derive(Clone, Debug, Serialize)]
pub struct PluginReport {
    /// The status of the plugin file.
    pub status: PluginFileStatus,
    /// SHA-256 of the component in service, in lower-case hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// A one-line description of the plugin in service, from its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The reason why the current file is not in service, and warnings about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// The names by which clients call its tools.
    pub tools: Vec<String>,
    /// The tools whose calls require approval, by the name that clients call.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub require_approval: BTreeMap<String, RequiredApproval>,
    /// The names by which clients request its prompts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<String>,
    /// The URIs of its resources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// The URIs of its skill and of the nested skills. They are not among its resources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
    /// Its resource templates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub templates: Vec<String>,
    /// Its grant after clamping, if the plugin is in service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantReport>,
    /// The digests of the sources of the plugin in service.
    #[serde(skip)]
    pub source_digests: Option<SourceDigests>,
    /// The version that the lock file holds back, if any.
    #[serde(skip)]
    pub held: Option<Arc<HeldVersion>>,
    /// The plugin in service.
    #[serde(skip)]
    pub version: Option<Arc<Plugin>>,
    /// The time at which the version in service was loaded, and its previous grant.
    #[serde(skip)]
    pub history: VersionHistory,
}

/// A plugin's grant after clamping.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GrantReport {
    /// Prefix of the names of tools and prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The time at which the grant ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<GrantEnd>,
    /// What the calls may use per day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<GrantBudget>,
    /// The limits of a call.
    pub limits: Limits,
    /// The limits that differ for individual tools, by the tool's name without the prefix.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, LimitOverrides>,
    /// The tools that the grant disables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disabled_tools: Vec<String>,
    /// The rate limit of each tool; `None` means no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<ToolRateLimit>,
    /// The environment variables and folders that the plugin can use.
    pub permissions: Permissions,
    /// Names of the secrets to redact, never their values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// The ways in which requests carry secrets, such as `token as the header authorization, at
    /// https://api.example.com`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<String>,
    /// Keys of `[config]`, never their values.
    pub config: Vec<String>,
}

/// The limits of a tool that differ from those of its plugin, by key.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitOverrides(pub Vec<(&'static str, LimitValue)>);

impl Serialize for LimitOverrides {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_amounts(self.0.iter().copied(), serializer)
    }
}

/// The status of a plugin file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PluginFileStatus {
    /// The file is being loaded for the first time.
    Loading,
    /// The current file is in service.
    Ready,
    /// The current file was refused; the previous version is in service.
    Stale,
    /// The file was refused, and no version is in service.
    Refused,
}

impl PluginReport {
    /// Returns whether the file has not been tried yet.
    pub fn is_loading(&self) -> bool {
        self.status == PluginFileStatus::Loading
    }
}
