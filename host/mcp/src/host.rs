//! The interface between the protocol and the host.

pub(crate) mod caller;
pub(crate) mod interface;
pub(crate) mod operator_answers;
pub(crate) mod request_state;
