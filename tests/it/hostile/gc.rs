//! Guests that use garbage-collected objects and exceptions.

use super::put;
use crate::support::{Folder, TinyComponent};

/// Little enough to be used up within the time of a call, however busy the machine is.
const LITTLE: &str = "[limits]\nfuel = 200000000";
const OUT_OF_LITTLE: &str =
    "The tool used all of its fuel, 200,000,000 instructions (to allow more, raise limits.fuel).";

const ENDLESS: &str = "[limits]\nfuel = 1000000000000\ntimeout = \"300ms\"";
const LATE: &str = "The tool did not finish within 300ms (to allow more, raise limits.timeout).";

const OUT_OF_MEMORY: &str =
    "The tool needed more than 128.0 MiB of memory (to allow more, raise limits.memory).";

/// A linked list: each node refers to the next one.
const LIST: &str = "(type $node (struct (field (ref null $node)) (field i64)))
    (global $list (mut (ref null $node)) (ref.null $node))
    (func $more (param $count i32)
      (loop $again
        (global.set $list (struct.new $node (global.get $list) (i64.const 7)))
        (br_if $again (local.tee $count (i32.sub (local.get $count) (i32.const 1))))))
    (func $garbage (loop $again (drop (struct.new $node (ref.null $node) (i64.const 7))) (br $again)))";

/// Writes a component with this in its core module, whose calls run this body.
fn put_with_core(folder: &Folder, core: &str, body: &str) {
    put(
        folder,
        TinyComponent::new(&["a"])
            .with_core_items(core)
            .before_call(body)
            .build(),
    );
}

/// Like [`put_with_core`], with an exception that has no members.
fn put_with_exception(folder: &Folder, core: &str, body: &str) {
    put_with_core(folder, &format!("(tag $e) {core}"), body);
}

/// Like [`put_with_core`], with a linked list.
fn put_with_list(folder: &Folder, core: &str, body: &str) {
    put_with_core(folder, &format!("{LIST} {core}"), body);
}

/// Returns code that repeats `code` for ever, whatever is thrown or fails meanwhile.
fn catching_loop(code: &str) -> String {
    format!("(loop $again (block $caught (try_table (catch_all $caught) {code})) (br $again))")
}

/// Returns `depth` types, each of which extends the previous one.
fn hierarchy(depth: usize) -> String {
    let extended = |n: usize| format!("(type $t{n} (sub $t{} (struct (field i32))))", n - 1);
    format!(
        "(type $t0 (sub (struct (field i32)))) {}",
        (1..depth).map(extended).collect::<String>()
    )
}

