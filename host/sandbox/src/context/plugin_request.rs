//! Requests that the host sends to a plugin.

use std::collections::BTreeMap;

use toolbay_model::CompletionRequest;

use crate::reply::guest_reply::GuestFailure;

/// A request to a plugin. Names are the plugin's own, without the operator's prefix.
#[derive(Clone, Copy, Debug)]
pub enum PluginRequest<'a> {
    /// Calls a tool.
    Tool {
        /// The tool's name.
        name: &'a str,
        /// The arguments: a JSON object as text.
        arguments: &'a str,
    },
    /// Gets a prompt with its arguments filled in.
    Prompt {
        /// The prompt's name.
        name: &'a str,
        /// The arguments by name, as the prompt's definition has them.
        arguments: &'a BTreeMap<String, String>,
    },
    /// Reads a resource.
    Resource {
        /// The URI: one that the plugin lists, or one that matches a template of the plugin.
        uri: &'a str,
    },
    /// Completes an argument of a prompt, identified by the prompt's name, or of a template,
    /// identified by its text.
    Completion(&'a CompletionRequest),
}

impl PluginRequest<'_> {
    /// Returns the error of a plugin that does not offer this kind of item. Callers that request
    /// only listed items never receive it.
    pub(crate) fn not_offered_failure(&self) -> GuestFailure {
        GuestFailure::Failed(match self {
            Self::Tool { name, .. } => {
                format!("There is no tool {name}: the plugin offers no tools.")
            }
            Self::Prompt { name, .. } => {
                format!("There is no prompt {name}: the plugin offers no prompts.")
            }
            Self::Resource { uri } => {
                format!("There is no resource {uri}: the plugin offers no resources.")
            }
            Self::Completion(request) => {
                format!(
                    "There are no values for {}: the plugin completes no arguments.",
                    request.argument
                )
            }
        })
    }
}
