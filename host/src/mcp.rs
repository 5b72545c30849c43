//! The Model Context Protocol: the only module that knows JSON-RPC and revisions.
//!
//! A transport ([`stdio`], [`http`]) decodes bytes (`jsonrpc`) and hands messages to a
//! `session`, which decides by which `rules` each is answered, has a method
//! answer it (`methods`, `call`, `changes`), has the answer shaped (`shape`,
//! `outcome`) and queued (`outbox`). A further transport is a module beside
//! them; a further revision is a row in `revision`.

mod call;
mod changes;
mod cursor;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod jsonrpc;
mod methods;
mod observer;
mod outbox;
mod outcome;
pub mod revision;
mod rules;
mod session;
mod shape;

pub mod http;
pub mod stdio;
pub mod streams;

use serde_json::Value;

use self::revision::Revision;
use crate::catalog::Tool;
use crate::service::Answer;

/// A tool as the newest revision lists it.
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
        Some(Ok(result)) => Ok(result.into()),
        Some(Err(error)) => Err(error.message),
        None => Err("the call was cancelled".to_owned()),
    }
}
