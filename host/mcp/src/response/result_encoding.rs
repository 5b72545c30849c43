//! Encodes results as the JSON of the peer's revision. No other module writes this JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};
use toolbay_model::{
    CompletionResult, ContentBlock, ContentBody, EmbeddedResource, MediaContent, PromptMessage,
    PromptOutput, ResourceContent, ResourceItem, ResourceLink, ToolOutput,
};

use crate::protocol::revision::Revision;
use crate::response::definition_encoding::APPS_MEMBERS;
use crate::response::json_members::{annotations, insert_some};

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

#[cfg(test)]
mod tests;
