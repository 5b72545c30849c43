//! The sandbox and the calls that run in it.

mod cache_access;
pub(crate) mod call;
mod compile_file;
pub(crate) mod cores;
pub(crate) mod describe;
pub(crate) mod dispatcher;
mod guest_runtime;
pub(crate) mod optimize;
mod plugin_resources;
pub(crate) mod sandbox;
pub(crate) mod stored_code;
