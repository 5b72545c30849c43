//! Definitions of tools as a plugin lists them, not yet checked.

use serde::{Deserialize, Serialize};

/// The tools of a component, as it lists them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Description {
    /// The tools, in the plugin's order.
    pub tools: Vec<ToolDefinition>,
    /// Warnings for the operator, such as functions that are not offered and why.
    pub remarks: Vec<String>,
}

/// One tool as the plugin defines it, not yet checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct ToolDefinition {
    /// The tool's name without the operator's prefix.
    pub name: String,
    /// A display name.
    pub title: Option<String>,
    /// What the tool does, for the model.
    pub description: Option<String>,
    /// JSON Schema of the arguments, as JSON text.
    pub input_schema: String,
    /// JSON Schema of the structured content, as JSON text.
    pub output_schema: Option<String>,
    /// Hints about the tool's effects; `None` if the plugin gives none.
    pub annotations: Option<Annotations>,
    /// Icons that a client can display.
    pub icons: Vec<Icon>,
    /// Members for `_meta`: a JSON object as text.
    pub meta: Option<String>,
}

/// Hints about a tool's effects (MCP `ToolAnnotations`). `None` means unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct Annotations {
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

/// An icon of a tool (MCP `Icon`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Icon {
    /// A URI that begins with `https://` or `data:image/`.
    pub src: String,
    /// Its MIME type, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Sizes such as `48x48`, or `any`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<String>,
    /// The background for which the icon is made; `None` means any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theme: Option<Theme>,
}

/// The background for which an icon is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Theme {
    /// A light background.
    Light,
    /// A dark background.
    Dark,
}
