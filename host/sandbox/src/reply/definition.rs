//! Cleans a plugin's description, so that it cannot contain characters that affect a terminal or a
//! reader.
//!
//! Display names, titles, descriptions and `_meta` are for reading: control characters are removed.
//! The same applies to the readable texts in a schema. Identifiers and validation keywords stay
//! unchanged, such as the name of a prompt, a URI, or `const`, `enum`, `pattern` and the names of
//! properties in a schema: removing a character would change their meaning. Clients fetch and draw
//! icons, and act on MIME types, priorities and times. Such values are dropped if MCP does not
//! allow them.

use serde_json::Value;
use toolbay_model::text::{clean, clean_line};
use toolbay_model::{
    ComponentDescription, Icon, PromptArgument, PromptDefinition, ResourceDefinition,
    ToolDefinition,
};

use crate::reply::syntax::{is_mime_type, is_timestamp, is_uri};

/// Keywords whose values take part in validation, or are values themselves. They are not readable
/// text.
const VALIDATION_KEYWORDS: [&str; 21] = [
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveRef",
    "$ref",
    "$schema",
    "$vocabulary",
    "const",
    "contentEncoding",
    "contentMediaType",
    "default",
    "dependentRequired",
    "enum",
    "examples",
    "format",
    "id",
    "pattern",
    "required",
    "type",
    "x-mcp-header",
];

/// Keywords whose members are schemas under names that the author chooses.
const SCHEMA_MAP_KEYWORDS: [&str; 6] = [
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
];

/// Maximum size of a name or address in a remark, in bytes.
const MAX_QUOTED_BYTES: usize = 200;

/// Maximum number of tools, prompts, resources or templates with dropped values that are reported
/// to the operator, for each kind.
const MAX_REMARKS: usize = 10;

/// Returns the description with cleaned texts, and with remarks for the operator on dropped values.
pub(crate) fn clean_description(description: ComponentDescription) -> ComponentDescription {
    let ComponentDescription {
        tools,
        prompts,
        resources,
        templates,
        completes,
        manner,
        mut remarks,
        left_out,
    } = description;
    let mut dropped = DroppedEntries::new("tool");
    let tools = tools
        .into_iter()
        .map(|tool| clean_tool(tool, &mut dropped))
        .collect();
    remarks.extend(dropped.into_remarks());
    let mut dropped = DroppedEntries::new("prompt");
    let prompts = prompts
        .into_iter()
        .map(|prompt| clean_prompt(prompt, &mut dropped))
        .collect();
    remarks.extend(dropped.into_remarks());
    let mut dropped = DroppedEntries::new("resource");
    let resources = resources
        .into_iter()
        .map(|resource| clean_resource(resource, &mut dropped))
        .collect();
    remarks.extend(dropped.into_remarks());
    let mut dropped = DroppedEntries::new("resource template");
    let templates = templates
        .into_iter()
        .map(|template| clean_resource(template, &mut dropped))
        .collect();
    remarks.extend(dropped.into_remarks());
    ComponentDescription {
        tools,
        prompts,
        resources,
        templates,
        completes,
        manner,
        remarks,
        left_out,
    }
}

/// Remarks on dropped values, for all entries of a kind.
struct DroppedEntries {
    kind: &'static str,
    remarks: Vec<String>,
    /// Number of entries that are not reported individually.
    unlisted: u32,
}

impl DroppedEntries {
    fn new(kind: &'static str) -> Self {
        Self {
            kind,
            remarks: Vec::new(),
            unlisted: 0,
        }
    }

    /// Adds a remark on the first dropped value of an entry, if there is one.
    fn add(&mut self, name: &str, why: Option<String>) {
        let Some(why) = why else { return };
        if self.remarks.len() < MAX_REMARKS {
            self.remarks.push(format!(
                "{} {:?}: {why}",
                self.kind,
                clean_line(name, MAX_QUOTED_BYTES)
            ));
        } else {
            self.unlisted += 1;
        }
    }

    fn into_remarks(mut self) -> Vec<String> {
        if self.unlisted > 0 {
            self.remarks.push(format!(
                "{} more {}s have something that is not shown",
                self.unlisted, self.kind
            ));
        }
        self.remarks
    }
}

/// Drops the icons that clients must not receive. Returns the reason for the first one.
fn drop_icons(icons: &mut Vec<Icon>) -> Option<String> {
    let mut first = None;
    let cleaned = std::mem::take(icons).into_iter().map(clean_icon);
    *icons = cleaned
        .filter_map(|icon| icon.map_err(|why| first.get_or_insert(why)).ok())
        .collect();
    first.map(|why| format!("an icon is not shown: {why}"))
}

fn clean_tool(mut tool: ToolDefinition, dropped: &mut DroppedEntries) -> ToolDefinition {
    dropped.add(&tool.name, drop_icons(&mut tool.icons));
    ToolDefinition {
        title: tool.title.map(clean_text),
        description: tool.description.map(clean_text),
        input_schema: clean_json(tool.input_schema, clean_schema),
        output_schema: tool
            .output_schema
            .map(|text| clean_json(text, clean_schema)),
        meta: tool.meta.map(|text| clean_json(text, clean_all_texts)),
        ..tool
    }
}

