//! Guests that use all available memory, or whose structure would need it.

use super::put;
use crate::support::{Folder, TinyComponent, hostile};

/// Writes a component with this in its core module. Only the core module decides whether the
/// component is refused.
fn put_with_core(folder: &Folder, core: &str) {
    put(
        folder,
        TinyComponent::new(&["a"]).with_core_items(core).build(),
    );
}

/// Writes a component with this in its core module, whose calls run this body.
fn put_with_core_and_body(folder: &Folder, core: &str, body: &str) {
    put(
        folder,
        TinyComponent::new(&["a"])
            .with_core_items(core)
            .before_call(body)
            .build(),
    );
}

const OUT_OF_MEMORY: &str =
    "The tool needed more than 128.0 MiB of memory (to allow more, raise limits.memory).";

cases! {
    malloc_to_the_limit: Call, "allocates and uses all memory it can get",
        |folder| put(folder, hostile()) => tool("hoard", "{}")
        => fails("memory", OUT_OF_MEMORY);

    growing_to_the_limit: Call, "grows its memory to the limit, fills every page, and continues",
        |folder| put_with_core_and_body(folder, "(memory $big 1)",
            "(loop $more (br_if $more (i32.ne (memory.grow $big (i32.const 1)) (i32.const -1))))
             (memory.fill $big (i32.const 0) (i32.const 7) (i32.shl (memory.size $big) (i32.const 16)))")
        => answers("fine");

    growing_in_list_tools: ListTools, "grows its memory to the limit when it lists its tools, and crashes",
        |folder| put(folder, TinyComponent::new(&["a"]).with_core_items("(memory $big 1)").before_list(
            "(loop $more (br_if $more (i32.ne (memory.grow $big (i32.const 16)) (i32.const -1)))) unreachable").build())
        => refused("listing what it offers failed: it needed more than 128.0 MiB of memory");

    two_memories: Call, "grows two memories by 80 MiB each, and crashes if it cannot",
        |folder| put_with_core_and_body(folder, "(memory $one 1) (memory $two 1)",
            "(drop (memory.grow $one (i32.const 1280)))
             (if (i32.eq (memory.grow $two (i32.const 1280)) (i32.const -1)) (then unreachable))")
        => fails("memory", OUT_OF_MEMORY);

    two_memories_at_once: Load, "starts with two memories of 80 MiB",
        |folder| put_with_core(folder, "(memory 1280) (memory 1280)")
        => refused("listing what it offers failed: it needed more than 128.0 MiB of memory");

    a_memory_above_the_limit: Load, "starts with a memory of 200 MiB", |folder| put_with_core(folder, "(memory 3200)")
        => refused("listing what it offers failed: it needed more than 128.0 MiB of memory");

    a_memory_above_the_ceiling: Load, "starts with a memory of 2 GiB", |folder| put_with_core(folder, "(memory 32768)")
        => refused("it starts with 2.0 GiB of memory, but the server's ceiling is 1.0 GiB (to allow more, raise ceilings.memory)");

    several_memories: Call, "has several memories, which is allowed",
        |folder| put_with_core(folder, "(memory 1) (memory 1) (memory 1)") => answers("fine");

    many_memories: Load, "has a hundred memories",
        |folder| put_with_core(folder, &"(memory 1)".repeat(100))
        => refused("invalid component: memories count exceeds limit of 100 (at offset …)");

    growing_a_table: Call, "grows a table to the limit, and continues",
        |folder| put_with_core_and_body(folder, "(table $t 1 funcref)",
            "(loop $more (br_if $more (i32.ne (table.grow $t (ref.null func) (i32.const 1)) (i32.const -1))))")
        => answers("fine");

    insisting_on_a_table: Call, "grows a table, and crashes if it cannot",
        |folder| put_with_core_and_body(folder, "(table $t 1 funcref)",
            "(if (i32.eq (table.grow $t (ref.null func) (i32.const 1000000)) (i32.const -1)) (then unreachable))")
        => fails("limit", "The tool needed a table of more than 20,000 elements (to allow more, raise limits.table_elements).");

    a_huge_table: Load, "starts with a table of 10,000,000 elements",
        |folder| put_with_core(folder, "(table 10000000 funcref)")
        => refused("it needs a table of 10,000,000 elements, but the server's ceiling is 20,000 (to allow more, raise ceilings.table_elements)");

    many_tables: Load, "has a hundred tables",
        |folder| put_with_core(folder, &"(table 1 funcref)".repeat(100))
        => refused("it has 100 tables, but the server's ceiling is 16");

    many_instances: Load, "consists of 500 core instances",
        |folder| put(folder, TinyComponent::new(&["a"]).with_imports(
            &format!("(core module $m) {}", "(core instance (instantiate $m))".repeat(500))).build())
        => refused("it has 502 core instances, but the server's ceiling is 40 (to allow more, raise ceilings.instances)");

    many_globals: Load, "has 100,000 globals", |folder| put_with_core(folder, &"(global (mut i64) (i64.const 1))".repeat(100_000))
        => refused("invalid component: instance allocation for this module requires … bytes which exceeds the \
            configured maximum of 1048576 bytes; …");

    memory_of_64_bits: Compile, "has a memory with 64-bit addresses", |folder| put_with_core(folder, "(memory i64 1)")
        => refused("invalid component: memory64 must be enabled for 64-bit memories (at offset …)");

    shared_memory: Compile, "has a shared memory", |folder| put_with_core(folder, "(memory 1 2 shared)")
        => refused("invalid component: threads must be enabled for shared memories (at offset …)");

    small_pages: Compile, "has a memory with pages of one byte",
        |folder| put_with_core(folder, "(memory 1 (pagesize 1))")
        => refused("invalid component: the custom page sizes proposal must be enabled to customize a memory's \
            page size (at offset …)");
}
