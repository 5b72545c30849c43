//! Errors of calls.

mod error_kind;
mod limit;

use std::fmt;

pub use self::error_kind::ErrorKind;
pub use self::limit::Limit;
use crate::QuestionKind;

/// The reason why a call that entered a guest has no output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The plugin rejected the arguments; the text is the plugin's.
    InvalidArguments(String),
    /// The plugin reported a failure, or exited with an error code after writing to standard error.
    /// The text is the plugin's.
    Failed(String),
    /// The call reached a limit.
    Limit {
        /// The limit, with its value.
        limit: Limit,
        /// The plugin's name for the tool, if the limit is set only for that tool.
        tool: Option<String>,
    },
    /// The tool failed after the grant had denied it access to something.
    Denied {
        /// The plugin's error message, or the reason why it crashed.
        message: String,
        /// The denied access, as a sentence.
        denial: String,
    },
    /// The guest crashed.
    Trap {
        /// The trap or error message of wasmtime.
        cause: String,
        /// The last lines of standard error; `None` if it wrote none.
        stderr: Option<String>,
    },
    /// The output violates the contract or the tool's output schema. Contains the place and the
    /// violation.
    InvalidOutput(String),
    /// The plugin requires an answer to a question that the client cannot answer. Contains the
    /// kinds of the questions.
    Incapable(Vec<QuestionKind>),
    /// The call was cancelled.
    Cancelled,
    /// An operator stopped the call.
    Stopped,
    /// An error in Toolbay. The text is logged and not sent to the client.
    Internal(String),
}

impl CallError {
    /// Creates the error of a call that reached this limit of its plugin.
    pub const fn limit(limit: Limit) -> Self {
        Self::Limit { limit, tool: None }
    }

    /// Returns the error kind for `_meta["dev.toolbay/error"]`.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::InvalidArguments(_) => ErrorKind::InvalidArguments,
            Self::Failed(_) => ErrorKind::Failed,
            Self::Limit { limit, .. } => limit.kind(),
            Self::Denied { .. } => ErrorKind::Denied,
            Self::Trap { .. } => ErrorKind::Trap,
            Self::InvalidOutput(_) => ErrorKind::InvalidOutput,
            Self::Incapable(_) => ErrorKind::MissingCapability,
            Self::Cancelled | Self::Stopped => ErrorKind::Cancelled,
            Self::Internal(_) => ErrorKind::Internal,
        }
    }
}

/// Formats the error for the log. The protocol crate writes the message for the client.
impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidArguments(text) => write!(f, "invalid arguments: {text}"),
            Self::Failed(text) | Self::Internal(text) => f.write_str(text),
            Self::Limit { limit, tool } => f.write_str(&limit.message("tool", tool.as_deref())),
            Self::Denied { message, denial } => write!(f, "{message} ({denial})"),
            // The guest's last output usually has the cause, so it comes first.
            Self::Trap {
                cause,
                stderr: Some(stderr),
            } => write!(f, "{stderr} ({cause})"),
            Self::Trap {
                cause,
                stderr: None,
            } => f.write_str(cause),
            Self::InvalidOutput(violation) => write!(f, "invalid output: {violation}"),
            Self::Incapable(kinds) => {
                let methods: Vec<&str> = kinds.iter().map(|kind| kind.method()).collect();
                write!(f, "the client cannot answer: {}", methods.join(", "))
            }
            Self::Cancelled => f.write_str("cancelled"),
            Self::Stopped => f.write_str("stopped by an operator"),
        }
    }
}

#[cfg(test)]
mod tests;
