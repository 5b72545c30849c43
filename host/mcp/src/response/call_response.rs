//! Converts the answer to a call into the protocol response. Only this module maps errors to the
//! protocol.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolbay_model::{
    CallError, CallFailure, CallRejection, CallReply, CallResult, CallUsage, ErrorKind, Question,
    QuestionKind, SchemaViolation, TargetKind, UnknownTarget,
};

use crate::exchange::resource_subscriptions::MAX_URI_BYTES;
use crate::host::request_state::InvalidState;
use crate::protocol::jsonrpc::{Error, INTERNAL_ERROR, INVALID_PARAMS};
use crate::protocol::question_encoding;
use crate::protocol::revision::Revision;
use crate::response::result_encoding;

/// Error code: the client did not declare a required capability (2026-07-28, "Error Codes").
pub(crate) const MISSING_CAPABILITY: i32 = -32021;

/// Error code: a resource does not exist (revisions with sessions, "Resources").
const RESOURCE_NOT_FOUND: i32 = -32002;

/// Error code: a plugin failed or was not entered, and the result cannot express this. The code is
/// in the range that the specification leaves to implementations, and no SDK gives it another
/// meaning.
const PLUGIN_FAILED: i32 = -32010;

/// Key of a call's usage in the result's `_meta`: `fuel`, `wall_ms`, `memory`.
const USAGE_KEY: &str = "dev.toolbay/usage";

/// Key of the error kind in a failed result's `_meta`, or in the data of an error.
const ERROR_KIND_KEY: &str = "dev.toolbay/error";

/// Key of the time in milliseconds after which a rejected call can be retried.
const RETRY_AFTER_KEY: &str = "dev.toolbay/retry-after-ms";

/// Maximum length of a quoted unknown name or URI, in bytes: it may be megabytes long.
const MAX_QUOTED_BYTES: usize = 200;

/// Returns the response to a request of this kind that entered a plugin, or was rejected before: a
/// result or a protocol error. Failures of tools are results, which the model reads. The other
/// methods return errors.
pub(crate) fn to_response(
    call_result: CallResult,
    kind: TargetKind,
    revision: Revision,
    with_usage: bool,
) -> Result<Map<String, Value>, Error> {
    let usage = call_result.usage.filter(|_| with_usage);
    let reply = match call_result.result {
        Ok(reply) => reply,
        Err(failure) => {
            let encoder = FailureEncoder {
                kind,
                revision,
                error_kind: failure.kind(),
                usage,
            };
            return encoder.encode(failure);
        }
    };
    let mut result = match reply {
        CallReply::Tool(output) => result_encoding::tool_result(output, revision),
        CallReply::Prompt(output) => result_encoding::prompt_result(output, revision),
        CallReply::Resource(items) => result_encoding::resource_result(items, revision),
        CallReply::Completion(completions) => result_encoding::completion_result(completions),
        // `plugin_request` handles questions before this.
        CallReply::Questions(_) => {
            return Err(internal_error(&format!(
                "no client answers the questions of a {kind}"
            )));
        }
    };
    add_meta(
        &mut result,
        usage.map(|usage| (USAGE_KEY, self::usage_json(usage))),
    );
    Ok(result)
}

/// The properties of a failed call that decide the form of its response.
struct FailureEncoder {
    kind: TargetKind,
    revision: Revision,
    error_kind: ErrorKind,
    usage: Option<CallUsage>,
}

