//! Reasons why a call was rejected before a guest was entered.

use std::fmt;
use std::time::Duration;

use bytesize::ByteSize;

use crate::text::format_thousands;
use crate::{ErrorKind, GrantEnd, RateLimit};

/// A call that was not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallRejection {
    /// The reason for the rejection.
    pub reason: RejectionReason,
    /// Estimated time until a retry can succeed; `None` if the client should not retry, because the
    /// time is unknown.
    pub retry_after: Option<Duration>,
}

/// The reason why a call was not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectionReason {
    /// No slot became free within `server.queue_timeout`, or the queue is full.
    Busy {
        /// The limit that was reached.
        limit: CapacityLimit,
        /// The value of that limit, in calls or bytes.
        capacity: usize,
    },
    /// The client exceeded its rate limit.
    ClientRate(RateLimit),
    /// Calls of the tool exceeded its rate limit.
    ToolRate(RateLimit),
    /// The circuit breaker has disabled the plugin for a short time after repeated crashes.
    Disabled,
    /// The operator has disabled the plugin.
    Suspended,
    /// The operator's grant for the plugin ended at this time.
    GrantEnded(GrantEnd),
    /// The budget of the operator's grant for today is used up.
    BudgetUsed {
        /// The key of the budget in the grant.
        key: &'static str,
        /// Its value: calls, fuel or bytes.
        amount: u64,
    },
    /// Running calls have reserved the rest of the budget of the operator's grant for today.
    BudgetReserved {
        /// The key of the budget in the grant.
        key: &'static str,
        /// Its value: fuel or bytes.
        amount: u64,
    },
    /// It is unknown how much of the budget of the operator's grant is used: the state of the server
    /// cannot be read or written.
    BudgetUnknown,
    /// The audit log has no capacity for the lines of the call (`audit.when_full`).
    AuditLogFull,
}

/// A limit on the calls that run or wait at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapacityLimit {
    /// `server.calls`: running calls of the whole server.
    Server,
    /// `limits.concurrency`: running calls of the plugin.
    Plugin,
    /// Also `limits.concurrency`: running calls of one target of a plugin. One slot stays available
    /// for the plugin's other targets.
    Target,
    /// `server.calls_per_caller`: running calls of the client.
    Client,
    /// `server.queue`: waiting calls of the client.
    Queue,
    /// `server.memory`: bytes that the running calls may hold together.
    Memory,
    /// `server.request_memory`: bytes that requests may take together, or those of one client.
    Requests,
}

impl CapacityLimit {
    /// Returns the configuration key that sets the limit.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Server => "server.calls",
            Self::Plugin | Self::Target => "limits.concurrency",
            Self::Client => "server.calls_per_caller",
            Self::Queue => "server.queue",
            Self::Memory => "server.memory",
            Self::Requests => "server.request_memory",
        }
    }
}

impl RejectionReason {
    /// Returns the error kind for `_meta["dev.toolbay/error"]`.
    pub fn kind(self) -> ErrorKind {
        match self {
            Self::Busy { .. } | Self::AuditLogFull => ErrorKind::Busy,
            Self::ClientRate(_)
            | Self::ToolRate(_)
            | Self::BudgetUsed { .. }
            | Self::BudgetReserved { .. } => ErrorKind::RateLimited,
            Self::Disabled | Self::Suspended | Self::GrantEnded(_) | Self::BudgetUnknown => {
                ErrorKind::Disabled
            }
        }
    }

    /// Returns the configuration key of the limit; `None` if the reason is not a limit.
    pub const fn key(self) -> Option<&'static str> {
        match self {
            Self::Busy { limit, .. } => Some(limit.key()),
            Self::ClientRate(_) => Some("caller_rate_limit"),
            Self::ToolRate(_) => Some("rate_limit"),
            Self::Disabled | Self::Suspended | Self::GrantEnded(_) | Self::BudgetUnknown => None,
            Self::BudgetUsed { key, .. } | Self::BudgetReserved { key, .. } => Some(key),
            Self::AuditLogFull => Some("audit.when_full"),
        }
    }

    /// Returns a sentence for the model with the limit or rate, its value and the key that raises
    /// it. `noun` is the kind of the target, such as "tool".
    pub fn message(self, noun: &str) -> String {
        match self {
            Self::Busy { limit, capacity } => {
                let calls = if capacity == 1 {
                    "1 call".to_owned()
                } else {
                    format!("{} calls", format_thousands(capacity as u64))
                };
                let sentence = match limit {
                    CapacityLimit::Server => format!("The server is already running {calls}"),
                    CapacityLimit::Plugin => {
                        format!("The {noun}'s plugin is already running {calls}")
                    }
                    CapacityLimit::Target => {
                        format!(
                            "The server is already running {calls} of this {noun} and keeps a slot free for other targets of its plugin"
                        )
                    }
                    CapacityLimit::Client => {
                        format!("The server is already running {calls} from this client")
                    }
                    CapacityLimit::Queue if capacity == 1 => {
                        format!("{calls} from this client is already waiting")
                    }
                    CapacityLimit::Queue => format!("{calls} from this client are already waiting"),
                    CapacityLimit::Memory => {
                        let memory = ByteSize::b(capacity as u64).display().iec().to_string();
                        format!(
                            "Running calls have reserved the {memory} of memory that the server may use"
                        )
                    }
                    CapacityLimit::Requests => {
                        let memory = ByteSize::b(capacity as u64).display().iec().to_string();
                        format!(
                            "Other requests use all of the {memory} of memory that requests may use together"
                        )
                    }
                };
                format!("{sentence} (to allow more, raise {}).", limit.key())
            }
            Self::ClientRate(limit) => {
                format!(
                    "This client exceeded its rate limit of {limit} (to allow more, raise caller_rate_limit)."
                )
            }
            Self::ToolRate(limit) => {
                format!(
                    "This {noun} exceeded its rate limit of {limit} (to allow more, raise rate_limit)."
                )
            }
            Self::Disabled => {
                format!(
                    "The {noun}'s plugin is disabled for a short time because it crashed repeatedly."
                )
            }
            Self::AuditLogFull => format!(
                "The server did not run the {noun} because its audit log cannot record the call: the log's disk is full or too \
                 slow (audit.when_full)."
            ),
            Self::Suspended => format!(
                "The {noun}'s plugin was disabled by the operator of the server. Do not retry: tell the user that only the \
                 operator can enable it again."
            ),
            Self::BudgetUsed { key, amount } => format!(
                "The budget of the operator's grant for the {noun}'s plugin is used up for today: {} ({key}). It is renewed at \
                 00:00 UTC.",
                format_thousands(amount)
            ),
            Self::BudgetReserved { key, amount } => format!(
                "Running calls have reserved the rest of today's budget of the operator's grant for the {noun}'s plugin, {} \
                 ({key}). The part that they do not use is available again when they end.",
                format_thousands(amount)
            ),
            Self::BudgetUnknown => format!(
                "The server did not run the {noun}: its plugin has a budget, and the server cannot find out how much of it is \
                 used, because its state is not available. Do not retry: tell the user that the operator must look at the log."
            ),
            Self::GrantEnded(end) => format!(
                "The operator's grant for the {noun}'s plugin ended at {end} (until). Do not retry: tell the user that only the \
                 operator can extend it."
            ),
        }
    }
}

impl fmt::Display for RejectionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message("tool"))
    }
}
