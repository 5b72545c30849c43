//! Tools behind ACT's interface 0.2, with sessions, which also misbehave as a test asks for.

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
    wit_bindgen::generate!({ path: "wit", world: "newer", generate_all });
    export!(Act with_types_in self);
    pub(crate) struct Act;
}

/// The types, wherever this version has them.
mod types {
    pub(crate) use crate::bindings::act::core::types::{Error, LocalizedString};
    pub(crate) use crate::bindings::act::tools0_2_0::types::{
        ContentPart, ListToolsResponse, ToolDefinition, ToolEvent,
    };
    pub(crate) use crate::bindings::exports::act::tools0_2_0::tool_provider::{Guest, ToolResult};
    pub(crate) use crate::bindings::{Act, wit_stream};
}

mod tools;

use bindings::Act;
use bindings::act::sessions::types::Session;
use bindings::exports::act::sessions::session_provider;
use types::Error;

type Metadata = Vec<(String, Vec<u8>)>;

impl session_provider::Guest for Act {
    async fn get_open_session_args_schema(_: Metadata) -> Result<String, Error> {
        Ok(r#"{"type": "object"}"#.to_owned())
    }

    async fn open_session(_: Metadata, metadata: Metadata) -> Result<Session, Error> {
        Ok(Session {
            id: "one".to_owned(),
            metadata,
        })
    }

    fn close_session(_: String) {}
}
