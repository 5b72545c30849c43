//! A loaded plugin: its immutable part. The state of its calls is kept elsewhere.

use std::sync::Arc;

use toolbay_model::{Limit, TOOL_NAME, Tool, is_name};
use toolbay_sandbox::Environment;

use crate::component::Component;
use crate::definition::Definition;
use crate::terms::Terms;

/// A loaded plugin. Immutable; freed when the catalog and the last call that uses it drop it.
#[derive(Debug)]
pub struct Plugin {
    /// The file name without `.wasm`.
    pub id: String,
    /// The compiled component, shared by plugins with identical files.
    pub component: Arc<Component>,
    /// The grant after clamping.
    pub terms: Terms,
    /// The tools under the names that clients call.
    pub tools: Vec<Named>,
}

/// A tool under the name that clients call. It is made once, so that publishing a snapshot copies nothing.
#[derive(Clone, Debug)]
pub struct Named {
    /// The tool as clients see it, with the prefix.
    pub tool: Arc<Tool>,
    /// The definition after the operator's changes, with the name within the plugin.
    pub definition: Arc<Definition>,
}

impl Plugin {
    /// A plugin from its loaded parts.
    pub fn new(id: String, component: Arc<Component>, terms: Terms) -> Self {
        let tools = offered(&id, &component, &terms);
        Self { id, component, terms, tools }
    }

    /// What applies to a call of the tool `name` (without the prefix).
    pub fn environment(&self, name: &str) -> &Environment {
        self.terms.tools.get(name).map_or(&self.terms.environment, |tool| &tool.environment)
    }

    /// Whether the grant sets this limit for the tool `name` alone.
    pub fn is_limit_of_tool(&self, name: &str, limit: Limit) -> bool {
        let key = limit.key().strip_prefix("limits.");
        self.terms.tools.get(name).is_some_and(|tool| tool.own.iter().any(|own| Some(*own) == key))
    }

    /// Whether calls of both behave the same.
    pub(crate) fn same_as(&self, other: &Self) -> bool {
        self.component.digest == other.component.digest && self.terms == other.terms
    }
}

/// A component's tools under a plugin's terms.
fn offered(id: &str, component: &Component, terms: &Terms) -> Vec<Named> {
    let mut tools = Vec::new();
    for definition in &component.tools {
        // A command has no name of its own.
        let renamed = component.is_command().then(|| Arc::new(definition.renamed(tool_name(id))));
        let definition = renamed.as_ref().unwrap_or(definition);
        let definition = match terms.shown.get(&definition.tool.name) {
            Some(shown) if shown.hidden => continue,
            Some(shown) => Arc::new(definition.shown_as(shown)),
            None => Arc::clone(definition),
        };
        let tool = match &terms.prefix {
            Some(prefix) => {
                let name = format!("{prefix}.{}", definition.tool.name);
                Arc::new(Tool { name, ..Tool::clone(&definition.tool) })
            }
            None => Arc::clone(&definition.tool),
        };
        tools.push(Named { tool, definition });
    }
    tools
}

/// A tool name derived from a file name: each character that tool names cannot have becomes `_`.
pub(crate) fn tool_name(id: &str) -> String {
    let allowed = |c: char| c.is_ascii() && is_name(c.encode_utf8(&mut [0; 4]));
    id.chars().map(|c| if allowed(c) { c } else { '_' }).take(TOOL_NAME).collect()
}
