//! The path of a call, from its name to its checked result: one module per stage, composed by
//! [`service`], and the state that the stages use.

pub(crate) mod admission;
pub(crate) mod admit;
pub(crate) mod approval_wait;
pub(crate) mod approve;
pub(crate) mod argument_check;
pub(crate) mod argument_conversion;
pub(crate) mod budget;
pub(crate) mod caller_state;
pub(crate) mod check;
pub(crate) mod client_permits;
pub(crate) mod client_share;
pub(crate) mod execute;
pub(crate) mod fit;
pub(crate) mod host_work;
pub(crate) mod offload;
pub(crate) mod output_validation;
pub(crate) mod plugin_activity;
pub(crate) mod ready_request;
pub(crate) mod resolve;
pub(crate) mod result_reading;
pub(crate) mod service;
pub(crate) mod static_answer;
pub(crate) mod stored_results;
pub(crate) mod validate;
pub(crate) mod view_grant;
