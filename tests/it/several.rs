//! Files with more than one kind of export: the exports that become tools, and the messages about
//! the others.

use serde_json::json;

use crate::support::{Folder, StdioServer, TinyComponent, ToolbayCommand, result_text};

/// Builds a component with the function `function` and a command, which succeeds if `succeeds` is
/// set.
fn function_and_command(function: &str, succeeds: bool) -> Vec<u8> {
    let code = i32::from(!succeeds);
    let text = format!(
        r#"(component
          (core module $m
            (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
            (func (export "run") (result i32) (i32.const {code})))
          (core instance $i (instantiate $m))
          (func $add (param "a" s32) (param "b" s32) (result s32) (canon lift (core func $i "add")))
          (func $run (result (result)) (canon lift (core func $i "run")))
          (instance $cli (export "run" (func $run)))
          (export "{function}" (func $add))
          (export "wasi:cli/run@0.2.0" (instance $cli)))"#
    );
    wat::parse_str(text).unwrap()
}

#[test]
fn functions_are_offered_next_to_a_command() {
    let folder = Folder::with("sums.wasm", function_and_command("add", true));
    folder.put("fails.wasm", function_and_command("run", false));
    folder.put("fails.toml", "prefix = \"other\"");
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["add", "other_run", "other_run_2", "run"]);
    assert_eq!(
        server.call("add", json!({"a": 2, "b": 3}))["structuredContent"],
        json!({"result": 5})
    );
    assert_eq!(server.text("run", json!({"any": "thing"})), "");
    // A function has the name, so the command gets a number.
    assert_eq!(
        server.call("other_run", json!({"a": 2, "b": 3}))["structuredContent"],
        json!({"result": 5})
    );
    assert_eq!(
        server.failure("other_run_2", json!({})).1,
        "The command exited with code 1."
    );
    let checked = ToolbayCommand::new(&folder)
        .args(["check", "plugins/fails.wasm"])
        .run();
    assert!(
        checked
            .stdout
            .contains("each function is a tool, and the command is run_2"),
        "{checked}"
    );
}

/// A handler of HTTP requests that sends no response, and a command.
const HANDLER_AND_COMMAND: &str = r#"(component
    (import "wasi:http/types@0.2.0" (instance $types
      (export "incoming-request" (type (sub resource))) (export "response-outparam" (type (sub resource)))))
    (alias export $types "incoming-request" (type $request))
    (alias export $types "response-outparam" (type $out))
    (core module $m
      (func (export "handle") (param i32 i32))
      (func (export "run") (result i32) (i32.const 0)))
    (core instance $i (instantiate $m))
    (func $handle (param "request" (own $request)) (param "response-out" (own $out)) (canon lift (core func $i "handle")))
    (func $run (result (result)) (canon lift (core func $i "run")))
    (instance $handler (export "handle" (func $handle)))
    (instance $cli (export "run" (func $run)))
    (export "wasi:http/incoming-handler@0.2.0" (instance $handler))
    (export "wasi:cli/run@0.2.0" (instance $cli)))"#;

const LEFT_OUT: &str =
    "it also exports wasi:http/incoming-handler@0.2.0, which is not offered: its command is";

#[test]
fn a_component_with_a_handler_that_is_not_an_mcp_server_is_served_as_a_command() {
    let folder = Folder::with("site.wasm", wat::parse_str(HANDLER_AND_COMMAND).unwrap());
    for start in ["compiled", "from the cache"] {
        let mut server = StdioServer::start(&folder);
        server.wait_until_listed(&["site"]);
        server.log.wait_for(LEFT_OUT);
        assert_eq!(server.text("site", json!({})), "", "{start}");
    }
    for command in [["check", "plugins/site.wasm"].as_slice(), &["list"]] {
        let outcome = ToolbayCommand::new(&folder).args(command).run();
        assert!(outcome.stdout.contains(LEFT_OUT), "{outcome}");
    }
}

#[test]
fn further_exports_of_a_contract_plugin_are_reported() {
    let tools = TinyComponent::new(&["a"]).build_edited(&[(
        "(export \"toolbay:plugin/tools@0.1.0\" (instance $tools))",
        r#"(export "toolbay:plugin/tools@0.1.0" (instance $tools))
           (core module $more (func (export "f"))) (core instance $more (instantiate $more))
           (func $f (canon lift (core func $more "f"))) (instance $extra (export "f" (func $f)))
           (export "acme:extra/things" (instance $extra))"#,
    )]);
    let mut server = StdioServer::start(&Folder::with("a.wasm", tools));
    server.wait_until_listed(&["a"]);
    server
        .log
        .wait_for("it also exports acme:extra/things, which is not offered: the interfaces of toolbay:plugin are");
}

