//! What makes inputs: components out of bytes, and JSON out of JSON.

pub mod json;
pub mod plugin;

#[path = "../../host/testkit/src/tiny.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod tiny;
