//! Generates inputs: components from bytes, and JSON from JSON.

pub mod json;
pub mod plugin;
