//! Approval of a call by a person: its state, and the reasons why it is missing.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::text::format_duration;

/// The state of the approval that the operator requires for a call. It is part of the call's
/// [`CallJournal`](crate::CallJournal), which only the host writes: neither a client nor a guest
/// can set it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum ApprovalState {
    /// The user has not been asked.
    #[default]
    Unasked,
    /// The user was asked this many times and has not answered yet.
    Asked(u32),
    /// The user has approved this call, or an earlier call whose approval also applies to this one.
    Given,
}

/// A missing approval. The guest was not entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingApproval {
    /// The reason why the approval is missing.
    pub reason: MissingApprovalReason,
    /// The configuration key that requires the approval, and its file, such as
    /// `tools.erase.require_approval in notes.toml`.
    pub key: String,
}

/// The reason why a call has no approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingApprovalReason {
    /// The user declined the call.
    Declined,
    /// The user closed the question without an answer.
    Cancelled,
    /// The client was asked this many times and returned no valid answer.
    Invalid(u32),
    /// No answer arrived within this time.
    TimedOut(Duration),
    /// The client cannot show a form to its user.
    Unsupported,
    /// Only an operator may allow the call, and none can be asked: the server has no console, or too
    /// many calls wait.
    NoOperator,
}

impl MissingApprovalReason {
    /// Returns the word for the reason in the audit log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Declined => "declined",
            Self::Cancelled => "cancelled",
            Self::Invalid(_) => "invalid",
            Self::TimedOut(_) => "timed-out",
            Self::Unsupported => "unsupported",
            Self::NoOperator => "no-operator",
        }
    }
}

/// Formats a message for the model: what happened, and how to proceed.
impl fmt::Display for MissingApproval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match self.reason {
            MissingApprovalReason::Declined => f.write_str(
                "The user was asked whether to allow this call and said no. The tool was not called. Do not retry the call, \
                 and do not try to reach the same result in another way: tell the user, and wait for instructions.",
            ),
            MissingApprovalReason::Cancelled => f.write_str(
                "The user was asked whether to allow this call and closed the question without an answer. The tool was not \
                 called. Do not retry the call unless the user asks for it.",
            ),
            MissingApprovalReason::Invalid(times) => write!(
                f,
                "The user had to be asked whether to allow this call. The client was asked {times} times and returned \
                 neither yes nor no, so the tool was not called. Do not retry: tell the user."
            ),
            MissingApprovalReason::TimedOut(time) => write!(
                f,
                "The user was asked whether to allow this call and did not answer within {}. The tool was not called. Do \
                 not call it again unless the user asks for it. The operator of the server can allow more time \
                 (limits.ask_timeout).",
                format_duration(time)
            ),
            MissingApprovalReason::Unsupported => write!(
                f,
                "This tool is called only after a person has allowed the call, and this client cannot ask its user. The \
                 tool was not called. Do not retry: tell the user. What helps: a client that shows forms (elicitation, \
                 MCP 2025-06-18 or later), or the operator of the server, who can make the call with `toolbay call` or \
                 change {key}."
            ),
            MissingApprovalReason::NoOperator => f.write_str(
                "This tool is called only after the operator of the server has allowed the call, and the operator cannot be \
                 asked now: the server has no console, or too many calls wait for an answer. The tool was not called. Do not \
                 retry: tell the user.",
            ),
        }
    }
}
