//! Tests of `definition`.

use serde_json::json;

use super::*;

const EVIL: &str = "a\u{1b}[2J\u{202e}b\u{9b}1m\u{e0041}c";

fn of(tools: Vec<ToolDefinition>) -> ComponentDescription {
    ComponentDescription {
        tools,
        ..ComponentDescription::default()
    }
}

fn icon(src: &str) -> Icon {
    Icon {
        src: src.into(),
        mime_type: None,
        sizes: vec!["48x48\u{202e}".into()],
        theme: None,
    }
}

#[test]
fn readable_texts_are_cleaned_and_validation_keywords_stay() {
    let before = json!({
        "type": "object",
        "title": EVIL,
        "$comment": EVIL,
        "properties": {
            // Properties can have the names of keywords.
            "pattern": {"description": EVIL, "pattern": EVIL, "default": EVIL},
            EVIL: {"enum": [EVIL], "const": {"title": EVIL}, "examples": [EVIL], "x-words": [{"de": EVIL}]},
        },
        "required": [EVIL],
        "allOf": [{"description": EVIL}, {"if": {"title": EVIL}, "$ref": format!("#/$defs/{EVIL}")}],
        "$defs": {EVIL: {"description": EVIL}},
        "dependencies": {"a": [EVIL], "b": {"title": EVIL}},
    });
    let after = json!({
        "type": "object",
        "title": "abc",
        "$comment": "abc",
        "properties": {
            "pattern": {"description": "abc", "pattern": EVIL, "default": EVIL},
            EVIL: {"enum": [EVIL], "const": {"title": EVIL}, "examples": [EVIL], "x-words": [{"de": "abc"}]},
        },
        "required": [EVIL],
        "allOf": [{"description": "abc"}, {"if": {"title": "abc"}, "$ref": format!("#/$defs/{EVIL}")}],
        "$defs": {EVIL: {"description": "abc"}},
        "dependencies": {"a": [EVIL], "b": {"title": "abc"}},
    });
    let tool = ToolDefinition {
        title: Some(EVIL.into()),
        description: Some(EVIL.into()),
        input_schema: before.to_string(),
        output_schema: Some(before.to_string().replace('\u{202e}', "\\u202e")),
        meta: Some(json!({EVIL: [EVIL, {"n": 1}]}).to_string()),
        ..ToolDefinition::default()
    };
    let ComponentDescription { tools, remarks, .. } = clean_description(of(vec![tool]));
    let [tool] = tools.as_slice() else {
        panic!("{tools:?}")
    };
    assert_eq!(
        (tool.title.as_deref(), tool.description.as_deref()),
        (Some("abc"), Some("abc"))
    );
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(read(&tool.input_schema), after);
    assert_eq!(read(tool.output_schema.as_deref().unwrap()), after);
    assert_eq!(
        read(tool.meta.as_deref().unwrap()),
        json!({"abc": ["abc", {"n": 1}]})
    );
    assert!(remarks.is_empty());
}

#[test]
fn clean_or_invalid_json_is_returned_unchanged() {
    for text in [
        r#"{ "type":"object", "maximum": 1.50 }"#,
        "{",
        r#"{"title": "\u00"#,
        "\u{202e}",
    ] {
        let tool = ToolDefinition {
            input_schema: text.into(),
            ..ToolDefinition::default()
        };
        assert_eq!(
            clean_description(of(vec![tool])).tools[0].input_schema,
            text
        );
    }
}

#[test]
fn an_icon_has_an_https_or_data_address() {
    let good = [
        "https://a.example/i.png",
        "HTTPS://a.example/ü",
        "data:image/png;base64,AAAA",
        "data:IMAGE/svg+xml,<svg/>",
    ];
    let bad = [
        "http://a.example/i.png",
        "javascript:alert(1)",
        "data:text/html,<script>",
        "https:",
        "https:///etc/passwd",
        "https://?a",
        "https://a.example/ b",
        "https://a.example/\u{1b}[2J",
        "https://a.example/\u{202e}gnp.i",
        "file:///etc/passwd",
        "data:imag",
        "",
        "i.png",
    ];
    let tool = |icons| ToolDefinition {
        name: "a".into(),
        icons,
        ..ToolDefinition::default()
    };
    let all = bad.iter().chain(&good).map(|src| icon(src)).collect();
    let ComponentDescription { tools, remarks, .. } = clean_description(of(vec![tool(all)]));
    assert_eq!(
        tools[0]
            .icons
            .iter()
            .map(|icon| icon.src.as_str())
            .collect::<Vec<_>>(),
        good
    );
    assert_eq!(tools[0].icons[0].sizes, ["48x48"]);
    assert_eq!(
        remarks,
        [
            "tool \"a\": an icon is not shown: its address must begin with https:// or data:image/, not \
             \"http://a.example/i.png\""
        ]
    );
    for bad in bad {
        assert!(clean_icon(icon(bad)).is_err(), "{bad}");
    }
    let ComponentDescription { remarks, .. } =
        clean_description(of(vec![tool(vec![icon(bad[1]); 100]); 30]));
    assert_eq!(remarks.len(), MAX_REMARKS + 1);
    assert_eq!(
        remarks[MAX_REMARKS],
        "20 more tools have something that is not shown"
    );
    let page = Icon {
        mime_type: Some("text/html".into()),
        ..icon(good[0])
    };
    assert_eq!(
        clean_icon(page).unwrap_err(),
        "its MIME type must be image/…, not \"text/html\""
    );
}

