//! Errors of calls, and the messages for each limit.

use std::fmt;
use std::time::Duration;

use bytesize::ByteSize;

use crate::QuestionKind;
use crate::text::{format_duration, format_thousands};

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
            Self::Cancelled => ErrorKind::Cancelled,
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
            Self::Denied {
                message: words,
                denial: denied,
            } => write!(f, "{words} ({denied})"),
            // The guest's last output usually has the cause, so it comes first.
            Self::Trap {
                cause: what,
                stderr: Some(stderr),
            } => write!(f, "{stderr} ({what})"),
            Self::Trap {
                cause: what,
                stderr: None,
            } => f.write_str(what),
            Self::InvalidOutput(what) => write!(f, "invalid output: {what}"),
            Self::Incapable(kinds) => {
                let methods: Vec<&str> = kinds.iter().map(|kind| kind.method()).collect();
                write!(f, "the client cannot answer: {}", methods.join(", "))
            }
            Self::Cancelled => f.write_str("cancelled"),
        }
    }
}

/// A limit that a call reached, with its value. As the error of a host call, it ends the guest's
/// call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// [`Limits::fuel`](crate::Limits::fuel).
    Fuel(u64),
    /// [`Limits::timeout`](crate::Limits::timeout).
    Deadline(Duration),
    /// [`Limits::memory`](crate::Limits::memory).
    Memory(ByteSize),
    /// The native stack of a guest: `server.stack_size`.
    Stack(ByteSize),
    /// [`Limits::output`](crate::Limits::output).
    Output(ByteSize),
    /// Maximum size of a result that is stored for its caller: `results.size`.
    ResultSize(ByteSize),
    /// [`Limits::output_items`](crate::Limits::output_items).
    OutputItems(usize),
    /// [`Limits::memory`](crate::Limits::memory), exceeded by the parsed JSON values of a result.
    Parsed(ByteSize),
    /// [`Limits::transfer`](crate::Limits::transfer).
    Transfer(ByteSize),
    /// [`Limits::stdio`](crate::Limits::stdio).
    Stdio(ByteSize),
    /// [`Limits::log`](crate::Limits::log). Reaching it drops log lines and does not end the call.
    Log(ByteSize),
    /// [`Limits::handles`](crate::Limits::handles).
    Handles(usize),
    /// [`Limits::random`](crate::Limits::random).
    Random(ByteSize),
    /// [`Limits::table_elements`](crate::Limits::table_elements).
    TableElements(usize),
    /// [`Limits::instances`](crate::Limits::instances).
    Instances(usize),
    /// [`Limits::memories`](crate::Limits::memories).
    Memories(usize),
    /// [`Limits::http_requests`](crate::Limits::http_requests).
    HttpRequests(u64),
    /// [`Limits::http_bytes`](crate::Limits::http_bytes).
    HttpBytes(ByteSize),
    /// [`Limits::ask_rounds`](crate::Limits::ask_rounds).
    AskRounds(u64),
    /// [`Limits::ask_timeout`](crate::Limits::ask_timeout).
    AskTime(Duration),
    /// [`Limits::journal`](crate::Limits::journal).
    Journal(ByteSize),
    /// [`Limits::tcp_connections`](crate::Limits::tcp_connections).
    TcpConnections(u64),
    /// [`Limits::tcp_bytes`](crate::Limits::tcp_bytes).
    TcpBytes(ByteSize),
    /// Bytes that a plugin stores: `permissions.state.size`.
    StateSize(ByteSize),
    /// Keys that a plugin stores: `permissions.state.keys`.
    StateKeys(u64),
    /// Bytes that all plugins store together: `state.size`.
    StateTotal(ByteSize),
    /// Total size of all files in a mounted folder.
    MountQuota(ByteSize),
    /// Files, folders and links in a mounted folder.
    MountEntries(usize),
    /// Total size of all files in a call's temporary folder.
    ScratchSize(ByteSize),
    /// Files, folders and links in a call's temporary folder.
    ScratchEntries(usize),
}

