//! Tests of `lists`.

use serde_json::json;

use super::*;

#[test]
fn a_guest_reports_its_revision_and_its_lists() {
    let result = json!({"resultType": "complete", "supportedVersions": ["2025-11-25", STATELESS], "capabilities": {"tools": {"listChanged": true}, "completions": {}}});
    let server = parse_discover_result(&result.to_string()).unwrap();
    assert!(
        server.has(GuestList::Tools) && server.has_completions && !server.has(GuestList::Prompts)
    );
    let old = json!({"supportedVersions": ["2025-11-25"], "capabilities": {}});
    assert_eq!(
        parse_discover_result(&old.to_string()).unwrap_err(),
        "it speaks 2025-11-25, not 2026-07-28"
    );
    let result = json!({"protocolVersion": "2024-11-05", "capabilities": {"resources": {}}, "serverInfo": {"name": "x", "version": "1"}});
    let server = parse_initialize_result(&result.to_string()).unwrap();
    assert_eq!(server.revision, "2024-11-05");
    assert!(server.has(GuestList::Templates) && server.has(GuestList::Resources));
    assert!(
        parse_initialize_result(r#"{"protocolVersion":"3000-01-01"}"#)
            .unwrap_err()
            .contains("3000-01-01")
    );
    for wrong in ["{}", "[]", "null", r#"{"protocolVersion":1}"#] {
        assert!(
            parse_initialize_result(wrong).is_err() && parse_discover_result(wrong).is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn tools_are_parsed_with_all_members() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "string", HEADER_KEYWORD: "A"},
        "b": {"type": "object", "properties": {"c": {"type": "integer", HEADER_KEYWORD: "C"}}},
        "d": {"type": "array", HEADER_KEYWORD: "D"},
        "e": {"type": "string", HEADER_KEYWORD: "no name"},
    }});
    let tool = json!({
        "name": "add", "description": "Adds.", "inputSchema": schema, "outputSchema": {"type": "object"},
        "annotations": {"title": "Add", "readOnlyHint": true, "x": 1}, "icons": [{"src": "https://a.example/i.png"}],
        "_meta": {"a": 1}, "execution": {"taskSupport": "optional"},
    });
    let result = json!({"tools": [tool], "nextCursor": "n", "ttlMs": 0});
    let GuestPage { items, next } = parse_tools(&result.to_string()).unwrap();
    let [tool] = items.as_slice() else {
        panic!("{items:?}")
    };
    assert_eq!(
        (tool.name.as_str(), tool.title.as_deref(), next.as_deref()),
        ("add", Some("Add"), Some("n"))
    );
    assert_eq!(tool.annotations.unwrap().read_only, Some(true));
    assert_eq!(tool.meta.as_deref(), Some(r#"{"a":1}"#));
    assert_eq!(tool.icons.len(), 1);
    let headers: Vec<String> = header_params(&tool.input_schema)
        .iter()
        .map(|header| format!("{} {}", header.name, header.path.join(".")))
        .collect();
    assert_eq!(headers, ["A a", "C b.c"]);
}

#[test]
fn errors_in_an_entry_are_reported_with_their_location() {
    let wrong = json!({"tools": [{"name": "a", "inputSchema": {}}, {"name": 1}]});
    assert!(
        parse_tools(&wrong.to_string())
            .unwrap_err()
            .starts_with("tools[1]: ")
    );
    assert!(parse_tools("{}").unwrap_err().starts_with("its result: "));
    assert!(
        parse_prompts(r#"{"prompts":[{}]}"#)
            .unwrap_err()
            .starts_with("prompts[0]: ")
    );
}

#[test]
fn harmless_deviations_from_the_protocol_are_accepted() {
    let annotations = json!({"title": 1, "readOnlyHint": "yes", "destructiveHint": false, "idempotentHint": null});
    let tools = json!({"tools": [
            {"name": "a", "inputSchema": {}, "annotations": annotations, "icons": [{"src": 1}, {"src": "data:,"}]},
            {"name": "b", "inputSchema": {"properties": {"n": {"type": "integer"}}}, "annotations": "", "icons": null},
            {"name": "c", "inputSchema": {"type": "array"}},
            {"name": "d"},
        ], "nextCursor": null});
    let GuestPage { items, .. } = parse_tools(&tools.to_string()).unwrap();
    let schemas: Vec<&str> = items
        .iter()
        .map(|tool| tool.input_schema.as_str())
        .collect();
    assert_eq!(
        schemas,
        [
            r#"{"type":"object"}"#,
            r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#,
            r#"{"type":"array"}"#,
            "null"
        ]
    );
    assert_eq!(
        items[0].annotations,
        Some(Hints {
            destructive: Some(false),
            ..Hints::default()
        })
    );
    assert_eq!(
        (
            items[0].title.as_deref(),
            items[0].icons.len(),
            items[1].annotations
        ),
        (None, 1, None)
    );
    assert_eq!(object_schema(" { } "), "{\"type\":\"object\" } ");
    let prompts = json!({"prompts": [
        {"name": "p", "arguments": null, "icons": "no"},
        {"name": "q", "arguments": [{"name": "a", "required": null}]},
    ]});
    let GuestPage { items, .. } = parse_prompts(&prompts.to_string()).unwrap();
    assert!(items[0].arguments.is_empty() && !items[1].arguments[0].required);
    let annotations = json!({"audience": null, "priority": "1"});
    let resources =
        json!({"resources": [{"uri": "a:b", "name": "r", "size": -1, "annotations": annotations}]});
    let GuestPage { items, .. } = parse_resources(&resources.to_string()).unwrap();
    assert_eq!(
        (items[0].size, items[0].priority, items[0].audience.len()),
        (None, None, 0)
    );
    assert!(
        parse_templates(r#"{"resourceTemplates":null}"#)
            .unwrap()
            .items
            .is_empty()
    );
    let hello = r#"{"protocolVersion":"2025-11-25","capabilities":null}"#;
    assert!(
        !parse_initialize_result(hello)
            .unwrap()
            .has(GuestList::Tools)
    );
}

#[test]
fn prompts_resources_and_templates_are_parsed() {
    let prompt =
        json!({"name": "p", "arguments": [{"name": "a", "required": true}, {"name": "b"}]});
    let read = parse_prompts(&json!({"prompts": [prompt]}).to_string()).unwrap();
    assert_eq!(
        read.items[0]
            .arguments
            .iter()
            .map(|argument| argument.required)
            .collect::<Vec<_>>(),
        [true, false]
    );
    let resource = json!({"uri": "a:b", "name": "r", "mimeType": "text/plain", "size": 3, "annotations": {"audience": ["user"], "priority": 1}});
    let read = parse_resources(&json!({"resources": [resource]}).to_string()).unwrap();
    assert_eq!(
        (read.items[0].size, read.items[0].audience.as_slice()),
        (Some(3), &["user".to_owned()][..])
    );
    let template = json!({"uriTemplate": "a:{b}", "name": "t"});
    let read = parse_templates(&json!({"resourceTemplates": [template]}).to_string()).unwrap();
    assert_eq!(read.items[0].uri, "a:{b}");
}
