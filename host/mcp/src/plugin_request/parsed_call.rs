//! First stage: parses a request that enters a plugin, as far as there is memory for its values.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use toolbay_model::{
    CallRequest, CompletionRequest, QuestionKindSet, SchemaViolation, TraceContext,
};

use crate::host::caller::Caller;
use crate::plugin_request::entry_params::{EntryParams, ParamsReader, ReadExtent, RequestMeta};
use crate::plugin_request::input_responses::RetryInput;
use crate::plugin_request::params_memory::ParamsMemory;
use crate::plugin_request::task_decision::TaskMode;
use crate::protocol::jsonrpc::{Error, RequestId};
use crate::protocol::message_context::RequestContext;
use crate::session::client_session::Session;

/// A well-formed call, as its revision defines it. It is not registered yet.
pub(super) struct ParsedCall {
    /// The requested target and its arguments. Without memory for them, the arguments are empty.
    pub(super) request: CallRequest,
    pub(super) unreadable: Option<Box<SchemaViolation>>,
    pub(super) corrected: Vec<SchemaViolation>,
    pub(super) memory: ParamsMemory,
    pub(super) task_mode: TaskMode,
    /// The kinds of questions that the client answers during this request.
    pub(super) answerable: QuestionKindSet,
    /// Answers and state that the client sent, if it sent any. Boxed because few calls have one.
    pub(super) retry: Option<Box<RetryInput>>,
    pub(super) progress_token: Option<RequestId>,
    pub(super) trace: Option<TraceContext>,
    pub(super) rules: RequestContext,
}

impl ParsedCall {
    /// Parses the parameters of a call of `caller`. `read` reads those of its method.
    ///
    /// # Errors
    ///
    /// The request is malformed or too large, or does not match the task support of its tool.
    pub(super) fn parse(
        session: &Session,
        caller: &Caller,
        params: Option<&RawValue>,
        read: ParamsReader,
        mut rules: RequestContext,
    ) -> Result<Self, Error> {
        let memory = ParamsMemory::reserve(session, caller, params)?;
        let extent = match &memory {
            ParamsMemory::Reserved(_) => ReadExtent::Whole,
            ParamsMemory::Exhausted(_) => ReadExtent::Target,
        };
        let mut parsed = read(params, extent)?;
        let memory = memory.unpack_arguments(session, params, &mut parsed)?;
        let EntryParams {
            request,
            meta,
            task,
            unreadable,
            arguments_text: _,
            corrected,
        } = parsed;
        let task_mode = TaskMode::from_request(session, caller, &request, task.as_deref(), &rules)?;
        let request = with_listed_uri(session, restrict_to_revision(request, &rules));
        let answerable = answerable_kinds(&request, &rules);
        let retry = match answerable {
            Some(_) if rules.revision.features().input_requests => Some(RetryInput::read(params)?),
            _ => None,
        };
        let RequestMeta {
            progress_token,
            traceparent,
            tracestate,
            baggage,
        } = meta;
        // The transport may have a trace context too. The one in the message takes precedence.
        let trace = traceparent
            .and_then(|parent| TraceContext::parse(&parent, tracestate, baggage))
            .or(rules.trace.take().map(|trace| *trace));
        Ok(Self {
            request,
            unreadable,
            corrected,
            memory,
            task_mode,
            answerable: answerable.unwrap_or_default(),
            retry: retry
                .filter(|retry| *retry != RetryInput::default())
                .map(Box::new),
            progress_token,
            trace,
            rules,
        })
    }
}

/// Replaces the URI of a resource by the URI under which it is listed, because rights are compared
/// with the listed URI.
pub(super) fn with_listed_uri(session: &Session, request: CallRequest) -> CallRequest {
    match request {
        CallRequest::Resource { uri } => CallRequest::Resource {
            uri: session.server.lists().listed_uri(&uri).unwrap_or(uri),
        },
        other => other,
    }
}

/// Removes the parts of a request that the revision does not define.
fn restrict_to_revision(request: CallRequest, rules: &RequestContext) -> CallRequest {
    match request {
        CallRequest::Completion(request) if !rules.revision.features().completion_context => {
            CallRequest::Completion(CompletionRequest {
                context: BTreeMap::new(),
                ..request
            })
        }
        other => other,
    }
}

/// Returns the kinds of questions that the client answers during this request; `None` if the
/// protocol allows no questions in it.
fn answerable_kinds(request: &CallRequest, rules: &RequestContext) -> Option<QuestionKindSet> {
    if matches!(request, CallRequest::Completion(_)) {
        return None;
    }
    Some(rules.capabilities.answerable(rules.revision))
}
