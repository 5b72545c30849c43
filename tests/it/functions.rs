//! Components that were not built for Toolbay: plain functions, commands and core modules as tools.

use std::fs;

use serde_json::{Value, json};

use crate::support::wit::build_component;
use crate::support::{Folder, StdioServer, TinyComponent, TinyTool, ToolbayCommand, result_text};

/// The WIT of a plugin of plain functions.
const GREETER: &str = "package acme:greeter@1.4.0;
interface people {
    /// Who is greeted.
    record person {
        /// The name as it is said aloud.
        name: string,
        age: option<u8>,
    }
    /// Answers with the name.
    greet: func(who: person) -> string;
    /// Counts up to a number.
    count: func(to: u32) -> result<u32, string>;
}
world greeter {
    export people;
}";

/// Returns a component whose `greet` returns the name that it was given, and whose `count` returns
/// its argument and fails for zero.
fn greeter() -> Vec<u8> {
    build_component(
        GREETER,
        r#"(func (export "acme:greeter/people@1.4.0#greet") (param i32 i32 i32 i32) (result i32)
            (i32.store (i32.const 16) (local.get 0)) (i32.store (i32.const 20) (local.get 1)) (i32.const 16))
        (data (i32.const 64) "nothing to count")
        (func (export "acme:greeter/people@1.4.0#count") (param i32) (result i32)
            (i32.store (i32.const 32) (i32.eqz (local.get 0)))
            (i32.store (i32.const 36) (select (i32.const 64) (local.get 0) (i32.eqz (local.get 0))))
            (i32.store (i32.const 40) (i32.const 16))
            (i32.const 32))"#,
    )
}

/// Returns a WASI 0.1 command with this body, which can call `$read` and `$write` with a file and a
/// vector, and `$exit`.
fn command(body: &str) -> Vec<u8> {
    let wasi =
        |name: &str, ty: &str| format!(r#"(import "wasi_snapshot_preview1" "{name}" (func {ty}))"#);
    let imports = [
        wasi("fd_read", "$read (param i32 i32 i32 i32) (result i32)"),
        wasi("fd_write", "$write (param i32 i32 i32 i32) (result i32)"),
        wasi("proc_exit", "$exit (param i32)"),
    ];
    let imports = imports.join("\n");
    wat::parse_str(format!(
        r#"(module {imports} (memory (export "memory") 1) (func (export "_start") {body}))"#
    ))
    .unwrap()
}

/// Code that reads standard input to address 1024, and stores the number of bytes at address 8.
const READ: &str =
    "(i32.store (i32.const 0) (i32.const 1024)) (i32.store (i32.const 4) (i32.const 4096))
    (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (i32.store (i32.const 4) (i32.load (i32.const 8)))";

/// Returns code that writes these bytes to a file.
fn write(file: u32) -> String {
    format!("(drop (call $write (i32.const {file}) (i32.const 0) (i32.const 1) (i32.const 12)))")
}

fn tool(server: &mut StdioServer, name: &str) -> Value {
    server
        .tools()
        .into_iter()
        .find(|tool| tool["name"] == name)
        .unwrap()
}

#[test]
fn each_function_is_a_tool() {
    let folder = Folder::with("greeter.wasm", greeter());
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["count", "greet"]);
    assert_eq!(
        tool(&mut server, "greet")["description"],
        "greet: func(who: record { name: string, age: option<u8> }) -> string"
    );
    assert_eq!(server.text("greet", json!({"who": {"name": "Ada"}})), "Ada");
    let counted = server.call("count", json!({"to": 7}));
    assert_eq!(counted["structuredContent"], json!({"result": 7}));
    assert_eq!(result_text(&counted), r#"{"result":7}"#);
    assert_eq!(
        server.failure("count", json!({"to": 0})),
        ("none".into(), "nothing to count".into())
    );
    let misfit = server.call("count", json!({"to": 1_u64 << 32}));
    assert!(
        result_text(&misfit).contains("/to: 4294967296 is greater than the maximum of 4294967295"),
        "{misfit}"
    );
}

#[test]
fn a_wit_file_next_to_a_component_documents_its_functions() {
    let folder = Folder::with("greeter.wasm", greeter());
    folder.put("greeter.wit", GREETER);
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["count", "greet"]);
    insta::assert_json_snapshot!(server.tools());
    folder.put(
        "greeter.wit",
        GREETER.replace("Counts up to", "Reaches for"),
    );
    server.wait_until("the new words", |server| {
        tool(server, "count")["description"] == "Reaches for a number."
    });
    folder.put("greeter.wit", "world {");
    server.wait_until("the types instead", |server| {
        tool(server, "count")["description"] == "count: func(to: u32) -> result<u32, string>"
    });
    let listed = ToolbayCommand::new(&folder).args(["list"]).run();
    assert!(
        listed.stdout.contains("its .wit file is ignored: expected"),
        "{listed}"
    );
}

#[test]
fn the_types_of_a_core_module_come_from_the_wit_file_next_to_it() {
    // As AssemblyScript compiles it, whose runtime imports `abort`.
    let module = r#"(module (import "env" "abort" (func $abort (param i32 i32 i32 i32))) (memory (export "memory") 1)
        (func (export "add") (param i32 i32) (result i32)
            (if (i32.eqz (local.get 0)) (then (call $abort (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))))
            (i32.add (local.get 0) (local.get 1))))"#;
    let folder = Folder::with("sums.wasm", wat::parse_str(module).unwrap());
    let mut server = StdioServer::start(&folder);
    let why = "a core WebAssembly module that exports functions such as `add`, but not their types; put a .wit file \
               of the same name next to it";
    server.log.wait_for(why);
    folder.put(
        "sums.wit",
        "package local:sums; world sums { /// Adds two numbers.\nexport add: func(a: s32, b: s32) -> s32; }",
    );
    server.wait_until_listed(&["add"]);
    assert_eq!(tool(&mut server, "add")["description"], "Adds two numbers.");
    assert_eq!(
        server.call("add", json!({"a": 2, "b": -5}))["structuredContent"],
        json!({"result": -3})
    );
    let (kind, said) = server.failure("add", json!({"a": 0, "b": 0}));
    assert_eq!(kind, "trap", "{said}");
}