#[test]
fn prompts_and_resources_are_cleaned_but_not_their_identifiers() {
    let meta = || Some(json!({EVIL: EVIL}).to_string());
    let prompt = PromptDefinition {
        name: EVIL.into(),
        title: Some(EVIL.into()),
        description: Some(EVIL.into()),
        arguments: vec![PromptArgument {
            name: EVIL.into(),
            title: Some(EVIL.into()),
            description: Some(EVIL.into()),
            required: true,
        }],
        icons: vec![
            icon("https://a.example/i.png"),
            icon("http://a.example/i.png"),
        ],
        meta: meta(),
    };
    let resource = ResourceDefinition {
        uri: EVIL.into(),
        name: EVIL.into(),
        title: Some(EVIL.into()),
        description: Some(EVIL.into()),
        meta: meta(),
        ..ResourceDefinition::default()
    };
    let said = ComponentDescription {
        prompts: vec![prompt.clone()],
        resources: vec![resource.clone()],
        templates: vec![resource],
        completes: true,
        remarks: vec!["first".into()],
        ..ComponentDescription::default()
    };
    let cleaned = clean_description(said);
    let expected = ResourceDefinition {
        uri: EVIL.into(),
        name: "abc".into(),
        title: Some("abc".into()),
        description: Some("abc".into()),
        meta: Some(r#"{"abc":"abc"}"#.into()),
        ..ResourceDefinition::default()
    };
    assert_eq!(
        (&cleaned.resources, &cleaned.templates),
        (&vec![expected.clone()], &vec![expected])
    );
    let expected = PromptDefinition {
        title: Some("abc".into()),
        description: Some("abc".into()),
        arguments: vec![PromptArgument {
            name: EVIL.into(),
            title: Some("abc".into()),
            description: Some("abc".into()),
            required: true,
        }],
        icons: vec![Icon {
            sizes: vec!["48x48".into()],
            ..icon("https://a.example/i.png")
        }],
        meta: Some(r#"{"abc":"abc"}"#.into()),
        ..prompt
    };
    assert_eq!(cleaned.prompts, [expected]);
    assert!(cleaned.completes);
    let [first, second] = cleaned.remarks.as_slice() else {
        panic!("{:?}", cleaned.remarks)
    };
    assert_eq!(first, "first");
    assert!(
        second.starts_with("prompt \"a") && second.contains("an icon is not shown"),
        "{second}"
    );
}

#[test]
fn values_that_mcp_does_not_allow_are_dropped() {
    let resource = |mime_type: &str, priority, last_modified: &str| ResourceDefinition {
        uri: "notes://a".into(),
        mime_type: Some(mime_type.into()),
        priority: Some(priority),
        last_modified: Some(last_modified.into()),
        ..ResourceDefinition::default()
    };
    let fine = || resource("text/plain", 1.0, "2026-01-12T15:00:58Z");
    let cases = [
        (
            ResourceDefinition {
                mime_type: None,
                ..fine()
            },
            resource("text", 1.0, "2026-01-12T15:00:58Z"),
        ),
        (
            ResourceDefinition {
                priority: None,
                ..fine()
            },
            resource("text/plain", f64::NAN, "2026-01-12T15:00:58Z"),
        ),
        (
            ResourceDefinition {
                priority: None,
                ..fine()
            },
            resource("text/plain", 1.1, "2026-01-12T15:00:58Z"),
        ),
        (
            ResourceDefinition {
                last_modified: None,
                ..fine()
            },
            resource("text/plain", 1.0, "today\u{202e}"),
        ),
    ];
    for (expected, wrong) in cases {
        let said = ComponentDescription {
            resources: vec![fine(), wrong],
            ..ComponentDescription::default()
        };
        let cleaned = clean_description(said);
        assert_eq!(cleaned.resources, [fine(), expected]);
        assert_eq!(cleaned.remarks.len(), 1);
        assert!(
            cleaned.remarks[0].starts_with("resource \"notes://a\": "),
            "{:?}",
            cleaned.remarks
        );
    }
}
