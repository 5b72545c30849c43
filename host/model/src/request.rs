//! Requests of clients to plugins, and the replies.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::{
    CompletionReference, CompletionRequest, CompletionResult, PromptOutput, QuestionRound,
    ResourceItem, ToolOutput,
};

/// A request of a client to a plugin.
#[derive(Clone, Debug, PartialEq)]
pub enum CallRequest {
    /// Calls a tool (`tools/call`).
    Tool {
        /// The tool's name, including its prefix.
        name: String,
        /// The arguments, not yet validated.
        arguments: Map<String, Value>,
    },
    /// Gets a prompt with its arguments filled in (`prompts/get`).
    Prompt {
        /// The prompt's name, including its prefix.
        name: String,
        /// The arguments by name, not yet validated.
        arguments: BTreeMap<String, String>,
    },
    /// Reads a resource (`resources/read`).
    Resource {
        /// Its URI.
        uri: String,
    },
    /// Completes an argument (`completion/complete`).
    Completion(CompletionRequest),
}

impl CallRequest {
    /// Returns the name or URI of the target, which permissions and the log refer to.
    pub fn target(&self) -> &str {
        match self {
            Self::Tool { name, .. } | Self::Prompt { name, .. } => name,
            Self::Resource { uri } => uri,
            Self::Completion(CompletionRequest { reference, .. }) => match reference {
                CompletionReference::Prompt(name) => name,
                CompletionReference::Resource(uri) => uri,
            },
        }
    }

    /// Returns the kind of the target.
    pub fn kind(&self) -> TargetKind {
        match self {
            Self::Tool { .. } => TargetKind::Tool,
            Self::Prompt { .. }
            | Self::Completion(CompletionRequest {
                reference: CompletionReference::Prompt(_),
                ..
            }) => TargetKind::Prompt,
            Self::Resource { .. } => TargetKind::Resource,
            Self::Completion(CompletionRequest {
                reference: CompletionReference::Resource(_),
                ..
            }) => TargetKind::Template,
        }
    }
}

/// The kind of the target of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetKind {
    /// A tool, by its name.
    Tool,
    /// A prompt, by its name.
    Prompt,
    /// A resource, by its URI.
    Resource,
    /// A resource template, by its URI template.
    Template,
}

impl fmt::Display for TargetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "resource template",
        })
    }
}

/// The reply to a request, checked and sanitized.
#[derive(Clone, Debug, PartialEq)]
pub enum CallReply {
    /// The result of a tool.
    Tool(ToolOutput),
    /// A prompt with its arguments filled in.
    Prompt(PromptOutput),
    /// The content of a resource, at least one item.
    Resource(Vec<ResourceItem>),
    /// Values for an argument.
    Completion(CompletionResult),
    /// The plugin asks its caller questions first. The request runs again with the answers.
    Questions(QuestionRound),
}