impl FailureEncoder {
    fn encode(&self, failure: CallFailure) -> Result<Map<String, Value>, Error> {
        let Self { kind, revision, .. } = *self;
        match failure {
            CallFailure::Unknown(unknown) => Err(unknown_target(&unknown, revision)),
            CallFailure::MissingCapabilities(missing) => {
                Err(missing_capabilities(&missing, kind, revision))
            }
            CallFailure::InvalidArguments {
                violations,
                example,
            } => self.encode_invalid_arguments(&violations, example),
            CallFailure::Outdated if revision.features().input_requests => {
                Err(invalid_state_error(InvalidState::Outdated))
            }
            CallFailure::Outdated => self.encode_text(
                "The plugin or its grant changed while the call waited for an answer. Call again.",
            ),
            CallFailure::Unapproved(unapproved) => self.encode_text(&unapproved.to_string()),
            CallFailure::Oversized(output) => {
                let mut result = result_encoding::tool_result(*output, revision);
                result.insert("isError".into(), true.into());
                add_meta(
                    &mut result,
                    Some((ERROR_KIND_KEY, self.error_kind.as_str().into())),
                );
                add_meta(
                    &mut result,
                    self.usage.map(|usage| (USAGE_KEY, self::usage_json(usage))),
                );
                Ok(result)
            }
            CallFailure::Rejected(rejection) => rejection_response(rejection, kind),
            CallFailure::Call(CallError::InvalidArguments(text)) if kind != TargetKind::Tool => {
                Err(error_with_kind(INVALID_PARAMS, &text, self.error_kind))
            }
            CallFailure::Call(error) => self.encode_call_error(error),
        }
    }

    /// If a tool failed, returns a result, which the model reads. For other targets, returns an
    /// error.
    fn encode_text(&self, text: &str) -> Result<Map<String, Value>, Error> {
        match self.kind {
            TargetKind::Tool => Ok(failed_tool_result(text, self.error_kind, self.usage)),
            _ => Err(error_with_kind(PLUGIN_FAILED, text, self.error_kind)),
        }
    }

    fn encode_invalid_arguments(
        &self,
        violations: &[SchemaViolation],
        example: Option<String>,
    ) -> Result<Map<String, Value>, Error> {
        let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
        let expected = match self.kind {
            TargetKind::Tool => "the tool's input schema".to_owned(),
            kind => format!("those of the {kind}"),
        };
        let example = example
            .map(|example| format!("\nFor example: {example}"))
            .unwrap_or_default();
        let text = format!(
            "The arguments do not match {expected}:\n{}{example}",
            lines.join("\n")
        );
        if self.kind == TargetKind::Tool && self.revision.features().invalid_arguments_are_results {
            return self.encode_text(&text);
        }
        let data: Value = violations
            .iter()
            .map(|v| json!({"pointer": v.pointer, "message": v.message}))
            .collect();
        Err(Error {
            data: Some(Box::new(data)),
            ..Error::new(INVALID_PARAMS, text)
        })
    }

    fn encode_call_error(&self, error: CallError) -> Result<Map<String, Value>, Error> {
        let kind = self.kind;
        match error {
            CallError::InvalidArguments(text) | CallError::Failed(text) => self.encode_text(&text),
            CallError::Limit { limit, tool } => {
                self.encode_text(&limit.message(&kind.to_string(), tool.as_deref()))
            }
            CallError::Denied {
                message: words,
                denial: denied,
            } => self.encode_text(&format!("{words}\n{denied}")),
            CallError::Trap { .. } => self.encode_text(&format!("The {kind} crashed: {error}.")),
            CallError::InvalidOutput(what) => {
                self.encode_text(&format!("The {kind} returned invalid output: {what}."))
            }
            CallError::Cancelled => {
                self.encode_text("The call was stopped because the server is shutting down.")
            }
            CallError::Stopped => self.encode_text("An operator of the server stopped the call."),
            CallError::Incapable(kinds) => Err(missing_capabilities(
                &QuestionKind::capabilities(&kinds),
                kind,
                self.revision,
            )),
            CallError::Internal(what) => Err(internal_error(&what)),
        }
    }
}

