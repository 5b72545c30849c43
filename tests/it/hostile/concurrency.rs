//! Guests with async functions: their tasks, and the events that these wait for.

use std::fmt::Write as _;

use super::put;
use super::wasi::POLL;
use crate::support::Folder;

/// Returns a component whose async function `a` returns a number. Its core module imports `return`
/// and these functions of the host, which `canon` defines. `core` contains the functions `a` and
/// `callback`.
pub(crate) fn tasks(canon: &str, functions: &[(&str, &str)], core: &str) -> Vec<u8> {
    wat::parse_str(text(canon, functions, core)).unwrap()
}

fn text(canon: &str, functions: &[(&str, &str)], core: &str) -> String {
    let mut imported = String::new();
    let mut given = String::new();
    for (name, ty) in functions {
        let _ = write!(imported, "(import \"host\" \"{name}\" (func ${name} {ty}))");
        let _ = write!(given, "(export \"{name}\" (func ${name}))");
    }
    format!(
        r#"(component
          (core module $libc
            (memory (export "memory") 960)
            (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 65536)))
          (core instance $libc (instantiate $libc))
          (alias core export $libc "memory" (core memory $memory))
          (alias core export $libc "realloc" (core func $realloc))
          {canon}
          (core func $return (canon task.return (result u32)))
          (core module $main
            (import "libc" "memory" (memory 960))
            (import "host" "return" (func $return (param i32)))
            {imported}
            {core})
          (core instance $main (instantiate $main
            (with "libc" (instance $libc))
            (with "host" (instance (export "return" (func $return)) {given}))))
          (func (export "a") async (result u32)
            (canon lift (core func $main "a") async (callback (core func $main "callback")))))"#
    )
}

