//! Guests whose results violate the contract or are too large.

use std::fmt::Write as _;

use super::{lists_at, put};
use crate::support::{Folder, TinyComponent, hostile};

/// Writes a component whose result is at 16, with one text block at 64 whose text is at 1024. Then
/// these words are written to these addresses.
fn returns(folder: &Folder, words: &[(u32, u32)]) {
    put(
        folder,
        TinyComponent::new(&["a"])
            .before_call(&format!("{} (return (i32.const 16))", stores(words)))
            .build(),
    );
}

fn stores(words: &[(u32, u32)]) -> String {
    let fine = [(20, 64), (24, 1), (68, 1), (72, 1024), (76, 1)];
    fine.iter()
        .chain(words)
        .fold(String::new(), |mut code, (at, word)| {
            let _ = write!(code, "(i32.store (i32.const {at}) (i32.const {word}))");
            code
        })
}

/// Writes a component that returns an invalid pointer.
fn returns_pointer(folder: &Folder, pointer: i64) {
    put(
        folder,
        TinyComponent::new(&["a"])
            .before_call(&format!("(return (i32.const {pointer}))"))
            .build(),
    );
}

/// Writes a component whose allocator runs this body when it receives the arguments.
fn allocates(folder: &Folder, body: &str) {
    let core = format!("(func (export \"bad\") (param i32 i32 i32 i32) (result i32) {body})");
    put(
        folder,
        TinyComponent::new(&["a"])
            .with_core_items(&core)
            .build_edited(&[
                (
                    "(func $call (param",
                    "(alias core export $main \"bad\" (core func $bad)) (func $call (param",
                ),
                (
                    "(canon lift (core func $main-call) (memory $memory) (realloc $realloc))",
                    "(canon lift (core func $main-call) (memory $memory) (realloc $bad))",
                ),
            ]),
    );
}

fn structured(folder: &Folder, json: &str) {
    put(
        folder,
        TinyComponent::new(&["a"]).with_structured(json).build(),
    );
}

/// Writes a component whose call returns only structured content, a list of this many empty lists.
fn lists(folder: &Folder, lists: usize) {
    let (json, length) = lists_at(65536, b"[", lists, b"] ");
    structured_at(folder, &json, length);
}

/// Like [`lists`], with a list of this many objects.
fn objects(folder: &Folder, objects: usize) {
    let end = 65536 + 8 + 8 * objects;
    let code = format!(
        "(i64.store (i32.const 65536) (i64.const 0x5b20202020202020)) (local.set $at (i32.const 65544))
         (loop $more
           (i64.store (local.get $at) (i64.const 0x2c7d303a2261227b))
           (local.set $at (i32.add (local.get $at) (i32.const 8)))
           (br_if $more (i32.lt_u (local.get $at) (i32.const {end}))))
         (i64.store (i32.const {}) (i64.const 0x5d20202020202020))",
        end - 1
    );
    structured_at(folder, &code, end + 7 - 65536);
}

/// Writes a component whose call returns the JSON that `code` writes to address 65536.
fn structured_at(folder: &Folder, code: &str, length: usize) {
    put(
        folder,
        TinyComponent::new(&["a"])
            .before_call(&format!(
                "(local $at i32) (drop (memory.grow (i32.const 250))) {code}
                 (i32.store (i32.const 28) (i32.const 1)) (i32.store (i32.const 32) (i32.const 65536))
                 (i32.store (i32.const 36) (i32.const {length})) (return (i32.const 16))"
            ))
            .build(),
    );
}

const LARGE: &str = "[limits]\noutput = \"16MiB\"";

/// Little enough to be used up within the time of a call, however busy the machine is.
const LITTLE: &str = "[limits]\nfuel = 500000000";
const OUT_OF_LITTLE: &str =
    "The tool used all of its fuel, 500,000,000 instructions (to allow more, raise limits.fuel).";

