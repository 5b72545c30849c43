//! Tools and results as a client of the newest revision gets them, for programs that are no client.

use serde_json::Value;
use toolbay_model::{Answer, Tool};

use crate::revision::Revision;
use crate::{outcome, shape};

/// A tool as the newest revision lists it.
pub fn definition_json(tool: &Tool) -> Value {
    shape::tool(tool, Revision::NEWEST)
}

/// The result that a client of `revision` would get.
///
/// # Errors
///
/// The message of the protocol error that it would get instead.
pub fn result_json(answer: Answer, revision: Revision) -> Result<Value, String> {
    match outcome::outcome(answer, revision, true) {
        Ok(result) => Ok(result.into()),
        Err(error) => Err(error.message),
    }
}