impl Limit {
    /// Returns the error kind for `_meta["dev.toolbay/error"]`.
    pub fn kind(self) -> ErrorKind {
        match self {
            Self::Fuel(_) => ErrorKind::Fuel,
            Self::Deadline(_) => ErrorKind::Deadline,
            Self::Memory(_) => ErrorKind::Memory,
            Self::Stack(_) => ErrorKind::Stack,
            Self::Output(_)
            | Self::ResultSize(_)
            | Self::OutputItems(_)
            | Self::Parsed(_)
            | Self::Transfer(_)
            | Self::Stdio(_) => ErrorKind::Output,
            Self::Log(_)
            | Self::Handles(_)
            | Self::Random(_)
            | Self::TableElements(_)
            | Self::Instances(_)
            | Self::Memories(_)
            | Self::HttpRequests(_)
            | Self::HttpBytes(_)
            | Self::AskRounds(_)
            | Self::AskTime(_)
            | Self::Journal(_)
            | Self::TcpConnections(_)
            | Self::TcpBytes(_)
            | Self::StateSize(_)
            | Self::StateKeys(_)
            | Self::StateTotal(_)
            | Self::MountQuota(_)
            | Self::MountEntries(_)
            | Self::ScratchSize(_)
            | Self::ScratchEntries(_) => ErrorKind::Limit,
        }
    }

