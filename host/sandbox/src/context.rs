//! The inputs of a call: the request, the limits, and the resources that all calls of a plugin
//! share.

pub(crate) mod call_context;
pub(crate) mod compute_permit;
pub(crate) mod keyvalue;
pub(crate) mod mount_roots;
pub(crate) mod plugin_connections;
pub(crate) mod plugin_http;
pub(crate) mod plugin_request;
pub(crate) mod replay_log;
pub(crate) mod usage_ledger;
