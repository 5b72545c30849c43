//! The check of a request's arguments, on this thread if it is quick.

use std::sync::Arc;

use serde_json::Value;
use toolbay_audit::ArgumentsRecord;
use toolbay_catalog::ToolOffer;
use toolbay_model::{
    CallRequest, CompletionReference, CompletionRequest, Interrupt, SchemaViolation,
};
use toolbay_schema::ValueConversion;

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

/// Returns the arguments as text, the violations of the tool's input schema, and their record
/// by `recorder`.
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
    // Serialized again: the guest reads exactly what was validated, even if keys were
    // duplicated.
    let input = &offer.definition.input;
    let glance = input.quick_violations(&arguments).and_then(|violations| {
        // Arguments that match are never changed.
        let meant = if lenient && !violations.is_empty() {
            ConvertedArguments::convert(input, &arguments)
        } else {
            None
        };
        let (violations, converted) = match meant {
            Some(ConvertedArguments { value, converted })
                if input.quick_violations(&value)?.is_empty() =>
            {
                arguments = value;
                (Vec::new(), converted)
            }
            _ => (violations, Vec::new()),
        };
        let wanted = violations.is_empty() || recorder.is_some();
        Some((
            if wanted {
                arguments.to_string()
            } else {
                String::new()
            },
            violations,
            converted,
        ))
    });
    let glance = match glance {
        Some((text, violations, converted))
            if recorder.is_none() || text.len() <= MAX_INLINE_BYTES =>
        {
            let record = recorder.map(|recorder| recorder.record(&text));
            return Ok(CheckedRequest {
                request: ReadyRequest::Tool(text),
                violations,
                record,
                converted,
            });
        }
        longer => longer,
    };
    let offer = Arc::clone(offer);
    let checked = work.run(move |interrupt| {
        let (text, violations, converted) = if let Some(known) = glance {
            known
        } else {
            let input = &offer.definition.input;
            let violations = input
                .violations_until(&arguments, interrupt)
                .map_err(|_| TooLate)?;
            if lenient && !violations.is_empty() {
                let written = if recorder.is_some() {
                    arguments.to_string()
                } else {
                    String::new()
                };
                match input.convert(&mut arguments) {
                    Some(converted)
                        if input
                            .violations_until(&arguments, interrupt)
                            .map_err(|_| TooLate)?
                            .is_empty() =>
                    {
                        (arguments.to_string(), Vec::new(), converted)
                    }
                    _ => (written, violations, Vec::new()),
                }
            } else {
                (arguments.to_string(), violations, Vec::new())
            }
        };
        let record = recorder.map(|recorder| recorder.record(&text));
        Ok(CheckedRequest {
            request: ReadyRequest::Tool(text),
            violations,
            record,
            converted,
        })
    });
    checked.await?
}