#[test]
fn functions_that_a_command_leaves_out_are_reported() {
    let module = |export: &str| {
        wat::parse_str(format!(
            r#"(module (memory (export "memory") 1) (func (export "_start")) (func (export "{export}")))"#
        ))
        .unwrap()
    };
    let folder = Folder::with("site.wasm", module("handle-http-request"));
    folder.put("tool.wasm", module("convert"));
    folder.put("kotlin.wasm", module("main"));
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["kotlin", "site", "tool"]);
    let log = &mut server.log;
    log.wait_for(
        "it runs as a command; its request handler for Spin (handle-http-request) is not offered",
    );
    log.wait_for("it runs as a command; its other functions, such as `convert`, are not offered");
    assert!(!log.text().contains("such as `main`"), "{}", log.text());
    assert_eq!(result_text(&server.call("tool", json!({}))), "");
}

/// The function returns what `_initialize` has set.
#[test]
fn a_reactor_is_initialized_before_its_functions_are_called() {
    let module = r#"(module (memory (export "memory") 1) (global $n (mut i32) (i32.const 0))
        (func (export "_initialize") (global.set $n (i32.add (global.get $n) (i32.const 41))))
        (func (export "answer") (result i32) (global.set $n (i32.add (global.get $n) (i32.const 1))) (global.get $n)))"#;
    let folder = Folder::with("reactor.wasm", wat::parse_str(module).unwrap());
    folder.put(
        "reactor.wit",
        "package a:b; world w { export answer: func() -> u32; }",
    );
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["answer"]);
    for _ in 0..2 {
        assert_eq!(
            server.call("answer", json!({}))["structuredContent"],
            json!({"result": 42})
        );
    }
}

#[test]
fn files_without_code_and_files_of_other_hosts_are_refused_with_the_reason() {
    let module = |text: &str| wat::parse_str(format!("(module {text})")).unwrap();
    // The output of `wasm-tools component wit --wasm` for an interface with a function.
    let package = r#"(component
        (type (component (type (instance (type (func (result u32))) (export "f" (func (type 0)))))
          (export "a:b/things" (instance (type 0)))))
        (export "things" (type 0)))"#;
    let act = r#"(component
        (core module $m (func (export "list")))
        (core instance $i (instantiate $m))
        (func $list (canon lift (core func $i "list")))
        (instance $tools (export "list-tools" (func $list)))
        (export "act:tools/tool-provider@0.2.0" (instance $tools)))"#;
    let cases = [
        (
            "act",
            wat::parse_str(act).unwrap(),
            "but its types differ from those of that version: function list-tools",
        ),
        (
            "act-newer",
            wat::parse_str(act.replace("0.2.0", "0.3.0")).unwrap(),
            "its tools are behind an interface of ACT that Toolbay does not call",
        ),
        (
            "package",
            wat::parse_str(package).unwrap(),
            "a WIT package in binary form: it contains types (WIT), and no code",
        ),
        (
            "spin",
            module(r#"(func (export "handle-http-request"))"#),
            "a module for Spin, which handles requests",
        ),
        (
            "extism",
            module(r#"(import "extism:host/env" "length" (func (param i64) (result i64)))"#),
            "a plugin for Extism",
        ),
        (
            "proxy",
            module(r#"(func (export "proxy_abi_version_0_2_1"))"#),
            "a filter for Envoy and other proxies (proxy-wasm)",
        ),
        (
            "adapter",
            module(r#"(import "__main_module__" "_start" (func))"#),
            "an adapter between WASI 0.1 and WASI 0.2",
        ),
        (
            "initialize",
            module(r#"(func (export "_initialize"))"#),
            "can be initialized (`_initialize`) and has no functions",
        ),
        (
            "nameless",
            module(r#"(func (export ""))"#),
            "such as one whose name is empty, but not their types",
        ),
        (
            "names",
            module(r#"(func (export "addTwo_numbers"))"#),
            "WIT cannot express such names",
        ),
    ];
    let folder = Folder::new();
    for (name, file, _) in &cases {
        folder.put(&format!("{name}.wasm"), file);
    }
    let server = StdioServer::start(&folder);
    for (name, _, why) in cases {
        let line = server.log.wait_for(&format!("plugin=\"{name}\""));
        assert!(line.contains(why), "{name}: {line}");
    }
}
