//! The limits that a call can reach, with the message and the configuration key of each.

use std::fmt;
use std::time::Duration;

use bytesize::ByteSize;

use super::error_kind::ErrorKind;
use crate::text::{format_duration, format_thousands};

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
        let sentence = self.sentence_start(&format!("The {noun}"), &format!("The {noun}'s"));
        let key = self.key();
        match tool {
            Some(tool) => format!("{sentence} (to allow more, raise tools.{tool}.{key})."),
            None if matches!(
                self,
                Self::Stack(_) | Self::StateTotal(_) | Self::ResultSize(_)
            ) =>
            {
                format!("{sentence} (to allow more, raise {key}, which applies to all plugins).")
            }
            None => format!("{sentence} (to allow more, raise {key})."),
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
