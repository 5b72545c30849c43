//! The path of a call, from its name to its checked result.

pub(crate) mod admission;
pub(crate) mod argument_conversion;
pub(crate) mod call_recording;
pub(crate) mod caller_state;
pub(crate) mod client_share;
pub(crate) mod learn;
pub(crate) mod list_digests;
pub(crate) mod offload;
pub(crate) mod output_validation;
pub(crate) mod plugin_activity;
pub(crate) mod service;
pub(crate) mod stored_results;