cases! {
    garbage: Call, "makes garbage forever", |folder| put_with_list(folder, "", "(call $garbage)")
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    garbage_on_time: Call, "makes garbage forever, with more fuel than it can use",
        |folder| put_with_list(folder, "", "(call $garbage)") => grant(ENDLESS) => fails("deadline", LATE);

    garbage_when_it_lists: ListTools, "makes garbage forever when it lists its tools",
        |folder| put(folder, TinyComponent::new(&["a"]).with_core_items(LIST).before_list("(call $garbage)").build())
        => refused("listing what it offers failed: it used all of its fuel, 1,000,000,000 instructions");

    garbage_in_a_full_heap: Call, "fills its heap with a list, and then makes garbage forever",
        |folder| put_with_list(folder, "", "(call $more (i32.const 1500000)) (call $garbage)")
        => grant(ENDLESS) => fails("deadline", LATE);

    garbage_in_a_full_heap_for_fuel: Call, "fills its heap with a list, and then makes garbage forever, with little fuel",
        |folder| put_with_list(folder, "", "(call $more (i32.const 1500000)) (call $garbage)")
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    a_list_to_the_limit: Call, "makes a list that grows forever", |folder| put_with_list(folder, "", "(call $more (i32.const 0))")
        => fails("memory", OUT_OF_MEMORY);

    a_list_when_it_lists: ListTools, "makes a list that grows forever when it lists its tools",
        |folder| put(folder, TinyComponent::new(&["a"]).with_core_items(LIST).before_list("(call $more (i32.const 0))").build())
        => refused("listing what it offers failed: it needed more than 128.0 MiB of memory");

    a_list_and_a_large_memory: Call, "grows its memory by 100 MiB, and makes a list that grows forever",
        |folder| put_with_list(folder, "(memory $big 0)", "(drop (memory.grow $big (i32.const 1600))) (call $more (i32.const 0))")
        => fails("memory", OUT_OF_MEMORY);

    a_heap_without_room: Call, "makes a list when the call has no memory for it",
        |folder| put_with_list(folder, "", "(call $more (i32.const 1000))")
        => grant("[limits]\nmemory = \"1MiB\"")
        => fails("memory", "The tool needed more than 1.0 MiB of memory (to allow more, raise limits.memory).");

    a_crash_with_a_full_heap: Call, "fills its heap with a list, drops it, and crashes",
        |folder| put_with_list(folder, "",
            "(call $more (i32.const 1500000)) (global.set $list (ref.null $node)) (call $more (i32.const 1500000)) unreachable")
        => fails("trap", "The tool crashed: wasm trap: wasm `unreachable` instruction executed.");

    one_array_of_everything: Call, "makes an array of 2^31 numbers",
        |folder| put_with_core(folder, "(type $a (array (mut i8)))",
            "(drop (array.new_default $a (i32.const 0x80000000)))")
        => grant("[limits]\nfuel = 10000000000") => fails("memory", OUT_OF_MEMORY);

    an_array_beyond_addresses: Call, "makes an array of 2^32 - 1 numbers of 8 bytes",
        |folder| put_with_core(folder, "(type $a (array (mut i64)))", "(drop (array.new_default $a (i32.const -1)))")
        => grant("[limits]\nfuel = 10000000000") => fails("memory", OUT_OF_MEMORY);

    arrays_of_garbage: Call, "makes arrays of 16 MiB forever",
        |folder| put_with_core(folder, "(type $a (array (mut i8)))",
            "(loop $again (drop (array.new_default $a (i32.const 0x1000000))) (br $again))")
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    filling_arrays: Call, "fills an array of 16 MiB repeatedly",
        |folder| put_with_core(folder, "(type $a (array (mut i8))) (global $g (mut (ref null $a)) (ref.null $a))",
            "(global.set $g (array.new_default $a (i32.const 0x1000000)))
             (loop $again (array.fill $a (global.get $g) (i32.const 0) (i32.const 7) (i32.const 0x1000000)) (br $again))")
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    copying_arrays: Call, "copies an array of a million references onto itself repeatedly",
        |folder| put_with_core(folder, "(type $a (array (mut eqref))) (global $g (mut (ref null $a)) (ref.null $a))",
            "(global.set $g (array.new_default $a (i32.const 1000000)))
             (loop $again
               (array.copy $a $a (global.get $g) (i32.const 1) (global.get $g) (i32.const 0) (i32.const 999999)) (br $again))")
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    an_array_of_all_objects: Call, "has an array of a million objects, and makes garbage forever",
        |folder| put_with_list(folder, "(type $a (array (mut (ref null $node)))) (global $g (mut (ref null $a)) (ref.null $a))
            (func $fill (local $n i32)
              (global.set $g (array.new_default $a (i32.const 1000000)))
              (loop $again
                (array.set $a (global.get $g) (local.get $n) (struct.new $node (ref.null $node) (i64.const 7)))
                (br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 1000000)))))",
            "(call $fill) (call $garbage)")
        => grant(ENDLESS) => fails("deadline", LATE);

    a_table_of_objects: Call, "has a table of 20,000 objects, and makes garbage forever",
        |folder| put_with_list(folder, "(table $t 20000 (ref null $node))
            (func $fill (local $n i32)
              (loop $again
                (table.set $t (local.get $n) (struct.new $node (ref.null $node) (i64.const 7)))
                (br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 20000)))))",
            "(call $fill) (call $garbage)")
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    large_objects: Call, "makes objects with 10,000 members forever",
        |folder| put_with_core(folder, &format!("(type $large (struct {}))", "(field i64)".repeat(10_000)),
            "(loop $again (drop (struct.new_default $large)) (br $again))")
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    functions_in_objects: Call, "makes objects that contain functions forever",
        |folder| put_with_core(folder, "(type $f (struct (field funcref))) (elem declare func $nothing) (func $nothing)",
            "(loop $again (drop (struct.new $f (ref.func $nothing))) (br $again))")
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    references_of_other_hosts: Call, "converts a number to a host reference and back forever",
        |folder| put_with_core(folder, "",
            "(loop $again
               (drop (i31.get_s (ref.cast (ref i31) (any.convert_extern (extern.convert_any (ref.i31 (i32.const 7)))))))
               (br $again))")
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    a_number_as_an_object: Call, "uses a number as an object",
        |folder| put_with_list(folder, "(func $any (result anyref) (ref.i31 (i32.const 7)))",
            "(drop (struct.get $node 1 (ref.cast (ref $node) (call $any))))")
        => fails("trap", "The tool crashed: wasm trap: cast failure.");

    a_member_of_nothing: Call, "reads a member of an object that does not exist",
        |folder| put_with_list(folder, "", "(drop (struct.get $node 1 (global.get $list)))")
        => fails("trap", "The tool crashed: wasm trap: null reference.");

    an_element_beyond_the_end: Call, "reads an array beyond its end",
        |folder| put_with_core(folder, "(type $a (array (mut i8)))",
            "(drop (array.get_u $a (array.new_default $a (i32.const 7)) (i32.const -1)))")
        => fails("trap", "The tool crashed: wasm trap: out of bounds array access.");

    casts: Call, "tests forever whether an object has a type that is 60 levels away",
        |folder| put_with_core(folder, &format!("{} (func $any (result anyref) (struct.new_default $t59))", hierarchy(60)),
            "(loop $again (drop (ref.test (ref $t30) (call $any))) (br $again))")
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    a_hierarchy: Compile, "has a hierarchy of 100 types",
        |folder| put_with_core(folder, &hierarchy(100), "")
        => refused("invalid component: sub type hierarchy too deep: …");

    recursive_types: Call, "has 1,000 groups of recursive types, and makes an object of the last one",
        |folder| {
            let group = |n: usize| format!(
                "(rec (type $a{n} (struct (field (ref null $b{n})) {})) (type $b{n} (struct (field (ref null $a{n})))))",
                "(field i32)".repeat(n % 60));
            put_with_core(folder, &(0..1000).map(group).collect::<String>(), "(drop (struct.new_default $a999))");
        }
        => answers("fine");

    many_types: Compile, "has 150,000 types",
        |folder| put_with_core(folder, &format!("(rec {})", "(type (struct))".repeat(150_000)), "")
        => refused("defines … types in its core modules or more, but at most 100,000 are allowed");

    large_types: Compile, "has 200 types of 9,000 members",
        |folder| put_with_core(folder, &format!("(rec {})", format!("(type (struct {}))", "(field i8)".repeat(9000)).repeat(200)), "")
        => refused("defines … members of types in its core modules or more, but at most 1,000,000 are allowed");

    an_uncaught_exception: Call, "throws an exception that is never caught", |folder| put_with_exception(folder, "", "(throw $e)")
        => fails("trap", "The tool crashed: it threw an exception that it does not catch.");

    an_exception_at_start: Load, "throws an exception in a start function",
        |folder| put_with_exception(folder, "(start $s) (func $s (throw $e))", "")
        => refused("listing what it offers failed: it crashed: it threw an exception that it does not catch");

    exceptions: Call, "throws and catches exceptions forever",
        |folder| put_with_exception(folder, "", &catching_loop("(throw $e)"))
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    exceptions_on_time: Call, "throws and catches exceptions forever, with more fuel than it can use",
        |folder| put_with_exception(folder, "", &catching_loop("(throw $e)")) => grant(ENDLESS) => fails("deadline", LATE);

    a_chain_of_exceptions: Call, "throws exceptions each of which contains the previous one, and retains the last",
        |folder| put_with_core(folder, "(tag $e (param exnref)) (global $last (mut exnref) (ref.null exn))
            (func $thrown (result exnref)
              (block $caught (result exnref exnref)
                (try_table (catch_ref $e $caught) (throw $e (global.get $last))) unreachable)
              (return))",
            "(loop $again (global.set $last (call $thrown)) (br $again))")
        => grant("[limits]\nmemory = \"16MiB\"\nfuel = 100000000000")
        => fails("memory", "The tool needed more than 16.0 MiB of memory (to allow more, raise limits.memory).");

    exceptions_from_the_deep: Call, "recurses 1,000 levels deep, throws an exception there, and catches it at the top, forever",
        |folder| put_with_exception(folder,
            "(func $deep (param i32)
               (if (local.get 0) (then (call $deep (i32.sub (local.get 0) (i32.const 1)))) (else (throw $e))))",
            &catching_loop("(call $deep (i32.const 1000))"))
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    exceptions_at_each_level: Call, "recurses 500 levels deep, and throws an exception from each level to the next, forever",
        |folder| put_with_exception(folder,
            "(func $deep (param i32)
               (block $caught (result exnref)
                 (try_table (catch_all_ref $caught)
                   (if (local.get 0) (then (call $deep (i32.sub (local.get 0) (i32.const 1)))) (else (throw $e))))
                 (return))
               (throw_ref))",
            &catching_loop("(call $deep (i32.const 500))"))
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    an_exception_for_nobody: Call, "throws an exception that does not exist",
        |folder| put_with_exception(folder, "", "(throw_ref (ref.null exn))")
        => fails("trap", "The tool crashed: wasm trap: null reference.");

    catching_the_lack_of_fuel: Call, "catches all exceptions, and computes forever",
        |folder| put_with_exception(folder, "", &catching_loop("(loop $spin (br $spin))"))
        => grant(LITTLE) => fails("fuel", OUT_OF_LITTLE);

    catching_the_deadline: Call, "catches all exceptions, and computes forever, with more fuel than it can use",
        |folder| put_with_exception(folder, "", &catching_loop("(loop $spin (br $spin))"))
        => grant(ENDLESS) => fails("deadline", LATE);

    catching_the_lack_of_memory: Call, "catches all exceptions, and makes a list that grows forever",
        |folder| put_with_list(folder, "", &catching_loop("(call $more (i32.const 0))"))
        => fails("memory", OUT_OF_MEMORY);

    catching_a_crash: Call, "catches all exceptions, and executes `unreachable`",
        |folder| put_with_exception(folder, "", &catching_loop("unreachable"))
        => fails("trap", "The tool crashed: wasm trap: wasm `unreachable` instruction executed.");

    catching_the_end_of_the_stack: Call, "catches all exceptions, and recurses forever",
        |folder| put_with_exception(folder, "(func $r (param i32) (result i32) (i32.add (call $r (local.get 0)) (i32.const 1)))",
            &catching_loop("(drop (call $r (i32.const 1)))"))
        => fails("stack", "The tool overflowed its stack of 512.0 KiB (to allow more, raise server.stack_size, \
            which applies to all plugins).");

    exceptions_of_before: Compile, "throws exceptions with the instructions from before the standard",
        |folder| put_with_exception(folder, "(func try throw $e catch_all end)", "")
        => refused("invalid component: …legacy_exceptions feature required for try instruction (it throws exceptions with \
            the instructions that came before the standard; build it with those of WebAssembly 3.0: \
            -Xwasm-use-new-exception-proposal for Kotlin, -sWASM_LEGACY_EXCEPTIONS=0 for Emscripten, \
            -mllvm -wasm-use-legacy-eh=false for clang)");
}
