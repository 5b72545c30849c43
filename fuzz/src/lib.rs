//! What makes inputs: components out of bytes, and JSON out of JSON.

pub mod json;
pub mod plugin;
