//! The JSON of tools and results, shaped for the peer's revision. Nothing else writes this JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolbay_model::{
    Annotations, Body, Content, Icon, Json, Media, Output, Resource, ResourceContent, ResourceLink, Tool,
};

use crate::revision::Revision;

/// Key of the server's name and version in the `_meta` of results that belong to no session.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// A tool as an item of `tools/list`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Item<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    input_schema: &'a Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<Annotations>,
    #[serde(skip_serializing_if = "<[Icon]>::is_empty")]
    icons: &'a [Icon],
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'a Json>,
}

/// A tool as an item of `tools/list`.
pub(crate) fn tool(tool: &Tool, revision: Revision) -> Item<'_> {
    let features = revision.features();
    let fits = |schema: &&Json| features.structured && (features.any_structure || is_object(schema));
    Item {
        name: &tool.name,
        title: tool.title.as_deref().filter(|_| features.titles),
        description: tool.description.as_deref(),
        input_schema: &tool.input_schema,
        output_schema: tool.output_schema.as_ref().filter(fits),
        annotations: tool.annotations.filter(|_| features.annotations),
        icons: if features.icons { &tool.icons } else { &[] },
        meta: tool.meta.as_ref().filter(|_| features.definition_meta),
    }
}

/// Whether the root of a schema has `"type": "object"`.
fn is_object(schema: &Json) -> bool {
    #[derive(Deserialize)]
    struct Root {
        r#type: Option<Value>,
    }
    let root = serde_json::from_str(schema.get());
    root.is_ok_and(|root: Root| root.r#type.is_some_and(|name| name == "object"))
}

/// An output as the result of `tools/call`, without Toolbay's own `_meta`.
pub(crate) fn output(output: Output, revision: Revision) -> Map<String, Value> {
    let has_text = output.content.iter().any(|block| matches!(block.body, Body::Text(_)));
    let mut content: Vec<Value> = output.content.into_iter().map(|block| self::content(block, revision)).collect();
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
    insert(&mut result, "structuredContent", structured_content);
    if !output.meta.is_empty() {
        result.insert("_meta".into(), output.meta.into());
    }
    result
}

/// Adds the members that every result of the revision has.
pub(crate) fn complete(result: &mut Map<String, Value>, revision: Revision) {
    if !revision.features().result_type {
        return;
    }
    result.insert("resultType".into(), "complete".into());
    if let Some(meta) = result.entry("_meta").or_insert_with(|| json!({})).as_object_mut() {
        meta.insert(SERVER_INFO.into(), server_info(revision));
    }
}

/// The server's name, version and title.
pub(crate) fn server_info(revision: Revision) -> Value {
    let mut server = Map::new();
    server.insert("name".into(), "toolbay".into());
    server.insert("version".into(), env!("CARGO_PKG_VERSION").into());
    if revision.features().titles {
        server.insert("title".into(), "Toolbay".into());
    }
    server.into()
}

/// The server's capabilities.
pub(crate) fn capabilities() -> Value {
    json!({"tools": {"listChanged": true}, "logging": {}})
}

/// Adds the operator's instructions, if there are any.
pub(crate) fn add_instructions(result: &mut Map<String, Value>, instructions: &str) {
    insert(result, "instructions", Some(instructions).filter(|text| !text.is_empty()));
}

/// A text block.
pub(crate) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn content(block: Content, revision: Revision) -> Value {
    let features = revision.features();
    let mut value = match block.body {
        Body::Text(words) => text(&words),
        Body::Image(image) => media("image", &image),
        Body::Audio(audio) if features.audio => media("audio", &audio),
        Body::Audio(audio) => text(&format!("[audio, {}, {} bytes]", audio.mime_type, audio.data.len())),
        Body::ResourceLink(link) if features.resource_links => resource_link(link),
        Body::ResourceLink(link) => text(&format!("[{}]({})", link.name, link.uri)),
        Body::Resource(resource) => self::resource(resource),
    };
    let mut annotations = Map::new();
    if !block.audience.is_empty() {
        annotations.insert("audience".into(), json!(block.audience));
    }
    insert(&mut annotations, "priority", block.priority.map(Value::from));
    insert(&mut annotations, "lastModified", block.last_modified.filter(|_| features.last_modified));
    if !annotations.is_empty()
        && let Some(members) = value.as_object_mut()
    {
        members.insert("annotations".into(), annotations.into());
    }
    value
}

fn media(kind: &str, media: &Media) -> Value {
    json!({"type": kind, "data": BASE64.encode(&media.data), "mimeType": media.mime_type})
}

fn resource_link(link: ResourceLink) -> Value {
    let mut value = Map::new();
    value.insert("type".into(), "resource_link".into());
    value.insert("uri".into(), link.uri.into());
    value.insert("name".into(), link.name.into());
    insert(&mut value, "title", link.title);
    insert(&mut value, "description", link.description);
    insert(&mut value, "mimeType", link.mime_type);
    insert(&mut value, "size", link.size);
    value.into()
}

fn resource(resource: Resource) -> Value {
    let mut inner = Map::new();
    inner.insert("uri".into(), resource.uri.into());
    insert(&mut inner, "mimeType", resource.mime_type);
    match resource.content {
        ResourceContent::Text(text) => inner.insert("text".into(), text.into()),
        ResourceContent::Blob(data) => inner.insert("blob".into(), BASE64.encode(data).into()),
    };
    json!({"type": "resource", "resource": inner})
}

fn insert(map: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        map.insert(key.into(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn block(body: Body) -> Content {
        Content { body, audience: Vec::new(), priority: None, last_modified: None }
    }

    fn everything() -> Output {
        let media = |mime: &str| Media { data: Bytes::from_static(b"abc"), mime_type: mime.into() };
        let link = ResourceLink {
            uri: "https://example.com/a".into(),
            name: "a".into(),
            title: None,
            description: None,
            mime_type: None,
            size: Some(3),
        };
        let resource = Resource {
            uri: "mem:b".into(),
            mime_type: Some("text/plain".into()),
            content: ResourceContent::Text("b".into()),
        };
        Output {
            content: vec![
                Content { audience: vec!["user"], priority: Some(0.5), ..block(Body::Image(media("image/png"))) },
                block(Body::Audio(media("audio/wav"))),
                block(Body::ResourceLink(link)),
                block(Body::Resource(resource)),
            ],
            structured: Some(json!({"n": 1})),
            meta: Map::new(),
        }
    }

    #[test]
    fn a_result_in_every_revision() {
        let shaped: Vec<String> = Revision::ALL
            .into_iter()
            .map(|revision| format!("{revision}\n{:#}", Value::Object(output(everything(), revision))))
            .collect();
        insta::assert_snapshot!(shaped.join("\n"));
    }

    #[test]
    fn before_2026_structured_content_that_is_not_an_object_is_only_sent_as_text() {
        let list = || Output { structured: Some(json!([1, 2])), ..Output::default() };
        let content = json!([{"type": "text", "text": "[1,2]"}]);
        let shaped = |revision| Value::Object(output(list(), revision));
        assert_eq!(shaped(Revision::V2025_11_25), json!({"content": content}));
        assert_eq!(shaped(Revision::V2026_07_28), json!({"content": content, "structuredContent": [1, 2]}));
    }

    #[test]
    fn a_result_without_a_session_names_the_server() {
        let completed = |revision| {
            let mut result = Map::from_iter([("_meta".to_owned(), json!({"a": 1}))]);
            complete(&mut result, revision);
            Value::Object(result)
        };
        assert_eq!(completed(Revision::NEWEST_SESSION), json!({"_meta": {"a": 1}}));
        let server = json!({"name": "toolbay", "version": env!("CARGO_PKG_VERSION"), "title": "Toolbay"});
        let expected = json!({"_meta": {"a": 1, SERVER_INFO: server}, "resultType": "complete"});
        assert_eq!(completed(Revision::NEWEST), expected);
    }
}
