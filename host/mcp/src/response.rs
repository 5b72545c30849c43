//! Encoding of definitions and results in the form of the peer's revision.

pub(crate) mod call_response;
pub(crate) mod definition_json;
pub(crate) mod result_encoding;
