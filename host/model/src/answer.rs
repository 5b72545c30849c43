//! How a call ended.

use serde_json::{Map, Value};

use crate::{CallError, ErrorKind, Output, Rejection, Usage, Violation};

/// How a call ended.
#[derive(Debug)]
pub struct Answer {
    /// The output, or why there is none.
    pub result: Result<Output, Failure>,
    /// What it used; absent if no guest was entered.
    pub usage: Option<Usage>,
}

/// Why a call has no output.
#[derive(Debug)]
pub enum Failure {
    /// The caller sees no tool of this name.
    UnknownTool(String),
    /// The tool needs these client capabilities, which the client did not declare.
    MissingCapabilities(Map<String, Value>),
    /// The arguments do not fit the tool's input schema.
    InvalidArguments(Vec<Violation>),
    /// The call was not let in.
    Rejected(Rejection),
    /// A guest was entered, and the call failed.
    Call(CallError),
}

impl Failure {
    /// The kind of error that this is.
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
