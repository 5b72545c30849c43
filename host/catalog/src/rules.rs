//! The server's rules for loading plugins, and what they make of a grant.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytesize::ByteSize;
use toolbay_model::{Limits, RateLimit};
use toolbay_sandbox::{Environment, Secrets};

use crate::component::Component;
use crate::grant::{Grant, Shown};
use crate::plugin::tool_name;
use crate::terms::{Terms, ToolTerms};

/// What a load may use, and what it gives.
#[derive(Clone, Debug)]
pub struct Rules {
    /// What applies when a grant is silent.
    pub limits: Limits,
    /// What no grant goes beyond.
    pub ceiling: Limits,
    /// The budget of `list-tools`.
    pub describe: Limits,
    /// How often a tool may be called when its plugin's grant is silent.
    pub rate_limit: Option<RateLimit>,
    /// How large a component file may be.
    pub component: ByteSize,
    /// How many tools a plugin may have.
    pub tools: usize,
    /// How many bytes its schemas may have together.
    pub schemas: ByteSize,
}

impl Rules {
    /// The grant within the server's rules, and what the operator should know about that.
    pub fn terms(&self, id: &str, component: &Component, grant: Grant, secrets: Secrets) -> (Terms, Vec<String>) {
        let (limits, clamps) = self.limits.with(&grant.limits, &self.ceiling);
        let mut remarks: Vec<String> = clamps.iter().map(ToString::to_string).collect();
        let config = Arc::new(grant.config_values());
        let environment = Environment { limits, permissions: grant.permissions, config, secrets: Arc::new(secrets) };
        let (mut tools, mut shown) = (BTreeMap::new(), BTreeMap::new());
        for (name, tool) in grant.tools {
            let is_known = if component.is_command() {
                tool_name(id) == name
            } else {
                component.tools.iter().any(|known| known.tool.name == name)
            };
            if !is_known {
                remarks.push(format!("[tools.{name}]: the plugin has no tool with this name"));
            }
            let (limits, clamps) = environment.limits.with(&tool.limits.patch(), &self.ceiling);
            remarks.extend(clamps.iter().map(|clamp| format!("tools.{name}.{clamp}")));
            let look = tool.shown();
            if look != Shown::default() {
                shown.insert(name.clone(), look);
            }
            let own = tool.limits.keys();
            tools.insert(name, ToolTerms { environment: Environment { limits, ..environment.clone() }, own });
        }
        let rate_limit = grant.rate_limit.or(self.rate_limit);
        let terms = Terms { environment, tools, shown, prefix: grant.prefix, rate_limit };
        (terms, remarks)
    }
}
