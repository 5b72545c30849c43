//! Descriptions and lists of guests.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use toolbay_model::{
    EffectHints as Hints, HeaderKind, Icon, ParamHeader, PromptArgument, PromptDefinition,
    ResourceDefinition, ToolDefinition,
};

use crate::block::BlockAnnotations;
use crate::conversation::{STATELESS, supports_revision};
use crate::guest_method::GuestList;
use crate::lenient;

/// Schema keyword that requests that an argument is repeated in a header (MCP 2026-07-28).
const HEADER_KEYWORD: &str = "x-mcp-header";

/// Maximum nesting depth of a property that a header repeats.
const MAX_HEADER_DEPTH: usize = 16;

/// A guest's description of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerDescription {
    /// Negotiated protocol revision.
    pub revision: String,
    /// True if the guest completes arguments.
    pub has_completions: bool,
    lists: Vec<GuestList>,
}

impl ServerDescription {
    /// Returns whether the guest offers this list.
    pub fn has(&self, list: GuestList) -> bool {
        self.lists.contains(&list)
    }
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct GuestPage<T> {
    /// Items of the page.
    pub items: Vec<T>,
    /// Cursor of the next page.
    pub next: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DiscoverFields {
    supported_versions: Vec<String>,
    #[serde(default, deserialize_with = "lenient::null_as_absent")]
    capabilities: ServerCapabilities,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeFields {
    protocol_version: String,
    #[serde(default, deserialize_with = "lenient::null_as_absent")]
    capabilities: ServerCapabilities,
}

#[derive(Default, Deserialize)]
struct ServerCapabilities {
    tools: Option<Value>,
    prompts: Option<Value>,
    resources: Option<Value>,
    completions: Option<Value>,
}

/// Parses the result of `server/discover`.
///
/// # Errors
///
/// Returns an error if the result is invalid or if the guest does not support the revision of the
/// request.
pub fn parse_discover_result(result: &str) -> Result<ServerDescription, String> {
    let DiscoverFields {
        supported_versions: versions,
        capabilities,
    } = parse_result(result)?;
    if !versions.iter().any(|version| version == STATELESS) {
        return Err(format!(
            "it speaks {}, not {STATELESS}",
            versions.join(", ")
        ));
    }
    Ok(server_description(STATELESS, &capabilities))
}

/// Parses the result of `initialize`.
///
/// # Errors
///
/// Returns an error if the result is invalid or if the host does not support the guest's revision.
pub fn parse_initialize_result(result: &str) -> Result<ServerDescription, String> {
    let InitializeFields {
        protocol_version: version,
        capabilities,
    } = parse_result(result)?;
    if !supports_revision(&version) {
        return Err(format!(
            "it speaks the revision {version:?}, which is unknown"
        ));
    }
    Ok(server_description(&version, &capabilities))
}

fn server_description(revision: &str, capabilities: &ServerCapabilities) -> ServerDescription {
    let ServerCapabilities {
        tools,
        prompts,
        resources,
        completions,
    } = capabilities;
    let has = |list: &GuestList| match list {
        GuestList::Tools => tools.is_some(),
        GuestList::Prompts => prompts.is_some(),
        GuestList::Resources | GuestList::Templates => resources.is_some(),
    };
    let lists = GuestList::ALL.into_iter().filter(has).collect();
    ServerDescription {
        revision: revision.to_owned(),
        has_completions: completions.is_some(),
        lists,
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageFields {
    #[serde(
        alias = "tools",
        alias = "prompts",
        alias = "resources",
        alias = "resourceTemplates",
        deserialize_with = "lenient::null_as_absent"
    )]
    items: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}

/// Parses a page of tools.
///
/// # Errors
///
/// Returns the reason that the page is invalid.
pub fn parse_tools(result: &str) -> Result<GuestPage<ToolDefinition>, String> {
    parse_page(result, "tools", |tool: ToolFields| ToolDefinition {
        title: tool
            .title
            .or_else(|| tool.annotations.as_ref()?.title.clone()),
        name: tool.name,
        description: tool.description,
        // Without a schema, this is `null`, which the later check of the definition reports.
        input_schema: tool
            .input_schema
            .map_or_else(|| "null".to_owned(), |schema| object_schema(schema.get())),
        output_schema: tool.output_schema.map(|schema| schema.get().to_owned()),
        annotations: tool.annotations.map(ToolAnnotations::into_hints),
        icons: tool.icons,
        meta: meta_text(tool.meta.as_deref()),
    })
}

/// Parses a page of prompts.
///
/// # Errors
///
/// Returns the reason that the page is invalid.
pub fn parse_prompts(result: &str) -> Result<GuestPage<PromptDefinition>, String> {
    parse_page(result, "prompts", |prompt: PromptFields| PromptDefinition {
        name: prompt.name,
        title: prompt.title,
        description: prompt.description,
        arguments: prompt
            .arguments
            .into_iter()
            .map(ArgumentFields::into_definition)
            .collect(),
        icons: prompt.icons,
        meta: meta_text(prompt.meta.as_deref()),
    })
}

/// Parses a page of resources.
///
/// # Errors
///
/// Returns the reason that the page is invalid.
pub fn parse_resources(result: &str) -> Result<GuestPage<ResourceDefinition>, String> {
    parse_page(result, "resources", ResourceEntryFields::into_definition)
}

/// Parses a page of resource templates.
///
/// # Errors
///
/// Returns the reason that the page is invalid.
pub fn parse_templates(result: &str) -> Result<GuestPage<ResourceDefinition>, String> {
    let template = |template: ResourceEntryFields| ResourceDefinition {
        size: None,
        last_modified: None,
        ..template.into_definition()
    };
    parse_page(result, "resourceTemplates", template)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolFields {
    name: String,
    title: Option<String>,
    description: Option<String>,
    input_schema: Option<Box<RawValue>>,
    output_schema: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "lenient::or_none")]
    annotations: Option<ToolAnnotations>,
    #[serde(default, deserialize_with = "lenient::readable_items")]
    icons: Vec<Icon>,
    #[serde(rename = "_meta")]
    meta: Option<Box<RawValue>>,
}

/// The hints of a tool about its effects. Without a hint, clients assume the worst case.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ToolAnnotations {
    #[serde(deserialize_with = "lenient::or_none")]
    title: Option<String>,
    #[serde(deserialize_with = "lenient::or_none")]
    read_only_hint: Option<bool>,
    #[serde(deserialize_with = "lenient::or_none")]
    destructive_hint: Option<bool>,
    #[serde(deserialize_with = "lenient::or_none")]
    idempotent_hint: Option<bool>,
    #[serde(deserialize_with = "lenient::or_none")]
    open_world_hint: Option<bool>,
}

impl ToolAnnotations {
    fn into_hints(self) -> Hints {
        Hints {
            read_only: self.read_only_hint,
            destructive: self.destructive_hint,
            idempotent: self.idempotent_hint,
            open_world: self.open_world_hint,
        }
    }
}

#[derive(Deserialize)]
struct PromptFields {
    name: String,
    title: Option<String>,
    description: Option<String>,
    #[serde(default, deserialize_with = "lenient::null_as_absent")]
    arguments: Vec<ArgumentFields>,
    #[serde(default, deserialize_with = "lenient::readable_items")]
    icons: Vec<Icon>,
    #[serde(rename = "_meta")]
    meta: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct ArgumentFields {
    name: String,
    title: Option<String>,
    description: Option<String>,
    #[serde(default, deserialize_with = "lenient::null_as_absent")]
    required: bool,
}

impl ArgumentFields {
    fn into_definition(self) -> PromptArgument {
        let Self {
            name,
            title,
            description,
            required,
        } = self;
        PromptArgument {
            name,
            title,
            description,
            required,
        }
    }
}

/// A resource or a template.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceEntryFields {
    #[serde(alias = "uriTemplate")]
    uri: String,
    name: String,
    title: Option<String>,
    description: Option<String>,
    mime_type: Option<String>,
    #[serde(default, deserialize_with = "lenient::or_none")]
    size: Option<u64>,
    #[serde(default, deserialize_with = "lenient::or_none")]
    annotations: Option<BlockAnnotations>,
    #[serde(default, deserialize_with = "lenient::readable_items")]
    icons: Vec<Icon>,
    #[serde(rename = "_meta")]
    meta: Option<Box<RawValue>>,
}

impl ResourceEntryFields {
    fn into_definition(self) -> ResourceDefinition {
        let annotations = self.annotations.unwrap_or_default();
        ResourceDefinition {
            uri: self.uri,
            name: self.name,
            title: self.title,
            description: self.description,
            mime_type: self.mime_type,
            size: self.size,
            audience: annotations
                .audience()
                .into_iter()
                .map(str::to_owned)
                .collect(),
            priority: annotations.priority,
            last_modified: annotations.last_modified,
            icons: self.icons,
            meta: meta_text(self.meta.as_deref()),
        }
    }
}

/// Parses a page whose items are in `member`.
fn parse_page<T: for<'a> Deserialize<'a>, U>(
    result: &str,
    member: &str,
    convert: impl Fn(T) -> U,
) -> Result<GuestPage<U>, String> {
    let PageFields { items, next_cursor } = parse_result(result)?;
    let item = |(index, raw): (usize, &RawValue)| {
        serde_json::from_str(raw.get())
            .map(&convert)
            .map_err(|error| format!("{member}[{index}]: {error}"))
    };
    let items = items
        .iter()
        .map(|raw| &**raw)
        .enumerate()
        .map(item)
        .collect::<Result<_, _>>()?;
    Ok(GuestPage {
        items,
        next: next_cursor,
    })
}

fn parse_result<'a, T: Deserialize<'a>>(result: &'a str) -> Result<T, String> {
    serde_json::from_str(result).map_err(|error| format!("its result: {error}"))
}

/// Returns the schema of a tool's arguments. Adds the type `object`, which MCP requires, to a
/// schema without a type. Any other text is unchanged.
fn object_schema(text: &str) -> String {
    let members = serde_json::from_str::<BTreeMap<String, &RawValue>>(text).ok();
    match (members, text.trim_start().strip_prefix('{')) {
        (Some(members), Some(rest)) if !members.contains_key("type") => {
            let comma = if members.is_empty() { "" } else { "," };
            format!("{{\"type\":\"object\"{comma}{rest}")
        }
        _ => text.to_owned(),
    }
}

/// Returns a `_meta` object as text. The host later removes the members that plugins cannot set.
pub(crate) fn meta_text(raw: Option<&RawValue>) -> Option<String> {
    raw.map(|raw| raw.get().to_owned())
}

/// Returns the arguments that are repeated in headers of a call, according to the tool's input
/// schema. Ignores invalid entries: the check of the definition reports them.
pub fn header_params(input_schema: &str) -> Vec<ParamHeader> {
    let mut params = Vec::new();
    if input_schema.contains(HEADER_KEYWORD)
        && let Ok(schema) = serde_json::from_str::<Value>(input_schema)
    {
        collect_header_params(&schema, &mut Vec::new(), &mut params);
    }
    params
}

fn collect_header_params(schema: &Value, path: &mut Vec<String>, params: &mut Vec<ParamHeader>) {
    let kind = match schema.get("type").and_then(Value::as_str) {
        Some("string") => Some(HeaderKind::String),
        Some("integer") => Some(HeaderKind::Integer),
        Some("boolean") => Some(HeaderKind::Boolean),
        _ => None,
    };
    let is_token_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let name = schema
        .get(HEADER_KEYWORD)
        .and_then(Value::as_str)
        .filter(|name| !name.is_empty() && name.bytes().all(is_token_byte));
    if let (Some(name), Some(kind)) = (name, kind) {
        params.push(ParamHeader {
            name: name.to_owned(),
            path: path.clone(),
            kind,
        });
    }
    if path.len() < MAX_HEADER_DEPTH {
        for (name, property) in schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            path.push(name.clone());
            collect_header_params(property, path, params);
            path.pop();
        }
    }
}

#[cfg(test)]
mod tests;
