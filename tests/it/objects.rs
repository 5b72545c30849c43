//! Plugins that throw exceptions and have garbage-collected objects, as compilers of Kotlin, Dart,
//! Java and OCaml emit.

use serde_json::json;

use crate::support::wit::build_component;
use crate::support::{Folder, StdioServer, ToolbayCommand, made_async, result_text};

/// A WASI 0.1 command in the form that Kotlin compiles to: it throws an object with its result,
/// catches it, and writes it to standard output.
const COMMAND: &str = r#"(module
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (type $bytes (array (mut i8)))
    (tag $done (param (ref $bytes)))
    (data $text "{\"sum\": 55}")
    (func (export "_start") (local $text (ref null $bytes)) (local $n i32)
      (block $caught (result (ref $bytes))
        (try_table (catch $done $caught)
          (throw $done (array.new_data $bytes $text (i32.const 0) (i32.const 11))))
        unreachable)
      (local.set $text)
      (loop $copy
        (i32.store8 (i32.add (i32.const 64) (local.get $n)) (array.get_u $bytes (local.get $text) (local.get $n)))
        (br_if $copy (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (array.len (local.get $text)))))
      (i32.store (i32.const 0) (i32.const 64))
      (i32.store (i32.const 4) (local.get $n))
      (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 12)))))"#;

/// The types of [`SUMS`].
const WIT: &str = "package local:sums; world sums { export sum: func(to: u32) -> u32; export reach: func(to: u32) -> u32; }";

/// `sum` builds a list of numbers and adds them, and throws if the list is empty. `reach` allocates
/// a million objects, and keeps the first `to` of them reachable.
const SUMS: &str = r#"(type $node (struct (field (ref null $node)) (field i32)))
    (tag $none)
    (func $list (param $to i32) (result (ref null $node)) (local $list (ref null $node))
      (if (i32.eqz (local.get $to)) (then (throw $none)))
      (loop $more
        (local.set $list (struct.new $node (local.get $list) (local.get $to)))
        (br_if $more (local.tee $to (i32.sub (local.get $to) (i32.const 1)))))
      (local.get $list))
    (func (export "sum") (param $to i32) (result i32) (local $list (ref null $node)) (local $sum i32)
      (local.set $list (call $list (local.get $to)))
      (loop $next
        (local.set $sum (i32.add (local.get $sum) (struct.get $node 1 (local.get $list))))
        (br_if $next (i32.eqz (ref.is_null (local.tee $list (struct.get $node 0 (local.get $list)))))))
      (local.get $sum))
    (func (export "reach") (param $to i32) (result i32) (local $list (ref null $node)) (local $n i32)
      (loop $more
        (if (i32.lt_u (local.get $n) (local.get $to))
          (then (local.set $list (struct.new $node (local.get $list) (local.get $n))))
          (else (drop (struct.new $node (local.get $list) (local.get $n)))))
        (br_if $more (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 1000000))))
      (struct.get $node 1 (local.get $list)))"#;

/// Serves the functions of [`SUMS`] and checks the results of their calls.
fn check_sums(folder: &Folder) {
    let mut server = StdioServer::start(folder);
    server.wait_until_listed(&["reach", "sum"]);
    assert_eq!(
        server.call("sum", json!({"to": 100_000}))["structuredContent"],
        json!({"result": 705_082_704})
    );
    // The collector runs several times, and reachable objects keep their values.
    assert_eq!(
        server.call("reach", json!({"to": 100_000}))["structuredContent"],
        json!({"result": 99_999})
    );
    let (kind, said) = server.failure("sum", json!({"to": 0}));
    assert_eq!(
        (kind.as_str(), said.as_str()),
        (
            "trap",
            "The tool crashed: it threw an exception that it does not catch."
        )
    );
}

#[test]
fn a_component_can_have_objects_and_throw() {
    check_sums(&Folder::with("sums.wasm", build_component(WIT, SUMS)));
    let folder = Folder::new().rewriting(made_async);
    folder.put("sums.wasm", build_component(WIT, SUMS));
    check_sums(&folder);
}

#[test]
fn a_core_module_with_a_wit_file_can_have_objects_and_throw() {
    let folder = Folder::with(
        "sums.wasm",
        wat::parse_str(format!("(module {SUMS})")).unwrap(),
    );
    folder.put("sums.wit", WIT);
    check_sums(&folder);
}

#[test]
fn a_command_can_have_objects_and_throw() {
    let folder = Folder::with("sum.wasm", wat::parse_str(COMMAND).unwrap());
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["sum"]);
    let answer = server.call("sum", json!({}));
    assert_eq!(result_text(&answer), r#"{"sum": 55}"#);
    assert_eq!(answer["structuredContent"], json!({"sum": 55}));
}

#[test]
fn check_reports_that_a_plugin_uses_objects_and_exceptions() {
    let folder = Folder::with("sums.wasm", build_component(WIT, SUMS));
    folder.put(
        "plain.wasm",
        build_component(
            "package a:b; world w { export f: func(); }",
            "(func (export \"f\"))",
        ),
    );
    let check = |args: &[&str]| {
        ToolbayCommand::new(&folder)
            .args(["check"])
            .args(args)
            .run()
            .stdout
    };
    assert!(check(&["plugins/sums.wasm"]).contains("\n    uses WebAssembly GC and exceptions\n"));
    assert!(!check(&["plugins/plain.wasm"]).contains("    uses WebAssembly"));
    assert!(
        check(&["--json", "plugins/sums.wasm"])
            .contains("\"uses\": [\n    \"WebAssembly GC\",\n    \"exceptions\"\n  ]")
    );
}

#[test]
fn a_plugin_with_garbage_collected_objects_cannot_be_optimized() {
    let wit = WIT.replace(
        "export reach",
        "export wizer-initialize: func(); export reach",
    );
    let folder = Folder::with(
        "sums.wasm",
        build_component(
            &wit,
            &format!("{SUMS} (func (export \"wizer-initialize\"))"),
        ),
    );
    let outcome = ToolbayCommand::new(&folder)
        .args(["optimize", "plugins/sums.wasm"])
        .run();
    assert_eq!(outcome.code, 1, "{outcome}");
    assert!(
        outcome
            .stderr
            .contains("it makes objects that are garbage-collected (WebAssembly GC)"),
        "{outcome}"
    );
}

/// Runs as many concurrent calls as the server allows, each with its own heap, next to a plugin
/// without a heap.
#[test]
fn every_call_has_a_heap_in_the_pool() {
    let folder = Folder::with("sums.wasm", build_component(WIT, SUMS));
    folder.put(
        "plain.wasm",
        build_component(
            "package a:b; world w { export f: func() -> u32; }",
            "(func (export \"f\") (result i32) (i32.const 7))",
        ),
    );
    folder.put("sums.toml", "[limits]\nconcurrency = 12");
    let mut server =
        StdioServer::start_with_config(&folder, "[server]\ncalls = 12\ncalls_per_caller = 12");
    server.wait_until_listed(&["f", "reach", "sum"]);
    let begun: Vec<u64> = (0..12)
        .map(|_| server.start_call("reach", json!({"to": 500_000})))
        .collect();
    assert_eq!(
        server.call("f", json!({}))["structuredContent"],
        json!({"result": 7})
    );
    for call in begun {
        assert_eq!(
            server.finish_call(call)["structuredContent"],
            json!({"result": 499_999})
        );
    }
}
