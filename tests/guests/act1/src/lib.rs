//! Tools behind ACT's interface 0.1, which also misbehave as a test asks for.

#![allow(clippy::unwrap_used, reason = "what it does is what a test expects")]

#[allow(
    unsafe_code,
    missing_docs,
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    reason = "generated code"
)]
mod bindings {
    wit_bindgen::generate!({ path: "../act/wit", world: "older", generate_all });
    export!(Act with_types_in self);
    pub(crate) struct Act;
}

/// The types, wherever this version has them.
mod types {
    pub(crate) use crate::bindings::act::core::types::{Error, LocalizedString};
    pub(crate) use crate::bindings::exports::act::tools0_1_0::tool_provider::{
        ContentPart, Guest, ListToolsResponse, ToolDefinition, ToolEvent, ToolResult,
    };
    pub(crate) use crate::bindings::{Act, wit_stream};
}

#[path = "../../act/src/tools.rs"]
mod tools;
