//! How a call ended.

use serde_json::{Map, Value};

use crate::{CallError, ErrorKind, Output, Rejection, Usage, Violation};

/// How a call ended.
#[derive(Debug)]
pub struct Answer {
    /// The output, or why there is none.
    pub result: Result<Output, Failure>,
    /// What the call used; `None` if no guest was entered.
    pub usage: Option<Usage>,
}

/// Why a call has no output.
#[derive(Debug)]
pub enum Failure {
    /// The tool is unknown or not available to the caller; this is its name.
    UnknownTool(String),
    /// The tool requires client capabilities that were not declared; these are the missing ones.
    MissingCapabilities(Map<String, Value>),
    /// The arguments do not match the tool's input schema.
    InvalidArguments(Vec<Violation>),
    /// The call was not admitted.
    Rejected(Rejection),
    /// The call ran and failed.
    Call(CallError),
}

impl Failure {
    /// The error kind for `_meta["dev.toolbay/error"]`.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownTool(_) => ErrorKind::UnknownTool,
            Self::MissingCapabilities(_) => ErrorKind::MissingCapability,
            Self::InvalidArguments(_) => ErrorKind::InvalidArguments,
            Self::Rejected(rejection) => rejection.reason.kind(),
            Self::Call(error) => error.kind(),
        }
    }
}
