//! Assembly of a server from its parts, for embedders and for the command line.

pub(crate) mod config_reload;
pub(crate) mod confinement;
mod console_opening;
mod console_operations;
mod console_operators;
pub(crate) mod console_socket;
pub(crate) mod embedder_calls;
pub(crate) mod grant_comparison;
pub(crate) mod grant_log;
pub(crate) mod grant_text;
pub(crate) mod instructions;
pub(crate) mod list_digests;
pub(crate) mod mcp_host;
pub(crate) mod metrics_collector;
pub(crate) mod pattern_warnings;
mod policy_resource;
mod running_call_control;
pub(crate) mod server;
pub(crate) mod server_builder;
mod server_parts;
