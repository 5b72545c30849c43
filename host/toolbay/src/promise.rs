//! What a tool's output schema promises of its results.

use std::sync::Arc;

use serde_json::Value;
use toolbay_model::{CallError, CallReply, SchemaViolation};
use toolbay_schema::JsonSchema;

/// The output schema of a tool and what it is about; `None` if the tool has none.
///
/// # Errors
///
/// There is no structured content.
pub(crate) fn structured<'a>(
    schema: Option<&'a Arc<JsonSchema>>,
    reply: Option<&'a CallReply>,
) -> Result<Option<(&'a JsonSchema, &'a Value)>, CallError> {
    let (Some(schema), Some(CallReply::Tool(output))) = (schema, reply) else { return Ok(None) };
    match &output.structured {
        Some(structured) => Ok(Some((schema, structured))),
        None => {
            Err(CallError::InvalidOutput("structured content is missing, but the tool has an output schema".into()))
        }
    }
}

/// A reply whose structured content has these violations.
///
/// # Errors
///
/// There is one.
pub(crate) fn judged(reply: Option<CallReply>, violations: &[SchemaViolation]) -> Result<Option<CallReply>, CallError> {
    if violations.is_empty() {
        return Ok(reply);
    }
    let violations: Vec<String> = violations.iter().map(ToString::to_string).collect();
    Err(CallError::InvalidOutput(violations.join("; ")))
}
