//! Runs guests: compiles and links components, and gives each call a new store within its limits.
//!
//! This is the only crate that depends on wasmtime. Data flows in one direction. A
//! [`CompileSource`] is compiled once to a [`CompiledFile`], which is linked to a
//! [`PreparedComponent`]. A call takes the component, a [`PluginContext`] and a [`PluginRequest`],
//! and ends as a [`FinishedCall`], whose output is an [`UncheckedReply`]. No guest state outlives
//! its call. This crate does not depend on the plugin folder, the catalog or the protocol: its
//! caller supplies bytes and permissions, and receives the results.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "Toolbay runs on Linux: the child that compiles plugins depends on an address-space limit that is enforced and on the \
     parent-death signal. On macOS and Windows, use a Linux container or WSL 2."
);

mod cache;
mod capability;
mod compile;
mod component;
mod context;
mod kind;
mod prepare;
mod reply;
mod run;
mod store;
#[cfg(test)]
mod test_sandbox;
mod wasi;

pub use self::cache::StoredRefusal;
pub use self::capability::host_denial::HostDenial;
pub use self::compile::compile_counts::CompileCounts;
pub use self::compile::compiler::CompileLimits;
pub use self::compile::source::CompileSource;
pub use self::component::plugin_summary::PluginSummary;
pub use self::component::prepare_error::PrepareError;
pub use self::context::call_context::{CallContext, PluginContext};
pub use self::context::compute_permit::ComputePermit;
pub use self::context::keyvalue::KeyValue;
pub use self::context::mount_roots::MountRoots;
pub use self::context::plugin_connections::PluginConnections;
pub use self::context::plugin_http::PluginHttp;
pub use self::context::plugin_request::PluginRequest;
pub use self::context::replay_log::{ReplayDeviation, ReplayInput, ReplayTape, TapedCall};
pub use self::prepare::compiled::{CompiledFile, UncachedCode};
pub use self::prepare::component_summary::ComponentSummary;
pub use self::prepare::linker::IMPORT_PREFIXES;
pub use self::prepare::prepared_component::PreparedComponent;
pub use self::reply::raw_description::RawDescription;
pub use self::reply::reply_check::UncheckedReply;
pub use self::run::call::FinishedCall;
pub use self::run::cores::cores;
pub use self::run::optimize::{
    InitAllowance, OptimizeError, OptimizeJob, OptimizedComponent, WarmUp,
};
pub use self::run::sandbox::{Sandbox, SandboxSettings};
pub use self::run::stored_code::{CachedCode, CachedPlugin, LostCode, OpenedCode, UnopenedCode};
pub use toolbay_outgoing::ConnectorOptions as NetworkOptions;

pub use self::compile::compiler_process::{WorkerJob, run as compile_worker};
