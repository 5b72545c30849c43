//! A tool as clients see it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{EffectHints, Icon, JsonText, ParamHeader};

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
    pub input_schema: JsonText,
    /// JSON Schema of the structured content; `None` if the tool has none.
    pub output_schema: Option<JsonText>,
    /// Hints about the tool's effects; `None` if the plugin gives none.
    pub annotations: Option<EffectHints>,
    /// Icons that a client can display.
    pub icons: Arc<[Icon]>,
    /// The definition's `_meta`, an object; `None` if it has no members.
    pub meta: Option<JsonText>,
    /// The arguments that HTTP headers repeat.
    pub headers: Vec<ParamHeader>,
    /// Whether it can be called as a task.
    pub task_support: TaskSupport,
}

/// Whether a tool can be called as a task (MCP `execution.taskSupport`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskSupport {
    /// Never.
    #[default]
    Forbidden,
    /// As a task or not, as the client wants.
    Optional,
    /// Only as a task.
    Required,
}

impl Tool {
    /// The bytes of everything in it that a list of tools contains, without the JSON between them.
    pub fn size(&self) -> usize {
        let texts = [Some(&self.name), self.title.as_ref(), self.description.as_ref()];
        let json = [Some(&self.input_schema), self.output_schema.as_ref(), self.meta.as_ref()];
        texts.into_iter().flatten().map(String::len).sum::<usize>()
            + json.into_iter().flatten().map(|json| json.get().len()).sum::<usize>()
            + self.icons.iter().map(Icon::size).sum::<usize>()
    }
}
