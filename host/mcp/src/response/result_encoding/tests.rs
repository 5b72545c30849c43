//! Tests of `result_encoding`.

use bytes::Bytes;

use super::*;
use crate::testing::revision_changes::revision_changes;

fn block(body: ContentBody) -> ContentBlock {
    ContentBlock {
        body,
        audience: Vec::new(),
        priority: None,
        last_modified: None,
    }
}

fn everything() -> ToolOutput {
    let media = |mime: &str| MediaContent {
        data: Bytes::from_static(b"abc"),
        mime_type: mime.into(),
    };
    let link = ResourceLink {
        uri: "https://example.com/a".into(),
        name: "a".into(),
        title: None,
        description: None,
        mime_type: None,
        size: Some(3),
    };
    let resource = EmbeddedResource {
        uri: "mem:b".into(),
        mime_type: Some("text/plain".into()),
        content: ResourceContent::Text("b".into()),
    };
    ToolOutput {
        content: vec![
            ContentBlock {
                audience: vec!["user"],
                priority: Some(0.5),
                ..block(ContentBody::Image(media("image/png")))
            },
            block(ContentBody::Audio(media("audio/wav"))),
            block(ContentBody::ResourceLink(link)),
            block(ContentBody::Resource(resource)),
        ],
        structured: Some(json!({"n": 1})),
        meta: Map::new(),
    }
}

#[test]
fn a_result_in_every_revision() {
    let results = Revision::ALL.map(|revision| {
        let result = Value::Object(tool_result(everything(), revision));
        (revision, format!("{result:#}"))
    });
    insta::assert_snapshot!(revision_changes(results));
}

#[test]
fn before_2026_structured_content_that_is_not_an_object_is_only_sent_as_text() {
    let list = || ToolOutput {
        structured: Some(json!([1, 2])),
        ..ToolOutput::default()
    };
    let content = json!([{"type": "text", "text": "[1,2]"}]);
    let shaped = |revision| Value::Object(tool_result(list(), revision));
    assert_eq!(shaped(Revision::V2025_11_25), json!({"content": content}));
    assert_eq!(
        shaped(Revision::V2026_07_28),
        json!({"content": content, "structuredContent": [1, 2]})
    );
}
