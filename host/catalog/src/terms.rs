//! What applies to a plugin.

use std::collections::BTreeMap;

use toolbay_model::ToolRateLimit;
use toolbay_sandbox::Environment;

use crate::grant::Shown;

/// What applies to a plugin: its grant, clamped to the server's ceilings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Terms {
    /// What each call of the plugin gets.
    pub environment: Environment,
    /// What calls of single tools get instead, by the tool's name without the prefix.
    pub tools: BTreeMap<String, ToolTerms>,
    /// Changes to the definitions of single tools, by the tool's name without the prefix.
    pub shown: BTreeMap<String, Shown>,
    /// The prefix of its tools' names.
    pub prefix: Option<String>,
    /// The rate limit of each tool; `None` means no limit.
    pub rate_limit: Option<ToolRateLimit>,
}

/// What applies to one tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolTerms {
    /// What each call of the tool gets.
    pub environment: Environment,
    /// The keys of `[tools.NAME.limits]` that the grant sets.
    pub own: Vec<&'static str>,
}
