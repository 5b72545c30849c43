//! Rust bindings of the contract in `wit/plugin.wit`, and conversions of the SDK's types. Outside
//! this crate, only [`export!`](macro@crate::export) uses this module.

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

use crate::complete::Given;
use crate::offer::Entry;
use crate::prompt::{Message, Messages};
use crate::{Context, Error, Output};
use exports::toolbay::plugin::{completion, prompts, resources, tools};
use toolbay::plugin::types;

wit_bindgen::generate!({
    path: "wit",
    world: "full-plugin",
    additional_derives: [PartialEq],
    default_bindings_module: "toolbay_plugin::bindings",
    export_macro_name: "export_world",
    pub_export_macro: true,
});

/// Implements the contract's `list-tools`.
pub fn list_tools(entries: &[Entry]) -> Vec<tools::ToolDefinition> {
    let tools = entries.iter().filter_map(|entry| {
        if let Entry::Tool(tool) = entry {
            Some(tool)
        } else {
            None
        }
    });
    tools.map(|tool| (tool.definition)().0).collect()
}

/// Implements the contract's `call-tool` if `entry` is the tool `name`. Returns `None` otherwise.
///
/// [`export!`](macro@crate::export) calls it for each entry in turn. It is inlined there, where the
/// entry is a constant, so only a comparison with the name and a direct call remain. An instance
/// serves a single call, and the first call of a function through the table costs several times as
/// much as a direct call.
#[inline(always)]
pub fn call_if_named(
    entry: &Entry,
    name: &str,
    arguments: &str,
) -> Option<Result<tools::Output, tools::Failure>> {
    match entry {
        Entry::Tool(tool) if tool.name == name => Some(into_contract_result((tool.call)(
            arguments,
            &Context::host(),
        ))),
        _ => None,
    }
}

/// Converts the result of a tool to the form of the contract.
fn into_contract_result(returned: crate::Result<Output>) -> Result<tools::Output, tools::Failure> {
    match returned {
        Ok(output) => Ok(output.into()),
        Err(error) => Err(error.0),
    }
}

/// Returns the contract's failure for a call of a tool that does not exist.
#[cold]
pub fn no_such_tool(name: &str) -> Result<tools::Output, tools::Failure> {
    Err(Error::msg(format_args!("there is no tool `{name}`")).0)
}

/// Implements the contract's `list-prompts`.
pub fn list_prompts(entries: &[Entry]) -> Vec<prompts::PromptDefinition> {
    let prompts = entries.iter().filter_map(|entry| {
        if let Entry::Prompt(prompt) = entry {
            Some(prompt)
        } else {
            None
        }
    });
    prompts.map(|prompt| (prompt.definition)().0).collect()
}

/// Implements the contract's `get-prompt`.
pub fn get_prompt(
    entries: &[Entry],
    name: &str,
    arguments: &[(String, String)],
) -> Result<prompts::PromptOutput, prompts::Failure> {
    let prompt = entries.iter().find_map(|entry| match entry {
        Entry::Prompt(prompt) if prompt.name == name => Some(prompt),
        _ => None,
    });
    let Some(prompt) = prompt else {
        return Err(Error::msg(format_args!("there is no prompt `{name}`")).0);
    };
    (prompt.get)(arguments, &Context::host())
        .map(types::PromptOutput::from)
        .map_err(|error| error.0)
}

/// Implements the contract's `list-resources`.
pub fn list_resources(entries: &[Entry]) -> Vec<resources::ResourceDefinition> {
    let resources = entries.iter().filter_map(|entry| match entry {
        Entry::Resource(resource) if !resource.is_template() => Some(resource),
        _ => None,
    });
    resources
        .map(|resource| (resource.definition)().0)
        .collect()
}

/// Implements the contract's `list-resource-templates`.
pub fn list_resource_templates(entries: &[Entry]) -> Vec<resources::ResourceTemplate> {
    let templates = entries.iter().filter_map(|entry| match entry {
        Entry::Resource(resource) if resource.is_template() => Some(resource),
        _ => None,
    });
    templates
        .map(|template| (template.definition)().into_template())
        .collect()
}

/// Implements the contract's `read-resource`. A resource without variables takes precedence over a
/// template that matches its URI.
pub fn read_resource(
    entries: &[Entry],
    uri: &str,
) -> Result<Vec<resources::ResourceContents>, resources::Failure> {
    let resources = |templates: bool| {
        entries.iter().filter_map(move |entry| match entry {
            Entry::Resource(resource) if resource.is_template() == templates => Some(resource),
            _ => None,
        })
    };
    let context = Context::host();
    let read = resources(false)
        .chain(resources(true))
        .find_map(|resource| resource.read(uri, &context));
    let contents = read
        .unwrap_or_else(|| Ok(Vec::new()))
        .map_err(|error| error.0)?;
    Ok(contents.into_iter().map(|contents| contents.0).collect())
}

/// Implements the contract's `complete`. An argument without a completion function has no values.
pub fn complete(
    entries: &[Entry],
    request: completion::CompletionRequest,
) -> Result<completion::Completions, completion::Failure> {
    let completion = entries.iter().find_map(|entry| match entry {
        Entry::Completion(one)
            if one.target == request.name && one.argument == request.argument =>
        {
            Some(one)
        }
        _ => None,
    });
    let Some(completion) = completion else {
        return Ok(completion::Completions {
            values: Vec::new(),
            total: Some(0),
            has_more: false,
        });
    };
    let completions =
        (completion.complete)(&request.value, &Given(request.context), &Context::host());
    completions
        .map(types::Completions::from)
        .map_err(|error| error.0)
}

impl From<Messages> for types::PromptOutput {
    fn from(messages: Messages) -> Self {
        Self {
            description: messages.description,
            messages: messages
                .list
                .into_iter()
                .map(|Message(message)| message)
                .collect(),
            meta: messages
                .meta
                .map(|meta| serde_json::Value::Object(meta).to_string()),
        }
    }
}

impl From<Output> for types::Output {
    fn from(output: Output) -> Self {
        Self {
            content: output
                .content
                .into_iter()
                .map(|content| content.0)
                .collect(),
            structured: output.structured,
            meta: output
                .meta
                .map(|meta| serde_json::Value::Object(meta).to_string()),
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
            Output::from(Image::png(arguments))
                .structured(&1)?
                .meta("example.com/a", 2)
                .into_output()
        }
    }

    impl crate::offer::Offer for Dot {
        const ENTRY: Entry = Entry::Tool(crate::tool::ToolEntry::of::<Self>());
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
        let output = call_if_named(&ENTRIES[0], "dot", "{}").unwrap().unwrap();
        assert_eq!(output.content[0].data.as_deref(), Some(&b"{}"[..]));
        assert_eq!(output.structured.as_deref(), Some("1"));
        assert_eq!(output.meta.as_deref(), Some(r#"{"example.com/a":2}"#));
    }

    #[test]
    fn an_unknown_tool_fails() {
        assert_eq!(call_if_named(&ENTRIES[0], "line", "{}"), None);
        let failure = no_such_tool("line").unwrap_err();
        assert_eq!(
            failure,
            tools::Failure::Failed("there is no tool `line`".to_owned())
        );
    }
}
