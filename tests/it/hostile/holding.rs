//! Guests that have the host hold something for them.

use super::put;
use super::wasi::{HTTP, UDP, calls};
use crate::support::{Folder, Tiny, hostile};

const MOUNT: &str = "[[permissions.mounts]]\nhost = \"../data\"\nguest = \"/data\"\naccess = \"read\"";

const MOUNT_AND_LITTLE_MEMORY: &str = "[limits]\nmemory = \"8MiB\"\n[[permissions.mounts]]\nhost = \"../data\"\nguest = \"/data\"\naccess = \"read\"";

/// The folder `data/` with so many files, whose names are as long as names can be.
fn with_files(folder: &Folder, count: usize) {
    std::fs::create_dir_all(folder.beside("data")).unwrap();
    for n in 0..count {
        std::fs::write(folder.beside(&format!("data/{n}-{}", "x".repeat(240))), "content").unwrap();
    }
    std::fs::write(folder.beside("data/file"), "content").unwrap();
    put(folder, hostile());
}

/// Makes requests whose host has a name of 4 MiB, and sends none.
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

/// Makes sets of HTTP fields until it may not.
fn fields(folder: &Folder) {
    put(folder, calls(HTTP, &[("fields", "(result i32)")], "(loop $more (drop (call $fields)) (br $more))").build());
}

/// Makes a socket, and crashes if it gets one.
fn a_socket(folder: &Folder) {
    let body = "(call $socket (i32.const 0) (i32.const 8))
        (if (i32.eqz (i32.load8_u (i32.const 8))) (then unreachable))";
    put(folder, calls(UDP, &[("socket", "(param i32 i32)")], body).answer("denied").build());
}

/// A text block that is meant for the user, eight million times.
fn audience(folder: &Folder) {
    let body = "(local $zeros i32)
        (local.set $zeros (i32.shl (memory.grow (i32.const 128)) (i32.const 16)))
        (i32.store (i32.const 20) (i32.const 64)) (i32.store (i32.const 24) (i32.const 1))
        (i32.store (i32.const 68) (i32.const 1))
        (i32.store (i32.const 168) (local.get $zeros)) (i32.store (i32.const 172) (i32.const 8000000))
        (return (i32.const 16))";
    put(folder, Tiny::new(&["a"]).before_call(body).build());
}

fn fifo(folder: &Folder) {
    std::fs::create_dir_all(folder.beside("data")).unwrap();
    let status = std::process::Command::new("mkfifo").arg(folder.beside("data/fifo")).status().unwrap();
    assert!(status.success());
    put(folder, hostile());
}

const OUT_OF_MEMORY: &str = "The tool needed more than 8.0 MiB of memory (to allow more, raise limits.memory).";

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

    an_audience: Call, "returns a text that is meant for the user, eight million times", audience => answers("")
        => also(|run| assert_eq!(run.result["content"][0]["annotations"]["audience"], serde_json::json!(["user"])));
}
