//! Components with async functions.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::hostile::{EXIT, YIELD, tasks};
use crate::support::{Folder, StdioServer, TinyComponent, ToolbayCommand, hostile, made_async};

/// Returns a component with two functions: `greet` is async, yields once, and returns its argument;
/// `three` is not async.
fn greeter() -> Vec<u8> {
    let text = r#"(component
      (core module $libc
        (memory (export "memory") 1)
        (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024)))
      (core instance $libc (instantiate $libc))
      (alias core export $libc "memory" (core memory $memory))
      (alias core export $libc "realloc" (core func $realloc))
      (core func $return (canon task.return (result string) (memory $memory)))
      (core module $main
        (import "host" "return" (func $return (param i32 i32)))
        (global $at (mut i32) (i32.const 0))
        (global $length (mut i32) (i32.const 0))
        (func (export "greet") (param i32 i32) (result i32)
          (global.set $at (local.get 0)) (global.set $length (local.get 1)) (i32.const 1))
        (func (export "callback") (param i32 i32 i32) (result i32)
          (call $return (global.get $at) (global.get $length)) (i32.const 0))
        (func (export "three") (result i32) (i32.const 3)))
      (core instance $main (instantiate $main (with "host" (instance (export "return" (func $return))))))
      (func (export "greet") async (param "name" string) (result string)
        (canon lift (core func $main "greet") (memory $memory) (realloc $realloc)
          async (callback (core func $main "callback"))))
      (func (export "three") (result u32) (canon lift (core func $main "three"))))"#;
    wat::parse_str(text).unwrap()
}

#[test]
fn async_and_sync_functions_are_tools() {
    let folder = Folder::with("greeter.wasm", greeter());
    folder.put(
        "plain.wasm",
        TinyComponent::new(&["fine"]).with_text("fine").build(),
    );
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["fine", "greet", "three"]);
    for name in ["Ada", "", "Grace"] {
        assert_eq!(server.text("greet", json!({"name": name})), name);
    }
    assert_eq!(
        server.call("three", json!({}))["structuredContent"],
        json!({"result": 3})
    );
    assert_eq!(server.text("fine", json!({})), "fine");
    let (kind, _) = server.failure("greet", json!({"name": 7}));
    assert_eq!(kind, "invalid-arguments");
}

