//! Encoding of definitions and results in the form of the peer's revision.

pub(crate) mod call_response;
pub(crate) mod definition_encoding;
pub(crate) mod definition_json;
mod json_members;
pub(crate) mod result_encoding;
pub(crate) mod server_description;
