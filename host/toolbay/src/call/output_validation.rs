//! Validation of results against a tool's output schema.

use std::sync::Arc;

use serde_json::Value;
use toolbay_model::{CallError, CallReply, SchemaViolation};
use toolbay_schema::JsonSchema;

/// Returns the tool's output schema with the structured content that it applies to. Returns `None`
/// if the tool has no output schema.
///
/// # Errors
///
/// The structured content is missing.
pub(crate) fn pair_with_schema<'a>(
    schema: Option<&'a Arc<JsonSchema>>,
    reply: Option<&'a CallReply>,
) -> Result<Option<(&'a JsonSchema, &'a Value)>, CallError> {
    let (Some(schema), Some(CallReply::Tool(output))) = (schema, reply) else {
        return Ok(None);
    };
    match &output.structured {
        Some(structured) => Ok(Some((schema, structured))),
        None => Err(CallError::InvalidOutput(
            "structured content is missing, but the tool has an output schema".into(),
        )),
    }
}

/// Returns the reply if its structured content has no violations.
///
/// # Errors
///
/// There are violations.
pub(crate) fn reject_violations(
    reply: Option<CallReply>,
    violations: &[SchemaViolation],
) -> Result<Option<CallReply>, CallError> {
    if violations.is_empty() {
        return Ok(reply);
    }
    let violations: Vec<String> = violations.iter().map(ToString::to_string).collect();
    Err(CallError::InvalidOutput(violations.join("; ")))
}
