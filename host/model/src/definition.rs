//! Definitions as a plugin lists them, not yet checked.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::icon::DEFINITION_OVERHEAD_BYTES;
use crate::{GuestServerProtocol, Icon, PromptDefinition, ResourceDefinition};

/// The description of a component: everything that it offers, as it lists it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct ComponentDescription {
    /// The tools, in the plugin's order.
    pub tools: Vec<ToolDefinition>,
    /// The prompts, in the plugin's order.
    pub prompts: Vec<PromptDefinition>,
    /// The resources, in the plugin's order.
    pub resources: Vec<ResourceDefinition>,
    /// The resource templates, in the plugin's order.
    pub templates: Vec<ResourceDefinition>,
    /// True if the component completes arguments of its prompts and templates.
    pub completes: bool,
    /// The protocol of the component, if it is itself an MCP server.
    #[serde(default)]
    pub manner: Option<GuestServerProtocol>,
    /// Warnings for the operator, such as functions that are not offered and why.
    pub remarks: Vec<String>,
    /// The tools of an MCP server that are not offered because their definitions are invalid, each
    /// with the reason.
    #[serde(default)]
    pub left_out: BTreeMap<String, String>,
}

/// One tool as the plugin defines it, not yet checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct ToolDefinition {
    /// The tool's name without the operator's prefix.
    pub name: String,
    /// A display name.
    pub title: Option<String>,
    /// A description of the tool, for the model.
    pub description: Option<String>,
    /// JSON Schema of the arguments, as JSON text.
    pub input_schema: String,
    /// JSON Schema of the structured content, as JSON text.
    pub output_schema: Option<String>,
    /// Hints about the tool's effects; `None` if the plugin gives none.
    pub annotations: Option<EffectHints>,
    /// Icons that a client can display.
    pub icons: Vec<Icon>,
    /// Members for `_meta`: a JSON object as text.
    pub meta: Option<String>,
}

impl ToolDefinition {
    /// Returns the size of the definition in bytes. Each part has an overhead, even if it is empty.
    pub fn size(&self) -> usize {
        let texts = [
            &self.title,
            &self.description,
            &self.output_schema,
            &self.meta,
        ]
        .into_iter()
        .flatten();
        let texts = texts.chain([&self.name, &self.input_schema]);
        DEFINITION_OVERHEAD_BYTES
            + texts.map(String::len).sum::<usize>()
            + self.icons.iter().map(Icon::size).sum::<usize>()
    }

    /// Returns the total size of the schemas, in bytes.
    pub fn schema_bytes(&self) -> usize {
        self.input_schema.len() + self.output_schema.as_ref().map_or(0, String::len)
    }
}

/// Hints about a tool's effects (MCP `ToolAnnotations`). `None` means unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct EffectHints {
    /// The tool does not modify its environment.
    #[serde(rename = "readOnlyHint", skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// The tool may delete or overwrite data.
    #[serde(rename = "destructiveHint", skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Repeating a call with the same arguments has no further effect.
    #[serde(rename = "idempotentHint", skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// The tool interacts with external entities, such as the web.
    #[serde(rename = "openWorldHint", skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}
