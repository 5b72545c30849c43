//! What a request is about, in a snapshot: which plugin answers it, under which name, and what it must fit.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolbay_catalog::{
    FileResource, MatchBudget, MatchBudgetExhausted, Plugin, PromptOffer, ResourceOffer, Snapshot, TextPrompt,
    ToolOffer,
};
use toolbay_model::{CallRequest, CompletionReference, CompletionResult, TargetKind};
use toolbay_sandbox::PluginContext;
use toolbay_schema::JsonSchema;

/// Said when the budget of a URI is used up.
pub(crate) const TOO_EXPENSIVE: &str = "a URI was not compared with all resource templates: it would take too long";

/// What a request is about.
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
    /// What `request` is about; `None` if there is no such thing. Comparing a URI with templates draws on a budget.
    ///
    /// # Errors
    ///
    /// The budget is used up.
    pub(crate) fn find(
        snapshot: &Snapshot,
        request: &CallRequest,
        steps: &mut MatchBudget,
    ) -> Result<Option<Self>, MatchBudgetExhausted> {
        Ok(match request {
            CallRequest::Tool { name, .. } => snapshot.tools.get(name).cloned().map(Self::Tool),
            CallRequest::Prompt { name, .. } => snapshot.prompts.get(name).cloned().map(Self::Prompt),
            CallRequest::Resource { uri } => snapshot.resource(uri, steps)?.cloned().map(Self::Resource),
            CallRequest::Completion(asked) => match &asked.reference {
                CompletionReference::Prompt(name) => snapshot.prompts.get(name).cloned().map(Self::Prompt),
                // A URI of a template is as good as the template.
                CompletionReference::Resource(uri) => match snapshot.templates.get(uri) {
                    Some(template) => Some(Self::Resource(Arc::clone(template))),
                    None => snapshot.resource(uri, steps)?.cloned().map(Self::Resource),
                },
            },
        })
    }

    /// The plugin that answers.
    pub(crate) fn plugin(&self) -> &Arc<Plugin> {
        match self {
            Self::Tool(offer) => &offer.plugin,
            Self::Prompt(offer) => &offer.plugin,
            Self::Resource(offer) => &offer.plugin,
        }
    }

    /// The name within the plugin; that of a resource is its URI or its template.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Tool(offer) => &offer.definition.tool.name,
            Self::Prompt(offer) => &offer.entry.prompt.name,
            Self::Resource(offer) => &offer.resource().uri,
        }
    }

    /// The name for clients and for the log.
    pub(crate) fn shown(&self) -> &str {
        match self {
            Self::Tool(offer) => &offer.tool.name,
            Self::Prompt(offer) => &offer.prompt.name,
            Self::Resource(offer) => &offer.resource().uri,
        }
    }

    /// An example of arguments that fit.
    pub(crate) fn example(&self) -> Option<&str> {
        match self {
            Self::Tool(offer) => offer.definition.input.example(),
            _ => None,
        }
    }

    /// What it is.
    pub(crate) fn kind(&self) -> TargetKind {
        match self {
            Self::Tool(_) => TargetKind::Tool,
            Self::Prompt(_) => TargetKind::Prompt,
            Self::Resource(offer) if offer.entry.template.is_some() => TargetKind::Template,
            Self::Resource(_) => TargetKind::Resource,
        }
    }

    /// What applies to the call.
    pub(crate) fn environment(&self) -> &PluginContext {
        match self {
            Self::Tool(offer) => offer.plugin.environment(&offer.definition.tool.name),
            Self::Prompt(_) | Self::Resource(_) => &self.plugin().terms.environment,
        }
    }

    /// What the structured content of a result must fit; `None` if nothing says that.
    pub(crate) fn output(&self) -> Option<&Arc<JsonSchema>> {
        match self {
            Self::Tool(offer) => offer.definition.output.as_ref(),
            Self::Prompt(_) | Self::Resource(_) => None,
        }
    }

    /// The capabilities that a client must declare.
    pub(crate) fn needs(&self) -> &Map<String, Value> {
        match self {
            Self::Tool(offer) => &offer.definition.needs,
            Self::Prompt(offer) => &offer.entry.needs,
            Self::Resource(offer) => &offer.entry.needs,
        }
    }

    /// The file that answers `request` without a guest.
    pub(crate) fn plain(&self, request: &CallRequest) -> Option<PlainTarget> {
        match (self, request) {
            (Self::Prompt(offer), CallRequest::Prompt { .. }) => offer.text.clone().map(PlainTarget::Prompt),
            (Self::Resource(offer), CallRequest::Resource { .. }) => offer.file.clone().map(PlainTarget::Resource),
            (Self::Prompt(offer), CallRequest::Completion(_)) if offer.text.is_some() => Some(PlainTarget::Nothing),
            (Self::Resource(offer), CallRequest::Completion(_)) if offer.file.is_some() => Some(PlainTarget::Nothing),
            // A plugin that completes nothing has no values.
            (_, CallRequest::Completion(_)) if !self.plugin().component.contents.completes => {
                Some(PlainTarget::Nothing)
            }
            _ => None,
        }
    }
}

/// What answers a request without a guest.
#[derive(Clone, Debug)]
pub(crate) enum PlainTarget {
    /// A prompt in a file.
    Prompt(Arc<TextPrompt>),
    /// A file that is a resource.
    Resource(Arc<FileResource>),
    /// Nobody: there are no values for an argument.
    Nothing,
}

/// The completion of an argument that nobody completes.
pub(crate) fn no_values() -> CompletionResult {
    CompletionResult { values: Vec::new(), total: Some(0), has_more: false }
}
