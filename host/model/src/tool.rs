//! Tools as clients receive them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{EffectHints, Icon, JsonText, ParamHeader};

/// A tool as clients receive it: checked, named, and ready to be listed in any revision of MCP.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct Tool {
    /// The name that clients call: the prefix of the grant, if there is one, and the plugin's own
    /// name for the tool.
    pub name: String,
    /// A display name.
    pub title: Option<String>,
    /// A description of the tool, for the model.
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
    /// Support for calls of the tool as tasks.
    pub task_support: TaskSupport,
}

/// Support for calls of a tool as tasks (MCP `execution.taskSupport`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskSupport {
    /// The tool cannot be called as a task.
    #[default]
    Forbidden,
    /// The client chooses whether it calls the tool as a task.
    Optional,
    /// The tool can only be called as a task.
    Required,
}

impl Tool {
    /// Returns the size of the tool in a list of tools, in bytes, without the JSON syntax.
    pub fn size(&self) -> usize {
        let texts = [
            Some(&self.name),
            self.title.as_ref(),
            self.description.as_ref(),
        ];
        let json = [
            Some(&self.input_schema),
            self.output_schema.as_ref(),
            self.meta.as_ref(),
        ];
        texts.into_iter().flatten().map(String::len).sum::<usize>()
            + json
                .into_iter()
                .flatten()
                .map(|json| json.get().len())
                .sum::<usize>()
            + self.icons.iter().map(Icon::size).sum::<usize>()
    }
}