cases! {
    bad_utf8: Call, "returns text that is not UTF-8",
        |folder| returns(folder, &[(1024, 0xfffe_fdfc), (76, 4)])
        => fails("trap", "The tool crashed: invalid utf-8 sequence of 1 bytes from index 0.");

    a_list_beyond_memory: Call, "returns a list outside its memory",
        |folder| returns(folder, &[(20, 0x7fff_fff8)])
        => fails("trap", "The tool crashed: list pointer/length out of bounds of memory.");

    a_list_that_overlaps_the_end: Call, "returns a list that starts inside its memory and ends outside",
        |folder| returns(folder, &[(24, 1000)])
        => fails("trap", "The tool crashed: list pointer/length out of bounds of memory.");

    an_unaligned_list: Call, "returns a list at an unaligned address", |folder| returns(folder, &[(20, 65)])
        => fails("trap", "The tool crashed: list pointer is not aligned.");

    a_list_without_end: Call, "returns a list of 4,294,967,295 blocks", |folder| returns(folder, &[(24, u32::MAX)])
        => fails("trap", "The tool crashed: list pointer/length out of bounds of memory.");

    a_string_without_end: Call, "returns a text of 4,294,967,295 bytes", |folder| returns(folder, &[(76, u32::MAX)])
        => fails("trap", "The tool crashed: string pointer/length out of bounds of memory.");

    a_kind_that_is_none: Call, "returns a content block of an unknown kind", |folder| returns(folder, &[(64, 9)])
        => fails("trap", "The tool crashed: unexpected discriminant: 9.");

    a_variant_that_is_none: Call, "returns neither success nor failure", |folder| returns(folder, &[(16, 7)])
        => fails("trap", "The tool crashed: invalid expected discriminant.");

    an_option_that_is_none: Call, "returns an option with an invalid discriminant",
        |folder| returns(folder, &[(68, 200)]) => fails("trap", "The tool crashed: invalid option discriminant.");

    a_pointer_beyond_memory: Call, "returns a result outside its memory",
        |folder| returns_pointer(folder, -16) => fails("trap", "The tool crashed: pointer out of bounds of memory.");

    an_unaligned_pointer: Call, "returns a result at an unaligned address", |folder| returns_pointer(folder, 17)
        => fails("trap", "The tool crashed: return pointer not aligned; this breaks a rule of the component model, so it is a \
            mistake in the plugin or in the tool that made it, not in the server.");

    an_allocator_that_lies: Call, "allocates the arguments outside its memory",
        |folder| allocates(folder, "(i32.const -8)")
        => fails("trap", "The tool crashed: realloc return: beyond end of memory.");

    an_allocator_that_crashes: Call, "crashes when it receives the arguments",
        |folder| allocates(folder, "unreachable")
        => fails("trap", "The tool crashed: wasm trap: wasm `unreachable` instruction executed.");

    an_allocator_that_never_ends: Call, "computes forever when it receives the arguments",
        |folder| allocates(folder, "(loop $again (br $again)) (i32.const 0)")
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    fifty_megabytes: Call, "returns a text of 50 MB",
        |folder| put(folder, TinyComponent::new(&["a"]).before_call(&format!(
            "(drop (memory.grow (i32.const 800))) {} (return (i32.const 16))", stores(&[(76, 50_000_000)]))).build())
        => fails("output", "The tool passed more than 16.0 MiB to the host in one call (to allow more, raise limits.transfer).");

    a_million_blocks: Call, "returns a million content blocks",
        |folder| put(folder, TinyComponent::new(&["a"]).before_call(&format!(
            "(drop (memory.grow (i32.const 2000))) {} (return (i32.const 16))",
            stores(&[(20, 65_536), (24, 1_000_000)]))).build())
        => grant("[limits]\nmemory = \"256MiB\"")
        => fails("output", "The tool passed more than 16.0 MiB to the host in one call (to allow more, raise limits.transfer).");

    ten_thousand_blocks: Call, "returns 10,000 empty content blocks", |folder| put(folder, hostile())
        => tool("many_items", r#"{"n": 10000}"#)
        => fails("output", "The tool's result has more than 1,000 content blocks (to allow more, raise limits.output_items).");

    two_megabytes: Call, "returns a text of 2 MB", |folder| put(folder, hostile())
        => tool("big_output", r#"{"n": 2000000}"#) => grant("[limits]\noversize = \"error\"")
        => fails("output", "The tool's result is larger than 1.0 MiB (to allow more, raise limits.output).");

    two_megabytes_with_a_link: Call, "returns a text of 2 MB, of which the client gets the first", |folder| put(folder, hostile())
        => tool("big_output", r#"{"n": 2000000}"#) => may_leave(8)
        => answers("xxx…");

    deep_json: Call, "returns structured content that is nested 100,000 levels deep",
        |folder| structured(folder, &format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)))
        => fails("invalid-output", "The tool returned invalid output: structured is not valid JSON: recursion limit exceeded \
            at \
            line 1 column 128.");

    many_values: Call, "returns structured content with five million values", |folder| lists(folder, 5_000_000)
        => grant(LARGE)
        => fails("output", "The tool's result needs more than 128.0 MiB of memory when its JSON is parsed (to allow more, \
            raise limits.memory).");

    as_many_values_as_fit: Call, "returns structured content with a million values", |folder| lists(folder, 1_000_000)
        => grant(LARGE) => answers("[[],[],…,[]]");

    as_many_objects_as_fit: Call, "returns structured content with 150,000 objects", |folder| objects(folder, 150_000)
        => may_leave(80) => grant(LARGE) => answers(r#"[{"a":0},…,{"a":0}]"#);

    double_keys: Call, "returns structured content with a duplicate key: the last one counts",
        |folder| structured(folder, r#"{"key": "first", "key": "last"}"#)
        => answers("fine")
        => also(|run| assert_eq!(run.result["structuredContent"], serde_json::json!({"key": "last"})));

    a_number_without_room: Call, "returns structured content with a number that is out of range",
        |folder| structured(folder, "[1e999]")
        => fails("invalid-output", "The tool returned invalid output: structured is not valid JSON: number out of range at \
            line 1 column 6.");

    no_number: Call, "returns structured content with NaN", |folder| structured(folder, r#"{"n": NaN}"#)
        => fails("invalid-output", "The tool returned invalid output: structured is not valid JSON: expected value at line 1 \
            column 7.");

    a_lone_surrogate: Call, "returns structured content with a lone surrogate",
        |folder| structured(folder, r#"{"n": "\ud800"}"#)
        => fails("invalid-output", "The tool returned invalid output: structured is not valid JSON: unexpected end of hex \
            escape at \
            line 1 column 14.");

    a_priority_of_nan: Call, "returns a content block with the priority NaN",
        |folder| returns(folder, &[(176, 1), (188, 0x7ff8_0000)])
        => fails("invalid-output", "The tool returned invalid output: content[0] has the priority NaN, which is not \
            between 0.0 and 1.0.");

    a_priority_of_infinity: Call, "returns a content block with an infinite priority",
        |folder| returns(folder, &[(176, 1), (188, 0x7ff0_0000)])
        => fails("invalid-output", "The tool returned invalid output: content[0] has the priority inf, which is not \
            between 0.0 and 1.0.");

    text_that_acts: Call, "returns text with terminal escapes and bidirectional overrides",
        |folder| put(folder, TinyComponent::new(&["a"]).with_text("\u{1b}[31mre\u{202e}d\u{1b}]0;title\u{7}\u{0}!").build())
        => answers("red!");

    a_broken_promise: Call, "returns structured content that does not match its output schema", |folder| put(folder, hostile())
        => tool("mismatch", "{}")
        => fails("invalid-output", "The tool returned invalid output: /n: \"seven\" is not of type \"integer\".");
}
