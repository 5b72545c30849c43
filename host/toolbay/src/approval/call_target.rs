//! The target of a request in a snapshot: the plugin that handles it, its name there, and the
//! schemas that apply.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolbay_catalog::{
    FileResource, MatchBudget, MatchBudgetExhausted, Plugin, PromptOffer, ResourceOffer, Snapshot,
    TextPrompt, ToolOffer,
};
use toolbay_model::{
    CallError, CallFailure, CallRequest, CompletionReference, CompletionResult, SchemaViolation,
    TargetKind,
};
use toolbay_sandbox::PluginContext;
use toolbay_schema::JsonSchema;

/// Log message for an exhausted URI matching budget.
pub(crate) const TOO_EXPENSIVE_MESSAGE: &str =
    "a URI was not compared with all resource templates: it would take too long";

/// The target of a request.
#[derive(Clone, Debug)]
pub(crate) enum CallTarget {
    /// A tool.
    Tool(Arc<ToolOffer>),
    /// A prompt, or the completion of one of its arguments.
    Prompt(Arc<PromptOffer>),
    /// A resource, or the completion of a variable of a template.
    Resource(Arc<ResourceOffer>),
}

impl CallTarget {
    /// Finds the target of `request`. Returns `None` if it does not exist. Matching a URI with
    /// templates consumes `budget`.
    ///
    /// # Errors
    ///
    /// The budget is exhausted.
    pub(crate) fn find(
        snapshot: &Snapshot,
        request: &CallRequest,
        budget: &mut MatchBudget,
    ) -> Result<Option<Self>, MatchBudgetExhausted> {
        Ok(match request {
            CallRequest::Tool { name, .. } => snapshot.tools.get(name).cloned().map(Self::Tool),
            CallRequest::Prompt { name, .. } => {
                snapshot.prompts.get(name).cloned().map(Self::Prompt)
            }
            CallRequest::Resource { uri } => snapshot
                .find_resource(uri, budget)?
                .cloned()
                .map(Self::Resource),
            CallRequest::Completion(completion) => match &completion.reference {
                CompletionReference::Prompt(name) => {
                    snapshot.prompts.get(name).cloned().map(Self::Prompt)
                }
                // A URI that matches a template refers to that template.
                CompletionReference::Resource(uri) => match snapshot.templates.get(uri) {
                    Some(template) => Some(Self::Resource(Arc::clone(template))),
                    None => snapshot
                        .find_resource(uri, budget)?
                        .cloned()
                        .map(Self::Resource),
                },
            },
        })
    }

    /// Returns the plugin that handles the request.
    pub(crate) fn plugin(&self) -> &Arc<Plugin> {
        match self {
            Self::Tool(offer) => &offer.plugin,
            Self::Prompt(offer) => &offer.plugin,
            Self::Resource(offer) => &offer.plugin,
        }
    }

    /// Returns the name within the plugin. For a resource, this is its URI or its template.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Tool(offer) => &offer.definition.tool.name,
            Self::Prompt(offer) => &offer.entry.prompt.name,
            Self::Resource(offer) => &offer.resource().uri,
        }
    }

    /// Returns the public name, for clients and the log.
    pub(crate) fn public_name(&self) -> &str {
        match self {
            Self::Tool(offer) => &offer.tool.name,
            Self::Prompt(offer) => &offer.prompt.name,
            Self::Resource(offer) => &offer.resource().uri,
        }
    }

    /// Returns an example of valid arguments.
    fn example(&self) -> Option<&str> {
        match self {
            Self::Tool(offer) => offer.definition.input.example(),
            _ => None,
        }
    }

    /// Returns the kind of the target.
    pub(crate) fn kind(&self) -> TargetKind {
        match self {
            Self::Tool(_) => TargetKind::Tool,
            Self::Prompt(_) => TargetKind::Prompt,
            Self::Resource(offer) if offer.entry.template.is_some() => TargetKind::Template,
            Self::Resource(_) => TargetKind::Resource,
        }
    }

    /// Returns the settings that apply to the call.
    pub(crate) fn plugin_context(&self) -> &PluginContext {
        match self {
            Self::Tool(offer) => offer.plugin.tool_context(&offer.definition.tool.name),
            Self::Prompt(_) | Self::Resource(_) => &self.plugin().terms.context,
        }
    }

    /// Returns the schema of structured content, if there is one.
    pub(crate) fn output_schema(&self) -> Option<&Arc<JsonSchema>> {
        match self {
            Self::Tool(offer) => offer.definition.output.as_ref(),
            Self::Prompt(_) | Self::Resource(_) => None,
        }
    }

    /// Returns the capabilities that a client must declare.
    pub(crate) fn required_capabilities(&self) -> &Map<String, Value> {
        match self {
            Self::Tool(offer) => &offer.definition.required_capabilities,
            Self::Prompt(offer) => &offer.entry.required_capabilities,
            Self::Resource(offer) => &offer.entry.required_capabilities,
        }
    }

    /// Returns the failure of a call whose arguments have these violations.
    pub(crate) fn invalid_arguments(&self, violations: Vec<SchemaViolation>) -> CallFailure {
        CallFailure::InvalidArguments {
            violations,
            example: self.example().map(str::to_owned),
        }
    }

    /// Adds the tool's name to the error if the limit is set for this tool only, because the
    /// operator then has to raise another configuration key.
    pub(crate) fn with_tool_of_limit(&self, error: CallError) -> CallError {
        match error {
            CallError::Limit { limit, .. }
                if self.plugin().is_limit_of_tool(self.name(), limit) =>
            {
                CallError::Limit {
                    limit,
                    tool: Some(self.name().to_owned()),
                }
            }
            error => error,
        }
    }

    /// Returns the static answer to `request`, if no guest is needed.
    pub(crate) fn static_answer(&self, request: &CallRequest) -> Option<StaticAnswer> {
        match (self, request) {
            (Self::Prompt(offer), CallRequest::Prompt { .. }) => {
                offer.text.clone().map(StaticAnswer::Prompt)
            }
            (Self::Resource(offer), CallRequest::Resource { .. }) => {
                offer.file.clone().map(StaticAnswer::Resource)
            }
            (Self::Prompt(offer), CallRequest::Completion(_)) if offer.text.is_some() => {
                Some(StaticAnswer::EmptyCompletion)
            }
            (Self::Resource(offer), CallRequest::Completion(_)) if offer.file.is_some() => {
                Some(StaticAnswer::EmptyCompletion)
            }
            // A plugin without completion support offers no values.
            (_, CallRequest::Completion(_)) if !self.plugin().component.contents.completes => {
                Some(StaticAnswer::EmptyCompletion)
            }
            _ => None,
        }
    }
}

/// An answer that does not need a guest.
#[derive(Clone, Debug)]
pub(crate) enum StaticAnswer {
    /// A prompt from a file.
    Prompt(Arc<TextPrompt>),
    /// A resource from a file.
    Resource(Arc<FileResource>),
    /// An empty completion.
    EmptyCompletion,
}

/// Returns the completion of an argument without values.
pub(crate) fn empty_completions() -> CompletionResult {
    CompletionResult {
        values: Vec::new(),
        total: Some(0),
        has_more: false,
    }
}
