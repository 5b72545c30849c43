//! Encodes definitions and results as the JSON of the peer's revision. No other module writes this
//! JSON.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toolbay_model::{
    CompletionResult, ContentBlock, ContentBody, EffectHints, EmbeddedResource, Icon, JsonText,
    ListedResource, MediaContent, Prompt, PromptArgument, PromptMessage, PromptOutput,
    ResourceContent, ResourceItem, ResourceLink, TaskSupport, Tool, ToolOutput,
};

use crate::host::interface::ServerInfo;
use crate::protocol::capabilities::TASKS_EXTENSION;
use crate::protocol::revision::Revision;

/// Key of the server's name and version in the `_meta` of results without a session.
const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// The identifier of MCP Apps, the extension for views of results.
const APPS_EXTENSION: &str = "io.modelcontextprotocol/ui";

/// The members of `_meta` that belong to MCP Apps. Clients of any revision read them.
const APPS_MEMBERS: [&str; 2] = ["ui", "ui/resourceUri"];

/// A tool as an item of `tools/list`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolItem<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    input_schema: &'a JsonText,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<&'a JsonText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<EffectHints>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution: Option<ToolExecution>,
    #[serde(skip_serializing_if = "<[Icon]>::is_empty")]
    icons: &'a [Icon],
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Cow<'a, JsonText>>,
}

/// The ways in which a tool can be called (MCP 2025-11-25, `ToolExecution`).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolExecution {
    task_support: TaskSupport,
}

/// Converts a tool to an item of `tools/list`.
pub(crate) fn tool(tool: &Tool, revision: Revision) -> ToolItem<'_> {
    let features = revision.features();
    let fits = |schema: &&JsonText| {
        features.structured && (features.any_structure || is_object_schema(schema))
    };
    ToolItem {
        name: &tool.name,
        title: tool.title.as_deref().filter(|_| features.titles),
        description: tool.description.as_deref(),
        input_schema: &tool.input_schema,
        output_schema: tool.output_schema.as_ref().filter(fits),
        annotations: tool.annotations.filter(|_| features.annotations),
        // An absent member means that tasks are forbidden.
        execution: Some(ToolExecution {
            task_support: tool.task_support,
        })
        .filter(|execution| features.tasks && execution.task_support != TaskSupport::Forbidden),
        icons: if features.icons { &tool.icons } else { &[] },
        meta: definition_meta(tool.meta.as_ref(), revision),
    }
}

/// Converts a prompt to an item of `prompts/list`.
#[derive(Debug, Serialize)]
pub(crate) struct PromptEntry<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    arguments: Vec<ArgumentEntry<'a>>,
    #[serde(skip_serializing_if = "<[Icon]>::is_empty")]
    icons: &'a [Icon],
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'a JsonText>,
}

/// An argument of a prompt.
#[derive(Debug, Serialize)]
struct ArgumentEntry<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    required: bool,
}

/// A prompt as an item of `prompts/list`.
pub(crate) fn prompt(prompt: &Prompt, revision: Revision) -> PromptEntry<'_> {
    let features = revision.features();
    PromptEntry {
        name: &prompt.name,
        title: prompt.title.as_deref().filter(|_| features.titles),
        description: prompt.description.as_deref(),
        arguments: prompt
            .arguments
            .iter()
            .map(|argument| self::argument(argument, revision))
            .collect(),
        icons: if features.icons { &prompt.icons } else { &[] },
        meta: prompt.meta.as_ref().filter(|_| features.definition_meta),
    }
}

fn argument(argument: &PromptArgument, revision: Revision) -> ArgumentEntry<'_> {
    ArgumentEntry {
        name: &argument.name,
        title: argument
            .title
            .as_deref()
            .filter(|_| revision.features().titles),
        description: argument.description.as_deref(),
        required: argument.required,
    }
}

/// A resource as an item of `resources/list`, or a template as an item of
/// `resources/templates/list`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResourceEntry<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri_template: Option<&'a str>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    annotations: Map<String, Value>,
    #[serde(skip_serializing_if = "<[Icon]>::is_empty")]
    icons: &'a [Icon],
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Cow<'a, JsonText>>,
}

