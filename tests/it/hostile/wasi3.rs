//! Guests for WASI 0.3: resources that the host holds for them, events that they wait for, and what
//! they try to reach.

use super::concurrency::{EXIT, tasks};
use super::put;
use super::run::Run;
use crate::support::{Folder, own_server};

/// Writes the guest that uses WASI 0.3, and misuses it on request.
fn wasi3(folder: &Folder) {
    put(folder, own_server("wasi3"));
}

/// Writes a component with this import and a function.
fn imports(folder: &Folder, import: &str) {
    let core = format!(
        r#"(func (export "a") (result i32) {EXIT}) (func (export "callback") (param i32 i32 i32) (result i32) {EXIT})"#
    );
    put(folder, tasks(import, &[], &core));
}

/// Imports that use the type of descriptors of WASI 0.2, which come from mounted folders, for those
/// of WASI 0.3.
const MIXED: &str = r#"
    (import "wasi:filesystem/types@0.2.0" (instance $older (export "descriptor" (type (sub resource)))))
    (alias export $older "descriptor" (type $descriptor))
    (import "wasi:filesystem/types@0.3.0" (instance
      (alias outer 1 $descriptor (type $older))
      (export "descriptor" (type (eq $older)))))"#;

/// Like [`MIXED`], for sockets.
const MIXED_SOCKETS: &str = r#"
    (import "wasi:sockets/tcp@0.2.0" (instance $older (export "tcp-socket" (type (sub resource)))))
    (alias export $older "tcp-socket" (type $socket))
    (import "wasi:sockets/types@0.3.0" (instance
      (alias outer 1 $socket (type $older))
      (export "tcp-socket" (type (eq $older)))))"#;

/// Less than the million units after which a guest yields.
const LITTLE: &str = "[limits]\nfuel = 10_000_000";

const HANDLES: &str =
    "The tool held more than 1,000 host resources open (to allow more, raise limits.handles).";

const MEMORY: &str =
    "The tool needed more than 8.0 MiB of memory (to allow more, raise limits.memory).";

/// Checks that the denial in the log names the origin that would have to be allowed.
fn names_the_origin(run: &mut Run) {
    run.server
        .log
        .wait_for("http = [\"http://a.example\"] plugin=\"hostile\"");
}