fn missing_capabilities(
    missing: &Map<String, Value>,
    kind: TargetKind,
    revision: Revision,
) -> Error {
    let names: Vec<&str> = missing.keys().map(String::as_str).collect();
    let names = names.join(", ");
    let message =
        format!("the {kind} requires client capabilities that were not declared: {names}");
    let data = Some(Box::new(json!({"requiredCapabilities": missing})));
    let code = if revision.features().capability_code {
        MISSING_CAPABILITY
    } else {
        INVALID_PARAMS
    };
    Error {
        data,
        ..Error::new(code, message)
    }
}

/// Returns the result that asks the client questions. The client sends the state back with its
/// answers.
pub(crate) fn input_required_result(
    questions: &[Question],
    state: String,
    usage: Option<CallUsage>,
    revision: Revision,
) -> Result<Map<String, Value>, Error> {
    let requests = questions.iter().map(|question| {
        Ok((
            question.key.clone(),
            question_encoding::input_request(question, revision)?,
        ))
    });
    let requests: Map<String, Value> = requests
        .collect::<Result<_, String>>()
        .map_err(|what| internal_error(&what))?;
    let mut result = Map::new();
    result.insert("resultType".into(), "input_required".into());
    result.insert("inputRequests".into(), requests.into());
    result.insert("requestState".into(), state.into());
    add_meta(
        &mut result,
        usage.map(|usage| (USAGE_KEY, self::usage_json(usage))),
    );
    Ok(result)
}

/// Returns the error for an invalid request state.
pub(crate) fn invalid_state_error(reason: InvalidState) -> Error {
    let data = Some(Box::new(json!({"reason": reason.as_str()})));
    Error {
        data,
        ..Error::new(INVALID_PARAMS, reason.to_string())
    }
}

/// Returns the error for a resource that does not exist, or that the caller may not read.
pub(crate) fn resource_not_found(uri: &str, revision: Revision) -> Error {
    let code = if revision.features().not_found_code {
        RESOURCE_NOT_FOUND
    } else {
        INVALID_PARAMS
    };
    let truncated_uri = uri
        .get(..uri.floor_char_boundary(MAX_URI_BYTES))
        .unwrap_or_default();
    let data = Some(Box::new(json!({"uri": truncated_uri})));
    Error {
        data,
        ..Error::new(
            code,
            format!("Resource not found: {}", truncate_quoted(uri)),
        )
    }
}

/// Returns the error for a target that does not exist, or that the caller may not use, with the
/// names that the caller probably meant.
fn unknown_target(unknown: &UnknownTarget, revision: Revision) -> Error {
    let UnknownTarget {
        kind,
        name,
        similar,
    } = unknown;
    let mut error = match kind {
        TargetKind::Resource => resource_not_found(name, revision),
        _ => Error::new(
            INVALID_PARAMS,
            format!("Unknown {kind}: {}", truncate_quoted(name)),
        ),
    };
    if !similar.is_empty() {
        let _ = write!(error.message, ". Did you mean {}?", similar.join(" or "));
    }
    error
}

/// Returns the error for a skill or a directory that does not exist, or that the caller may not
/// read. `cause` is the beginning of the message.
pub(crate) fn not_found_at(uri: &str, cause: &str) -> Error {
    let truncated_uri = uri
        .get(..uri.floor_char_boundary(MAX_URI_BYTES))
        .unwrap_or_default();
    let data = Some(Box::new(json!({"uri": truncated_uri})));
    Error {
        data,
        ..Error::new(INVALID_PARAMS, format!("{cause}: {}", truncate_quoted(uri)))
    }
}

