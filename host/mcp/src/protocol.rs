//! The protocol's messages: JSON-RPC, revisions, methods, parameters and capabilities.

pub(crate) mod argument_errors;
pub(crate) mod capabilities;
pub(crate) mod id_scanner;
pub(crate) mod json_memory;
pub mod jsonrpc;
pub(crate) mod lenient_object;
pub(crate) mod message_context;
pub(crate) mod method;
pub(crate) mod params;
pub(crate) mod question_encoding;
pub(crate) mod request_id;
pub(crate) mod revision;
pub(crate) mod sent_arguments;
