//! What a plugin is asked for in one entry.

use std::collections::BTreeMap;

use toolbay_model::CompletionRequest;

use crate::guest_reply::GuestFailure;

/// What a plugin is asked for. Names are the plugin's own, without the operator's prefix.
#[derive(Clone, Copy, Debug)]
pub enum PluginRequest<'a> {
    /// The result of a tool.
    Tool {
        /// The tool's name.
        name: &'a str,
        /// The arguments: a JSON object as text.
        arguments: &'a str,
    },
    /// A prompt with its arguments filled in.
    Prompt {
        /// The prompt's name.
        name: &'a str,
        /// The arguments by name, as the prompt's definition has them.
        arguments: &'a BTreeMap<String, String>,
    },
    /// The content of a resource.
    Resource {
        /// Its URI: one that the plugin lists, or one that fits a template of its own.
        uri: &'a str,
    },
    /// Values for an argument of a prompt, by the prompt's name, or of a template, by its text.
    Completion(&'a CompletionRequest),
}

impl PluginRequest<'_> {
    /// The answer of a plugin that offers nothing of the kind. Whoever asks only for what it listed never sees it.
    pub(crate) fn not_offered(&self) -> GuestFailure {
        GuestFailure::Failed(match self {
            Self::Tool { name, .. } => format!("There is no tool {name}: the plugin offers no tools."),
            Self::Prompt { name, .. } => format!("There is no prompt {name}: the plugin offers no prompts."),
            Self::Resource { uri } => format!("There is no resource {uri}: the plugin offers no resources."),
            Self::Completion(request) => {
                format!("There are no values for {}: the plugin completes no arguments.", request.argument)
            }
        })
    }
}
