//! The tools, prompts and resources of a plugin, for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use toolbay_catalog::{ComponentContents, PromptEntry, RequiredApproval, ResourceEntry};
use toolbay_model::text::{clean, clean_line, escape_json};

use crate::cli::plugin_file::MAX_REASON_BYTES;

/// Appends the tools, prompts and resources of the plugin.
pub(in crate::cli) fn write_offers(
    out: &mut String,
    contents: &ComponentContents,
    approvals: &BTreeMap<String, RequiredApproval>,
) {
    let ComponentContents {
        tools,
        prompts,
        resources,
        templates,
        completes,
        ..
    } = contents;
    let heading = |out: &mut String, words: &str| {
        let _ = writeln!(out, "\n{words}:");
    };
    if !tools.is_empty() || (prompts.is_empty() && resources.is_empty() && templates.is_empty()) {
        heading(out, "Tools");
    }
    for tool in tools {
        let _ = writeln!(out, "    {}", tool.tool.name);
        write_description(out, tool.tool.description.as_deref());
        if let Some(asks) = approvals.get(&tool.tool.name) {
            let _ = writeln!(out, "        asks    a person must allow it, {asks}");
        }
        let _ = writeln!(
            out,
            "        input   {}",
            escape_json(&tool.input.value().to_string())
        );
        if let Some(output) = &tool.output {
            let _ = writeln!(
                out,
                "        output  {}",
                escape_json(&output.value().to_string())
            );
        }
    }
    if !prompts.is_empty() {
        heading(out, "Prompts");
    }
    for PromptEntry { prompt, .. } in prompts.iter().map(|prompt| &**prompt) {
        let _ = writeln!(out, "    {}", prompt.name);
        write_description(out, prompt.description.as_deref());
        for argument in prompt.arguments.iter() {
            let optional = if argument.required { "" } else { " (optional)" };
            let _ = writeln!(out, "        argument {}{optional}", argument.name);
        }
    }
    for (words, entries) in [("Resources", resources), ("Resource templates", templates)] {
        if !entries.is_empty() {
            heading(out, words);
        }
        for ResourceEntry { resource, .. } in entries.iter().map(|entry| &**entry) {
            let media = resource
                .mime_type
                .as_deref()
                .map(|media| format!("  {}", clean_line(media, MAX_REASON_BYTES)))
                .unwrap_or_default();
            let _ = writeln!(
                out,
                "    {}{media}",
                clean_line(&resource.uri, MAX_REASON_BYTES)
            );
            write_description(out, resource.description.as_deref());
        }
    }
    if *completes {
        out.push_str("\nCompletes arguments of its prompts and resource templates.\n");
    }
}

/// Appends a description below the name of its subject.
fn write_description(out: &mut String, description: Option<&str>) {
    // Cleaned first, because a carriage return becomes the end of a line, which must be indented.
    for words in clean(description.unwrap_or_default()).lines() {
        let _ = writeln!(out, "        {words}");
    }
}
