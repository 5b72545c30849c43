//! The resource `toolbay://policy`: what the server enforces for the tools that a client can see.
//!
//! It contains the limits, the approvals and the permissions in the words of an approval question:
//! paths of plugins, but no paths of the host, and no values of secrets.

use serde_json::{Map, Value, json};
use toolbay_catalog::{Snapshot, ToolOffer};
use toolbay_mcp::CallerRights;

use crate::approval::ruling::permission_lines;

/// Maximum number of described tools. The resource says how many more there are.
const MAX_TOOLS: usize = 500;

/// Returns the policy for a client with these rights.
pub(super) fn render(snapshot: &Snapshot, rights: &CallerRights) -> Value {
    let mut tools = Map::new();
    let mut omitted = 0_u64;
    for (name, offer) in &snapshot.tools {
        if !rights.allow(name) {
            continue;
        }
        if tools.len() < MAX_TOOLS {
            tools.insert(name.clone(), tool_policy(offer));
        } else {
            omitted += 1;
        }
    }
    json!({
        "tools": tools,
        "omitted_tools": omitted,
        "plugins_are_loading": !snapshot.complete,
    })
}

fn tool_policy(offer: &ToolOffer) -> Value {
    let terms = &offer.plugin.terms;
    let context = offer.plugin.tool_context(&offer.definition.tool.name);
    let mut policy = Map::new();
    policy.insert("plugin".to_owned(), offer.plugin.id.clone().into());
    policy.insert("permissions".to_owned(), permission_lines(context).into());
    let limits = serde_json::to_value(&context.limits).unwrap_or_default();
    policy.insert("limits".to_owned(), limits);
    if let Some(rate) = terms.rate_limit {
        policy.insert("rate_limit".to_owned(), rate.to_string().into());
    }
    if let Some(approval) = offer.required_approval() {
        let words = format!("a person must allow it, {approval}");
        policy.insert("approval".to_owned(), words.into());
    }
    if terms.budget.is_set() {
        policy.insert("budget".to_owned(), terms.budget.to_string().into());
    }
    if let Some(end) = terms.until {
        policy.insert("grant_ends".to_owned(), end.to_string().into());
    }
    policy.into()
}
