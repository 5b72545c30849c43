//! What a guest reports while it runs, and who receives it.

use serde::{Deserialize, Serialize};

use crate::exchange::HttpExchange;
use crate::trace::TraceContext;

/// Receives a guest's log messages and progress while it runs.
///
/// Its methods run on the guest's thread: an implementation must not block.
pub trait CallObserver: Send + Sync {
    /// Receives a log message. It has no control characters and no secrets, and is within `limits.log`.
    fn log(&self, level: LogLevel, message: &str);
    /// Receives progress. `progress.progress` increases with each call.
    fn progress(&self, progress: ProgressUpdate);
    /// A use of this kind was denied to the guest: `what` is a sentence, and `remedy` is what the operator would write in the
    /// grant to allow it, as lines of TOML for `[permissions]`. The lines have no control characters and no secrets.
    fn denied(&self, _kind: UseKind, _what: &str, _remedy: Option<&str>) {}
    /// The plugin says that the content of the resource `uri` changed. Clients that subscribed to it want to know.
    fn resource_updated(&self, _uri: &str) {}
    /// The span of an HTTP request that the guest sends, within that of its call; `None` if nobody wants to know of it.
    fn span(&self, _call: &TraceContext) -> Option<TraceContext> {
        None
    }
    /// A request that has such a span has ended.
    fn exchanged(&self, _exchange: HttpExchange) {}
    /// Whether the caller no longer waits for the result.
    fn cancelled(&self) -> bool;
}

/// The kinds of what can be denied to a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseKind {
    /// An HTTP request.
    Http,
    /// A TCP connection, or a socket for one.
    Tcp,
    /// A datagram.
    Udp,
    /// Resolving a name.
    Name,
    /// Keeping state.
    State,
    /// Using a file or folder.
    File,
    /// What a view may reach, or is allowed to do.
    View,
}

impl UseKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [Self::Http, Self::Tcp, Self::Udp, Self::Name, Self::State, Self::File, Self::View];

    /// The word for it in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Name => "name",
            Self::State => "state",
            Self::File => "file",
            Self::View => "view",
        }
    }
}

/// An observer that ignores everything and never cancels.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoopObserver;

impl CallObserver for NoopObserver {
    fn log(&self, _level: LogLevel, _message: &str) {}

    fn progress(&self, _progress: ProgressUpdate) {}

    fn cancelled(&self) -> bool {
        false
    }
}

/// The progress of a call (MCP `notifications/progress`).
#[derive(Clone, Debug, PartialEq)]
pub struct ProgressUpdate {
    /// The work done so far, in a unit of the guest's choice. Finite and increasing.
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
