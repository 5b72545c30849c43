//! Test support for the tests, the soak test, the benchmark and the demo: clients for a real
//! server, temporary plugin folders, command lines, small generated components, and the workspace's
//! own plugins, built on demand.
//!
//! The crate has three layers, each on top of the previous one:
//!
//! 1. [`ProgramProcess`] runs the program and reads its output line by line.
//! 2. [`SharedConnection`] sends requests for any number of callers and matches each response to
//!    its caller. [`StdioClient`] is a single caller that sends a request, waits for the response,
//!    and buffers other messages. Both return [`anyhow::Result`].
//! 3. [`StdioServer`] and [`HttpServer`] are for tests. They have the same operations, but panic on
//!    errors and print the server's log.
//!
//! This crate uses the server only as a separate process. The path of the server's executable is an
//! argument ([`ServerProgram::new`]). No crate of the server is a dependency.

pub mod build;
pub mod command;
pub mod guests;
#[cfg(feature = "latency")]
pub mod latency;
pub mod markdown;
pub mod message;
#[cfg(feature = "vitals")]
pub mod process_usage;
pub mod revision;
pub mod terminal;
#[cfg(feature = "components")]
pub mod wit;
pub mod workspace;

mod client;
mod compile;
mod connection;
mod fake_registry;
mod folder;
mod http;
mod local_address;
mod log;
mod observable_value;
#[cfg(feature = "otlp")]
mod otlp;
mod process;
mod program;
mod server;
#[cfg(feature = "sockets")]
mod socket;
#[cfg(feature = "components")]
mod tiny_component;
mod toolbay_command;

use std::time::Duration;

pub use self::client::StdioClient;
pub use self::compile::compile_once;
pub use self::connection::{
    CallerEvent, CallerMailbox, FaultSummary, RequestLedger, SharedConnection, UnclaimedPolicy,
};
pub use self::fake_registry::{FakeAnswer, FakeRegistry};
pub use self::folder::TestFolder;
pub use self::http::{HttpResponse, HttpServer, HttpServerProcess, HttpSession, read_request};
pub use self::local_address::other_local_address;
pub use self::log::ProgramLog;
pub use self::message::{RequestResult, RpcError, TimedMessage};
pub use self::observable_value::ObservableValue;
#[cfg(feature = "otlp")]
pub use self::otlp::{
    CollectorBehavior, OtlpCollector, ReceivedTelemetry, SpanMessage, attribute_map, attribute_text,
};
pub use self::process::{ProgramProcess, StreamEvent};
pub use self::program::ServerProgram;
pub use self::server::StdioServer;
#[cfg(feature = "sockets")]
pub use self::socket::{ClientSocket, ConnectionEnd, HttpReply};
#[cfg(feature = "components")]
pub use self::tiny_component::{TinyComponent, TinyCoreModule, TinyTool};
pub use self::toolbay_command::{CommandOutput, ToolbayCommand};

/// Timeout of every operation in a test. An operation that succeeds takes less than a tenth of it.
pub const DEADLINE: Duration = Duration::from_mins(1);

/// The method of the notification that the list of tools has changed.
pub const LIST_CHANGED: &str = "notifications/tools/list_changed";
