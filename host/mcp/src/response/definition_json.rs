//! Converts definitions and results to JSON, for programs that are not MCP clients.

use serde_json::Value;
use toolbay_model::{CallResult, ListedResource, Prompt, TargetKind, Tool};

use crate::protocol::revision::Revision;
use crate::response::call_response;
use crate::response::definition_encoding;

/// Returns a tool as `tools/list` of the newest revision returns it.
pub fn tool_json(tool: &Tool) -> Value {
    // The definition consists of valid JSON, so this does not fail.
    serde_json::to_value(definition_encoding::tool(tool, Revision::NEWEST)).unwrap_or_default()
}

/// Returns a prompt as `prompts/list` of the newest revision returns it.
pub fn prompt_json(prompt: &Prompt) -> Value {
    serde_json::to_value(definition_encoding::prompt(prompt, Revision::NEWEST)).unwrap_or_default()
}

/// Returns a resource as `resources/list` of the newest revision returns it.
pub fn resource_json(resource: &ListedResource) -> Value {
    serde_json::to_value(definition_encoding::listed_resource(
        resource,
        Revision::NEWEST,
    ))
    .unwrap_or_default()
}

/// Returns a resource template as `resources/templates/list` of the newest revision returns it.
pub fn template_json(template: &ListedResource) -> Value {
    serde_json::to_value(definition_encoding::template(template, Revision::NEWEST))
        .unwrap_or_default()
}

/// Returns the result of a call of this kind as a client of `revision` receives it.
///
/// # Errors
///
/// The call has failed with a protocol error. The error is its message.
pub fn result_json(
    call_result: CallResult,
    kind: TargetKind,
    revision: Revision,
) -> Result<Value, String> {
    match call_response::to_response(call_result, kind, revision, true) {
        Ok(result) => Ok(result.into()),
        Err(error) => Err(error.message),
    }
}
