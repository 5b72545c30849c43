//! On which terms a plugin serves.

use std::collections::BTreeMap;

use toolbay_model::RateLimit;
use toolbay_sandbox::Environment;

use crate::grant::Shown;

/// On which terms a plugin serves: its grant, clamped by the server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Terms {
    /// What a call is given.
    pub environment: Environment,
    /// What a call of these tools is given instead, by the name within the plugin.
    pub tools: BTreeMap<String, ToolTerms>,
    /// How these tools are shown instead, by the name within the plugin.
    pub shown: BTreeMap<String, Shown>,
    /// The prefix of its tools' names.
    pub prefix: Option<String>,
    /// How often each of its tools may be called.
    pub rate_limit: Option<RateLimit>,
}

/// What is different for one tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolTerms {
    /// What a call is given.
    pub environment: Environment,
    /// The keys of `[tools.NAME.limits]` that the grant sets.
    pub own: Vec<&'static str>,
}
