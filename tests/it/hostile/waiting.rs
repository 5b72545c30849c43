//! Guests that keep the host busy or waiting.

use super::put;
use super::wasi::{NOW, POLL, PROGRESS, RANDOM, STDOUT, calls};
use crate::support::{Folder, hostile};

fn clock(folder: &Folder, body: &str) {
    put(folder, calls(NOW, &[("now", "(result i64)")], body).build());
}

fn random(folder: &Folder, body: &str) {
    let functions = [("number", "(result i64)"), ("bytes", "(param i64 i32)")];
    put(folder, calls(RANDOM, &functions, body).build());
}

fn poll(folder: &Folder, body: &str) {
    let functions = [
        ("subscribe", "(param i64) (result i32)"),
        ("block", "(param i32)"),
        ("poll", "(param i32 i32 i32)"),
        ("drop", "(param i32)"),
    ];
    put(folder, calls(POLL, &functions, body).build());
}

fn stdout(folder: &Folder, body: &str) {
    let functions = [
        ("stdout", "(result i32)"),
        ("check", "(param i32 i32)"),
        ("write", "(param i32 i32 i32 i32)"),
    ];
    put(folder, calls(STDOUT, &functions, body).build());
}

/// A fifth of a second: work of the host costs fuel per nanosecond.
const LITTLE: &str = "[limits]\nfuel = 200000000";
const OUT_OF_LITTLE: &str =
    "The tool used all of its fuel, 200,000,000 instructions (to allow more, raise limits.fuel).";

const SHORT: &str = "[limits]\ntimeout = \"200ms\"";
const LATE: &str = "The tool did not finish within 200ms (to allow more, raise limits.timeout).";

cases! {
    the_clock_in_a_loop: HostCall, "reads the clock forever",
        |folder| clock(folder, "(loop $again (drop (call $now)) (br $again))")
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    random_numbers_in_a_loop: HostCall, "requests random numbers forever",
        |folder| random(folder, "(loop $again (drop (call $number)) (br $again))")
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    a_gibibyte_of_randomness: HostCall, "requests 1 GiB of random data at once",
        |folder| random(folder, "(call $bytes (i64.const 1073741824) (i32.const 8))")
        => fails("limit", "The tool requested more than 64.0 KiB of random data at once (to allow more, raise limits.random).");

    randomness_without_end: HostCall, "requests 64 KiB of random data forever",
        |folder| random(folder, "(loop $again (call $bytes (i64.const 65536) (i32.const 8)) (br $again))")
        => fails("memory", "The tool needed more than 128.0 MiB of memory (to allow more, raise limits.memory).");

    standard_output_in_a_loop: HostCall, "writes to standard output forever",
        |folder| stdout(folder, "(local $out i32) (local.set $out (call $stdout))
            (loop $again (call $write (local.get $out) (i32.const 1024) (i32.const 4096) (i32.const 8)) (br $again))")
        => fails("output", "The tool wrote more than 8.0 MiB to standard output and standard error (to allow more, raise limits.stdio).");

    empty_writes_in_a_loop: HostCall, "writes zero bytes to standard output forever",
        |folder| stdout(folder, "(local $out i32) (local.set $out (call $stdout))
            (loop $again (call $write (local.get $out) (i32.const 0) (i32.const 0) (i32.const 8)) (br $again))")
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    asking_to_write_in_a_loop: HostCall, "queries forever how much it may write",
        |folder| stdout(folder, "(local $out i32) (local.set $out (call $stdout))
            (loop $again (call $check (local.get $out) (i32.const 8)) (br $again))")
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    a_flood_on_standard_error: HostCall, "writes 100 MB to standard error", |folder| put(folder, hostile())
        => tool("flood_stderr", r#"{"n": 100000000}"#)
        => fails("output", "The tool wrote more than 8.0 MiB to standard output and standard error (to allow more, raise limits.stdio).");

    a_flood_of_log_lines: HostCall, "logs 10,000 lines of 1 KiB", |folder| put(folder, hostile())
        => tool("log_flood", r#"{"n": 10000}"#) => answers("")
        => also(|run| {
            run.server.log.wait_for("The tool logged more than 64.0 KiB; further lines are dropped (to allow more, raise limits.log).");
            let kept = run.server.log.text().matches(" xxx").count();
            assert!((60..70).contains(&kept), "{kept} lines of the flood are in the log");
        });

    sleeping: HostCall, "sleeps for an hour", |folder| put(folder, hostile()) => tool("sleep_hour", "{}")
        => grant(SHORT) => fails("deadline", LATE);

    sleeping_on_a_pollable: HostCall, "waits forever for a clock that never fires",
        |folder| poll(folder, "(call $block (call $subscribe (i64.const -1)))")
        => grant(SHORT) => fails("deadline", LATE);

    pollables_in_a_loop: HostCall, "waits for an event that is already due, repeatedly",
        |folder| poll(folder, "(local $p i32) (loop $again (local.set $p (call $subscribe (i64.const 0)))
            (call $block (local.get $p)) (call $drop (local.get $p)) (br $again))")
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    polling_nothing: HostCall, "polls an empty list",
        |folder| poll(folder, "(call $poll (i32.const 0) (i32.const 0) (i32.const 8))")
        => fails("trap", "The tool crashed: empty poll list.");

    polling_too_much: HostCall, "polls a list of 4,000,000,000 items",
        |folder| poll(folder, "(call $poll (i32.const 0) (i32.const -1) (i32.const 8))")
        => fails("trap", "The tool crashed: list pointer/length out of bounds of memory.");

    leaking_handles: HostCall, "opens handles and never closes them",
        |folder| poll(folder, "(loop $again (drop (call $subscribe (i64.const 0))) (br $again))")
        => fails("limit", "The tool held more than 1,000 host resources open (to allow more, raise limits.handles).");

    invented_handles: HostCall, "uses a handle that it does not have",
        |folder| poll(folder, "(call $block (i32.const 77))")
        => fails("trap", "The tool crashed: unknown handle index 77; this breaks a rule of the component model, so it is a \
            mistake in the plugin or in the tool that made it, not in the server.");

    dropping_a_handle_twice: HostCall, "closes a handle twice",
        |folder| poll(folder, "(local $p i32) (local.set $p (call $subscribe (i64.const 0)))
            (call $drop (local.get $p)) (call $drop (local.get $p))")
        => fails("trap", "The tool crashed: unknown handle index 1; this breaks a rule of the component model, so it is a \
            mistake in the plugin or in the tool that made it, not in the server.");

    progress_without_end: HostCall, "reports progress forever",
        |folder| put(folder, calls(PROGRESS, &[("progress", "(param f64 i32 f64 i32 i32 i32)")],
            "(loop $again (call $progress (f64.const 1) (i32.const 0) (f64.const 0) (i32.const 0) (i32.const 0)
               (i32.const 0)) (br $again))").build())
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    progress_that_is_no_number: HostCall, "reports progress of NaN, of infinity, and in decreasing order",
        |folder| put(folder, hostile()) => tool("progress_zigzag", "{}") => answers("")
        => also(|run| {
            let id = run.server.start_call_with_progress("progress_zigzag", serde_json::json!({}));
            run.server.finish_call(id);
            let said = run.server.take_notifications("notifications/progress");
            let said: Vec<f64> = said.iter().map(|params| params["progress"].as_f64().unwrap()).collect();
            assert_eq!(said, [1.0, 3.0, 4.0]);
        });
}
