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

impl Bound {
    /// The configuration key that sets it.
    const fn key(self) -> &'static str {
        match self {
            Self::Server => "server.calls",
            Self::Plugin => "limits.concurrency",
            Self::Client => "server.client_calls",
            Self::Queue => "server.queue",
        }
    }
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
                let what = match bound {
                    Bound::Server => format!("The server is already running {calls}"),
                    Bound::Plugin => format!("The tool's plugin is already running {calls}"),
                    Bound::Client => format!("The server is already running {calls} from this client"),
                    Bound::Queue if most == 1 => format!("{calls} from this client is already waiting"),
                    Bound::Queue => format!("{calls} from this client are already waiting"),
                };
                format!("{what} (to allow more, raise {}).", bound.key())
            }
            Self::ClientRate(limit) => {
                format!("This client exceeded its rate limit of {limit} (to allow more, raise client_rate_limit).")
            }
            Self::ToolRate(limit) => {
                format!("This tool exceeded its rate limit of {limit} (to allow more, raise rate_limit).")
            }
            Self::Disabled => {
                "The tool's plugin is disabled for a short time because it crashed repeatedly.".to_owned()
            }
        }
    }
}
