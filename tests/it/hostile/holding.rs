//! Guests that make the host hold resources for them.

use super::put;
use super::wasi::{FILES, HTTP, POLL, PROGRESS, UDP, calls};
use crate::support::{Folder, HttpServer, StdioServer, TinyComponent, ToolbayCommand, hostile};

const MOUNT: &str =
    "[[permissions.mounts]]\nhost = \"../data\"\nguest = \"/data\"\naccess = \"read\"";

const MOUNT_AND_LITTLE_MEMORY: &str = "[limits]\nmemory = \"8MiB\"\n[[permissions.mounts]]\nhost = \"../data\"\nguest = \"/data\"\naccess = \"read\"";

/// Creates the folder `data/` with `count` files, whose names have the maximum length.
fn with_files(folder: &Folder, count: usize) {
    std::fs::create_dir_all(folder.sibling_path("data")).unwrap();
    for n in 0..count {
        std::fs::write(
            folder.sibling_path(&format!("data/{n}-{}", "x".repeat(240))),
            "content",
        )
        .unwrap();
    }
    std::fs::write(folder.sibling_path("data/file"), "content").unwrap();
    put(folder, hostile());
}

/// Writes a guest that makes requests whose host has a name of 4 MiB, and sends none.
fn requests(folder: &Folder) {
    let functions = [
        ("fields", "(result i32)"),
        ("request", "(param i32) (result i32)"),
        ("authority", "(param i32 i32 i32 i32) (result i32)"),
    ];
    let body = "(local $text i32)
        (local.set $text (i32.shl (memory.grow (i32.const 64)) (i32.const 16)))
        (memory.fill (local.get $text) (i32.const 0x61) (i32.const 4194304))
        (loop $more
          (drop (call $authority (call $request (call $fields))
            (i32.const 1) (local.get $text) (i32.const 4194304)))
          (br $more))";
    put(folder, calls(HTTP, &functions, body).build());
}

/// Writes a guest that makes sets of HTTP fields until it may not.
fn fields(folder: &Folder) {
    put(
        folder,
        calls(
            HTTP,
            &[("fields", "(result i32)")],
            "(loop $more (drop (call $fields)) (br $more))",
        )
        .build(),
    );
}

/// Writes a guest that makes a socket, and crashes if it gets one.
fn a_socket(folder: &Folder) {
    let body = "(call $socket (i32.const 0) (i32.const 8))
        (if (i32.eqz (i32.load8_u (i32.const 8))) (then unreachable))";
    put(
        folder,
        calls(UDP, &[("socket", "(param i32 i32)")], body)
            .with_text("denied")
            .build(),
    );
}

/// Writes a guest that returns a text block for the user eight million times.
fn audience(folder: &Folder) {
    let body = "(local $zeros i32)
        (local.set $zeros (i32.shl (memory.grow (i32.const 128)) (i32.const 16)))
        (i32.store (i32.const 20) (i32.const 64)) (i32.store (i32.const 24) (i32.const 1))
        (i32.store (i32.const 68) (i32.const 1))
        (i32.store (i32.const 168) (local.get $zeros)) (i32.store (i32.const 172) (i32.const 8000000))
        (return (i32.const 16))";
    put(folder, TinyComponent::new(&["a"]).before_call(body).build());
}

fn fifo(folder: &Folder) {
    std::fs::create_dir_all(folder.sibling_path("data")).unwrap();
    let status = std::process::Command::new("mkfifo")
        .arg(folder.sibling_path("data/fifo"))
        .status()
        .unwrap();
    assert!(status.success());
    put(folder, hostile());
}

const OUT_OF_MEMORY: &str =
    "The tool needed more than 8.0 MiB of memory (to allow more, raise limits.memory).";

