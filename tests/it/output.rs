//! Results of tools, as clients receive them.

use serde_json::json;

use crate::support::{Folder, Server, Tiny, Tool, failure, hostile};

#[test]
fn text_arrives_without_control_characters() {
    let mut server = Server::start(&Folder::with("hostile.wasm", hostile()));
    let mut echo = |text: &str| server.text("echo", json!({"text": text}));
    assert_eq!(echo("plain\ttext\nin two lines"), "plain\ttext\nin two lines");
    assert_eq!(echo("\u{1b}[31mred\u{1b}[0m and \u{1b}]0;title\u{7}bells\u{7}"), "red and bells");
    assert_eq!(echo("a\u{0}b\u{8}c\r\nd"), "abc\nd");
    assert_eq!(echo("safe\u{202e}exe.txt"), "safeexe.txt");
    assert_eq!(echo("tagged\u{e0041}\u{e0042}"), "tagged");
    assert_eq!(echo("😀\u{e0159}\u{e0155}\u{e0163} sel\u{fe0f}ected"), "😀 selected");
    assert_eq!(echo("\u{200f}marks\u{200e}\u{61c} and op\u{2060}er\u{2062}at\u{2064}ors"), "marks and operators");
    assert_eq!(
        echo("so\u{ad}ft\u{200b}\u{3164} jo\u{200d}in❤\u{fe0f}\u{200d}\u{200d}\u{200d}🔥"),
        "soft join❤\u{fe0f}\u{200d}🔥"
    );
    assert_eq!(echo("é 漢字 👩\u{200d}👧 עברית"), "é 漢字 👩\u{200d}👧 עברית");
}

#[test]
fn structured_content_arrives_without_control_characters() {
    let json = r#"{"na\u001b[2Jme":["\u001b[31mred\u001b[0m",{"file":"safe\u202eexe.txt","n":1}]}"#;
    let tool = Tool { output: Some(r#"{"type":"object"}"#.into()), ..Tool::new("a") };
    let folder = Folder::with("a.wasm", Tiny::of(vec![tool]).structured(json).build());
    let mut server = Server::configured(&folder, "log = \"debug\"");
    let result = server.call("a", json!({}));
    assert_eq!(result["structuredContent"], json!({"name": ["red", {"file": "safeexe.txt", "n": 1}]}));
    server.log.wait_for("removed control characters from the plugin's output bytes=16");
}

#[test]
fn output_that_breaks_the_contract_is_refused() {
    let cases = [
        (Tool::new("a"), "{", "structured is not valid JSON"),
        (
            Tool { output: Some(r#"{"type":"object","required":["n"]}"#.into()), ..Tool::new("a") },
            "{}",
            "\"n\" is a required property",
        ),
        (Tool { output: Some(r#"{"type":"array"}"#.into()), ..Tool::new("a") }, "7", "7 is not of type \"array\""),
    ];
    for (tool, structured, said) in cases {
        let folder = Folder::with("a.wasm", Tiny::of(vec![tool]).structured(structured).build());
        let (kind, text) = failure(&Server::start(&folder).call("a", json!({})));
        assert_eq!(kind, "invalid-output", "{text}");
        assert!(text.starts_with("The tool returned invalid output: ") && text.contains(said), "{text}");
    }
}

#[test]
fn structured_content_is_required_if_there_is_an_output_schema() {
    let tool = Tool { output: Some(r#"{"type":"object"}"#.into()), ..Tool::new("a") };
    let folder = Folder::with("a.wasm", Tiny::of(vec![tool]).build());
    let (kind, text) = failure(&Server::start(&folder).call("a", json!({})));
    assert_eq!(kind, "invalid-output");
    assert!(text.contains("structured content is missing, but the tool has an output schema"), "{text}");
}

#[test]
fn structured_content_that_is_not_an_object_is_text_in_older_revisions() {
    let tool = Tool { output: Some(r#"{"type":"array"}"#.into()), ..Tool::new("a") };
    let folder = Folder::with("a.wasm", Tiny::of(vec![tool]).structured("[1,2]").build());
    let mut result = Server::start(&folder).call("a", json!({}));
    result.as_object_mut().unwrap().remove("_meta");
    assert_eq!(result, json!({"content": [{"type": "text", "text": "fine"}]}));
}

#[test]
fn a_trap_in_the_middle_of_an_answer_is_one_failed_call() {
    let folder = Folder::with("a.wasm", Tiny::new(&["a"]).before_call("unreachable").build());
    folder.put("b.wasm", Tiny::new(&["b"]).before_call("(return (i32.const 0x7fff_fff0))").build());
    let mut server = Server::start(&folder);
    server.wait_until_listed(&["a", "b"]);
    let (kind, text) = server.failure("a", json!({}));
    assert_eq!(
        (kind.as_str(), text.as_str()),
        ("trap", "The tool crashed: wasm trap: wasm `unreachable` instruction executed.")
    );
    // A result outside of its memory.
    assert_eq!(server.failure("b", json!({})).0, "trap");
    server.result("ping", json!({}));
}
