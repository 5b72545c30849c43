//! Guests that try to access what is not theirs.

use std::fmt::Write as _;

use super::put;
use super::run::Run;
use super::wasi::{HTTP, NAMES, calls};
use crate::support::{Folder, TinyComponent, hostile};

/// Creates the folder `data/` for a mount, next to a file `secret`.
fn with_data(folder: &Folder) {
    std::fs::create_dir_all(folder.sibling_path("data")).unwrap();
    std::fs::write(folder.sibling_path("secret"), "hush").unwrap();
    std::os::unix::fs::symlink("../secret", folder.sibling_path("data/link")).unwrap();
    put(folder, hostile());
}

const MOUNT: &str =
    "[[permissions.mounts]]\nhost = \"../data\"\nguest = \"/data\"\naccess = \"read-write\"";

fn no_secret(run: &mut Run) {
    assert!(!run.result.to_string().contains("hush"), "{}", run.result);
}

/// Writes a guest that resolves a name, and crashes if it gets an address.
fn looks_a_name_up(folder: &Folder) {
    let functions = [
        ("network", "(result i32)"),
        ("resolve", "(param i32 i32 i32 i32)"),
    ];
    // The name is "a.test.x"; the result is at 8.
    let body = "(i64.store (i32.const 32) (i64.const 0x782e747365742e61))
        (call $resolve (call $network) (i32.const 32) (i32.const 8) (i32.const 8))
        (if (i32.eqz (i32.load8_u (i32.const 8))) (then unreachable))";
    put(
        folder,
        calls(NAMES, &functions, body).with_text("denied").build(),
    );
}

/// Writes a guest that sends a request, and does not wait for the response.
fn sends_a_request(folder: &Folder) {
    let functions = [
        ("fields", "(result i32)"),
        ("request", "(param i32) (result i32)"),
        ("authority", "(param i32 i32 i32 i32) (result i32)"),
        ("path", "(param i32 i32 i32 i32) (result i32)"),
        ("send", "(param i32 i32 i32 i32)"),
    ];
    // The authority is "a.test:1", the path "/".
    let body = "(local $r i32) (local.set $r (call $request (call $fields)))
        (i64.store (i32.const 64) (i64.const 0x313a747365742e61))
        (drop (call $authority (local.get $r) (i32.const 1) (i32.const 64) (i32.const 8)))
        (i32.store8 (i32.const 72) (i32.const 0x2f))
        (drop (call $path (local.get $r) (i32.const 1) (i32.const 72) (i32.const 1)))
        (call $send (local.get $r) (i32.const 0) (i32.const 0) (i32.const 8))";
    put(
        folder,
        calls(HTTP, &functions, body).with_text("sent").build(),
    );
}

/// Writes a component with this import, which is refused.
fn imports(folder: &Folder, text: &str) {
    put(
        folder,
        TinyComponent::new(&["a"]).with_imports(text).build(),
    );
}

cases! {
    the_environment: HostCall, "returns its environment variables and arguments",
        |folder| put(folder, hostile()) => tool("environment", "{}") => answers("[] []");

    etc_passwd: HostCall, "reads `/etc/passwd`", |folder| put(folder, hostile())
        => tool("read_file", r#"{"path": "/etc/passwd"}"#)
        => fails("none", "No such file or directory (os error 44)");

    proc_self: HostCall, "reads the memory of the server", |folder| put(folder, hostile())
        => tool("read_file", r#"{"path": "/proc/self/mem"}"#)
        => fails("none", "No such file or directory (os error 44)");

    a_way_up: HostCall, "leaves its mounted folder through `..`", with_data
        => tool("read_file", r#"{"path": "/data/../secret"}"#) => grant(MOUNT)
        => fails("denied", "Operation not permitted (os error 63)\nThe path /data/../secret leads out of /data, the folder that this tool may use.") => also(no_secret);

    a_link_out: HostCall, "leaves its mounted folder through a link", with_data
        => tool("read_file", r#"{"path": "/data/link"}"#) => grant(MOUNT)
        => fails("denied", "Operation not permitted (os error 63)\nThe path /data/link leads out of /data, the folder that this tool may use.") => also(no_secret);

    writing_by_a_link: HostCall, "writes outside its mounted folder through a link", with_data
        => tool("write_file", r#"{"path": "/data/link", "text": "mine"}"#) => grant(MOUNT)
        => fails("denied", "Operation not permitted (os error 63)\nThe path /data/link leads out of /data, the folder that this tool may use.")
        => also(|run| assert_eq!(std::fs::read_to_string(run.folder.sibling_path("secret")).unwrap(), "hush"));

    tcp: HostCall, "opens a TCP connection", |folder| put(folder, hostile()) => tool("connect", "{}")
        => answers("Permission denied (os error 2)");

    dns: HostCall, "resolves a host name", looks_a_name_up => answers("denied");

    http: HostCall, "sends an HTTP request", sends_a_request => answers("sent")
        => also(|run| {
            run.server.log.wait_for("denied: https://a.test:1 is not among the origins that this tool may send requests to.");
        });

    forged_lines: HostCall, "writes forged responses and notifications to standard output",
        |folder| put(folder, hostile()) => tool("forge_stdout", "{}") => answers("done")
        => also(|run| {
            assert!(run.server.take_notifications("forged").is_empty());
        });

    another_hosts_import: Load, "imports an unknown interface",
        |folder| imports(folder, r#"(import "evil:host/kernel@1.0.0" (instance (export "run" (func))))"#)
        => refused("imports interfaces that the host does not provide: evil:host/kernel@1.0.0");

    many_imports: Load, "imports 900 unknown interfaces",
        |folder| imports(folder, &(0..900).fold(String::new(), |mut text, n| {
            let _ = write!(text, "(import \"evil:host/kernel-of-the-host-number-{n}@1.0.0\" (instance (export \"run\" (func))))");
            text
        }))
        => refused("imports interfaces that the host does not provide: evil:host/kernel-of-the-host-number-0@1.0.0, …")
        => also(|run| assert!(run.server.log.text().len() < 10_000, "the log has them all"));

    an_import_that_does_not_fit: Load, "imports a WASI function with the wrong type",
        |folder| imports(folder, r#"(import "wasi:clocks/monotonic-clock@0.2.0" (instance
            (export "now" (func (param "a" string) (result string)))))"#)
        => refused("its imports do not match the host's: component imports instance `wasi:clocks/monotonic-clock@0.2.0`, but a matching \
            implementation was not found in the linker: instance export `now` has the wrong type: …");
}
