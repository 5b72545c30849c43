//! The Rust bindings of the contract in `wit/plugin.wit`, and the conversion of the SDK's types. From outside, only
//! [`export!`](crate::export) uses this.

#![allow(
    missing_docs,
    unreachable_pub,
    unsafe_code,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "most of this module is generated; lifting and lowering values needs `unsafe`"
)]

use crate::tool::Entry;
use crate::{Context, Error, Output};
use exports::toolbay::plugin::tools;
use toolbay::plugin::types;

wit_bindgen::generate!({
    path: "wit",
    world: "plugin",
    additional_derives: [PartialEq],
    default_bindings_module: "toolbay_plugin::bindings",
    export_macro_name: "export_world",
    pub_export_macro: true,
});

/// The contract's `list-tools`.
pub fn list_tools(entries: &[Entry]) -> Vec<tools::ToolDefinition> {
    entries.iter().map(|entry| (entry.definition)().0).collect()
}

/// The contract's `call-tool`.
pub fn call_tool(entries: &[Entry], name: &str, arguments: &str) -> Result<tools::Output, tools::Failure> {
    let Some(entry) = entries.iter().find(|entry| entry.name == name) else {
        return Err(Error::msg(format_args!("there is no tool `{name}`")).0);
    };
    (entry.call)(arguments, &Context::host()).map(types::Output::from).map_err(|error| error.0)
}

impl From<Output> for types::Output {
    fn from(output: Output) -> Self {
        Self {
            content: output.content.into_iter().map(|content| content.0).collect(),
            structured: output.structured,
            meta: output.meta.map(|meta| serde_json::Value::Object(meta).to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::Definition;
    use crate::{Image, IntoOutput, Tool};

    enum Dot {}

    impl Tool for Dot {
        const NAME: &'static str = "dot";

        fn definition() -> Definition {
            Definition::new(Self::NAME, "Draws a dot.")
        }

        fn call(arguments: &str, _: &Context) -> crate::Result<Output> {
            Output::from(Image::png(arguments)).structured(&1)?.meta("example.com/a", 2).into_output()
        }
    }

    const ENTRIES: &[Entry] = &[Entry::of::<Dot>()];

    #[test]
    fn tools_are_listed() {
        let tools = list_tools(ENTRIES);
        assert_eq!(tools.len(), 1);
        assert_eq!(tools[0].name, "dot");
    }

    #[test]
    fn a_call_returns_everything() {
        let output = call_tool(ENTRIES, "dot", "{}").unwrap();
        assert_eq!(output.content[0].data.as_deref(), Some(&b"{}"[..]));
        assert_eq!(output.structured.as_deref(), Some("1"));
        assert_eq!(output.meta.as_deref(), Some(r#"{"example.com/a":2}"#));
    }

    #[test]
    fn an_unknown_tool_fails() {
        let failure = call_tool(ENTRIES, "line", "{}").unwrap_err();
        assert_eq!(failure, tools::Failure::Failed("there is no tool `line`".to_owned()));
    }
}
