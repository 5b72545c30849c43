//! Runs guests: compiles and links components, and gives each call a new store within its limits.
//!
//! This is the only crate that depends on wasmtime. Data flows in one direction. A [`Source`]
//! becomes [`Compiled`] code and a [`Prepared`] component once. A call takes the component, an
//! [`Environment`] and the request ([`Asked`]), and ends as a [`Finished`], whose output is
//! [`Unchecked`]. No guest state outlives its call. This crate does not depend on the plugin
//! folder, the catalog or the protocol: its caller supplies bytes and permissions, and receives the
//! results.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "Toolbay runs on Linux: the child that compiles plugins depends on an address-space limit that is enforced and on the \
     parent-death signal. On macOS and Windows, use a Linux container or WSL 2."
);

mod about;
mod account;
mod act;
mod adapt;
mod ask;
mod asked;
mod block;
mod cache;
mod call;
mod callable;
mod cbor;
mod cleaner;
mod command;
mod compilations;
mod compile;
mod compiled;
mod compute_place;
mod concurrency;
mod connections;
mod content;
mod contract;
mod coop;
mod cores;
mod definition;
mod describe;
mod descriptors;
mod determinism;
mod docs;
mod effects;
mod engine;
mod engines;
mod entrance;
mod environment;
mod error;
mod exchanges;
mod exports;
mod facts;
mod folders;
mod functions;
mod handler;
mod hindrance;
mod hint;
mod http;
mod image;
mod imports;
mod input;
mod kept;
mod keyvalue;
mod ledger;
mod limiter;
mod linker;
mod listed;
mod nested;
mod newer;
mod optimize;
mod origin;
mod output;
mod part;
mod parts;
mod preamble;
mod preinit;
mod prepare_error;
mod prepared;
mod proposals;
mod reach;
mod requests;
mod returned;
mod roots;
mod run;
mod sandbox;
mod scratch;
mod server;
mod sockets;
mod source;
mod state;
mod stdio;
mod surplus;
mod syntax;
mod talk;
mod tape;
mod traffic;
#[cfg(test)]
mod trial;
mod versions;
mod wasi;
mod wasi3;
mod wide;
mod worker;

pub use self::about::About;
pub use self::asked::Asked;
pub use self::call::Finished;
pub use self::callable::{Callable, Remade, Remake};
pub use self::compilations::CompileCounts;
pub use self::compile::Compile;
pub use self::compiled::{Compiled, Scratch};
pub use self::compute_place::ComputePlace;
pub use self::connections::Connections;
pub use self::cores::cores;
pub use self::environment::{Entry, Environment};
pub use self::hindrance::Hindrance;
pub use self::keyvalue::KeyValue;
pub use self::listed::Listed;
pub use self::optimize::{Allowance, Optimize, OptimizeError, Optimized, WarmUp};
pub use self::output::Unchecked;
pub use self::prepare_error::PrepareError;
pub use self::prepared::Prepared;
pub use self::requests::Requests;
pub use self::roots::Roots;
pub use self::sandbox::{Sandbox, Settings};
pub use self::source::Source;
pub use self::tape::{Again, Deviation, Tape, Taped};
pub use toolbay_outgoing::Options as NetworkOptions;

pub use self::worker::{Job, run as compile_worker};