#[test]
fn an_error_within_an_option_or_a_variant_has_its_location() {
    let wit = "package local:shapes; interface shapes {
        record point { x: u8, y: u8 }
        variant shape { none, circle(u8), at(point) }
        draw: func(what: shape, where: option<point>, n: u64) -> u32;
    } world drawing { export shapes; }";
    let draw = r#"(func (export "local:shapes/shapes#draw") (param i32 i32 i32 i32 i32 i32 i64) (result i32) (i32.const 7))"#;
    let mut server = StdioServer::start(&Folder::with("shapes.wasm", build_component(wit, draw)));
    server.wait_until_listed(&["draw"]);

    let mut said = |arguments: Value| {
        result_text(&server.call("draw", arguments))
            .lines()
            .nth(1)
            .unwrap()
            .to_owned()
    };
    let at = |y: u32| json!({"what": {"at": {"x": 1, "y": y}}, "n": 1});
    assert_eq!(
        said(at(300)),
        "/what/at/y: 300 is greater than the maximum of 255"
    );
    assert_eq!(
        said(json!({"what": "none", "where": {"x": 1, "y": 300}, "n": 1})),
        "/where/y: 300 is greater than the maximum of 255"
    );
    assert_eq!(
        said(json!({"what": {"circle": -1}, "n": 1})),
        "/what/circle: -1 is less than the minimum of 0"
    );
    assert_eq!(
        said(json!({"what": "square", "n": 1})),
        "/what: \"square\" is not one of \"none\""
    );
}

#[test]
fn an_integer_that_cannot_be_represented_is_refused_and_not_rounded() {
    let wit = "package local:n; world n { export wide: func(n: s64) -> s64; }";
    let wide = r#"(func (export "wide") (param i64) (result i64) local.get 0)"#;
    let mut server = StdioServer::start(&Folder::with("n.wasm", build_component(wit, wide)));
    server.wait_until_listed(&["wide"]);
    for (n, expected) in [
        ("9007199254740993", "9007199254740993"),
        ("\"-9223372036854775808\"", "-9223372036854775808"),
    ] {
        let arguments = serde_json::from_str(&format!("{{\"n\": {n}}}")).unwrap();
        assert_eq!(
            server.call("wide", arguments)["structuredContent"],
            json!({"result": expected})
        );
    }
    for n in ["-9223372036854775809", "9007199254740993.0", "1e300"] {
        let arguments: Value = serde_json::from_str(&format!("{{\"n\": {n}}}")).unwrap();
        let (kind, said) = server.failure("wide", arguments);
        assert_eq!(kind, "invalid-arguments", "{n}: {said}");
    }
}

#[test]
fn results_that_clients_may_round_are_noted_and_their_text_is_exact() {
    let schema =
        r#"{"type":"object","properties":{"id":{"type":"integer","minimum":0}},"required":["id"]}"#;
    let tool = TinyTool {
        output: Some(schema.to_owned()),
        ..TinyTool::new("wide")
    };
    let folder = Folder::with(
        "ids.wasm",
        TinyComponent::with_tools(vec![tool])
            .with_structured(r#"{"id":18446744073709551615}"#)
            .build(),
    );
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["wide"]);
    let result = server.call("wide", json!({}));
    assert_eq!(
        result["structuredContent"],
        json!({"id": u64::MAX}),
        "{result}"
    );
    server
        .log
        .wait_for("results of wide can have integers beyond 2^53, which many clients round");
    let checked = ToolbayCommand::new(&folder)
        .args(["check", "plugins/ids.wasm"])
        .run();
    assert!(
        checked
            .stdout
            .contains("! results of wide can have integers beyond 2^53"),
        "{checked}"
    );
}

