//! The capabilities of a call: the state and the budgets behind the host functions, independent of
//! the WASI version.

pub(crate) mod determinism;
pub(crate) mod effects;
pub(crate) mod files;
pub(crate) mod host_denial;
pub(crate) mod host_functions;
pub(crate) mod http;
pub(crate) mod input_request;
pub(crate) mod keyvalue_call;
pub(crate) mod memory_budget;
pub(crate) mod sockets;
pub(crate) mod stdio;
pub(crate) mod yielding;
