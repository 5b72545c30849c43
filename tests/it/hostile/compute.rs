//! Guests that compute too much or crash.

use super::put;
use crate::support::{Folder, TinyComponent, hostile};

/// Little enough to be used up within the time of a call, however busy the machine is.
const LITTLE: &str = "[limits]\nfuel = 500000000";
const OUT_OF_LITTLE: &str =
    "The tool used all of its fuel, 500,000,000 instructions (to allow more, raise limits.fuel).";

const SPIN: &str = "(loop $for-ever (br $for-ever))";

/// Writes a component whose calls run this code.
fn put_with_body(folder: &Folder, code: &str) {
    put(folder, TinyComponent::new(&["a"]).before_call(code).build());
}

/// Like [`put_with_body`], with an addition to the core module that the code needs.
fn put_with_core(folder: &Folder, core: &str, body: &str) {
    put(
        folder,
        TinyComponent::new(&["a"])
            .with_core_items(core)
            .before_call(body)
            .build(),
    );
}

cases! {
    a_loop_in_a_call: Call, "computes forever", |folder| put_with_body(folder, SPIN)
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    a_loop_in_list_tools: ListTools, "computes forever when it lists its tools",
        |folder| put(folder, TinyComponent::new(&["a"]).before_list(SPIN).build())
        => refused("listing what it offers failed: it used all of its fuel, 1,000,000,000 instructions");

    a_loop_in_a_start_function: Load, "computes forever in a start function",
        |folder| put(folder, TinyComponent::new(&["a"]).with_core_items(&format!("(start $s) (func $s {SPIN})")).build())
        => refused("listing what it offers failed: it used all of its fuel, 1,000,000,000 instructions");

    a_loop_with_all_fuel: Call, "computes forever, with more fuel than it can use",
        |folder| put_with_body(folder, SPIN)
        => grant("[limits]\nfuel = 1000000000000\ntimeout = \"300ms\"")
        => fails("deadline", "The tool did not finish within 300ms (to allow more, raise limits.timeout).");

    filling_memory_in_a_loop: Call, "fills 60 MiB of memory repeatedly",
        |folder| put_with_core(folder, "(memory $big 960)",
            "(loop $more (memory.fill $big (i32.const 0) (i32.const 7) (i32.const 62914560)) (br $more))")
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    recursion: Call, "recurses forever",
        |folder| put_with_core(folder,
            "(func $r (param i32) (result i32) (i32.add (call $r (local.get 0)) (i32.const 1)))",
            "(drop (call $r (i32.const 1)))")
        => fails("stack", "The tool overflowed its stack of 512.0 KiB (to allow more, raise server.stack_size, \
            which applies to all plugins).");

    indirect_recursion: Call, "recurses forever through a table, with two functions",
        |folder| put_with_core(folder,
            "(type $f (func (param i32) (result i32))) (table 2 2 funcref) (elem (i32.const 0) $one $two)
             (func $one (type $f) (i32.mul (i32.const 3) (call_indirect (type $f) (local.get 0) (i32.const 1))))
             (func $two (type $f) (i32.mul (i32.const 5) (call_indirect (type $f) (local.get 0) (i32.const 0))))",
            "(drop (call $one (i32.const 1)))")
        => fails("stack", "The tool overflowed its stack of 512.0 KiB (to allow more, raise server.stack_size, \
            which applies to all plugins).");

    recursion_in_list_tools: ListTools, "recurses forever when it lists its tools",
        |folder| put(folder, TinyComponent::new(&["a"]).with_core_items("(func $r (call $r) (call $r))").before_list("(call $r)").build())
        => refused("listing what it offers failed: it overflowed its stack of 512.0 KiB");

    a_panic: Call, "panics", |folder| put(folder, hostile()) => tool("panic", "{}")
        => fails("trap", "The tool crashed: thread '<unnamed>' (1) panicked at …:\nas asked (wasm trap: wasm \
            `unreachable` instruction executed).");

    an_exit: Call, "exits with code 1", |folder| put(folder, hostile()) => tool("exit", "{}")
        => fails("trap", "The tool crashed: exited with code 1.");

    an_exit_with_words: Call, "exits with code 1 and a message",
        |folder| put(folder, hostile()) => tool("exit_with_words", "{}") => fails("none", "no such city");

    unreachable: Call, "executes `unreachable`", |folder| put_with_body(folder, "unreachable")
        => fails("trap", "The tool crashed: wasm trap: wasm `unreachable` instruction executed.");

    unreachable_at_start: Load, "crashes in a start function",
        |folder| put(folder, TinyComponent::new(&["a"]).with_core_items("(start $s) (func $s unreachable)").build())
        => refused("listing what it offers failed: it crashed: wasm trap: wasm `unreachable` instruction executed");

    division_by_zero: Call, "divides by zero", |folder| put_with_body(folder, "(drop (i32.div_u (i32.const 1) (i32.const 0)))")
        => fails("trap", "The tool crashed: wasm trap: integer divide by zero.");

    integer_overflow: Call, "divides with an overflow",
        |folder| put_with_body(folder, "(drop (i32.div_s (i32.const 0x80000000) (i32.const -1)))")
        => fails("trap", "The tool crashed: wasm trap: integer overflow.");

    a_load_out_of_bounds: Call, "reads outside its memory",
        |folder| put_with_body(folder, "(drop (i64.load offset=4294967288 (i32.const -1)))")
        => fails("trap", "The tool crashed: wasm trap: out of bounds memory access.");

    a_store_out_of_bounds: Call, "writes outside its memory",
        |folder| put_with_body(folder, "(i64.store (i32.const -1) (i64.const -1))")
        => fails("trap", "The tool crashed: wasm trap: out of bounds memory access.");

    a_null_call: Call, "calls a function that does not exist",
        |folder| put_with_core(folder, "(type $f (func)) (table 1 funcref)", "(call_indirect (type $f) (i32.const 0))")
        => fails("trap", "The tool crashed: wasm trap: uninitialized element.");

    a_call_beyond_the_table: Call, "calls a function beyond the end of a table",
        |folder| put_with_core(folder, "(type $f (func)) (table 1 funcref)", "(call_indirect (type $f) (i32.const -1))")
        => fails("trap", "The tool crashed: wasm trap: undefined element: out of bounds table access.");

    a_call_of_another_type: Call, "calls a function with the wrong type",
        |folder| put_with_core(folder,
            "(type $f (func (param i64))) (table 1 funcref) (elem (i32.const 0) $g) (func $g)",
            "(call_indirect (type $f) (i64.const 1) (i32.const 0))")
        => fails("trap", "The tool crashed: wasm trap: indirect call type mismatch.");
}
