//! Observers of running calls, and the events that they receive.

use serde::{Deserialize, Serialize};

use crate::http_exchange::HttpExchange;
use crate::trace::TraceContext;

/// Receives a guest's log messages, progress and other events while it runs.
///
/// Its methods run on the guest's thread: an implementation must not block.
pub trait CallObserver: Send + Sync {
    /// Receives a log message. It has no control characters and no secrets, and is within
    /// `limits.log`.
    fn log(&self, level: LogLevel, message: &str);
    /// Receives progress. `progress.progress` increases with each call.
    fn progress(&self, progress: ProgressUpdate);
    /// Reports that an access of this kind was denied to the guest. `message` is a sentence.
    /// `remedy` is the permission that an operator can add to the grant to allow the access, as
    /// lines of TOML for `[permissions]`. The lines have no control characters and no secrets.
    fn denied(&self, _kind: DenialKind, _message: &str, _remedy: Option<&str>) {}
    /// Reports that the content of the resource `uri` changed, so that subscribed clients can be
    /// notified.
    fn resource_updated(&self, _uri: &str) {}
    /// Starts the span of an HTTP request that the guest sends, as a child of the call's span.
    /// Returns `None` if HTTP requests are not traced.
    fn start_http_span(&self, _call: &TraceContext) -> Option<TraceContext> {
        None
    }
    /// Reports that a request with such a span has ended.
    fn http_exchange_ended(&self, _exchange: HttpExchange) {}
    /// Receives the texts that the guest wrote to standard output and standard error, when it has
    /// ended. They have no secrets, but may have control characters. The result of a command, which
    /// it writes to standard output, is not among them.
    fn guest_output(&self, _stdout: &str, _stderr: &str) {}
    /// Returns whether the caller no longer waits for the result.
    fn is_cancelled(&self) -> bool;
}

/// The kinds of access that can be denied to a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenialKind {
    /// An HTTP request.
    Http,
    /// A TCP connection, or a socket for one.
    Tcp,
    /// A datagram.
    Udp,
    /// Resolution of a name.
    NameLookup,
    /// Storage of state.
    State,
    /// Use of a file or folder.
    File,
    /// The origins that a view may access, or the features that it may use.
    View,
}

impl DenialKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Http,
        Self::Tcp,
        Self::Udp,
        Self::NameLookup,
        Self::State,
        Self::File,
        Self::View,
    ];

    /// Returns the word for the kind in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::NameLookup => "dns",
            Self::State => "state",
            Self::File => "file",
            Self::View => "view",
        }
    }
}

/// An observer that ignores all events and never cancels.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoopObserver;

impl CallObserver for NoopObserver {
    fn log(&self, _level: LogLevel, _message: &str) {}

    fn progress(&self, _progress: ProgressUpdate) {}

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// The progress of a call (MCP `notifications/progress`).
#[derive(Clone, Debug, PartialEq)]
pub struct ProgressUpdate {
    /// The completed work, in a unit that the guest chooses. Finite and increasing.
    pub progress: f64,
    /// The total work in the same unit. Finite; `None` if unknown.
    pub total: Option<f64>,
    /// A description of the current step.
    pub message: Option<String>,
}

/// The severity of a log message (RFC 5424, as in MCP), least severe first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Debugging details.
    Debug,
    /// Normal operation.
    #[default]
    Info,
    /// Normal but significant.
    Notice,
    /// A possible problem.
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
