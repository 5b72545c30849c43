//! Tools and results as JSON, for programs that are not clients.

use serde_json::Value;
use toolbay_model::{Answer, Tool};

use crate::revision::Revision;
use crate::{outcome, shape};

/// A tool as `tools/list` of the newest revision returns it.
pub fn definition_json(tool: &Tool) -> Value {
    // What was JSON is JSON again.
    serde_json::to_value(shape::tool(tool, Revision::NEWEST)).unwrap_or_default()
}

/// The result of a call as a client of `revision` receives it.
///
/// # Errors
///
/// The message of the protocol error that the client receives instead.
pub fn result_json(answer: Answer, revision: Revision) -> Result<Value, String> {
    match outcome::outcome(answer, revision, true) {
        Ok(result) => Ok(result.into()),
        Err(error) => Err(error.message),
    }
}
