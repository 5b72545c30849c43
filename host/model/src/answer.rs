//! How a call ended.

use serde_json::{Map, Value};

use crate::{
    CallError, CallRejection, CallReply, CallUsage, ErrorKind, MissingApproval, SchemaViolation, TargetKind, ToolOutput,
};

/// How a call ended.
#[derive(Debug)]
pub struct CallResult {
    /// What came of it, or why nothing did.
    pub result: Result<CallReply, CallFailure>,
    /// What the call used; `None` if no guest was entered.
    pub usage: Option<CallUsage>,
}

/// Why a call has no output.
#[derive(Debug)]
pub enum CallFailure {
    /// What was asked for is unknown or not available to the caller; this is its name or URI.
    Unknown(TargetKind, String),
    /// The call requires client capabilities that were not declared; these are the missing ones.
    MissingCapabilities(Map<String, Value>),
    /// The arguments do not match the tool's input schema, or the prompt's arguments.
    InvalidArguments {
        /// How, for each place.
        violations: Vec<SchemaViolation>,
        /// Arguments that would fit, as JSON, if some are known.
        example: Option<String>,
    },
    /// The call continues one that began with another version of the plugin or with another grant. The guest was not
    /// entered.
    Outdated,
    /// The operator wants a person to allow the call, and nobody did. The guest was not entered.
    Unapproved(MissingApproval),
    /// The call was not admitted.
    Rejected(CallRejection),
    /// The result is too large, and this is what the client gets of it: without the structured content that the tool's
    /// output schema promises.
    Oversized(Box<ToolOutput>),
    /// The call ran and failed.
    Call(CallError),
}

impl CallFailure {
    /// The error kind for `_meta["dev.toolbay/error"]`.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unknown(..) => ErrorKind::UnknownTool,
            Self::MissingCapabilities(_) => ErrorKind::MissingCapability,
            Self::InvalidArguments { .. } => ErrorKind::InvalidArguments,
            Self::Outdated => ErrorKind::Outdated,
            Self::Unapproved(_) => ErrorKind::NotApproved,
            Self::Rejected(rejection) => rejection.reason.kind(),
            Self::Oversized(_) => ErrorKind::Output,
            Self::Call(error) => error.kind(),
        }
    }
}
