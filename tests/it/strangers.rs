//! Untrusted text: the names and messages of plugins, files and clients cannot forge log lines or
//! control a terminal.

use serde_json::json;

use crate::support::{Folder, StdioServer, TinyComponent, TinyTool, ToolbayCommand};

/// A text that would forge a line, hide text or control a terminal.
const EVIL: &str =
    "x\n2026-01-01T00:00:00.000000Z  WARN forged\u{1b}[2J\u{9b}1m\u{202e}\u{2028}\u{7}\u{e0041}y";

/// Asserts that the server wrote every line, and that no line has control characters.
fn assert_harmless(text: &str) {
    for line in text.lines() {
        assert!(
            !line.chars().any(|c| c.is_control() && c != '\t'),
            "{line:?}"
        );
        assert!(
            !line.contains(['\u{202e}', '\u{2028}', '\u{e0041}']),
            "{line:?}"
        );
        assert!(!line.starts_with("2026-01-01"), "{text}");
        assert!(line.len() < 20_000, "{}", line.len());
    }
}

#[test]
fn the_name_of_a_client_takes_one_log_line() {
    let folder = Folder::new();
    let mut server =
        StdioServer::run(ToolbayCommand::new(&folder).args(["serve", "--log", "debug"]));
    let name = format!("{EVIL}{}", "y".repeat(1 << 20));
    let hello = json!({"protocolVersion": EVIL, "capabilities": {}, "clientInfo": {"name": name, "version": "0"}});
    server.result("initialize", hello);
    server.notify(EVIL, json!({}));
    server.notify("notifications/initialized", json!({}));
    server.log.wait_for("ignored an unknown notification");
    let line = server.log.wait_for("client connected");
    assert!(
        line.contains(r#"client="x\n2026-01-01T00:00:00.000000Z  WARN forg"#),
        "{line}"
    );
    server.stop();
    server.log.wait_for_end();
    assert_harmless(&server.log.text());
}

#[test]
fn a_file_with_any_name_takes_one_line_of_output() {
    let folder = Folder::with(&format!("{EVIL}.wasm"), "no component");
    folder.put(&format!("{EVIL}.WASM"), "no component");
    folder.put("a.wasm", TinyComponent::new(&["a"]).build());
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["a"]);
    server.log.wait_for("not a plugin: x");
    server.log.wait_for("refused: not a WebAssembly file");
    server.stop();
    server.log.wait_for_end();
    assert_harmless(&server.log.text());
    for command in [
        &["list"][..],
        &["list", "--json"],
        &["compile"],
        &["call", "none"],
        &["check", "plugins/a.wasm"],
    ] {
        let outcome = ToolbayCommand::new(&folder).args(command).run();
        assert_harmless(&outcome.stdout);
        assert_harmless(&outcome.stderr);
    }
    let unusable = ToolbayCommand::new(&folder)
        .args(["check", &format!("plugins/{EVIL}.wasm")])
        .run();
    assert_eq!(unusable.code, 1, "{unusable}");
    assert_harmless(&unusable.stderr);
}

#[test]
fn definitions_of_a_plugin_are_escaped_on_a_terminal() {
    let words = serde_json::to_string(EVIL).unwrap();
    let schema = format!(
        r#"{{"type":"object","description":{words},"properties":{{{words}:{{"const":{words}}}}}}}"#
    );
    let tool = TinyTool {
        title: Some(EVIL.into()),
        description: Some(EVIL.into()),
        input: schema.clone(),
        output: Some(schema),
        meta: Some(format!("{{{words}:{words}}}")),
        ..TinyTool::new("a")
    };
    let structured = format!("{{{words}:{words}}}");
    let folder = Folder::with(
        "a.wasm",
        TinyComponent::with_tools(vec![tool])
            .with_text(EVIL)
            .with_structured(&structured)
            .build(),
    );
    for command in [
        &["list", "--json"][..],
        &["check", "plugins/a.wasm", "--json"],
        &["call", "a", "--json"],
    ] {
        let outcome = ToolbayCommand::new(&folder).args(command).run();
        assert_eq!(outcome.code, 0, "{outcome}");
        assert_harmless(&outcome.stdout);
        serde_json::from_str::<serde_json::Value>(&outcome.raw_stdout).unwrap();
    }
    // A description may have several lines, which are indented.
    for command in [&["list"][..], &["check", "plugins/a.wasm"]] {
        let outcome = ToolbayCommand::new(&folder).args(command).run();
        assert_eq!(outcome.code, 0, "{outcome}");
        assert!(
            !outcome
                .stdout
                .lines()
                .any(|line| line.starts_with("2026-01-01")),
            "{outcome}"
        );
        assert!(
            !outcome
                .stdout
                .contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{7}', '\u{e0041}']),
            "{outcome}"
        );
    }
    // Strings that validation uses are unchanged; strings for readers are cleaned.
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["a"]);
    let tool = &server.tools()[0];
    let cleaned = "x\n2026-01-01T00:00:00.000000Z  WARN forged\u{2028}y";
    assert_eq!(tool["inputSchema"]["description"], cleaned);
    assert_eq!(tool["inputSchema"]["properties"][EVIL]["const"], EVIL);
    assert_eq!(tool["_meta"], json!({cleaned: cleaned}));
}

#[test]
fn a_message_of_a_plugin_with_several_lines_takes_one_log_line() {
    let folder = Folder::with("hostile.wasm", crate::support::hostile());
    folder.put("hostile.toml", "[permissions]\nenvironment = [\"SECRET\"]");
    let serving = ToolbayCommand::new(&folder)
        .args(["serve", "--log", "debug"])
        .env("SECRET", EVIL);
    let mut server = StdioServer::run(serving).with_handshake("2025-11-25");
    server.wait_for_tool("tell");
    for how in ["log", "output", "error", "failure", "panic", "progress"] {
        let id = server.start_call_with_progress("tell", json!({"text": how}));
        server.finish_call(id);
    }
    server.stop();
    server.log.wait_for_end();
    assert_harmless(&server.log.text());
    assert!(
        server
            .log
            .text()
            .matches(r"it is x\n2026-01-01T00:00:00.000000Z  WARN forged")
            .count()
            >= 3
    );
}
