//! Test support for the tests, the soak test, the benchmark and the demo: clients for a real
//! server, temporary plugin folders, command lines, small generated components, and the workspace's
//! own plugins, built on demand.
//!
//! The crate has three layers, each on top of the previous one:
//!
//! 1. [`Process`] runs the program and reads its output line by line.
//! 2. [`Connection`] sends requests for any number of callers and matches each response to its
//!    caller. [`Client`] is a single caller that sends a request, waits for the response, and
//!    buffers other messages. Both return [`anyhow::Result`].
//! 3. [`Server`] and [`HttpServer`] are for tests. They have the same operations, but panic on
//!    errors and print the server's log.
//!
//! This crate uses the server only as a separate process. The path of the server's executable is an
//! argument ([`Program::new`]). No crate of the server is a dependency.

pub mod build;
pub mod command;
pub mod guests;
#[cfg(feature = "latency")]
pub mod latency;
pub mod markdown;
pub mod message;
pub mod revision;
pub mod terminal;
#[cfg(feature = "vitals")]
pub mod vitals;
#[cfg(feature = "components")]
pub mod wit;
pub mod workspace;

mod client;
mod compile;
mod connection;
mod folder;
mod http;
mod log;
#[cfg(feature = "otlp")]
mod otlp;
mod process;
mod program;
mod server;
mod signal;
#[cfg(feature = "sockets")]
mod socket;
#[cfg(feature = "components")]
mod tiny;
mod toolbay;

use std::time::Duration;

pub use self::client::Client;
pub use self::compile::compile_once;
pub use self::connection::{Books, Connection, Event, Faults, Mailbox, Unclaimed};
pub use self::folder::Folder;
pub use self::http::{HttpServer, HttpSession, Listener, Response, read_request};
pub use self::log::Log;
pub use self::message::{Answer, Arrived, Refusal};
#[cfg(feature = "otlp")]
pub use self::otlp::{Collector, Manner, Received, SpanMessage, attribute, attributes};
pub use self::process::{Heard, Process};
pub use self::program::Program;
pub use self::server::Server;
pub use self::signal::Signal;
#[cfg(feature = "sockets")]
pub use self::socket::{Ended, Reply, Socket};
#[cfg(feature = "components")]
pub use self::tiny::{Offering, Tiny, Tool};
pub use self::toolbay::{Outcome, Toolbay};

/// Timeout of every operation in a test. An operation that succeeds takes less than a tenth of it.
pub const DEADLINE: Duration = Duration::from_mins(1);

/// The method of the notification that the list of tools has changed.
pub const LIST_CHANGED: &str = "notifications/tools/list_changed";
