//! Results of tools, as clients receive them.

use serde_json::json;

use crate::support::{Folder, StdioServer, TinyComponent, TinyTool, error_kind_and_text, hostile};

#[test]
fn text_arrives_without_control_characters() {
    let mut server = StdioServer::start(&Folder::with("hostile.wasm", hostile()));
    let mut echo = |text: &str| server.text("echo", json!({"text": text}));
    assert_eq!(
        echo("plain\ttext\nin two lines"),
        "plain\ttext\nin two lines"
    );
    assert_eq!(
        echo("\u{1b}[31mred\u{1b}[0m and \u{1b}]0;title\u{7}bells\u{7}"),
        "red and bells"
    );
    assert_eq!(echo("a\u{0}b\u{8}c\r\nd"), "abc\nd");
    assert_eq!(echo("safe\u{202e}exe.txt"), "safeexe.txt");
    assert_eq!(echo("tagged\u{e0041}\u{e0042}"), "tagged");
    assert_eq!(
        echo("😀\u{e0159}\u{e0155}\u{e0163} sel\u{fe0f}ected"),
        "😀 selected"
    );
    assert_eq!(
        echo("\u{200f}marks\u{200e}\u{61c} and op\u{2060}er\u{2062}at\u{2064}ors"),
        "marks and operators"
    );
    assert_eq!(
        echo("so\u{ad}ft\u{200b}\u{3164} jo\u{200d}in❤\u{fe0f}\u{200d}\u{200d}\u{200d}🔥"),
        "soft join❤\u{fe0f}\u{200d}🔥"
    );
    assert_eq!(
        echo("é 漢字 👩\u{200d}👧 עברית"),
        "é 漢字 👩\u{200d}👧 עברית"
    );
}

#[test]
fn structured_content_arrives_without_control_characters() {
    let json = r#"{"na\u001b[2Jme":["\u001b[31mred\u001b[0m",{"file":"safe\u202eexe.txt","n":1}]}"#;
    let tool = TinyTool {
        output: Some(r#"{"type":"object"}"#.into()),
        ..TinyTool::new("a")
    };
    let folder = Folder::with(
        "a.wasm",
        TinyComponent::with_tools(vec![tool])
            .with_structured(json)
            .build(),
    );
    let mut server = StdioServer::start_with_config(&folder, "log = \"debug\"");
    let result = server.call("a", json!({}));
    assert_eq!(
        result["structuredContent"],
        json!({"name": ["red", {"file": "safeexe.txt", "n": 1}]})
    );
    server
        .log
        .wait_for("removed control characters from the plugin's output bytes=16");
}

#[test]
fn output_that_breaks_the_contract_is_refused() {
    let cases = [
        (TinyTool::new("a"), "{", "structured is not valid JSON"),
        (
            TinyTool {
                output: Some(r#"{"type":"object","required":["n"]}"#.into()),
                ..TinyTool::new("a")
            },
            "{}",
            "\"n\" is a required property",
        ),
        (
            TinyTool {
                output: Some(r#"{"type":"array"}"#.into()),
                ..TinyTool::new("a")
            },
            "7",
            "7 is not of type \"array\"",
        ),
    ];
    for (tool, structured, said) in cases {
        let folder = Folder::with(
            "a.wasm",
            TinyComponent::with_tools(vec![tool])
                .with_structured(structured)
                .build(),
        );
        let (kind, text) = error_kind_and_text(&StdioServer::start(&folder).call("a", json!({})));
        assert_eq!(kind, "invalid-output", "{text}");
        assert!(
            text.starts_with("The tool returned invalid output: ") && text.contains(said),
            "{text}"
        );
    }
}

#[test]
fn structured_content_is_required_if_there_is_an_output_schema() {
    let tool = TinyTool {
        output: Some(r#"{"type":"object"}"#.into()),
        ..TinyTool::new("a")
    };
    let folder = Folder::with("a.wasm", TinyComponent::with_tools(vec![tool]).build());
    let (kind, text) = error_kind_and_text(&StdioServer::start(&folder).call("a", json!({})));
    assert_eq!(kind, "invalid-output");
    assert!(
        text.contains("structured content is missing, but the tool has an output schema"),
        "{text}"
    );
}

#[test]
fn structured_content_that_is_not_an_object_is_text_in_older_revisions() {
    let tool = TinyTool {
        output: Some(r#"{"type":"array"}"#.into()),
        ..TinyTool::new("a")
    };
    let folder = Folder::with(
        "a.wasm",
        TinyComponent::with_tools(vec![tool])
            .with_structured("[1,2]")
            .build(),
    );
    let mut result = StdioServer::start(&folder).call("a", json!({}));
    result.as_object_mut().unwrap().remove("_meta");
    assert_eq!(
        result,
        json!({"content": [{"type": "text", "text": "fine"}]})
    );
}

#[test]
fn a_trap_in_the_middle_of_an_answer_is_one_failed_call() {
    let folder = Folder::with(
        "a.wasm",
        TinyComponent::new(&["a"])
            .before_call("unreachable")
            .build(),
    );
    folder.put(
        "b.wasm",
        TinyComponent::new(&["b"])
            .before_call("(return (i32.const 0x7fff_fff0))")
            .build(),
    );
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["a", "b"]);
    let (kind, text) = server.failure("a", json!({}));
    assert_eq!(
        (kind.as_str(), text.as_str()),
        (
            "trap",
            "The tool crashed: wasm trap: wasm `unreachable` instruction executed."
        )
    );
    // The result is outside of its memory.
    assert_eq!(server.failure("b", json!({})).0, "trap");
    server.result("ping", json!({}));
}
