//! The kinds of errors of calls, and the words for them.

use std::fmt;

/// The kinds of errors that end a call. `_meta["dev.toolbay/error"]`, the server's counters, its
/// log and the documentation use the same words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorKind {
    /// The tool is unknown or not available to the caller.
    UnknownTool,
    /// The tool requires client capabilities that were not declared.
    MissingCapability,
    /// The arguments do not match the input schema, or the plugin rejected them.
    InvalidArguments,
    /// The operator requires a person to approve the call, and no person did.
    NotApproved,
    /// The plugin or its grant changed while the call waited for an answer.
    Outdated,
    /// Too many calls are running or waiting.
    Busy,
    /// A rate limit was exceeded.
    RateLimited,
    /// The plugin is disabled: by the circuit breaker for a short time, or by the operator.
    Disabled,
    /// The plugin reported a failure.
    Failed,
    /// The result violates the contract or the tool's output schema.
    InvalidOutput,
    /// The fuel was used up.
    Fuel,
    /// The wall-clock deadline passed.
    Deadline,
    /// The memory limit was reached.
    Memory,
    /// The guest's stack overflowed.
    Stack,
    /// The result, or the data that the guest wrote or passed to the host, is too large (`output`,
    /// `output_items`, `transfer`, `stdio`).
    Output,
    /// Another limit was reached: handles, random data, tables, instances, memories, HTTP, TCP,
    /// folders or state.
    Limit,
    /// The tool failed after the grant had denied it access to something.
    Denied,
    /// The guest crashed.
    Trap,
    /// The call was cancelled.
    Cancelled,
    /// An error in Toolbay.
    Internal,
}

impl ErrorKind {
    /// Every kind, in the order in which counts are reported.
    pub const ALL: [Self; 20] = [
        Self::UnknownTool,
        Self::MissingCapability,
        Self::InvalidArguments,
        Self::NotApproved,
        Self::Outdated,
        Self::Busy,
        Self::RateLimited,
        Self::Disabled,
        Self::Failed,
        Self::InvalidOutput,
        Self::Fuel,
        Self::Deadline,
        Self::Memory,
        Self::Stack,
        Self::Output,
        Self::Limit,
        Self::Denied,
        Self::Trap,
        Self::Cancelled,
        Self::Internal,
    ];

    /// Returns the word for the kind in the protocol and in the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownTool => "unknown-tool",
            Self::MissingCapability => "missing-capability",
            Self::InvalidArguments => "invalid-arguments",
            Self::NotApproved => "not-approved",
            Self::Outdated => "outdated",
            Self::Busy => "busy",
            Self::RateLimited => "rate-limited",
            Self::Disabled => "disabled",
            Self::Failed => "failed",
            Self::InvalidOutput => "invalid-output",
            Self::Fuel => "fuel",
            Self::Deadline => "deadline",
            Self::Memory => "memory",
            Self::Stack => "stack",
            Self::Output => "output",
            Self::Limit => "limit",
            Self::Denied => "denied",
            Self::Trap => "trap",
            Self::Cancelled => "cancelled",
            Self::Internal => "internal",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