rows! {
    inputs: HostCall, "opens standard input ten thousand times, and reads none of it", wasi3
        => tool("inputs", r#"{"count": 10000}"#) => fails("limit", HANDLES);

    inputs_without_memory: HostCall, "opens standard input with more streams than fit in the call's memory", wasi3
        => tool("inputs", r#"{"count": 10000}"#)
        => grant("[limits]\nmemory = \"8MiB\"\nhandles = 1000000")
        => fails("memory", MEMORY);

    outputs: HostCall, "opens standard output ten thousand times, and does not end the streams", wasi3
        => tool("outputs", r#"{"count": 10000}"#) => fails("limit", HANDLES);

    outputs_without_memory: HostCall, "opens standard output with more streams than fit in the call's memory", wasi3
        => tool("outputs", r#"{"count": 10000}"#)
        => grant("[limits]\nmemory = \"8MiB\"\nhandles = 1000000")
        => fails("memory", MEMORY);

    output_without_end: HostCall, "writes to standard output endlessly", wasi3
        => tool("print", r#"{"text": "more of it\n", "times": 4294967295, "error": false}"#)
        => fails("output", "The tool wrote more than 8.0 MiB to standard output and standard error (to allow more, raise \
            limits.stdio).");

    a_wait_of_an_hour: HostCall, "waits for an hour", wasi3
        => tool("wait", r#"{"nanoseconds": 3600000000000}"#)
        => grant("[limits]\ntimeout = \"300ms\"")
        => fails("deadline", "The tool did not finish within 300ms (to allow more, raise limits.timeout).");

    a_wait_without_end: HostCall, "waits for longer than the range of clocks", wasi3
        => tool("wait", r#"{"nanoseconds": 18446744073709551615}"#)
        => grant("[limits]\ntimeout = \"300ms\"")
        => fails("deadline", "The tool did not finish within 300ms (to allow more, raise limits.timeout).");

    waits: HostCall, "waits for a hundred thousand events at once", wasi3
        => tool("waits", r#"{"count": 100000}"#) => fails("limit", HANDLES);

    forgotten_waits: HostCall, "starts a hundred thousand waits, and cancels each", wasi3
        => tool("forget", r#"{"count": 100000}"#) => answers(r#"{"result":100000}"#);

    cheap_calls: HostCall, "calls cheap functions of the host endlessly", wasi3
        => tool("forget", r#"{"count": 4294967295}"#) => grant(LITTLE)
        => fails("fuel", "The tool used all of its fuel, 10,000,000 instructions (to allow more, raise limits.fuel).");

    random: HostCall, "requests an exabyte of random numbers", wasi3
        => tool("random", r#"{"count": 1000000000000000000}"#) => answers(r#"{"result":65536}"#);

    requests: HostCall, "makes ten thousand requests, and does not send them", wasi3
        => tool("hoard", r#"{"count": 10000}"#) => fails("limit", HANDLES);

    requests_without_memory: HostCall, "makes more requests than fit in the call's memory", wasi3
        => tool("hoard", r#"{"count": 10000}"#)
        => grant("[limits]\nmemory = \"8MiB\"\nhandles = 1000000")
        => fails("memory", MEMORY);

    sent_requests: HostCall, "sends ten thousand denied requests at once", wasi3
        => tool("requests", r#"{"address": "http://a.example/", "count": 10000}"#)
        => fails("limit", HANDLES) => also(names_the_origin);

    large_fields: HostCall, "makes a header of ten megabytes", wasi3
        => tool("fields", r#"{"count": 1, "bytes": 10000000}"#) => fails("none", "HeaderError::SizeExceeded");

    many_fields: HostCall, "makes ten thousand sets of headers", wasi3
        => tool("fields", r#"{"count": 10000, "bytes": 10}"#) => fails("limit", HANDLES);

    fields_without_memory: HostCall, "makes more sets of headers than fit in the call's memory", wasi3
        => tool("fields", r#"{"count": 10000, "bytes": 10}"#)
        => grant("[limits]\nmemory = \"8MiB\"\nhandles = 1000000")
        => fails("memory", MEMORY);

    an_unsent_body: HostCall, "writes the body of a request that is never sent", wasi3
        => tool("orphan", "{}")
        => fails("trap", "The tool crashed: all of its async tasks wait for events that cannot occur (deadlock).");

    a_denied_request: HostCall, "sends a request without permission", wasi3
        => tool("request", r#"{"method": "GET", "address": "http://a.example/", "headers": [], "body": ""}"#)
        => fails("denied", "ErrorCode::HttpRequestDenied…http://a.example is not among the origins that this tool may send \
            requests to.") => also(names_the_origin);

    a_denied_header: HostCall, "sets a header that would send a request to another host", wasi3
        => tool("request", r#"{"method": "GET", "address": "http://a.example/", "headers": [["host", "b"]], "body": ""}"#)
        => fails("denied", "HeaderError::Forbidden…No tool may set the header host.");

    a_denied_connection: HostCall, "connects without permission", wasi3
        => tool("talk", r#"{"address": "169.254.169.254", "port": 80, "text": ""}"#)
        => fails("denied", "ErrorCode::AccessDenied…This tool may connect to an IP address only if its grant lists it.");

    a_denied_name: HostCall, "resolves a name without permission", wasi3
        => tool("resolve", r#"{"name": "a.example"}"#)
        => fails("denied", "ErrorCode::AccessDenied…a.example is not among the hosts that this tool may connect to.");

    closed: HostCall, "uses UDP, listens, and chooses an address", wasi3
        => tool("closed", "{}")
        => answers("Err(ErrorCode::AccessDenied) Err(ErrorCode::AccessDenied) Err(ErrorCode::AccessDenied)");

    an_exit: HostCall, "exits in the middle of a call", wasi3
        => tool("leave", r#"{"code": 3}"#) => fails("trap", "The tool crashed: exited with code 3.");

    mixed_files: Load, "uses files of WASI 0.2 as those of WASI 0.3, which have weaker limits",
        |folder| imports(folder, MIXED)
        => refused("its imports do not match the host's: component imports instance `wasi:filesystem/types@0.3.0`, but a matching \
            implementation was not found in the linker: instance export `descriptor` has the wrong type: mismatched resource \
            types");

    mixed_sockets: Load, "uses sockets of WASI 0.2 as those of WASI 0.3",
        |folder| imports(folder, MIXED_SOCKETS)
        => refused("its imports do not match the host's: component imports instance `wasi:sockets/types@0.3.0`, but a matching \
            implementation was not found in the linker: instance export `tcp-socket` has the wrong type: mismatched resource \
            types");

    a_candidate: Compile, "imports interfaces of a release candidate of WASI 0.3",
        |folder| imports(folder, r#"(import "wasi:cli/stdout@0.3.0-rc-2026-03-15" (instance))"#)
        => refused("needs a release candidate of WASI 0.3, which Toolbay does not offer: \
            wasi:cli/stdout@0.3.0-rc-2026-03-15 (build it with a newer toolchain, for WASI 0.3.0)");

    unwanted: Compile, "imports WASI 0.3 when the operator has disabled async functions", wasi3
        => config("[engine]\nasync = false")
        => refused("needs WASI 0.3, and engine.async is false (to run it, set engine.async = true; to do without, build \
            it for WASI 0.2: with --sync for componentize-qjs, for wasm32-wasip2 with Rust)");
}
