//! The Model Context Protocol: the only module that knows JSON-RPC and revisions.
//!
//! A transport ([`stdio`]) hands bytes to a [`session`], which decodes them
//! (`jsonrpc`), decides by which rules they are answered (`revision`), asks the
//! service, and has the answer shaped (`shape`, `outcome`) and queued
//! (`outbox`). A further transport is a module beside `stdio`; a further
//! revision is a row in `revision` and an arm in the session's `Era`.

mod call;
mod cursor;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod jsonrpc;
mod observer;
mod outbox;
mod outcome;
pub mod revision;
mod session;
mod shape;

pub mod stdio;
pub mod streams;

use serde_json::Value;

use self::revision::Revision;
use crate::catalog::Tool;
use crate::service::Answer;

/// A tool as the newest session revision lists it.
pub fn definition_json(tool: &Tool) -> Value {
    shape::tool(tool, Revision::LATEST)
}

/// The result that a client of `revision` would get.
///
/// # Errors
///
/// The message of the protocol error it would get instead.
pub fn result_json(answer: Answer, revision: Revision) -> Result<Value, String> {
    match outcome::outcome(answer, revision, true) {
        Some(Ok(result)) => Ok(result),
        Some(Err(error)) => Err(error.message),
        None => Err("the call was cancelled".to_owned()),
    }
}
