//! Runs guests: compiles and links components, and gives each call a new store within its limits.
//!
//! This is the only crate that depends on wasmtime. Data flows in one direction. A [`CompileSource`]
//! becomes [`CompiledFile`] code and a [`PreparedComponent`] component once. A call takes the component, an
//! [`PluginContext`] and the request ([`PluginRequest`]), and ends as a [`FinishedCall`], whose output is
//! [`UncheckedReply`]. No guest state outlives its call. This crate does not depend on the plugin
//! folder, the catalog or the protocol: its caller supplies bytes and permissions, and receives the
//! results.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "Toolbay runs on Linux: the child that compiles plugins depends on an address-space limit that is enforced and on the \
     parent-death signal. On macOS and Windows, use a Linux container or WSL 2."
);

mod plugin_summary;
mod memory_budget;
mod act;
mod adapter;
mod input_request;
mod plugin_request;
mod block;
mod cache;
mod call;
mod call_context;
mod call_directories;
mod call_sockets;
mod callable;
mod cbor;
mod cleaner;
mod command;
mod compile_counts;
mod compiler;
mod compiled;
mod compiler_process;
mod component_summary;
mod compute_permit;
mod concurrency;
mod plugin_connections;
mod content;
mod contract;
mod contract_interface;
mod contract_versions;
mod yielding;
mod cores;
mod definition;
mod describe;
mod descriptors;
mod determinism;
mod directory_reach;
mod dispatcher;
mod docs;
mod effects;
mod engine;
mod engine_pair;
mod error;
mod export_limits;
mod foreign_host;
mod functions;
mod guest_reply;
mod guest_stdin;
mod host_denial;
mod host_functions;
mod http_call;
mod http_handler;
mod keyvalue;
mod keyvalue_call;
mod limiter;
mod linked_command;
mod linker;
mod mcp_detection;
mod mcp_server;
mod memory_snapshot;
mod mount_roots;
mod nested_component;
mod optimize;
mod output_capture;
mod pending_requests;
mod plugin_http;
mod preamble;
mod preinit;
mod prepare_error;
mod prepared_component;
mod raw_description;
mod replay_log;
mod reply_check;
mod result_parts;
mod sandbox;
mod scratch_directories;
mod source;
mod state;
mod stdio_transport;
mod syntax;
mod tcp_usage;
#[cfg(test)]
mod test_sandbox;
mod unknown_items;
mod usage_ledger;
mod wasi;
mod wasi3;
mod wasi_p3_names;
mod wasm_proposals;
mod wide_integers;

pub use self::plugin_summary::PluginSummary;
pub use self::plugin_request::PluginRequest;
pub use self::call::FinishedCall;
pub use self::call_context::{CallContext, PluginContext};
pub use self::callable::{LazyComponent, Recompile, RecompileFuture};
pub use self::compile_counts::CompileCounts;
pub use self::compiler::CompileLimits;
pub use self::compiled::{CompiledFile, UncachedCode};
pub use self::compute_permit::ComputePlace;
pub use self::plugin_connections::PluginConnections;
pub use self::cores::cores;
pub use self::host_denial::HostDenial;
pub use self::keyvalue::KeyValue;
pub use self::mount_roots::MountRoots;
pub use self::optimize::{InitAllowance, OptimizeError, OptimizeJob, OptimizedComponent, WarmUp};
pub use self::plugin_http::PluginHttp;
pub use self::prepare_error::PrepareError;
pub use self::prepared_component::PreparedComponent;
pub use self::raw_description::RawDescription;
pub use self::replay_log::{ReplayDeviation, ReplayTape, ReplayedValue, TapedCall};
pub use self::reply_check::UncheckedReply;
pub use self::sandbox::{Sandbox, SandboxSettings};
pub use self::source::CompileSource;
pub use toolbay_outgoing::ConnectorOptions as NetworkOptions;

pub use self::compiler_process::{WorkerJob, run as compile_worker};
