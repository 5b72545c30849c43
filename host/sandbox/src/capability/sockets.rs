//! Sockets of a call.

pub(crate) mod call_sockets;
pub(crate) mod tcp_usage;