#[test]
fn a_component_with_async_functions_is_cached_and_used_only_where_async_is_enabled() {
    let folder = Folder::with("greeter.wasm", greeter());
    let file = folder.plugin_path("greeter.wasm");
    let cache = folder.sibling_path("cache");
    let toolbay = || {
        ToolbayCommand::new(&folder).env("TOOLBAY_COMPILE_CACHE_FOLDER", cache.to_str().unwrap())
    };
    let check = || toolbay().args([Path::new("check"), file.as_path()]);
    let first = check().run();
    assert!(
        first
            .stdout
            .contains("each is a tool; it has async functions"),
        "{first}"
    );
    assert!(first.stdout.contains("compiled in "), "{first}");
    let second = check().run();
    assert!(second.stdout.contains("(in the compile cache)"), "{second}");
    let call = toolbay()
        .args(["call", "greet", r#"{"name": "Ada"}"#])
        .run();
    assert_eq!(call.stdout.trim_end(), "Ada", "{call}");
    let off = check().env("TOOLBAY_ENGINE_ASYNC", "false").run();
    assert!(
        off.stderr
            .contains("has async functions, and engine.async is false"),
        "{off}"
    );
    let again = check().run();
    assert!(again.stdout.contains("(in the compile cache)"), "{again}");
}

#[test]
fn a_cancelled_task_frees_its_slot_at_once() {
    let spinning = format!(
        r#"(func (export "a") (result i32) {YIELD}) (func (export "callback") (param i32 i32 i32) (result i32) {YIELD})"#
    );
    let quick = format!(
        r#"(func (export "a") (result i32) (call $return (i32.const 1)) {EXIT})
           (func (export "callback") (param i32 i32 i32) (result i32) unreachable)"#
    );
    let folder = Folder::with("one.wasm", tasks("", &[], &spinning));
    folder.put(
        "one.toml",
        "prefix = \"one\"\n[limits]\nfuel = 1_000_000_000_000\ntimeout = \"10m\"",
    );
    folder.put("two.wasm", tasks("", &[], &quick));
    folder.put("two.toml", "prefix = \"two\"");
    // One call at a time: the second one starts only when the first one has ended.
    folder.write_config("[server]\ncalls = 1");
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["one_a", "two_a"]);
    for _ in 0..10 {
        let id = server.start_call("one_a", json!({}));
        server.notify("notifications/cancelled", json!({"requestId": id}));
        assert_eq!(
            server.call("two_a", json!({}))["structuredContent"],
            json!({"result": 1})
        );
    }
    let (said, _) = server.stop();
    assert!(
        said.iter().all(|message| message.get("id").is_none()),
        "a cancelled call was answered: {said:?}"
    );
}

#[test]
fn calls_of_components_with_async_functions_run_at_once() {
    let folder = Folder::with("greeter.wasm", greeter());
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("greet");
    let begun: Vec<u64> = (0..64)
        .map(|n| server.start_call("greet", json!({"name": n.to_string()})))
        .collect();
    for (n, id) in begun.into_iter().enumerate() {
        assert_eq!(server.finish_call(id)["content"][0]["text"], n.to_string());
    }
}

#[test]
fn a_component_made_async_needs_the_second_engine() {
    let folder = Folder::with("plain.wasm", TinyComponent::new(&["a"]).build());
    folder.put("async.wasm", made_async(TinyComponent::new(&["b"]).build()));
    folder.write_config("[engine]\nasync = false");
    let mut server = StdioServer::start(&folder);
    server
        .log
        .wait_for("WARN refused: has async functions, and engine.async is false");
    server.wait_until_listed(&["a"]);
}

#[test]
fn components_without_async_functions_behave_alike_in_both_engines() {
    let folder = Folder::with("hostile.wasm", made_async(hostile()));
    fs::create_dir(folder.sibling_path("data")).unwrap();
    fs::write(folder.sibling_path("data/file"), "hello").unwrap();
    folder.put(
        "hostile.toml",
        "[config]\nunits = \"metric\"\n[limits]\nfuel = 1_000_000_000\ntimeout = \"1s\"\n[[permissions.mounts]]\nhost = \
         \"../data\"\nguest = \"/data\"\naccess = \"read\"",
    );
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("count");
    for _ in 0..3 {
        assert_eq!(server.text("count", json!({})), "1");
    }
    assert_eq!(server.text("environment", json!({})), "[] []");
    assert_eq!(server.text("config", json!({"text": "units"})), "metric");
    assert_eq!(
        server.text("read_file", json!({"path": "/data/file"})),
        "hello"
    );
    assert_ne!(server.text("connect", json!({})), "connected");
    let id = server.start_call_with_progress("progress_zigzag", json!({}));
    server.finish_call(id);
    assert_eq!(server.take_notifications("notifications/progress").len(), 3);
    for (tool, kind) in [
        ("loop_forever", "fuel"),
        ("sleep_hour", "deadline"),
        ("hoard", "memory"),
        ("panic", "trap"),
    ] {
        let (found, said) = server.failure(tool, json!({}));
        assert_eq!(found, kind, "{tool}: {said}");
    }
}

#[test]
fn a_component_that_composes_others_is_called_through_all_of_them() {
    let folder = Folder::new();
    let text = r#"(component
      (component $inner
        (core func $return (canon task.return (result u32)))
        (core module $m
          (import "host" "return" (func $return (param i32)))
          (global $n (mut i32) (i32.const 0))
          (func (export "f") (param i32) (result i32) (global.set $n (local.get 0)) (i32.const 1))
          (func (export "callback") (param i32 i32 i32) (result i32)
            (call $return (i32.add (global.get $n) (i32.const 1))) (i32.const 0)))
        (core instance $i (instantiate $m (with "host" (instance (export "return" (func $return))))))
        (func (export "f") async (param "n" u32) (result u32)
          (canon lift (core func $i "f") async (callback (core func $i "callback")))))
      (component $outer
        (import "f" (func $f async (param "n" u32) (result u32)))
        (core func $f (canon lower (func $f)))
        (core func $return (canon task.return (result u32)))
        (core module $m
          (import "host" "return" (func $return (param i32)))
          (import "host" "f" (func $f (param i32) (result i32)))
          (func (export "f") (param i32) (result i32) (call $return (call $f (local.get 0))) (i32.const 0))
          (func (export "callback") (param i32 i32 i32) (result i32) unreachable))
        (core instance $i (instantiate $m
          (with "host" (instance (export "return" (func $return)) (export "f" (func $f))))))
        (func (export "f") async (param "n" u32) (result u32)
          (canon lift (core func $i "f") async (callback (core func $i "callback")))))
      (instance $one (instantiate $inner))
      (instance $two (instantiate $outer (with "f" (func $one "f"))))
      (instance $three (instantiate $outer (with "f" (func $two "f"))))
      (func (export "next") (alias export $three "f")))"#;
    folder.put("composed.wasm", wat::parse_str(text).unwrap());
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("next");
    assert_eq!(
        server.call("next", json!({"n": 41}))["structuredContent"],
        json!({"result": 42})
    );
    // The component's stacks are part of its memory.
    let usage = server.call("next", json!({"n": 1}))["_meta"]["dev.toolbay/usage"].clone();
    assert_eq!(usage["memory"], json!(3 << 20), "{usage}");
    fs::remove_file(folder.plugin_path("composed.wasm")).unwrap();
    server.wait_until_listed(&[]);
}
