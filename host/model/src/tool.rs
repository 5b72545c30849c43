//! A tool as clients see it.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{Annotations, Icon, ParamHeader};

/// A tool as clients see it: checked, named, and ready to be listed in any revision of MCP.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct Tool {
    /// The name that clients call: the prefix of the grant, if there is one, and the plugin's own name for the tool.
    pub name: String,
    /// A display name.
    pub title: Option<String>,
    /// What the tool does, for the model.
    pub description: Option<String>,
    /// JSON Schema of the arguments; its root has `"type": "object"`.
    pub input_schema: Arc<Value>,
    /// JSON Schema of the structured content; `None` if the tool has none.
    pub output_schema: Option<Arc<Value>>,
    /// Hints about the tool's effects; `None` if the plugin gives none.
    pub annotations: Option<Annotations>,
    /// Icons that a client can display.
    pub icons: Vec<Icon>,
    /// Members of the definition's `_meta`.
    pub meta: Map<String, Value>,
    /// The arguments that HTTP headers repeat.
    pub headers: Vec<ParamHeader>,
}