/// Converts a resource to an item of `resources/list`.
pub(crate) fn listed_resource(resource: &ListedResource, revision: Revision) -> ResourceEntry<'_> {
    let features = revision.features();
    let last_modified = resource
        .last_modified
        .as_deref()
        .filter(|_| features.last_modified);
    ResourceEntry {
        uri: Some(&resource.uri),
        uri_template: None,
        name: &resource.name,
        title: resource.title.as_deref().filter(|_| features.titles),
        description: resource.description.as_deref(),
        mime_type: resource.mime_type.as_deref(),
        size: resource.size,
        annotations: annotations(&resource.audience, resource.priority, last_modified),
        icons: if features.icons { &resource.icons } else { &[] },
        meta: definition_meta(resource.meta.as_ref(), revision),
    }
}

/// Converts a template to an item of `resources/templates/list`.
pub(crate) fn template(template: &ListedResource, revision: Revision) -> ResourceEntry<'_> {
    ResourceEntry {
        uri: None,
        uri_template: Some(&template.uri),
        size: None,
        ..listed_resource(template, revision)
    }
}

/// Returns the `_meta` of a definition. If the revision has none, only the members of MCP Apps
/// remain: the extension works with any revision, and other clients ignore it.
fn definition_meta(meta: Option<&JsonText>, revision: Revision) -> Option<Cow<'_, JsonText>> {
    let meta = meta?;
    if revision.features().definition_meta {
        return Some(Cow::Borrowed(meta));
    }
    let apps: AppsMembers<'_> = serde_json::from_str(meta.get()).ok()?;
    (apps.ui.is_some() || apps.flat.is_some())
        .then(|| Cow::Owned(JsonText::from_serializable(&apps)))
}

/// The [`APPS_MEMBERS`] of a `_meta`. Other members are ignored.
#[derive(Deserialize, Serialize)]
struct AppsMembers<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    ui: Option<&'a RawValue>,
    #[serde(
        borrow,
        rename = "ui/resourceUri",
        skip_serializing_if = "Option::is_none"
    )]
    flat: Option<&'a RawValue>,
}

