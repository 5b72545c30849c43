//! How much a log line matters: to the macros that write it, and to a test that
//! looks at it.

/// How much a log line matters: the levels of syslog, as in MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Details for somebody who looks for a mistake.
    Debug,
    /// What happens, in the ordinary course.
    Info,
    /// Ordinary, but worth knowing.
    Notice,
    /// Something is odd; the call goes on.
    Warning,
    /// Something failed.
    Error,
    /// A part that others need failed.
    Critical,
    /// Somebody should act at once.
    Alert,
    /// Nothing works.
    Emergency,
}
