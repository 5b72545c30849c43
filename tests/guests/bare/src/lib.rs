//! A plugin written against the contract alone, without the SDK: small, so that it compiles at
//! once.

mod bindings {
    #![allow(
        unsafe_code,
        unreachable_pub,
        missing_docs,
        clippy::pedantic,
        reason = "generated"
    )]
    #![allow(
        clippy::indexing_slicing,
        clippy::allow_attributes_without_reason,
        reason = "generated"
    )]

    wit_bindgen::generate!({ path: "../../../wit/0.2.0", world: "plugin" });

    export!(Bare with_types_in self);

    use super::Bare;
}

use bindings::exports::toolbay::plugin::tools::{Failure, Guest, Output, ToolDefinition};
use bindings::toolbay::plugin::types::Content;

struct Bare;

impl Guest for Bare {
    fn list_tools() -> Vec<ToolDefinition> {
        vec![ToolDefinition {
            name: "shout".to_owned(),
            title: None,
            description: Some("Returns its arguments in capital letters.".to_owned()),
            input_schema:
                r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#
                    .to_owned(),
            output_schema: None,
            annotations: None,
            icons: Vec::new(),
            meta: None,
        }]
    }

    fn call_tool(_name: String, arguments: String) -> Result<Output, Failure> {
        let block = Content {
            kind: "text".to_owned(),
            text: Some(arguments.to_uppercase()),
            data: None,
            mime_type: None,
            uri: None,
            name: None,
            title: None,
            description: None,
            size: None,
            audience: Vec::new(),
            priority: None,
            last_modified: None,
            members: None,
        };
        Ok(Output {
            content: vec![block],
            structured: None,
            meta: None,
        })
    }
}
