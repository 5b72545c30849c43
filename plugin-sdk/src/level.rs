//! The severity of log messages, for the log macros and for tests that check what was logged.

/// The severity of a log message: the levels of syslog, as in MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Debugging details.
    Debug,
    /// Normal operation.
    Info,
    /// Normal but significant.
    Notice,
    /// A possible problem; the call continues.
    Warning,
    /// An error.
    Error,
    /// A critical condition.
    Critical,
    /// Immediate action is required.
    Alert,
    /// The system is unusable.
    Emergency,
}
