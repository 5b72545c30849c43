//! The result of a call, and the reasons why a call has no output.

use serde_json::{Map, Value};

use crate::{
    CallError, CallRejection, CallReply, CallUsage, ErrorKind, MissingApproval, SchemaViolation,
    TargetKind, ToolOutput,
};

/// The result of a call and the resources that it used.
#[derive(Debug)]
pub struct CallResult {
    /// The reply, or the reason why there is none.
    pub result: Result<CallReply, CallFailure>,
    /// Resources that the call used; `None` if no guest was entered.
    pub usage: Option<CallUsage>,
}

/// The reason why a call has no output.
#[derive(Debug)]
pub enum CallFailure {
    /// The target is unknown or not available to the caller.
    Unknown(UnknownTarget),
    /// The call requires client capabilities that were not declared. Contains the missing ones.
    MissingCapabilities(Map<String, Value>),
    /// The arguments do not match the tool's input schema, or the prompt's arguments.
    InvalidArguments {
        /// One violation for each invalid place.
        violations: Vec<SchemaViolation>,
        /// An example of valid arguments, as JSON, if one is known.
        example: Option<String>,
    },
    /// The call resumes one that started with another version of the plugin or with another grant.
    /// The guest was not entered.
    Outdated,
    /// The operator requires a person to approve the call, and no person did. The guest was not
    /// entered.
    Unapproved(MissingApproval),
    /// The call was not admitted.
    Rejected(CallRejection),
    /// The result is too large. Contains the part that the client receives, without the structured
    /// content that the tool's output schema promises.
    Oversized(Box<ToolOutput>),
    /// The call ran and failed.
    Call(CallError),
}

/// A target that is unknown or not available to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTarget {
    /// The kind of target.
    pub kind: TargetKind,
    /// Its name or URI.
    pub name: String,
    /// Names or URIs that the caller may use and probably meant, the most similar first.
    pub similar: Vec<String>,
}

impl CallFailure {
    /// Returns the failure for a target that is unknown or not available to the caller, without
    /// suggestions.
    pub fn unknown(kind: TargetKind, name: impl Into<String>) -> Self {
        Self::Unknown(UnknownTarget {
            kind,
            name: name.into(),
            similar: Vec::new(),
        })
    }

    /// Returns the error kind for `_meta["dev.toolbay/error"]`.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unknown(_) => ErrorKind::UnknownTool,
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