cases! {
    http_requests: HostCall, "makes HTTP requests to hosts whose names are 4 MiB long", requests
        => fails("limit", "The tool held more than 1,000 host resources open (to allow more, raise limits.handles).");

    http_fields: HostCall, "makes sets of HTTP fields until its memory is used up", fields
        => grant("[limits]\nmemory = \"8MiB\"") => fails("memory", OUT_OF_MEMORY);

    file_streams: HostCall, "reads from 400 files at once, each with a buffer in the host", |folder| with_files(folder, 0)
        => tool("read_open", r#"{"path": "/data/file", "n": 400}"#) => grant(MOUNT_AND_LITTLE_MEMORY)
        => fails("memory", OUT_OF_MEMORY);

    listings: HostCall, "lists a folder of 4,000 files 400 times at once", |folder| with_files(folder, 4000)
        => tool("list_open", r#"{"path": "/data", "n": 400}"#) => grant(MOUNT) => answers("400 folders");

    listings_without_memory: HostCall, "lists a folder until its memory is used up", |folder| with_files(folder, 4)
        => tool("list_open", r#"{"path": "/data", "n": 400}"#) => grant(MOUNT_AND_LITTLE_MEMORY)
        => fails("memory", OUT_OF_MEMORY);

    sockets: HostCall, "makes a UDP socket", a_socket => answers("denied");

    a_fifo: HostCall, "reads from a FIFO without a writer in its mounted folder", fifo
        => tool("read_file", r#"{"path": "/data/fifo"}"#) => grant(MOUNT)
        => fails("none", "Operation not permitted (os error 63)");

    an_audience: Call, "returns a text for the user eight million times", audience => answers("")
        => also(|run| assert_eq!(run.result["content"][0]["annotations"]["audience"], serde_json::json!(["user"])));
}

/// Plugins that fill every table that they may have, with as many calls as the server admits, do
/// not affect others.
#[test]
fn plugins_that_fill_their_tables_do_not_affect_others() {
    let folder = Folder::new();
    let functions = [
        ("progress", "(param f64 i32 f64 i32 i32 i32)"),
        ("subscribe", "(param i64) (result i32)"),
        ("block", "(param i32)"),
    ];
    let waits = "(call $progress (f64.const 1) (i32.const 0) (f64.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
        (call $block (call $subscribe (i64.const 3600000000000)))";
    let core = format!(
        r#"(import "host" "import" (func $run)) {}"#,
        "(table 1 funcref)".repeat(14)
    );
    let greedy = calls(&format!("{PROGRESS}{POLL}"), &functions, waits)
        .with_core_items(&core)
        .build();
    for id in ["one", "two"] {
        folder.put(&format!("{id}.wasm"), &greedy);
        folder.put(&format!("{id}.toml"), format!("prefix = \"{id}\""));
    }
    folder.put(
        "other.wasm",
        TinyComponent::new(&["fine"]).with_text("fine").build(),
    );
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["fine", "one_a", "two_a"]);
    for tool in ["one_a", "two_a"] {
        for _ in 0..15 {
            server.start_call_with_progress(tool, serde_json::json!({}));
            server.notification("notifications/progress");
        }
    }
    assert_eq!(server.text("fine", serde_json::json!({})), "fine");
}

/// Returns a plugin that opens the file `f` in its mount until it may not, reports how often, and
/// holds the files for an hour. It crashes if it cannot open any file.
fn holds_files() -> Vec<u8> {
    let functions = [
        ("mounts", "(param i32)"),
        ("open", "(param i32 i32 i32 i32 i32 i32 i32)"),
        ("progress", "(param f64 i32 f64 i32 i32 i32)"),
        ("subscribe", "(param i64) (result i32)"),
        ("block", "(param i32)"),
    ];
    let body = "(local $folder i32) (local $open f64)
        (call $mounts (i32.const 8))
        (local.set $folder (i32.load (i32.load (i32.const 8))))
        (i32.store8 (i32.const 24) (i32.const 0x66))
        (loop $more
          (call $open (local.get $folder) (i32.const 0) (i32.const 24) (i32.const 1) (i32.const 0) (i32.const 1)
            (i32.const 8))
          (if (i32.eqz (i32.load8_u (i32.const 8)))
            (then (local.set $open (f64.add (local.get $open) (f64.const 1))) (br $more))))
        (if (f64.eq (local.get $open) (f64.const 0)) (then unreachable))
        (call $progress (local.get $open) (i32.const 0) (f64.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
        (call $block (call $subscribe (i64.const 3600000000000)))";
    calls(&format!("{FILES}{PROGRESS}{POLL}"), &functions, body).build()
}

/// Returns a folder with plugins that hold files, and one that reads them, for a server that may
/// have few descriptors.
fn folder_of_greedy(calls: usize) -> Folder {
    let folder = Folder::new();
    std::fs::create_dir(folder.sibling_path("data")).unwrap();
    std::fs::write(folder.sibling_path("data/f"), "content").unwrap();
    folder.put("greedy.wasm", holds_files());
    folder.put("greedy.toml", MOUNT);
    folder.put("honest.wasm", hostile());
    folder.put("honest.toml", MOUNT);
    folder.write_config(&format!("[server]\ncalls = {calls}"));
    folder
}

/// With few descriptors, plugins that open files until they may not leave some to every other call,
/// to connections and to plugins that are loaded.
#[test]
fn plugins_that_open_many_files_do_not_affect_others() {
    let folder = folder_of_greedy(8);
    let command = ToolbayCommand::new(&folder)
        .args(["serve"])
        .with_shell_wrapper("ulimit -n 160 && exec \"$@\"");
    let mut server = StdioServer::run(command).with_handshake("2025-11-25");
    server.wait_for_tool("read_file");
    server.wait_for_tool("a");
    let mut held = Vec::new();
    for _ in 0..7 {
        server.start_call_with_progress("a", serde_json::json!({}));
        held.push(
            server.notification("notifications/progress")["progress"]
                .as_f64()
                .unwrap(),
        );
    }
    // Of the 80 for guests, 10 are for connections, 40 are shares of calls, and the rest is for any
    // call.
    assert!(
        held[0] >= 30.0 && held[1..].iter().all(|held| *held >= 5.0),
        "{held:?}"
    );
    assert!(held.iter().sum::<f64>() <= 80.0, "{held:?}");
    server
        .log
        .wait_for("a file was not opened: the server has no descriptor left for this call");
    assert_eq!(
        server.text("read_file", serde_json::json!({"path": "/data/f"})),
        "content"
    );
    assert_eq!(
        server.text("list_folder", serde_json::json!({"path": "/data"})),
        "f"
    );
    // A plugin that has to be compiled, which takes a child process and its pipes.
    folder.put(
        "later.wasm",
        TinyComponent::new(&["later"]).with_text("in time").build(),
    );
    server.wait_for_tool("later");
    assert_eq!(server.text("later", serde_json::json!({})), "in time");
}

/// `toolbay call` shows the reason, although it logs nothing else.
#[test]
fn a_command_reports_that_no_descriptor_is_left() {
    let folder = folder_of_greedy(1);
    folder.write_config("[limits]\ntimeout = \"2s\"");
    let output = ToolbayCommand::new(&folder)
        .args(["call", "a"])
        .with_shell_wrapper("ulimit -n 160 && exec \"$@\"")
        .run();
    assert_eq!(output.code, 1, "{output}");
    assert!(
        output
            .stderr
            .contains("a file was not opened: the server has no descriptor left for this call"),
        "{output}"
    );
}

/// Over HTTP, new connections are accepted.
#[test]
fn files_of_plugins_leave_descriptors_to_connections() {
    let folder = folder_of_greedy(2);
    let command = ToolbayCommand::new(&folder).args(["serve", "--http", "127.0.0.1:0"]);
    let server = HttpServer::run(command.with_shell_wrapper("ulimit -n 160 && exec \"$@\""))
        .wait_until_ready();
    std::thread::scope(|scope| {
        let holding = scope
            .spawn(|| server.post_stateless("tools/call", serde_json::json!({"name": "a"}), &[]));
        server
            .log
            .wait_for("a file was not opened: the server has no descriptor left for this call");
        for _ in 0..20 {
            let read = serde_json::json!({"name": "read_file", "arguments": {"path": "/data/f"}});
            assert_eq!(
                server.result("tools/call", read)["content"][0]["text"],
                "content"
            );
        }
        assert!(!holding.is_finished());
    });
}