fn rejection_response(
    rejection: CallRejection,
    kind: TargetKind,
) -> Result<Map<String, Value>, Error> {
    // Rounds up: a retry that is slightly early would be rejected again.
    let milliseconds =
        |wait: Duration| u64::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(u64::MAX);
    let wait = rejection.retry_after.map(milliseconds);
    let mut text = rejection.reason.message(&kind.to_string());
    if let Some(wait) = wait {
        write!(text, " Retry after {wait} ms.").ok();
    }
    let error_kind = rejection.reason.kind();
    if kind == TargetKind::Tool {
        let mut result = failed_tool_result(&text, error_kind, None);
        add_meta(&mut result, wait.map(|wait| (RETRY_AFTER_KEY, wait.into())));
        return Ok(result);
    }
    let data = match wait {
        Some(wait) => json!({ERROR_KIND_KEY: error_kind.as_str(), RETRY_AFTER_KEY: wait}),
        None => json!({ERROR_KIND_KEY: error_kind.as_str()}),
    };
    Err(Error {
        data: Some(Box::new(data)),
        ..Error::new(PLUGIN_FAILED, text)
    })
}

/// Returns the error for a request that the server has no capacity for now.
pub(crate) fn busy_error(text: &str) -> Error {
    error_with_kind(PLUGIN_FAILED, text, ErrorKind::Busy)
}

/// Returns an error with its kind in `data`. A failure that the plugin itself reports has no error
/// kind.
fn error_with_kind(code: i32, text: &str, kind: ErrorKind) -> Error {
    let data = Some(kind)
        .filter(|kind| *kind != ErrorKind::Failed)
        .map(|kind| Box::new(json!({ERROR_KIND_KEY: kind.as_str()})));
    Error {
        data,
        ..Error::new(code, text)
    }
}

/// Truncates a name or URI.
fn truncate_quoted(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_QUOTED_BYTES))
        .unwrap_or_default()
}

/// Logs a server error with a number, and returns a protocol error that contains only the number.
pub(crate) fn internal_error(what: &str) -> Error {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let id = format!(
        "{}-{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    );
    tracing::error!(id, "internal error: {what}");
    Error::new(
        INTERNAL_ERROR,
        format!("Internal error {id}. See the server's log for details."),
    )
}

fn failed_tool_result(text: &str, kind: ErrorKind, usage: Option<CallUsage>) -> Map<String, Value> {
    let mut result = Map::new();
    result.insert("content".into(), vec![result_encoding::text(text)].into());
    result.insert("isError".into(), true.into());
    // A failure that the plugin itself reports has no error kind.
    let reported_kind = Some(kind).filter(|kind| *kind != ErrorKind::Failed);
    add_meta(
        &mut result,
        reported_kind.map(|kind| (ERROR_KIND_KEY, kind.as_str().into())),
    );
    add_meta(
        &mut result,
        usage.map(|usage| (USAGE_KEY, self::usage_json(usage))),
    );
    result
}

fn add_meta(result: &mut Map<String, Value>, member: Option<(&str, Value)>) {
    if let Some((key, value)) = member
        && let Some(meta) = result
            .entry("_meta")
            .or_insert_with(|| json!({}))
            .as_object_mut()
    {
        meta.insert(key.into(), value);
    }
}

fn usage_json(usage: CallUsage) -> Value {
    // Microseconds suffice; more digits would only make responses longer.
    let wall_ms = (usage.wall.as_secs_f64() * 1e6).round() / 1e3;
    let mut members = Map::new();
    members.extend(
        [
            ("fuel", usage.fuel.into()),
            ("wall_ms", wall_ms.into()),
            ("memory", usage.memory.into()),
        ]
        .map(to_member),
    );
    // Most calls use no network.
    if usage.http_requests > 0 {
        members.extend(
            [
                ("http_requests", usage.http_requests.into()),
                ("http_bytes", usage.http_bytes.into()),
            ]
            .map(to_member),
        );
    }
    if usage.tcp_connections > 0 {
        members.extend(
            [
                ("tcp_connections", usage.tcp_connections.into()),
                ("tcp_bytes", usage.tcp_bytes.into()),
            ]
            .map(to_member),
        );
    }
    members.into()
}

fn to_member((name, value): (&str, Value)) -> (String, Value) {
    (name.to_owned(), value)
}

#[cfg(test)]
mod tests;
