//! Tests of `component_contents`.

use toolbay_model::{GuestServerProtocol, PromptDefinition, ToolDefinition};

use super::*;
use crate::definition::resource_entry::tests::definition;

fn prompt(name: &str) -> PromptDefinition {
    PromptDefinition {
        name: name.into(),
        ..PromptDefinition::default()
    }
}

#[test]
fn everything_is_sorted() {
    let description = ComponentDescription {
        prompts: vec![prompt("b"), prompt("a")],
        resources: vec![definition("x:b"), definition("x:a")],
        ..ComponentDescription::default()
    };
    let contents = ComponentContents::validate(description).unwrap();
    assert_eq!(contents.prompts[0].prompt.name, "a");
    assert_eq!(contents.resources[0].resource.uri, "x:a");
    let reads = |uri| contents.can_read(uri, &mut MatchBudget::new(MatchBudget::PER_URI));
    assert!(reads("x:b") && !reads("x:c"));
}

#[test]
fn duplicates_are_refused() {
    let empty = ComponentDescription::default;
    let descriptions = [
        ComponentDescription {
            prompts: vec![prompt("a"), prompt("a")],
            ..empty()
        },
        ComponentDescription {
            prompts: vec![prompt("a"), prompt("")],
            ..empty()
        },
        ComponentDescription {
            resources: vec![definition("x:a"), definition("x:a")],
            ..empty()
        },
        ComponentDescription {
            templates: vec![definition("x:{a}"), definition("x:{a}")],
            ..empty()
        },
        ComponentDescription {
            templates: vec![definition("x:{a}"), definition("x:{b}")],
            ..empty()
        },
    ];
    let said: Vec<String> = descriptions
        .map(|description| ComponentContents::validate(description).unwrap_err())
        .into();
    insta::assert_snapshot!(said.join("\n"), @r#"
        two of its prompts are named "a"
        prompt "": a name must have 1 to 128 characters of A-Z a-z 0-9 _ - .
        two of its resources have the URI "x:a"
        two of its resource templates are "x:{a}"
        two of its resource templates are named "a"
        "#);
}

#[test]
fn invalid_tools_of_a_server_are_left_out() {
    let tool = |name: &str, input: &str| ToolDefinition {
        name: name.into(),
        input_schema: input.into(),
        ..ToolDefinition::default()
    };
    let (good, bad) = (
        tool("good", r#"{"type":"object"}"#),
        tool("a/b", r#"{"type":"object"}"#),
    );
    let list = tool("list", r#"{"type":"array"}"#);
    let server = |tools: &[&ToolDefinition]| ComponentDescription {
        tools: tools.iter().copied().cloned().collect(),
        manner: Some(GuestServerProtocol::default()),
        ..ComponentDescription::default()
    };
    let mut description = server(&[&bad, &good, &list]);
    let contents = ComponentContents::validate_or_leave_out(&mut description).unwrap();
    assert_eq!(
        contents
            .tools
            .iter()
            .map(|tool| tool.tool.name.as_str())
            .collect::<Vec<_>>(),
        ["good"]
    );
    assert_eq!(
        description.remarks,
        [
            "left out: tool \"a/b\": a name must have 1 to 128 characters of A-Z a-z 0-9 _ - .",
            "left out: tool \"list\": its input schema is invalid: its root must have \"type\": \"object\"",
        ]
    );
    assert_eq!(
        contents.left_out.keys().collect::<Vec<_>>(),
        ["a/b", "list"]
    );
    // It is stored with what was left out.
    let stored = ComponentContents::from_stored(description).unwrap();
    assert_eq!(
        (stored.tools.len(), stored.left_out),
        (1, contents.left_out)
    );
    // Nothing else is there, it is no server, or something else is wrong.
    let plugin = ComponentDescription {
        manner: None,
        ..server(&[&bad, &good])
    };
    for mut refused in [
        server(&[&bad]),
        plugin,
        server(&[&good, &good]),
        server(&[&bad, &good, &good]),
    ] {
        ComponentContents::validate_or_leave_out(&mut refused).unwrap_err();
    }
    let mut many = server(&[&good]);
    many.tools
        .extend((0..30).map(|n| tool(&format!("{n}/"), "{}")));
    ComponentContents::validate_or_leave_out(&mut many).unwrap();
    assert_eq!(many.remarks.len(), MAX_LEFT_OUT_REMARKS + 1);
    assert_eq!(
        many.remarks[MAX_LEFT_OUT_REMARKS],
        "left out: 10 more invalid tools"
    );
}

#[test]
fn readable_resources_include_those_of_templates() {
    let templates = vec![definition("notes://{id}")];
    let contents = ComponentContents::validate(ComponentDescription {
        templates,
        ..ComponentDescription::default()
    })
    .unwrap();
    let reads = |uri| contents.can_read(uri, &mut MatchBudget::new(MatchBudget::PER_URI));
    assert!(reads("notes://7") && !reads("notes://7/8") && !reads("other://7"));
}