/// Returns the core function `a` with this body.
fn start_function(body: &str) -> String {
    format!(r#"(func (export "a") (result i32) {body})"#)
}

/// Returns the core function `callback` with this body.
fn callback_function(body: &str) -> String {
    format!(r#"(func (export "callback") (param i32 i32 i32) (result i32) {body})"#)
}

/// Return values of both functions: end the task, call it again at once, or wait for a set of
/// waitables.
pub(crate) const EXIT: &str = "(i32.const 0)";
pub(crate) const YIELD: &str = "(i32.const 1)";
const WAIT: &str = "(i32.or (i32.const 2) (i32.shl (call $set) (i32.const 4)))";

/// Returns `inner` in a composition with `others`: it has the imports of `imports`, which `with`
/// provides.
fn compose(others: &str, imports: &str, with: &str, inner: &str) -> Vec<u8> {
    let inner = inner.replacen("(component", &format!("(component $tool {imports}"), 1);
    let composed = format!(
        r#"(component {others} {inner} (instance $tool (instantiate $tool {with})) (export "a" (func $tool "a")))"#
    );
    wat::parse_str(composed).unwrap()
}

/// Writes a component whose task starts and continues with these bodies.
fn put_task(folder: &Folder, begin: &str, then: &str) {
    put_task_with(folder, "", &[], begin, then);
}

/// Like [`put_task`], with functions of the host.
fn put_task_with(folder: &Folder, canon: &str, functions: &[(&str, &str)], begin: &str, then: &str) {
    put(
        folder,
        tasks(canon, functions, &(start_function(begin) + &callback_function(then))),
    );
}

const SET: &str = "(core func $set (canon waitable-set.new))";

/// Writes a component whose task repeats this body.
fn put_looping_task(folder: &Folder, canon: &str, functions: &[(&str, &str)], body: &str) {
    put_task_with(
        folder,
        canon,
        functions,
        &format!("(loop $more {body} (br $more)) unreachable"),
        "unreachable",
    );
}

/// Another component, whose async function `w` waits for ever, or cannot even start after `stop`.
const WORKER: &str = r#"
    (component $worker
      (core func $set (canon waitable-set.new))
      (core func $inc (canon backpressure.inc))
      (core module $m
        (import "host" "set" (func $set (result i32)))
        (import "host" "inc" (func $inc))
        (func (export "w") (result i32) (i32.or (i32.const 2) (i32.shl (call $set) (i32.const 4))))
        (func (export "callback") (param i32 i32 i32) (result i32) unreachable)
        (func (export "stop") (call $inc)))
      (core instance $i (instantiate $m (with "host" (instance (export "set" (func $set)) (export "inc" (func $inc))))))
      (func (export "w") async (canon lift (core func $i "w") async (callback (core func $i "callback"))))
      (func (export "stop") (canon lift (core func $i "stop"))))
    (instance $worker (instantiate $worker))"#;

/// Writes a component whose task repeatedly calls the functions `$w` and `$stop` of [`WORKER`].
fn put_worker_calls(folder: &Folder, body: &str) {
    let (imports, with) = (
        r#"(import "w" (func $w async)) (import "stop" (func $stop))"#,
        r#"(with "w" (func $worker "w")) (with "stop" (func $worker "stop"))"#,
    );
    let canon =
        "(core func $w (canon lower (func $w) async)) (core func $stop (canon lower (func $stop)))";
    let core =
        start_function(&format!("(loop $more {body} (br $more)) unreachable")) + &callback_function("unreachable");
    let inner = text(canon, &[("w", "(result i32)"), ("stop", "")], &core);
    put(folder, compose(WORKER, imports, with, &inner));
}

/// Writes a component whose task starts that function and cancels its task, which then crashes.
fn put_cancelling_task(folder: &Folder) {
    let (imports, with) = (
        r#"(import "w" (func $w async))"#,
        r#"(with "w" (func $worker "w"))"#,
    );
    let canon =
        "(core func $w (canon lower (func $w) async)) (core func $cancel (canon subtask.cancel))";
    let cancel = "(drop (call $cancel (i32.shr_u (call $w) (i32.const 4))))";
    let core =
        start_function(&format!("{cancel} (call $return (i32.const 1)) {EXIT}")) + &callback_function("unreachable");
    let inner = text(
        canon,
        &[
            ("w", "(result i32)"),
            ("cancel", "(param i32) (result i32)"),
        ],
        &core,
    );
    put(folder, compose(WORKER, imports, with, &inner));
}

/// Returns a component that calls the first of `count` others, each of which fills its stack and
/// then calls the next one. The last one waits for ever.
fn component_chain(count: usize) -> Vec<u8> {
    let mut others = r#"
        (component $last
          (core func $set (canon waitable-set.new))
          (core module $m
            (import "host" "set" (func $set (result i32)))
            (func (export "f") (result i32) (i32.or (i32.const 2) (i32.shl (call $set) (i32.const 4))))
            (func (export "callback") (param i32 i32 i32) (result i32) unreachable))
          (core instance $i (instantiate $m (with "host" (instance (export "set" (func $set))))))
          (func (export "f") async (canon lift (core func $i "f") async (callback (core func $i "callback")))))
        (component $link
          (import "f" (func $f async))
          (core func $f (canon lower (func $f)))
          (core module $m
            (import "host" "f" (func $f))
            (func $deep (param i32) (result i32)
              (if (result i32) (i32.eqz (local.get 0))
                (then (i32.const 0))
                (else (i32.add (call $deep (i32.sub (local.get 0) (i32.const 1))) (i32.const 1)))))
            (func (export "f") (result i32) (drop (call $deep (i32.const 8000))) (call $f) unreachable)
            (func (export "callback") (param i32 i32 i32) (result i32) unreachable))
          (core instance $i (instantiate $m (with "host" (instance (export "f" (func $f))))))
          (func (export "f") async (canon lift (core func $i "f") async (callback (core func $i "callback")))))
        (instance $i1 (instantiate $last))"#
        .to_owned();
    for n in 2..=count {
        let _ = write!(
            others,
            r#"(instance $i{n} (instantiate $link (with "f" (func $i{} "f"))))"#,
            n - 1
        );
    }
    let core = start_function("(call $f) unreachable") + &callback_function("unreachable");
    let inner = text(
        "(core func $f (canon lower (func $f)))",
        &[("f", "")],
        &core,
    )
    .replace(" 960)", " 1)");
    compose(
        &others,
        r#"(import "f" (func $f async))"#,
        &format!(r#"(with "f" (func $i{count} "f"))"#),
        &inner,
    )
}

/// Writes a component whose function blocks instead of returning to a callback.
fn stackful(folder: &Folder) {
    let whole = text("", &[], r#"(func (export "a")) (func (export "callback"))"#);
    put(
        folder,
        wat::parse_str(whole.replace(r#" (callback (core func $main "callback"))"#, "")).unwrap(),
    );
}

/// Returns a component whose async function returns a text.
fn returns_text(body: &str) -> Vec<u8> {
    let whole = text("", &[], &(start_function(body) + &callback_function("unreachable")));
    let whole = whole.replace(
        "(canon task.return (result u32))",
        "(canon task.return (result string) (memory $memory))",
    );
    let whole = whole.replace(
        "(func $return (param i32))",
        "(func $return (param i32 i32))",
    );
    let whole = whole.replace("async (result u32)", "async (result string)");
    wat::parse_str(whole.replace("async (callback", "(memory $memory) async (callback")).unwrap()
}

/// Returns a component whose allocator waits for an event that never comes.
fn waits_in_its_allocator() -> Vec<u8> {
    let canon = format!("{SET} (core func $wait (canon waitable-set.wait (memory $memory)))");
    let functions = [
        ("set", "(result i32)"),
        ("wait", "(param i32 i32) (result i32)"),
    ];
    let core = r#"(func (export "a") (param i32 i32) (result i32) (i32.const 0))
        (func (export "allocate") (param i32 i32 i32 i32) (result i32) (call $wait (call $set) (i32.const 8)))"#;
    let whole = text(&canon, &functions, &(core.to_owned() + &callback_function(EXIT)));
    let whole = whole.replace(
        "async (result u32)",
        r#"async (param "text" string) (result u32)"#,
    );
    let options = r#"(memory $memory) (realloc (core func $main "allocate")) async (callback"#;
    wat::parse_str(whole.replace("async (callback", options)).unwrap()
}

const STREAM: &str = "(type $bytes (stream u8))
    (core func $stream (canon stream.new $bytes))
    (core func $read (canon stream.read $bytes async (memory $memory)))
    (core func $write (canon stream.write $bytes async (memory $memory)))";
const FUTURE: &str = "(type $byte (future u8)) (core func $future (canon future.new $byte))";

/// A fifth of a second: work of the host costs fuel per nanosecond.
const LITTLE: &str = "[limits]\nfuel = 200000000";
const OUT_OF_LITTLE: &str =
    "The tool used all of its fuel, 200,000,000 instructions (to allow more, raise limits.fuel).";
const HOLDS: &str =
    "The tool held more than 1,000 host resources open (to allow more, raise limits.handles).";
const DEADLOCK: &str =
    "The tool crashed: all of its async tasks wait for events that cannot occur (deadlock).";
const SHORT: &str = "[limits]\ntimeout = \"200ms\"";
const LATE: &str = "The tool did not finish within 200ms (to allow more, raise limits.timeout).";
const SPIN: &str = "(loop $for-ever (br $for-ever)) unreachable";

rows! {
    a_task_that_computes: Call, "computes forever in an async function", |folder| put_task(folder, SPIN, "unreachable")
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    a_callback_that_computes: Call, "computes forever in its callback", |folder| put_task(folder, YIELD, SPIN)
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    a_task_with_all_fuel: Call, "computes forever in an async function, with more fuel than it can use",
        |folder| put_task(folder, SPIN, "unreachable")
        => grant("[limits]\nfuel = 1000000000000\ntimeout = \"300ms\"")
        => fails("deadline", "The tool did not finish within 300ms (to allow more, raise limits.timeout).");

    a_task_that_yields: Call, "yields forever, and does nothing else", |folder| put_task(folder, YIELD, YIELD)
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    a_task_that_yields_in_the_middle: Call, "yields forever in the middle of an async function",
        |folder| put_looping_task(folder, "(core func $yield (canon thread.yield))", &[("yield", "(result i32)")],
            "(drop (call $yield))")
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    a_task_that_goes_on: Call, "returns a result, and yields forever",
        |folder| put_task(folder, &format!("(call $return (i32.const 7)) {YIELD}"), YIELD)
        => answers(r#"{"result":7}"#);

    a_task_that_sleeps: HostCall, "sleeps for an hour in an async function",
        |folder| put_looping_task(folder, POLL, &[("subscribe", "(param i64) (result i32)"), ("block", "(param i32)")],
            "(call $block (call $subscribe (i64.const 3600000000000)))")
        => grant(SHORT) => fails("deadline", LATE);

    a_subtask_of_the_host: Compile, "calls the host asynchronously, for which WASI 0.2 has no functions",
        |folder| put_looping_task(folder, &POLL.replace("(canon lower (func $block))", "(canon lower (func $block) async)"),
            &[("subscribe", "(param i64) (result i32)"), ("block", "(param i32) (result i32)")],
            "(drop (call $block (call $subscribe (i64.const 3600000000000))))")
        => refused("invalid component: the `async` canonical option requires an async function type (at offset …)");

    a_deadlock: Call, "waits for an event that never comes",
        |folder| put_task_with(folder, SET, &[("set", "(result i32)")], WAIT, "unreachable")
        => fails("trap", DEADLOCK);

    a_deadlock_in_the_middle: Call, "waits in the middle of an async function for an event that never comes",
        |folder| put_looping_task(folder, &format!("{SET} (core func $wait (canon waitable-set.wait (memory $memory)))"),
            &[("set", "(result i32)"), ("wait", "(param i32 i32) (result i32)")],
            "(drop (call $wait (call $set) (i32.const 8)))")
        => fails("trap", DEADLOCK);

    a_wait_in_a_start_function: Call, "waits in a start function for an event that never comes",
        |folder| put(folder, tasks(&format!("{SET} (core func $wait (canon waitable-set.wait (memory $memory)))"),
            &[("set", "(result i32)"), ("wait", "(param i32 i32) (result i32)")],
            &format!("{} {} (start $s) (func $s (drop (call $wait (call $set) (i32.const 8))))", start_function(EXIT), callback_function(EXIT))))
        => fails("trap", "The tool crashed: wasm trap: …");

    a_wait_in_an_allocator: Call, "waits when it should allocate memory for an argument",
        |folder| put(folder, waits_in_its_allocator()) => tool("a", r#"{"text": "x"}"#)
        => fails("trap", "The tool crashed: wasm trap: …");

    a_large_result: Call, "returns a text of 30 MiB from an async function",
        |folder| put(folder, returns_text("(call $return (i32.const 0) (i32.const 31457280)) (i32.const 0)"))
        => fails("output", "The tool passed more than 16.0 MiB …");

    no_result: Call, "ends an async function without a result", |folder| put_task(folder, EXIT, "unreachable")
        => fails("trap", "The tool crashed: wasm trap: async-lifted export failed to produce a result; this breaks a \
            rule of the component model, so it is a mistake in the plugin or in the tool that made it, not in the server.");

    two_results: Call, "returns two results",
        |folder| put_task(folder, &format!("(call $return (i32.const 1)) (call $return (i32.const 2)) {EXIT}"), "unreachable")
        => fails("trap", "The tool crashed: wasm trap: `task.return` or `task.cancel` called more than once for \
            current task; this breaks a rule of the component model, so it is a mistake in the plugin or in the tool that \
            made it, not in the server.");

    a_cancelled_task: Call, "acknowledges a cancellation that did not happen",
        |folder| put_task_with(folder, "(core func $cancel (canon task.cancel))", &[("cancel", "")],
            &format!("(call $cancel) {EXIT}"), "unreachable")
        => fails("trap", "The tool crashed: wasm trap: `task.cancel` called by task which has not been cancelled; this \
            breaks a rule of the component model, so it is a mistake in the plugin or in the tool that made it, not in the server.");

    an_unknown_answer: Call, "returns an invalid code to its caller",
        |folder| put_task(folder, "(i32.const 15)", "unreachable")
        => fails("trap", "The tool crashed: wasm trap: …");

    a_trap_in_a_callback: Call, "crashes in its callback", |folder| put_task(folder, YIELD, "unreachable")
        => fails("trap", "The tool crashed: wasm trap: wasm `unreachable` instruction executed.");

    recursion_in_a_callback: Call, "recurses forever in its callback",
        |folder| put(folder, tasks("", &[], &format!(
            "{} {} (func $r (param i32) (result i32) (i32.add (call $r (local.get 0)) (i32.const 1)))",
            start_function(YIELD), callback_function("(call $r (i32.const 1))"))))
        => fails("stack", "The tool overflowed its stack of 512.0 KiB (to allow more, raise server.stack_size, \
            which applies to all plugins).");

    growth_in_callbacks: Call, "grows its memory in each callback, and crashes if it cannot",
        |folder| put_task(folder, YIELD, &format!(
            "(if (i32.eq (memory.grow (i32.const 16)) (i32.const -1)) (then unreachable)) {YIELD}"))
        => fails("memory", "The tool needed more than 128.0 MiB of memory (to allow more, raise limits.memory).");

    subtasks: Call, "starts tasks that never end, up to the limit",
        |folder| put_worker_calls(folder, "(drop (call $w))") => fails("limit", HOLDS);

    subtasks_that_cannot_begin: Call, "starts tasks in a component with backpressure, up to the limit",
        |folder| put_worker_calls(folder, "(call $stop) (drop (call $w))") => fails("limit", HOLDS);

    a_cancelled_subtask: Call, "cancels a task that it started, which crashes when it is notified", put_cancelling_task
        => fails("trap", "The tool crashed: wasm trap: wasm `unreachable` instruction executed.");

    waitable_sets: Call, "makes waitable sets, up to the limit",
        |folder| put_looping_task(folder, SET, &[("set", "(result i32)")], "(drop (call $set))") => fails("limit", HOLDS);

    streams: Call, "makes streams, up to the limit",
        |folder| put_looping_task(folder, STREAM, &[("stream", "(result i64)")], "(drop (call $stream))") => fails("limit", HOLDS);

    futures: Call, "makes futures, up to the limit",
        |folder| put_looping_task(folder, FUTURE, &[("future", "(result i64)")], "(drop (call $future))") => fails("limit", HOLDS);

    // Both ends of the stream belong to the guest: 30 MiB are copied when the second operation
    // starts.
    copies: Call, "sends itself 30 MiB through a stream, repeatedly",
        |folder| put(folder, tasks(STREAM,
            &[("stream", "(result i64)"), ("read", "(param i32 i32 i32) (result i32)"),
              ("write", "(param i32 i32 i32) (result i32)")],
            &format!("{} {}", start_function("(local $ends i64)
                (loop $more
                  (local.set $ends (call $stream))
                  (drop (call $read (i32.wrap_i64 (local.get $ends)) (i32.const 0) (i32.const 31457280)))
                  (drop (call $write (i32.wrap_i64 (i64.shr_u (local.get $ends) (i64.const 32)))
                    (i32.const 31457280) (i32.const 31457280)))
                  (br $more))
                unreachable"), callback_function("unreachable"))))
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    stacks: Call, "consists of 16 components, fills the stack of each, and waits in all of them",
        |folder| put(folder, component_chain(15)) => fails("trap", DEADLOCK);

    stacks_without_memory: Call, "consists of 16 components, whose stacks need more than the memory of a call",
        |folder| put(folder, component_chain(15))
        => grant("[limits]\nmemory = \"8MiB\"")
        => fails("memory", "The tool needed more than 8.0 MiB of memory (to allow more, raise limits.memory).");

    more_stacks: Compile, "consists of 17 components with functions, some of which are async",
        |folder| put(folder, component_chain(16))
        => refused("has async functions, and is composed of 17 components with functions, but at most 16 are allowed");

    a_stackful_function: Compile, "has a function that can wait anywhere, with as many stacks as tasks", stackful
        => refused("invalid component: …async stackful…");

    unwanted: Compile, "has an async function when the operator has disabled them", |folder| put_task(folder, EXIT, EXIT)
        => config("[engine]\nasync = false")
        => refused("has async functions, and engine.async is false (to run it, set engine.async = true; componentize-qjs \
            builds it without them with --sync)");
}