/// Returns whether the root of a schema has `"type": "object"`.
fn is_object_schema(schema: &JsonText) -> bool {
    #[derive(Deserialize)]
    struct RootItem {
        r#type: Option<Value>,
    }
    let root = serde_json::from_str(schema.get());
    root.is_ok_and(|root: RootItem| root.r#type.is_some_and(|name| name == "object"))
}

/// Converts an output to the result of `tools/call`, without Toolbay's own `_meta`.
pub(crate) fn tool_result(output: ToolOutput, revision: Revision) -> Map<String, Value> {
    let has_text = output
        .content
        .iter()
        .any(|block| matches!(block.body, ContentBody::Text(_)));
    let mut content: Vec<Value> = output
        .content
        .into_iter()
        .map(|block| self::content(block, revision))
        .collect();
    let mut structured_content = None;
    if let Some(structured) = output.structured {
        // For clients and models that read only text (MCP, "Structured Content").
        if !has_text {
            content.push(text(&structured.to_string()));
        }
        let features = revision.features();
        if features.structured && (features.any_structure || structured.is_object()) {
            structured_content = Some(structured);
        }
    }
    let mut result = Map::new();
    result.insert("content".into(), content.into());
    insert_some(&mut result, "structuredContent", structured_content);
    if !output.meta.is_empty() {
        result.insert("_meta".into(), output.meta.into());
    }
    result
}

/// Converts a prompt to the result of `prompts/get`, without Toolbay's own `_meta`.
pub(crate) fn prompt_result(output: PromptOutput, revision: Revision) -> Map<String, Value> {
    let message = |message: PromptMessage| {
        let PromptMessage { role, content } = message;
        json!({"role": role, "content": self::content(content, revision)})
    };
    let mut result = Map::new();
    insert_some(&mut result, "description", output.description);
    result.insert(
        "messages".into(),
        output.messages.into_iter().map(message).collect(),
    );
    if !output.meta.is_empty() {
        result.insert("_meta".into(), output.meta.into());
    }
    result
}

/// Converts contents of resources to the result of `resources/read`, without Toolbay's own `_meta`.
pub(crate) fn resource_result(items: Vec<ResourceItem>, revision: Revision) -> Map<String, Value> {
    let features = revision.features();
    let item = |ResourceItem { resource, mut meta }: ResourceItem| {
        let mut value = resource_contents(resource);
        if !features.definition_meta {
            meta.retain(|key, _| APPS_MEMBERS.contains(&key.as_str()));
        }
        insert_some(
            &mut value,
            "_meta",
            Some(meta).filter(|meta| !meta.is_empty()),
        );
        Value::from(value)
    };
    let mut result = Map::new();
    result.insert("contents".into(), items.into_iter().map(item).collect());
    if features.caching_hints {
        // A plugin can return other contents each time, and for each caller.
        result.insert("ttlMs".into(), 0.into());
        result.insert("cacheScope".into(), "private".into());
    }
    result
}

/// Converts values for an argument to the result of `completion/complete`.
pub(crate) fn completion_result(completions: CompletionResult) -> Map<String, Value> {
    let CompletionResult {
        values,
        total,
        has_more,
    } = completions;
    let mut completion = Map::new();
    completion.insert("values".into(), values.into());
    insert_some(&mut completion, "total", total);
    completion.insert("hasMore".into(), has_more.into());
    Map::from_iter([("completion".to_owned(), completion.into())])
}

/// Adds the members that every result of the revision has.
pub(crate) fn add_common_members(
    result: &mut Map<String, Value>,
    server: &ServerInfo,
    revision: Revision,
) {
    if !revision.features().result_type {
        return;
    }
    result
        .entry("resultType")
        .or_insert_with(|| "complete".into());
    if let Some(meta) = result
        .entry("_meta")
        .or_insert_with(|| json!({}))
        .as_object_mut()
    {
        // Some results already contain the full server info.
        meta.entry(SERVER_INFO_KEY)
            .or_insert_with(|| server_info(server, revision).into());
    }
}

/// Returns the server's name, version and title, which every result of 2026-07-28 contains. Icons
/// are left out because they would make every result longer.
fn server_info(server: &ServerInfo, revision: Revision) -> Map<String, Value> {
    let mut info = Map::new();
    info.insert("name".into(), "toolbay".into());
    info.insert("version".into(), env!("CARGO_PKG_VERSION").into());
    if revision.features().titles {
        info.insert(
            "title".into(),
            server.title.as_deref().unwrap_or("Toolbay").into(),
        );
    }
    info
}

/// Returns the full description of the server.
pub(crate) fn full_server_info(server: &ServerInfo, revision: Revision) -> Value {
    let mut info = server_info(server, revision);
    if revision.features().icons {
        insert_some(&mut info, "description", server.description.as_deref());
        insert_some(&mut info, "websiteUrl", server.website_url.as_deref());
        insert_some(
            &mut info,
            "icons",
            Some(json!(server.icons)).filter(|_| !server.icons.is_empty()),
        );
    }
    info.into()
}

/// Adds the full description of the server to a result without a session.
pub(crate) fn add_server_info(
    result: &mut Map<String, Value>,
    server: &ServerInfo,
    revision: Revision,
) {
    result.insert(
        "_meta".into(),
        json!({SERVER_INFO_KEY: full_server_info(server, revision)}),
    );
}

/// Key of the capability to serve skills.
const SKILLS_EXTENSION: &str = "io.modelcontextprotocol/skills";

/// Returns the server's capabilities. They never change, because a plugin with prompts, resources
/// or a skill can be added at any time. `lists_tasks` states whether the caller can list its tasks.
pub(crate) fn capabilities(revision: Revision, lists_tasks: bool) -> Value {
    let features = revision.features();
    let mut capabilities = Map::new();
    if features.completions {
        capabilities.insert("completions".into(), json!({}));
    }
    // Clients of every revision ignore extensions that they do not support.
    let mut extensions = Map::from_iter([
        (SKILLS_EXTENSION.to_owned(), json!({"directoryRead": true})),
        (APPS_EXTENSION.to_owned(), json!({})),
    ]);
    if features.tasks_extension {
        extensions.insert(TASKS_EXTENSION.into(), json!({}));
    }
    capabilities.insert("extensions".into(), extensions.into());
    capabilities.insert("logging".into(), json!({}));
    capabilities.insert("prompts".into(), json!({"listChanged": true}));
    capabilities.insert(
        "resources".into(),
        json!({"subscribe": true, "listChanged": true}),
    );
    if features.tasks {
        let mut tasks = Map::from_iter([("cancel".to_owned(), json!({}))]);
        if lists_tasks {
            tasks.insert("list".into(), json!({}));
        }
        tasks.insert("requests".into(), json!({"tools": {"call": {}}}));
        capabilities.insert("tasks".into(), tasks.into());
    }
    capabilities.insert("tools".into(), json!({"listChanged": true}));
    capabilities.into()
}

/// Removes the capabilities that require a session: notifications without a request, and state that
/// is kept for the next request.
pub(crate) fn remove_session_capabilities(capabilities: &mut Value) {
    if let Some(capabilities) = capabilities.as_object_mut() {
        capabilities.remove("logging");
        for list in ["prompts", "resources", "tools"] {
            capabilities.insert(list.into(), json!({}));
        }
    }
}

/// Adds the operator's instructions, if there are any.
pub(crate) fn add_instructions(result: &mut Map<String, Value>, instructions: &str) {
    insert_some(
        result,
        "instructions",
        Some(instructions).filter(|text| !text.is_empty()),
    );
}

/// Returns a text block.
pub(crate) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn content(block: ContentBlock, revision: Revision) -> Value {
    let features = revision.features();
    let mut value = match block.body {
        ContentBody::Text(words) => text(&words),
        ContentBody::Image(image) => media("image", &image),
        ContentBody::Audio(audio) if features.audio => media("audio", &audio),
        ContentBody::Audio(audio) => text(&format!(
            "[audio, {}, {} bytes]",
            audio.mime_type,
            audio.data.len()
        )),
        ContentBody::ResourceLink(link) if features.resource_links => resource_link(link),
        ContentBody::ResourceLink(link) => text(&format!("[{}]({})", link.name, link.uri)),
        ContentBody::Resource(resource) => {
            json!({"type": "resource", "resource": resource_contents(resource)})
        }
    };
    let last_modified = block
        .last_modified
        .as_deref()
        .filter(|_| features.last_modified);
    let annotations = annotations(&block.audience, block.priority, last_modified);
    if !annotations.is_empty()
        && let Some(members) = value.as_object_mut()
    {
        members.insert("annotations".into(), annotations.into());
    }
    value
}

fn annotations(
    audience: &[&str],
    priority: Option<f64>,
    last_modified: Option<&str>,
) -> Map<String, Value> {
    let mut annotations = Map::new();
    insert_some(
        &mut annotations,
        "audience",
        Some(json!(audience)).filter(|_| !audience.is_empty()),
    );
    insert_some(&mut annotations, "priority", priority);
    insert_some(&mut annotations, "lastModified", last_modified);
    annotations
}

fn media(kind: &str, media: &MediaContent) -> Value {
    json!({"type": kind, "data": BASE64.encode(&media.data), "mimeType": media.mime_type})
}

fn resource_link(link: ResourceLink) -> Value {
    let mut value = Map::new();
    value.insert("type".into(), "resource_link".into());
    value.insert("uri".into(), link.uri.into());
    value.insert("name".into(), link.name.into());
    insert_some(&mut value, "title", link.title);
    insert_some(&mut value, "description", link.description);
    insert_some(&mut value, "mimeType", link.mime_type);
    insert_some(&mut value, "size", link.size);
    value.into()
}

fn resource_contents(resource: EmbeddedResource) -> Map<String, Value> {
    let mut contents = Map::new();
    contents.insert("uri".into(), resource.uri.into());
    insert_some(&mut contents, "mimeType", resource.mime_type);
    match resource.content {
        ResourceContent::Text(text) => contents.insert("text".into(), text.into()),
        ResourceContent::Blob(data) => contents.insert("blob".into(), BASE64.encode(data).into()),
    };
    contents
}

fn insert_some(map: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        map.insert(key.into(), value.into());
    }
}

#[cfg(test)]
mod tests;
