//! The interface between the protocol and the host: the traits that the host implements, and the
//! state of the protocol that all sessions share.

pub(crate) mod caller;
pub(crate) mod interface;
pub(crate) mod list_source;
pub(crate) mod mcp_server;
pub(crate) mod operator_answers;
pub(crate) mod request_state;
