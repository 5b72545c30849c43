//! Why a call was not let in.

use std::time::Duration;

use crate::text::thousands;
use crate::{ErrorKind, RateLimit};

/// A call that was not let in, and when it may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Why it was rejected.
    pub reason: Reason,
    /// How long to wait before the next try: a hint, not a promise.
    pub retry_after: Duration,
}

/// Why a call was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Too many calls are running or waiting, and no place became free in time.
    Busy {
        /// The bound that was reached.
        bound: Bound,
        /// Its value: a number of calls.
        most: usize,
    },
    /// The client calls more often than it may.
    ClientRate(RateLimit),
    /// The tool is called more often than it may be.
    ToolRate(RateLimit),
    /// The plugin crashed too many times in a row and is disabled for a while.
    Disabled,
}

/// A bound on the number of calls at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// `server.calls`: calls running in the whole server.
    Server,
    /// `limits.concurrency`: calls of the plugin running.
    Plugin,
    /// `server.client_calls`: calls of the client running.
    Client,
    /// `server.queue`: calls of the client waiting.
    Queue,
}

impl Reason {
    /// The kind of error that this is.
    pub fn kind(self) -> ErrorKind {
        match self {
            Self::Busy { .. } => ErrorKind::Busy,
            Self::ClientRate(_) | Self::ToolRate(_) => ErrorKind::Rate,
            Self::Disabled => ErrorKind::Disabled,
        }
    }

    /// One sentence: which bound or rate, its value, and the key that raises it.
    pub fn message(self) -> String {
        match self {
            Self::Busy { bound, most } => {
                let calls = if most == 1 { "1 call".to_owned() } else { format!("{} calls", thousands(most as u64)) };
                match bound {
                    Bound::Server => format!("The server is busy with {calls} (server.calls raises it)."),
                    Bound::Plugin => {
                        format!("The tool's plugin is busy with {calls} (limits.concurrency raises it).")
                    }
                    Bound::Client => {
                        format!("The server is busy with {calls} of this client (server.client_calls raises it).")
                    }
                    Bound::Queue => {
                        format!("{calls} of this client are waiting already (server.queue raises it).")
                    }
                }
            }
            Self::ClientRate(limit) => {
                format!("More than {limit} (client_rate_limit raises it).")
            }
            Self::ToolRate(limit) => format!("More than {limit} of this tool (rate_limit raises it)."),
            Self::Disabled => "The tool's plugin crashed too many times in a row and is disabled for now.".to_owned(),
        }
    }
}
