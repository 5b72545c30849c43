//! Encodes definitions of tools, prompts and resources as items of lists, in the JSON of the peer's
//! revision.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolbay_model::{
    EffectHints, Icon, JsonText, ListedResource, Prompt, PromptArgument, TaskSupport, Tool,
};

use crate::protocol::revision::Revision;
use crate::response::json_members::annotations;

/// The members of `_meta` that belong to MCP Apps. Clients of any revision read them.
pub(super) const APPS_MEMBERS: [&str; 2] = ["ui", "ui/resourceUri"];

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
    let is_supported = |schema: &&JsonText| {
        features.structured && (features.any_structure || is_object_schema(schema))
    };
    ToolItem {
        name: &tool.name,
        title: tool.title.as_deref().filter(|_| features.titles),
        description: tool.description.as_deref(),
        input_schema: &tool.input_schema,
        output_schema: tool.output_schema.as_ref().filter(is_supported),
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

/// A prompt as an item of `prompts/list`.
#[derive(Debug, Serialize)]
pub(crate) struct PromptItem<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    arguments: Vec<ArgumentItem<'a>>,
    #[serde(skip_serializing_if = "<[Icon]>::is_empty")]
    icons: &'a [Icon],
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'a JsonText>,
}

/// An argument of a prompt.
#[derive(Debug, Serialize)]
struct ArgumentItem<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    required: bool,
}

/// Converts a prompt to an item of `prompts/list`.
pub(crate) fn prompt(prompt: &Prompt, revision: Revision) -> PromptItem<'_> {
    let features = revision.features();
    PromptItem {
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

fn argument(argument: &PromptArgument, revision: Revision) -> ArgumentItem<'_> {
    ArgumentItem {
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
pub(crate) struct ListedResourceItem<'a> {
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
pub(crate) fn listed_resource(
    resource: &ListedResource,
    revision: Revision,
) -> ListedResourceItem<'_> {
    let features = revision.features();
    let last_modified = resource
        .last_modified
        .as_deref()
        .filter(|_| features.last_modified);
    ListedResourceItem {
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
pub(crate) fn template(template: &ListedResource, revision: Revision) -> ListedResourceItem<'_> {
    ListedResourceItem {
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
    (apps.ui.is_some() || apps.resource_uri.is_some())
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
    resource_uri: Option<&'a RawValue>,
}

/// Returns whether the root of a schema has `"type": "object"`.
fn is_object_schema(schema: &JsonText) -> bool {
    #[derive(Deserialize)]
    struct SchemaRoot {
        r#type: Option<Value>,
    }
    let root = serde_json::from_str(schema.get());
    root.is_ok_and(|root: SchemaRoot| root.r#type.is_some_and(|name| name == "object"))
}