fn clean_prompt(mut prompt: PromptDefinition, dropped: &mut DroppedEntries) -> PromptDefinition {
    dropped.add(&prompt.name, drop_icons(&mut prompt.icons));
    let clean_argument = |argument: PromptArgument| PromptArgument {
        title: argument.title.map(clean_text),
        description: argument.description.map(clean_text),
        ..argument
    };
    PromptDefinition {
        title: prompt.title.map(clean_text),
        description: prompt.description.map(clean_text),
        arguments: prompt.arguments.into_iter().map(clean_argument).collect(),
        meta: prompt.meta.map(|text| clean_json(text, clean_all_texts)),
        ..prompt
    }
}

/// Cleans a resource or a template.
fn clean_resource(
    mut resource: ResourceDefinition,
    dropped: &mut DroppedEntries,
) -> ResourceDefinition {
    let why = drop_icons(&mut resource.icons);
    let mime_type = take_invalid(&mut resource.mime_type, is_mime_type).map(|mime_type| {
        format!(
            "its MIME type is not shown: {:?} is not a MIME type",
            clean_line(&mime_type, MAX_QUOTED_BYTES)
        )
    });
    let priority = resource
        .priority
        .take_if(|priority| !(0.0..=1.0).contains(priority));
    let priority = priority.map(|priority| {
        format!("its priority is not shown: {priority} is not between 0.0 and 1.0")
    });
    let time = take_invalid(&mut resource.last_modified, is_timestamp).map(|time| {
        let time = clean_line(&time, MAX_QUOTED_BYTES);
        format!("when it was last modified is not shown: {time:?} is not a time such as \"2026-01-12T15:00:58Z\"")
    });
    dropped.add(&resource.uri, why.or(mime_type).or(priority).or(time));
    ResourceDefinition {
        name: clean_text(resource.name),
        title: resource.title.map(clean_text),
        description: resource.description.map(clean_text),
        meta: resource.meta.map(|text| clean_json(text, clean_all_texts)),
        ..resource
    }
}

/// Takes a text that is not valid.
fn take_invalid(text: &mut Option<String>, is_valid: impl Fn(&str) -> bool) -> Option<String> {
    text.take_if(|text| !is_valid(text))
}

fn clean_text(text: String) -> String {
    match clean(&text) {
        std::borrow::Cow::Borrowed(_) => text,
        std::borrow::Cow::Owned(cleaned) => cleaned,
    }
}

/// Applies `change` to the value of a JSON text. Invalid JSON is returned unchanged; a later check
/// reports it.
fn clean_json(text: String, change: fn(&mut Value)) -> String {
    // Fast path for almost all texts: neither the text nor its unescaped form contains control
    // characters.
    if !text.contains("\\u") && matches!(clean(&text), std::borrow::Cow::Borrowed(_)) {
        return text;
    }
    let Ok(mut value) = serde_json::from_str(&text) else {
        return text;
    };
    change(&mut value);
    value.to_string()
}

/// Cleans every text in `value`, and the names of its members.
fn clean_all_texts(value: &mut Value) {
    match value {
        Value::String(text) => clean_in_place(text),
        Value::Array(items) => items.iter_mut().for_each(clean_all_texts),
        Value::Object(members) => {
            *members = std::mem::take(members)
                .into_iter()
                .map(|(name, mut member)| {
                    clean_all_texts(&mut member);
                    (clean_text(name), member)
                })
                .collect();
        }
        _ => {}
    }
}

/// Cleans the readable texts in a schema.
fn clean_schema(schema: &mut Value) {
    match schema {
        Value::String(text) => clean_in_place(text),
        Value::Array(schemas) => schemas.iter_mut().for_each(self::clean_schema),
        Value::Object(keywords) => {
            for (keyword, value) in keywords
                .iter_mut()
                .filter(|(keyword, _)| !VALIDATION_KEYWORDS.contains(&keyword.as_str()))
            {
                match value {
                    Value::Object(schemas) if SCHEMA_MAP_KEYWORDS.contains(&keyword.as_str()) => {
                        // A dependency can also be a list of names.
                        schemas
                            .values_mut()
                            .filter(|schema| !schema.is_array())
                            .for_each(self::clean_schema);
                    }
                    value => self::clean_schema(value),
                }
            }
        }
        _ => {}
    }
}

fn clean_in_place(text: &mut String) {
    *text = self::clean_text(std::mem::take(text));
}

/// Checks and cleans an icon.
///
/// # Errors
///
/// The reason why clients must not receive it.
fn clean_icon(icon: Icon) -> Result<Icon, String> {
    let shown_address = clean_line(&icon.src, MAX_QUOTED_BYTES);
    let (scheme, rest) = icon.src.split_once(':').unwrap_or_default();
    let allowed = match scheme.to_ascii_lowercase().as_str() {
        "https" => rest
            .strip_prefix("//")
            .is_some_and(|rest| !rest.starts_with(['/', '?', '#']) && !rest.is_empty()),
        "data" => rest
            .get(..6)
            .is_some_and(|family| family.eq_ignore_ascii_case("image/")),
        _ => false,
    };
    if !allowed || !is_uri(&icon.src) || clean(&icon.src) != icon.src {
        return Err(format!(
            "its address must begin with https:// or data:image/, not {shown_address:?}"
        ));
    }
    if let Some(mime_type) = &icon.mime_type
        && !(mime_type.starts_with("image/") && is_mime_type(mime_type))
    {
        return Err(format!(
            "its MIME type must be image/…, not {:?}",
            clean_line(mime_type, MAX_QUOTED_BYTES)
        ));
    }
    Ok(Icon {
        sizes: icon.sizes.into_iter().map(clean_text).collect(),
        ..icon
    })
}

#[cfg(test)]
mod tests;
