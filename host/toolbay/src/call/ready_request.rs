//! A request in the form that a guest receives.

use std::collections::BTreeMap;

use serde_json::json;
use toolbay_model::{CallError, CallFailure};
use toolbay_model::{CompletionRequest, QuestionKind, TargetKind};
use toolbay_sandbox::PluginRequest;

use crate::approval::call_target::CallTarget;

/// A request in the form that a guest receives.
pub(crate) enum ReadyRequest {
    /// A tool, with its arguments as JSON text. The text is empty if the arguments are invalid and
    /// are not recorded.
    Tool(String),
    /// A prompt, with its arguments by name.
    Prompt(BTreeMap<String, String>),
    /// A resource.
    Resource(String),
    /// A completion. Its reference has the prompt's name within the plugin, or the resource's
    /// template.
    Completion(CompletionRequest),
}

impl ReadyRequest {
    /// Returns the size of the request's data, in bytes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Tool(text) | Self::Resource(text) => text.len(),
            Self::Prompt(arguments) => total_size(arguments),
            Self::Completion(asked) => asked.value.len() + total_size(&asked.context),
        }
    }

    /// Returns the arguments of a tool as JSON text; empty for other requests.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Tool(arguments) => arguments,
            Self::Prompt(_) | Self::Resource(_) | Self::Completion(_) => "",
        }
    }

    /// Returns the text of the arguments for the audit log.
    pub(crate) fn audit_text(&self) -> String {
        match self {
            Self::Tool(text) => text.clone(),
            Self::Prompt(arguments) => json!(arguments).to_string(),
            Self::Resource(uri) => json!({"uri": uri}).to_string(),
            Self::Completion(asked) => {
                json!({"argument": asked.argument, "value": asked.value, "context": asked.context})
                    .to_string()
            }
        }
    }

    /// Returns the failure of a call whose plugin asks a question that the client cannot answer.
    pub(crate) fn unanswerable(&self, kinds: &[QuestionKind]) -> CallFailure {
        match self {
            // MCP does not allow questions here, whatever the client supports.
            Self::Completion(_) => CallFailure::Call(CallError::Failed(
                "a completion cannot ask its caller anything".to_owned(),
            )),
            _ => CallFailure::MissingCapabilities(QuestionKind::capabilities(kinds)),
        }
    }

    /// Returns the failure for a target that the plugin does not have.
    pub(crate) fn unknown_target(&self, target: &CallTarget) -> CallFailure {
        match self {
            Self::Resource(uri) => CallFailure::unknown(TargetKind::Resource, uri.clone()),
            _ => CallFailure::unknown(target.kind(), target.public_name()),
        }
    }

    /// Returns the request to the guest, with the target's name within the plugin.
    pub(crate) fn guest_request<'a>(&'a self, name: &'a str) -> PluginRequest<'a> {
        match self {
            Self::Tool(arguments) => PluginRequest::Tool { name, arguments },
            Self::Prompt(arguments) => PluginRequest::Prompt { name, arguments },
            Self::Resource(uri) => PluginRequest::Resource { uri },
            Self::Completion(request) => PluginRequest::Completion(request),
        }
    }
}

fn total_size(texts: &BTreeMap<String, String>) -> usize {
    texts
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum()
}
