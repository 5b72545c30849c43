//! Versions of the contract: plugins that were built for an older version work unchanged together
//! with newer ones.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{Folder, StdioServer, ToolbayCommand, sample, wit};

/// Returns a plugin that was built for 0.1.0. These plugins are never rebuilt.
fn frozen_plugin(id: &str) -> Vec<u8> {
    let folder: PathBuf = [
        env!("CARGO_MANIFEST_DIR"),
        "../../tests/data/contract-0.1.0",
    ]
    .iter()
    .collect();
    fs::read(folder.join(id).with_extension("wasm")).unwrap()
}

#[test]
fn plugins_of_both_versions_serve_side_by_side() {
    let folder = Folder::with("calculator.wasm", sample("calculator"));
    folder.put("old.toml", "prefix = \"old\"");
    folder.put("old.wasm", frozen_plugin("calculator"));
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("calculate_sum");
    server.wait_for_tool("old_calculate_sum");
    let mut sum = |tool: &str, arguments: Value| {
        server.call(tool, arguments)["structuredContent"]["sum"].clone()
    };
    assert_eq!(sum("calculate_sum", json!({"a": 1, "b": 2.5})), 3.5);
    assert_eq!(sum("old_calculate_sum", json!({"numbers": [1, 2.5]})), 3.5);
}

/// Lists every frozen plugin and calls each of its tools.
#[test]
fn every_plugin_of_0_1_0_is_served_unchanged() {
    let folder = Folder::new();
    let ids = [
        "calculator",
        "chart",
        "conformance",
        "plain",
        "qr",
        "rust-acceptance",
        "text",
        "time",
    ];
    for id in ids {
        // Two of them have a tool with the same name.
        folder.put(&format!("{id}.toml"), format!("prefix = \"{id}\""));
        folder.put(&format!("{id}.wasm"), frozen_plugin(id));
    }
    // Longer than compiling all of them takes, however busy the machine is.
    let mut server = StdioServer::start_with_config(&folder, "[server]\nstartup_wait = \"10m\"");
    let names = server.tool_names();
    for id in ids {
        assert!(
            names.iter().any(|name| name.starts_with(&format!("{id}_"))),
            "{id} offers nothing: {names:?}"
        );
    }
    let result = server.call("qr_qr_png", json!({"text": "a"}));
    assert_eq!(result["content"][0]["type"], "image", "{result}");
    let result = server.call("conformance_test_multiple_content_types", json!({}));
    assert_eq!(result["content"].as_array().unwrap().len(), 3, "{result}");
    let result = server.call("conformance_test_audio_content", json!({}));
    assert_eq!(result["content"][0]["type"], "audio", "{result}");
}

/// Returns a plugin with another version in the name of its export, and the same types.
fn with_export_version(version: &str) -> Vec<u8> {
    let from = "toolbay:plugin/tools@0.1.0";
    let to = format!("toolbay:plugin/tools@{version}");
    assert_eq!(from.len(), to.len());
    let mut bytes = frozen_plugin("calculator");
    while let Some(at) = bytes
        .windows(from.len())
        .position(|window| window == from.as_bytes())
    {
        bytes[at..at + from.len()].copy_from_slice(to.as_bytes());
    }
    bytes
}

#[test]
fn the_refusal_of_an_unknown_version_names_the_toolbay_that_serves_it() {
    let folder = Folder::with("future.wasm", with_export_version("0.7.0"));
    let outcome = ToolbayCommand::new(&folder).args(["list"]).run();
    let said = "exports toolbay:plugin/tools@0.7.0, but this version of Toolbay supports 0.1.0 and 0.2.0; \
                use Toolbay 0.7 or newer";
    assert!(outcome.stdout.contains(said), "{outcome}");
}

#[test]
fn types_of_another_version_are_refused_when_the_file_is_loaded() {
    // The types of 0.1.0 under the name of 0.2.0.
    let folder = Folder::with("mixed.wasm", with_export_version("0.2.0"));
    let outcome = ToolbayCommand::new(&folder).args(["list"]).run();
    assert!(
        outcome
            .stdout
            .contains("exports toolbay:plugin/tools@0.2.0, but its types differ"),
        "{outcome}"
    );
    assert!(outcome.stdout.contains("mixed  refused"), "{outcome}");
}

/// Returns a component for the newest contract whose only tool returns one block with this kind and
/// text.
fn one_block(kind: &str, text: Option<&str>) -> Vec<u8> {
    let root: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../wit/0.2.0/plugin.wit"]
        .iter()
        .collect();
    let contract = fs::read_to_string(root).unwrap();
    let hex = |text: &str| {
        text.bytes()
            .map(|byte| format!("\\{byte:02x}"))
            .collect::<Vec<_>>()
            .concat()
    };
    let word = |n: usize| {
        u32::try_from(n)
            .unwrap()
            .to_le_bytes()
            .map(|byte| format!("\\{byte:02x}"))
            .concat()
    };
    let (schema, name) = (r#"{"type":"object"}"#, "a");
    let (text_at, text_length) = text.map_or((0, 0), |text| (704, text.len()));
    // The layout of `tool-definition` and `content` in the canonical ABI. Almost all members are
    // absent.
    let exports = format!(
        r#"(data (i32.const 512) "{name}") (data (i32.const 528) "{schema}")
        (data (i32.const 640) "{kind}") (data (i32.const 704) "{shown}")
        ;; list<tool-definition>: one
        (data (i32.const 16) "{at_tool}{one}")
        (data (i32.const 1024) "{name_at}{name_length}")
        (data (i32.const 1056) "{schema_at}{schema_length}")
        ;; result<output, failure>: ok, with one block
        (data (i32.const 96) "\00\00\00\00{at_block}{one}")
        (data (i32.const 2048) "{kind_at}{kind_length}{has_text}{text_at}{text_length}")
        (func (export "toolbay:plugin/tools@0.2.0#list-tools") (result i32) (i32.const 16))
        (func (export "toolbay:plugin/tools@0.2.0#call-tool") (param i32 i32 i32 i32) (result i32) (i32.const 96))"#,
        name = hex(name),
        schema = hex(schema),
        kind = hex(kind),
        shown = hex(text.unwrap_or_default()),
        at_tool = word(1024),
        one = word(1),
        name_at = word(512),
        name_length = word(name.len()),
        schema_at = word(528),
        schema_length = word(schema.len()),
        at_block = word(2048),
        kind_at = word(640),
        kind_length = word(kind.len()),
        has_text = word(usize::from(text.is_some())),
        text_at = word(text_at),
        text_length = word(text_length),
    );
    wit::build_component(&contract, &exports)
}

#[test]
fn content_of_unknown_kinds_is_accepted() {
    let folder = Folder::with("known.wasm", one_block("text", Some("hello")));
    for (id, component) in [
        ("newer", one_block("hologram", Some("a hologram of a cat"))),
        ("mute", one_block("hologram", None)),
    ] {
        folder.put(&format!("{id}.toml"), format!("prefix = \"{id}\""));
        folder.put(&format!("{id}.wasm"), component);
    }
    let mut server = StdioServer::start(&folder);
    for tool in ["a", "newer_a", "mute_a"] {
        server.wait_for_tool(tool);
    }
    assert_eq!(server.text("a", json!({})), "hello");
    assert_eq!(
        server.text("newer_a", json!({})),
        "a hologram of a cat",
        "its text stands in for it"
    );
    let (kind, said) = server.failure("mute_a", json!({}));
    assert_eq!(kind, "invalid-output");
    assert!(said.contains("\"hologram\""), "{said}");
}
