//! The parsed parameters of a request that enters a plugin. Each method has a function that reads
//! them.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use toolbay_model::{CallRequest, SchemaViolation};

use crate::protocol::jsonrpc::{Error, RequestId};
use crate::protocol::sent_arguments::{self, PromptArguments};

/// The parsed parameters of a request.
pub(crate) struct EntryParams {
    /// The requested target and its arguments.
    pub(crate) request: CallRequest,
    /// The `_meta` of the request.
    pub(crate) meta: RequestMeta,
    /// `task`, not yet parsed.
    pub(crate) task: Option<Box<RawValue>>,
    /// The part of the arguments that cannot be read, if any. The arguments are incomplete in that
    /// case.
    pub(crate) unreadable: Option<Box<SchemaViolation>>,
    /// The arguments as JSON text, if they were sent as a string instead of an object. `request`
    /// has no arguments until this text is parsed.
    pub(crate) arguments_text: Option<String>,
    /// Errors in the form of the arguments that were corrected.
    pub(crate) corrected: Vec<SchemaViolation>,
}

impl EntryParams {
    /// Creates parameters whose arguments, if there are any, were read completely.
    pub(crate) fn new(request: CallRequest, meta: RequestMeta) -> Self {
        Self {
            request,
            meta,
            task: None,
            unreadable: None,
            arguments_text: None,
            corrected: Vec::new(),
        }
    }

    /// Sets the arguments of a request for a prompt.
    pub(crate) fn set_prompt_arguments(&mut self, read: PromptArguments) {
        if let CallRequest::Prompt { arguments, .. } = &mut self.request {
            *arguments = read.values;
        }
        self.corrected.extend(read.corrected);
        self.unreadable = read.unreadable.map(Box::new);
    }

    /// Parses the string that the arguments were sent as.
    pub(super) fn unpack(&mut self, text: &str) {
        match &mut self.request {
            CallRequest::Tool { arguments, .. } => match sent_arguments::parse_tool(text) {
                Ok(read) => *arguments = read,
                Err(violation) => self.unreadable = Some(Box::new(violation)),
            },
            CallRequest::Prompt { .. } => {
                self.set_prompt_arguments(sent_arguments::parse_prompt(text));
            }
            // These have no arguments.
            CallRequest::Resource { .. } | CallRequest::Completion(_) => {}
        }
        self.corrected.insert(0, sent_arguments::packed_violation());
        if self.unreadable.is_some() {
            // `unreadable` already says what is wrong with the string.
            self.corrected.clear();
        }
    }
}

/// The part of the parameters to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadExtent {
    /// All parameters.
    Whole,
    /// Only the target: the request is rejected regardless of its arguments.
    Target,
}

/// Function that reads the parameters of a method.
pub(crate) type ParamsReader = fn(Option<&RawValue>, ReadExtent) -> Result<EntryParams, Error>;

/// The members of `_meta` that affect how a request is handled.
#[derive(Default, Deserialize)]
pub(crate) struct RequestMeta {
    #[serde(rename = "progressToken")]
    pub(super) progress_token: Option<RequestId>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(super) traceparent: Option<String>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(super) tracestate: Option<String>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(super) baggage: Option<String>,
}

/// Deserializes a string and ignores any other value: an invalid trace context does not fail a
/// request.
fn lenient_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).ok())
}
