//! `toolbay optimize`: it writes a component whose initialization has already run, and reports
//! every component for which it cannot.

use std::fs;

use serde_json::{Value, json};

use crate::support::wit::build_component;
use crate::support::{
    CommandOutput, Folder, StdioServer, TinyComponent, TinyTool, ToolbayCommand, made_async,
    own_server, result_text, sample,
};

/// Fills a table with the squares of 200,000 numbers, from one page on, unless it is full.
const FILL: &str = "(func $fill (local $n i32)
        (if (i32.eqz (i32.load (i32.const 65536)))
            (then
                (drop (memory.grow (i32.const 16)))
                (loop $next
                    (i32.store (i32.add (i32.const 65540) (i32.mul (local.get $n) (i32.const 4)))
                        (i32.mul (local.get $n) (local.get $n)))
                    (br_if $next (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 200000))))
                (i32.store (i32.const 65536) (i32.const 1)))))";

/// Builds a component with a plain function `square` that looks numbers up in the table. The
/// initialization runs `initialize`.
fn table_component(initialize: &str) -> Vec<u8> {
    build_component(
        "package a:table; world table { export wizer-initialize: func(); export square: func(n: u32) -> u32; }",
        &format!(
            "{FILL}
            (func (export \"wizer-initialize\") {initialize})
            (func (export \"square\") (param i32) (result i32)
                (call $fill)
                (i32.load (i32.add (i32.const 65540) (i32.mul (local.get 0) (i32.const 4)))))"
        ),
    )
}

fn optimize(folder: &Folder, args: &[&str]) -> CommandOutput {
    ToolbayCommand::new(folder)
        .args(["optimize"])
        .args(args)
        .run()
}

/// Returns the fuel and the result of a call.
fn call(folder: &Folder, tool: &str, arguments: Value) -> (u64, String) {
    let mut server = StdioServer::start(folder);
    let result = server.result("tools/call", json!({"name": tool, "arguments": arguments}));
    let fuel = result["_meta"]["dev.toolbay/usage"]["fuel"].as_u64();
    (
        fuel.unwrap_or_else(|| panic!("{result}")),
        result_text(&result),
    )
}

/// Optimizes the component at `plugins/a.wasm`, which must fail. Returns the error, without the
/// progress lines that a slow machine adds.
fn optimize_error(component: impl AsRef<[u8]>, args: &[&str]) -> String {
    let folder = Folder::with("a.wasm", component);
    let outcome = optimize(&folder, &[&["plugins/a.wasm"], args].concat());
    assert_eq!(
        (outcome.code, outcome.stdout.as_str()),
        (1, ""),
        "{outcome}"
    );
    assert!(
        !folder.sibling_path("a.optimized.wasm").exists(),
        "{outcome}"
    );
    let is_progress = |line: &&str| {
        ["toolbay: compiling ", "toolbay: initializing "]
            .iter()
            .any(|it| line.starts_with(it))
    };
    outcome
        .stderr
        .split_inclusive('\n')
        .filter(|line| !is_progress(line))
        .collect()
}

#[test]
fn a_table_that_the_initialization_fills_is_present_in_each_call() {
    let folder = Folder::with("a.wasm", table_component("(call $fill)"));
    let (before, answer) = call(&folder, "square", json!({"n": 7}));
    assert_eq!(answer, "{\"result\":49}");
    assert!(before > 1_000_000, "{before}");
    let outcome = optimize(&folder, &["plugins/a.wasm", "-o", "optimized.wasm"]);
    assert_eq!(outcome.code, 0, "{outcome}");
    assert!(outcome.stdout.contains("wizer-initialize"), "{outcome}");
    let optimised = fs::read(folder.sibling_path("optimized.wasm")).unwrap();
    folder.put("a.wasm", &optimised);
    for n in [7_u64, 3, 40_000] {
        let (fuel, answer) = call(&folder, "square", json!({"n": n}));
        assert_eq!(answer, format!("{{\"result\":{}}}", n * n));
        assert!(fuel < 1_000, "{fuel}");
    }
    // The output is reproducible.
    folder.put("a.wasm", table_component("(call $fill)"));
    assert_eq!(optimize(&folder, &["plugins/a.wasm"]).code, 0);
    assert_eq!(
        fs::read(folder.sibling_path("a.optimized.wasm")).unwrap(),
        optimised
    );
}

#[test]
fn a_call_does_not_change_the_initial_state_of_the_next_call() {
    // Counts its calls in memory, and returns the count.
    let world = "package a:count; world count { export wizer-initialize: func(); export next: func() -> u32; }";
    let count = "(i32.store (i32.const 64) (i32.add (i32.load (i32.const 64)) (i32.const 1)))";
    let counter = build_component(
        world,
        &format!(
            "(func (export \"wizer-initialize\") {count}) \
             (func (export \"next\") (result i32) {count} (i32.load (i32.const 64)))"
        ),
    );
    let folder = Folder::with("a.wasm", counter);
    assert_eq!(
        optimize(
            &folder,
            &["plugins/a.wasm", "-o", "plugins/a.wasm", "--force"]
        )
        .code,
        0
    );
    let mut server = StdioServer::start(&folder);
    for _ in 0..3 {
        assert_eq!(server.text("next", json!({})), "{\"result\":2}");
    }
}

#[test]
fn an_optimized_plugin_of_the_contract_has_the_same_tools_and_results() {
    let tools = vec![
        TinyTool {
            description: Some("Says something.".into()),
            ..TinyTool::new("say")
        },
        TinyTool::new("other"),
    ];
    let folder = Folder::with(
        "a.wasm",
        TinyComponent::with_tools(tools)
            .with_text("something")
            .build(),
    );
    let list = ToolbayCommand::new(&folder)
        .args(["check", "plugins/a.wasm", "--json"])
        .run();
    let outcome = optimize(
        &folder,
        &[
            "plugins/a.wasm",
            "--call",
            "say",
            "--call",
            "other={\"a\": 1}",
        ],
    );
    assert_eq!(outcome.code, 0, "{outcome}");
    assert!(
        outcome
            .stdout
            .contains("(list-tools, call say, call other)"),
        "{outcome}"
    );
    fs::rename(
        folder.sibling_path("a.optimized.wasm"),
        folder.plugin_path("a.wasm"),
    )
    .unwrap();
    let optimised = ToolbayCommand::new(&folder)
        .args(["check", "plugins/a.wasm", "--json"])
        .run();
    let [list, optimised] =
        [list, optimised].map(|said| serde_json::from_str::<Value>(&said.raw_stdout).unwrap());
    for member in ["tools", "imports", "exports", "form", "kind", "wit"] {
        assert_eq!(list[member], optimised[member]);
    }
    assert_eq!(call(&folder, "say", json!({})).1, "something");
}

#[test]
fn an_initialization_ends_within_the_limits_of_a_call() {
    let limits =
        |folder: &Folder, limits: &str| folder.write_config(&format!("[limits]\n{limits}"));
    for (initialize, limit, why) in [
        ("(loop $ever (br $ever))", "fuel = 1000000", "fuel"),
        (
            "(loop $ever (br_if $ever (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) (unreachable)",
            "memory = \"4MiB\"",
            "memory",
        ),
        ("(unreachable)", "fuel = 1000000", "unreachable"),
        ("(call $deep) ", "fuel = 100000000", "stack"),
    ] {
        let component = build_component(
            "package a:bad; world bad { export wizer-initialize: func(); export f: func(); }",
            &format!(
                "(func $deep (call $deep) (call $deep))
                (func (export \"wizer-initialize\") {initialize}) (func (export \"f\"))"
            ),
        );
        let folder = Folder::with("a.wasm", component);
        limits(&folder, limit);
        let outcome = optimize(&folder, &["plugins/a.wasm"]);
        assert_eq!(outcome.code, 1, "{outcome}");
        assert!(
            outcome.stderr.contains("its initialization failed: "),
            "{outcome}"
        );
        assert!(outcome.stderr.contains(why), "{why}: {outcome}");
        assert!(!folder.sibling_path("a.optimized.wasm").exists());
    }
}

#[test]
fn an_initialization_that_is_not_deterministic_is_refused() {
    let imports = |interface: &str, ty: &str, lowered: &str| {
        format!(
            "(import \"{interface}\" (instance $host (export \"{lowered}\" (func {ty}))))
             (core func $import (canon lower (func $host \"{lowered}\")))"
        )
    };
    let random = TinyComponent::new(&["a"])
        .with_imports(&imports(
            "wasi:random/random@0.2.0",
            "(result u64)",
            "get-random-u64",
        ))
        .with_core_items("(import \"host\" \"import\" (func $import (result i64)))")
        .before_list("(drop (call $import))")
        .build();
    let why = optimize_error(&random, &[]);
    insta::assert_snapshot!(why, @"toolbay: plugins/a.wasm: its initialization draws random numbers (wasi:random/random@0.2.0#get-random-u64), and the answer would become part of the file: do that when a tool is first called, or allow it with --allow random");
    let folder = Folder::with("a.wasm", &random);
    assert_eq!(
        optimize(&folder, &["plugins/a.wasm", "--allow", "random"]).code,
        0
    );
    // A call may draw random numbers; the initialization may not.
    let later = TinyComponent::new(&["a"])
        .with_imports(&imports(
            "wasi:random/random@0.2.0",
            "(result u64)",
            "get-random-u64",
        ))
        .with_core_items("(import \"host\" \"import\" (func $import (result i64)))")
        .before_call("(drop (call $import))")
        .build();
    let folder = Folder::with("a.wasm", &later);
    assert_eq!(optimize(&folder, &["plugins/a.wasm"]).code, 0);
    assert!(optimize_error(&later, &["--call", "a"]).contains("--allow random"));
}

#[test]
fn a_file_that_cannot_be_optimized_is_reported_with_the_reason() {
    let cases: [(&str, Vec<u8>, &[&str]); 7] = [
        ("not wasm", b"hello, world".to_vec(), &[]),
        (
            "half a file",
            table_component("").split_at(40).0.to_vec(),
            &[],
        ),
        ("async", made_async(TinyComponent::new(&["a"]).build()), &[]),
        ("unknown tool", table_component(""), &["--call", "b"]),
        (
            "no arguments",
            TinyComponent::new(&["a"]).build(),
            &["--call", "a=[]"],
        ),
        (
            "wrong arguments",
            table_component(""),
            &["--call", "square={\"n\":-1}"],
        ),
        (
            "failure",
            sample("calculator"),
            &[
                "--call",
                "evaluate={\"expression\":\"1/0\"}",
                "--allow",
                "random",
            ],
        ),
    ];
    let said: Vec<String> = cases
        .into_iter()
        .map(|(what, component, args)| format!("{what}: {}", optimize_error(component, args)))
        .collect();
    let said = said.concat();
    insta::assert_snapshot!(said, @r#"
    not wasm: toolbay: plugins/a.wasm is not a valid plugin: not a WebAssembly file: it starts with "hello, w", not with "\0asm"
    half a file: toolbay: plugins/a.wasm is not a valid plugin: the file is incomplete: it ends in the middle of a section
    async: toolbay: plugins/a.wasm: it has async functions or is for WASI 0.3, whose state cannot become part of a file; build it with synchronous functions, for WASI 0.2 (--sync for componentize-qjs)
    unknown tool: toolbay: plugins/a.wasm: the call of b failed: There is no function named b.
    no arguments: toolbay: --call a: the arguments are not a JSON object: invalid type: sequence, expected a map at line 1 column 0
    wrong arguments: toolbay: plugins/a.wasm: the call of square failed: /n: expected an integer from 0 to 4294967295
    failure: toolbay: plugins/a.wasm: the call of evaluate failed: division by zero at character 3
    "#);
}

#[test]
fn a_file_that_is_optimized_already_is_reported() {
    let folder = Folder::with("a.wasm", table_component("(call $fill)"));
    assert_eq!(
        optimize(&folder, &["plugins/a.wasm", "-o", "b.wasm"]).code,
        0
    );
    let again = optimize(&folder, &["b.wasm", "-o", "c.wasm"]);
    insta::assert_snapshot!(again.stderr, @"toolbay: b.wasm: it is already optimized; optimize the original file");
    assert_eq!(again.code, 1);
}

#[test]
fn a_core_module_becomes_an_optimized_component() {
    let module = "(module (memory (export \"memory\") 1)
        (func (export \"wizer-initialize\") (i32.store (i32.const 64) (i32.const 41)))
        (func (export \"answer\") (result i32) (i32.add (i32.load (i32.const 64)) (i32.const 1))))";
    let folder = Folder::with("a.wasm", wat::parse_str(module).unwrap());
    let wit = "package a:b; world w { export wizer-initialize: func(); /// The answer.\nexport answer: func() -> u32; }";
    fs::write(folder.plugin_path("a.wit"), wit).unwrap();
    assert_eq!(call(&folder, "answer", json!({})).1, "{\"result\":1}");
    let outcome = optimize(&folder, &["plugins/a.wasm", "-o", "b.wasm"]);
    assert_eq!(outcome.code, 0, "{outcome}");
    assert!(outcome.stderr.contains("copy it to b.wit"), "{outcome}");
    fs::rename(folder.sibling_path("b.wasm"), folder.plugin_path("a.wasm")).unwrap();
    assert_eq!(call(&folder, "answer", json!({})).1, "{\"result\":42}");
}

#[test]
fn no_file_is_replaced_without_force() {
    let folder = Folder::with("a.wasm", table_component("(call $fill)"));
    let file = fs::read(folder.plugin_path("a.wasm")).unwrap();
    for output in ["plugins/a.wasm", "there.wasm"] {
        fs::write(folder.sibling_path("there.wasm"), "mine").unwrap();
        let outcome = optimize(&folder, &["plugins/a.wasm", "-o", output]);
        assert_eq!(outcome.code, 1, "{outcome}");
        assert_eq!(
            outcome.stderr,
            format!("toolbay: {output} exists; to replace it, add --force\n")
        );
    }
    assert_eq!(fs::read(folder.plugin_path("a.wasm")).unwrap(), file);
    assert_eq!(
        fs::read(folder.sibling_path("there.wasm")).unwrap(),
        b"mine"
    );
    let outcome = optimize(
        &folder,
        &["plugins/a.wasm", "-o", "plugins/a.wasm", "--force"],
    );
    assert_eq!(outcome.code, 0, "{outcome}");
    assert_ne!(fs::read(folder.plugin_path("a.wasm")).unwrap(), file);
    // No other file remains in the folder.
    assert_eq!(fs::read_dir(folder.plugin_folder()).unwrap().count(), 1);
    let outcome = optimize(&folder, &["there.wasm", "-o", "nowhere/b.wasm"]);
    assert_eq!(outcome.code, 1, "{outcome}");
}

#[test]
fn calls_of_an_mcp_server_are_refused_and_the_rest_is_remarked_on() {
    let refused = optimize_error(own_server("server"), &["--call", "add"]);
    assert_eq!(
        refused,
        "toolbay: plugins/a.wasm: it is an MCP server, and --call is not for servers: the handles of a request, such as its body \
         and its streams, would be part of the file, and no other instance has them\n"
    );
    let folder = Folder::with("a.wasm", own_server("server"));
    let made = optimize(&folder, &["plugins/a.wasm"]);
    assert!(
        made.stderr.contains(
            "it is an MCP server: its calls skip only what it does before its first request."
        ),
        "{made}"
    );
}
