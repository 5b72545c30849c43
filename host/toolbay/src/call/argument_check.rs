//! The check of a request's arguments, on this thread if it is quick.

use std::sync::Arc;

use serde_json::Value;
use toolbay_audit::ArgumentsRecord;
use toolbay_catalog::ToolOffer;
use toolbay_model::{
    CallRequest, CompletionReference, CompletionRequest, Interrupt, SchemaViolation,
};
use toolbay_schema::{JsonSchema, ValueConversion};

use crate::approval::call_target::CallTarget;
use crate::call::argument_conversion::ConvertedArguments;
use crate::call::host_work::{HostWork, MAX_INLINE_BYTES};
use crate::call::offload::TooLate;
use crate::call::ready_request::ReadyRequest;
use crate::observe::argument_recorder::ArgumentRecorder;

/// A request whose arguments were checked.
pub(crate) struct CheckedRequest {
    pub(crate) request: ReadyRequest,
    pub(crate) violations: Vec<SchemaViolation>,
    /// Record of the arguments for the audit log.
    pub(crate) record: Option<ArgumentsRecord>,
    /// Arguments that were converted because their form did not match the schema.
    pub(crate) converted: Vec<ValueConversion>,
}

/// Checked arguments of a tool.
struct CheckedArguments {
    /// The arguments, serialized again: the guest reads exactly what was validated, even if keys
    /// were duplicated. Empty if they do not match and are not recorded.
    text: String,
    violations: Vec<SchemaViolation>,
    converted: Vec<ValueConversion>,
}

impl CheckedArguments {
    fn into_request(self, recorder: Option<ArgumentRecorder>) -> CheckedRequest {
        let record = recorder.map(|recorder| recorder.record(&self.text));
        CheckedRequest {
            request: ReadyRequest::Tool(self.text),
            violations: self.violations,
            record,
            converted: self.converted,
        }
    }
}

/// Returns the request in the form that a guest receives, the violations of its arguments, and
/// their record by `recorder`.
///
/// # Errors
///
/// The check did not complete before the deadline.
pub(crate) async fn check_request(
    work: &HostWork<'_>,
    target: &Arc<CallTarget>,
    request: CallRequest,
    recorder: Option<ArgumentRecorder>,
    lenient: bool,
) -> Result<CheckedRequest, TooLate> {
    let (request, violations) = match (request, &**target) {
        (CallRequest::Tool { arguments, .. }, CallTarget::Tool(offer)) => {
            return check_arguments(work, offer, Value::Object(arguments), recorder, lenient).await;
        }
        (CallRequest::Prompt { arguments, .. }, CallTarget::Prompt(offer)) => {
            let violations = offer.entry.violations(&arguments);
            (ReadyRequest::Prompt(arguments), violations)
        }
        (CallRequest::Resource { uri }, _) => (ReadyRequest::Resource(uri), Vec::new()),
        (CallRequest::Completion(asked), target) => {
            let reference = match asked.reference {
                CompletionReference::Prompt(_) => {
                    CompletionReference::Prompt(target.name().to_owned())
                }
                CompletionReference::Resource(_) => {
                    CompletionReference::Resource(target.name().to_owned())
                }
            };
            (
                ReadyRequest::Completion(CompletionRequest { reference, ..asked }),
                Vec::new(),
            )
        }
        // The lookup returns no other targets for these requests.
        (CallRequest::Tool { .. } | CallRequest::Prompt { .. }, _) => {
            (ReadyRequest::Tool(String::new()), Vec::new())
        }
    };
    let converted = Vec::new();
    let Some(recorder) = recorder else {
        return Ok(CheckedRequest {
            request,
            violations,
            record: None,
            converted,
        });
    };
    let size = request.size();
    let checked = move || {
        let record = Some(recorder.record(&request.audit_text()));
        CheckedRequest {
            request,
            violations,
            record,
            converted,
        }
    };
    if size <= MAX_INLINE_BYTES {
        return Ok(checked());
    }
    work.run(move |_: &Interrupt| checked()).await
}

/// Returns the arguments as text, the violations of the tool's input schema, and their record by
/// `recorder`.
///
/// # Errors
///
/// The check did not complete before the deadline.
async fn check_arguments(
    work: &HostWork<'_>,
    offer: &Arc<ToolOffer>,
    mut arguments: Value,
    recorder: Option<ArgumentRecorder>,
    lenient: bool,
) -> Result<CheckedRequest, TooLate> {
    let input = &offer.definition.input;
    let quick = check_quickly(input, &mut arguments, lenient, recorder.is_some());
    let quick = match quick {
        Some(checked) if recorder.is_none() || checked.text.len() <= MAX_INLINE_BYTES => {
            return Ok(checked.into_request(recorder));
        }
        longer => longer,
    };
    let offer = Arc::clone(offer);
    let checked = work.run(move |interrupt| {
        let checked = match quick {
            Some(checked) => checked,
            None => check_slowly(
                &offer.definition.input,
                arguments,
                lenient,
                recorder.is_some(),
                interrupt,
            )?,
        };
        Ok(checked.into_request(recorder))
    });
    checked.await?
}

/// Checks arguments, and converts them if only their form does not match. Returns `None` if that
/// takes long.
fn check_quickly(
    input: &JsonSchema,
    arguments: &mut Value,
    lenient: bool,
    is_recorded: bool,
) -> Option<CheckedArguments> {
    let violations = input.quick_violations(arguments)?;
    // Arguments that match are never changed.
    let conversion = if lenient && !violations.is_empty() {
        ConvertedArguments::convert(input, arguments)
    } else {
        None
    };
    let (violations, converted) = match conversion {
        Some(ConvertedArguments { value, converted })
            if input.quick_violations(&value)?.is_empty() =>
        {
            *arguments = value;
            (Vec::new(), converted)
        }
        _ => (violations, Vec::new()),
    };
    let text = if violations.is_empty() || is_recorded {
        arguments.to_string()
    } else {
        String::new()
    };
    Some(CheckedArguments {
        text,
        violations,
        converted,
    })
}

/// Checks arguments until `interrupt`, and converts them if only their form does not match.
///
/// # Errors
///
/// The check was interrupted.
fn check_slowly(
    input: &JsonSchema,
    mut arguments: Value,
    lenient: bool,
    is_recorded: bool,
    interrupt: &Interrupt,
) -> Result<CheckedArguments, TooLate> {
    let check = |arguments: &Value| {
        input
            .violations_until(arguments, interrupt)
            .map_err(|_| TooLate)
    };
    let violations = check(&arguments)?;
    if !lenient || violations.is_empty() {
        return Ok(CheckedArguments {
            text: arguments.to_string(),
            violations,
            converted: Vec::new(),
        });
    }
    let written = if is_recorded {
        arguments.to_string()
    } else {
        String::new()
    };
    match input.convert(&mut arguments) {
        Some(converted) if check(&arguments)?.is_empty() => Ok(CheckedArguments {
            text: arguments.to_string(),
            violations: Vec::new(),
            converted,
        }),
        _ => Ok(CheckedArguments {
            text: written,
            violations,
            converted: Vec::new(),
        }),
    }
}