    /// Returns the configuration key that sets the limit.
    pub fn key(self) -> &'static str {
        match self {
            Self::Fuel(_) => "limits.fuel",
            Self::Deadline(_) => "limits.timeout",
            Self::Memory(_) | Self::Parsed(_) => "limits.memory",
            Self::Stack(_) => "server.stack_size",
            Self::Output(_) => "limits.output",
            Self::ResultSize(_) => "results.size",
            Self::OutputItems(_) => "limits.output_items",
            Self::Transfer(_) => "limits.transfer",
            Self::Stdio(_) => "limits.stdio",
            Self::Log(_) => "limits.log",
            Self::Handles(_) => "limits.handles",
            Self::Random(_) => "limits.random",
            Self::TableElements(_) => "limits.table_elements",
            Self::Instances(_) => "limits.instances",
            Self::Memories(_) => "limits.memories",
            Self::HttpRequests(_) => "limits.http_requests",
            Self::HttpBytes(_) => "limits.http_bytes",
            Self::AskRounds(_) => "limits.ask_rounds",
            Self::AskTime(_) => "limits.ask_timeout",
            Self::Journal(_) => "limits.journal",
            Self::TcpConnections(_) => "limits.tcp_connections",
            Self::TcpBytes(_) => "limits.tcp_bytes",
            Self::StateSize(_) => "permissions.state.size",
            Self::StateKeys(_) => "permissions.state.keys",
            Self::StateTotal(_) => "state.size",
            Self::MountQuota(_) => "permissions.mounts.quota",
            Self::MountEntries(_) => "permissions.mounts.entries",
            Self::ScratchSize(_) => "permissions.scratch.size",
            Self::ScratchEntries(_) => "permissions.scratch.entries",
        }
    }

    /// Returns the beginning of a sentence that states the event and the limit's value. `it` is the
    /// subject of the sentence, and `its` is its possessive form.
    fn sentence_start(self, it: &str, its: &str) -> String {
        match self {
            Self::Fuel(n) => format!(
                "{it} used all of its fuel, {} instructions",
                format_thousands(n)
            ),
            Self::Deadline(time) => format!("{it} did not finish within {}", format_duration(time)),
            Self::Memory(size) => format!("{it} needed more than {} of memory", format_bytes(size)),
            Self::Stack(size) => format!("{it} overflowed its stack of {}", format_bytes(size)),
            Self::Output(size) => format!("{its} result is larger than {}", format_bytes(size)),
            Self::ResultSize(size) => {
                format!(
                    "{its} result is larger than {}, the maximum that is stored",
                    format_bytes(size)
                )
            }
            Self::OutputItems(n) => format!(
                "{its} result has more than {} content blocks",
                format_count(n)
            ),
            Self::Parsed(size) => {
                format!(
                    "{its} result needs more than {} of memory when its JSON is parsed",
                    format_bytes(size)
                )
            }
            Self::Transfer(size) => format!(
                "{it} passed more than {} to the host in one call",
                format_bytes(size)
            ),
            Self::Stdio(size) => {
                format!(
                    "{it} wrote more than {} to standard output and standard error",
                    format_bytes(size)
                )
            }
            Self::Log(size) => format!(
                "{it} logged more than {}; further lines are dropped",
                format_bytes(size)
            ),
            Self::Handles(n) => format!(
                "{it} held more than {} host resources open",
                format_count(n)
            ),
            Self::Random(size) => format!(
                "{it} requested more than {} of random data at once",
                format_bytes(size)
            ),
            Self::TableElements(n) => format!(
                "{it} needed a table of more than {} elements",
                format_count(n)
            ),
            Self::Instances(n) => format!("{it} has more than {} core instances", format_count(n)),
            Self::Memories(n) => format!("{it} has more than {} linear memories", format_count(n)),
            Self::HttpRequests(n) => {
                format!("{it} sent more than {} HTTP requests", format_thousands(n))
            }
            Self::HttpBytes(size) => format!(
                "{it} sent and received more than {} over HTTP",
                format_bytes(size)
            ),
            Self::AskRounds(n) => format!("{it} asked more than {} times", format_thousands(n)),
            Self::AskTime(time) => format!(
                "{its} questions were not answered within {}",
                format_duration(time)
            ),
            Self::Journal(size) => {
                format!(
                    "{its} answers, and the operations before its questions, need more than {}",
                    format_bytes(size)
                )
            }
            Self::TcpConnections(n) => format!(
                "{it} made more than {} TCP connections",
                format_thousands(n)
            ),
            Self::TcpBytes(size) => format!(
                "{it} sent and received more than {} over TCP",
                format_bytes(size)
            ),
            Self::StateSize(size) => format!(
                "{it} tried to keep more than {} of state",
                format_bytes(size)
            ),
            Self::StateKeys(n) => format!(
                "{it} tried to keep more than {} keys of state",
                format_thousands(n)
            ),
            Self::StateTotal(size) => {
                format!(
                    "{it} tried to keep state, and the state of all plugins together reached {}",
                    format_bytes(size)
                )
            }
            Self::MountQuota(size) => format!(
                "{it} needed more than {} in a mounted folder",
                format_bytes(size)
            ),
            Self::MountEntries(n) => {
                format!(
                    "{it} needed more than {} files and folders in a mounted folder",
                    format_count(n)
                )
            }
            Self::ScratchSize(size) => format!(
                "{it} needed more than {} in its temporary folder",
                format_bytes(size)
            ),
            Self::ScratchEntries(n) => {
                format!(
                    "{it} needed more than {} files and folders in its temporary folder",
                    format_count(n)
                )
            }
        }
    }

    /// Returns a sentence for the model with the limit, its value and the key that raises it.
    /// `noun` is the target that reached the limit, such as "tool". `tool` is the plugin's name for
    /// the tool if the limit is set only for that tool.
    pub fn message(self, noun: &str, tool: Option<&str>) -> String {
        let (words, key) = (
            self.sentence_start(&format!("The {noun}"), &format!("The {noun}'s")),
            self.key(),
        );
        match tool {
            Some(tool) => format!("{words} (to allow more, raise tools.{tool}.{key})."),
            None if matches!(
                self,
                Self::Stack(_) | Self::StateTotal(_) | Self::ResultSize(_)
            ) =>
            {
                format!("{words} (to allow more, raise {key}, which applies to all plugins).")
            }
            None => format!("{words} (to allow more, raise {key})."),
        }
    }

    /// Like [`message`](Self::message), but without a key, for a plugin that reached the limit
    /// while it listed its tools: no grant changes those limits.
    pub fn message_without_key(self) -> String {
        self.sentence_start("it", "its")
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message("tool", None))
    }
}

impl std::error::Error for Limit {}

fn format_count(n: usize) -> String {
    format_thousands(n as u64)
}

fn format_bytes(size: ByteSize) -> String {
    size.display().iec().to_string()
}

#[cfg(test)]
mod tests;