#[test]
fn a_command_has_a_readable_name_whatever_the_alphabet() {
    let folder = Folder::with("wetter-übersicht.wasm", command(""));
    folder.put("天気.wasm", command(""));
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["TianQi", "wetter-ubersicht"]);
}

#[test]
fn the_operator_can_change_how_a_tool_is_shown() {
    let folder = Folder::with("greeter.wasm", greeter());
    let grant = |disabled: bool| {
        format!(
            "[tools.greet]\ntitle = \"Greet\"\ndescription = \"Say hello.\"\nannotations = {{ read_only = true }}\n\
             [tools.count]\ndisabled = {disabled}"
        )
    };
    folder.put("greeter.toml", grant(true));
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["greet"]);
    let shown = tool(&mut server, "greet");
    assert_eq!(
        (&shown["title"], &shown["description"]),
        (&json!("Greet"), &json!("Say hello."))
    );
    assert_eq!(shown["annotations"], json!({"readOnlyHint": true}));
    assert_eq!(
        server.error(
            "tools/call",
            json!({"name": "count", "arguments": {"to": 1}})
        )["code"],
        -32602
    );
    folder.put("greeter.toml", grant(false));
    server.wait_until_listed(&["count", "greet"]);
}

#[test]
fn a_function_that_cannot_be_a_tool_is_left_out_with_a_reason() {
    let wit = "package a:b; world w {
        export shop: interface { resource basket; open: func() -> own<basket>; hours: func() -> u8; }
    }";
    let exports = r#"(func (export "shop#open") (result i32) unreachable)
        (func (export "shop#hours") (result i32) (i32.const 9))"#;
    let folder = Folder::with("shop.wasm", build_component(wit, exports));
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["hours"]);
    let said = server.log.wait_for("function shop#open is not offered");
    assert!(
        said.contains("a parameter or its result is a resource"),
        "{said}"
    );
    assert_eq!(
        server.call("hours", json!({}))["structuredContent"],
        json!({"result": 9})
    );
    let listed = ToolbayCommand::new(&folder).args(["list"]).run();
    assert!(
        listed
            .stdout
            .contains("function shop#open is not offered: a parameter or its result is a resource"),
        "{listed}"
    );
}

#[test]
fn a_command_is_a_tool_named_like_its_file() {
    // This command copies its input to its output.
    let folder = Folder::with("to upper.wasm", command(&format!("{READ} {}", write(1))));
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["to_upper"]);
    let answer = server.call("to_upper", json!({"a": [1, "ü"]}));
    assert_eq!(result_text(&answer), r#"{"a":[1,"ü"]}"#);
    assert_eq!(answer["structuredContent"], json!({"a": [1, "ü"]}));
    // The tool has the file's name, also in the grant.
    folder.put(
        "to upper.toml",
        "[tools.to_upper]\ndescription = \"Echoes.\"\nlimits = { fuel = 10 }",
    );
    server.wait_until("the grant", |server| {
        tool(server, "to_upper")["description"] == "Echoes."
    });
    assert_eq!(server.failure("to_upper", json!({})).0, "fuel");
}

#[test]
fn the_operator_defines_the_arguments_of_a_command() {
    let folder = Folder::with("convert.wasm", command(&format!("{READ} {}", write(1))));
    folder.put("greeter.wasm", greeter());
    folder.put(
        "convert.toml",
        "[tools.convert.input_schema]\ntype = \"object\"\nrequired = [\"amount\"]\n\
         properties.amount = { type = \"number\", minimum = 0 }",
    );
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["convert", "count", "greet"]);
    let schema = json!({"type": "object", "required": ["amount"], "properties": {"amount": {"type": "number", "minimum": 0}}});
    assert_eq!(tool(&mut server, "convert")["inputSchema"], schema);
    assert_eq!(
        server.text("convert", json!({"amount": 7})),
        r#"{"amount":7}"#
    );
    let (kind, said) = server.failure("convert", json!({"amount": -7}));
    assert_eq!(kind, "invalid-arguments");
    assert!(
        said.contains("/amount: -7 is less than the minimum of 0"),
        "{said}"
    );
    assert_eq!(server.failure("convert", json!({})).0, "invalid-arguments");

    // A plugin that has schemas keeps them, and an invalid schema is refused.
    folder.put(
        "greeter.toml",
        "[tools.count]\ninput_schema = { type = \"object\" }",
    );
    server
        .log
        .wait_for("tools.count.input_schema: the plugin defines its tools' arguments itself");
    folder.put(
        "convert.toml",
        "[tools.convert]\ninput_schema = '{\"type\": 7}'",
    );
    server.log.wait_for("input_schema");
}

#[test]
fn a_failing_command_reports_its_output() {
    let body = format!("{READ} {} (call $exit (i32.const 3))", write(2));
    let folder = Folder::with("fails.wasm", command(&body));
    folder.put("quiet.wasm", command("(call $exit (i32.const 3))"));
    folder.put(
        "fine.wasm",
        command(&format!("{READ} {} (call $exit (i32.const 0))", write(1))),
    );
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["fails", "fine", "quiet"]);
    assert_eq!(
        server.failure("fails", json!({"a": 1})),
        ("none".into(), r#"{"a":1}"#.into())
    );
    assert_eq!(
        server.failure("quiet", json!({})),
        ("none".into(), "The command exited with code 1.".into())
    );
    assert_eq!(server.text("fine", json!({})), "{}");
}

#[test]
fn a_command_whose_output_exceeds_the_result_limit_fails() {
    let body = format!("{READ} (loop $again {} (br $again))", write(1));
    let folder = Folder::with("chatty.wasm", command(&body));
    folder.put(
        "chatty.toml",
        "[limits]\noutput = \"1KiB\"\nstdio = \"64KiB\"",
    );
    folder.put(
        "long.wasm",
        command(&format!("{READ} {}", write(1).repeat(40))),
    );
    folder.put("long.toml", "[limits]\noutput = \"1KiB\"");
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["chatty", "long"]);
    let arguments = json!({"a": "x".repeat(100)});
    assert_eq!(server.failure("chatty", arguments.clone()).0, "output");
    let (kind, words) = server.failure("long", arguments);
    assert_eq!(
        (kind.as_str(), words.contains("limits.output")),
        ("output", true),
        "{words}"
    );
}

#[test]
fn a_module_with_the_functions_of_the_contract_needs_no_packaging() {
    let folder = Folder::with(
        "module.wasm",
        TinyComponent::new(&["hello"])
            .with_text("from a module")
            .build_core_module(),
    );
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["hello"]);
    assert_eq!(server.text("hello", json!({})), "from a module");
}

#[test]
fn the_cache_returns_the_same_definitions_as_compiling() {
    let folder = Folder::with("greeter.wasm", greeter());
    folder.put("greeter.wit", GREETER);
    let list = || {
        ToolbayCommand::new(&folder)
            .args(["list", "--json"])
            .run()
            .stdout
    };
    let first = list();
    assert!(first.contains("greet"), "{first}");
    assert_eq!(
        list(),
        first,
        "the second start describes it from the store"
    );
}

#[test]
fn a_plugin_for_wassette_is_served_unchanged_within_its_grant() {
    let plugin = fs::read(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/data/wassette/filesystem.wasm"
    ))
    .unwrap();
    let folder = Folder::with("filesystem.wasm", plugin);
    fs::create_dir_all(folder.sibling_path("notes/old")).unwrap();
    fs::write(folder.sibling_path("notes/today.txt"), "Write to Ada.\n").unwrap();
    fs::write(folder.sibling_path("secret.txt"), "nobody reads this").unwrap();
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&[
        "get-file-info",
        "list-directory",
        "read-file",
        "search-file",
    ]);
    // Access is denied by default, with the plugin's own error.
    let read = json!({"path": "/notes/today.txt"});
    let refused = server.call("read-file", read.clone());
    assert_eq!(refused["isError"], true);
    assert!(
        result_text(&refused).starts_with("Failed to read file: "),
        "{refused}"
    );

    drop(server);
    folder.put(
        "filesystem.toml",
        "[[permissions.mounts]]\nhost = \"../notes\"\nguest = \"/notes\"\naccess = \"read\"",
    );
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("read-file");
    assert_eq!(server.text("read-file", read), "Write to Ada.\n");
    let listed = server.call("list-directory", json!({"path": "/notes"}));
    let mut entries: Vec<String> =
        serde_json::from_value(listed["structuredContent"]["result"].clone()).unwrap();
    entries.sort_unstable();
    assert_eq!(entries, ["[DIR] old\n", "[FILE] today.txt\n"]);
    assert_eq!(
        server.text("search-file", json!({"path": "/notes", "pattern": "TODAY"})),
        "/notes/today.txt"
    );
    assert!(
        server
            .text("get-file-info", json!({"path": "/notes/today.txt"}))
            .contains("len: 14")
    );
    for outside in ["/notes/../secret.txt", "/secret.txt", "../secret.txt"] {
        let refused = server.call("read-file", json!({"path": outside}));
        assert_eq!(refused["isError"], true, "{outside}: {refused}");
    }
}
