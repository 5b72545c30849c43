//! Small components that take extremely long or gigabytes to compile.

use std::fmt::Write as _;

use super::put;
use crate::support::{Folder, TinyComponent};

/// Returns components in components, each of which instantiates the next one twice.
pub(crate) fn doubling(depth: u32) -> Vec<u8> {
    let mut text = "(component (core module $m) (core instance (instantiate $m)))".to_owned();
    for _ in 0..depth {
        text = format!("(component {text} (instance (instantiate 0)) (instance (instantiate 0)))");
    }
    wat::parse_str(text).unwrap()
}

/// Returns a function with this number of nested blocks, each with a table of branches to fifty of
/// them.
pub(crate) fn nested_blocks(count: usize) -> Vec<u8> {
    let mut body = "block\n".repeat(count);
    for depth in (1..=count).rev() {
        body.push_str("local.get 0 br_table");
        for label in 0..depth.min(50) {
            let _ = write!(body, " {label}");
        }
        body.push_str(" end\n");
    }
    TinyComponent::new(&["a"])
        .with_core_items(&format!("(func (param i32)\n{body})"))
        .build()
}

/// Returns a core module with this number of functions, all with this body.
fn functions(count: usize, body: &[u8]) -> Vec<u8> {
    let number = |mut n: usize| {
        let mut bytes = Vec::new();
        while n >= 0x80 {
            bytes.push(n.to_le_bytes()[0] | 0x80);
            n >>= 7;
        }
        bytes.push(n.to_le_bytes()[0]);
        bytes
    };
    let section = |id: u8, content: &[u8]| [&[id], &number(content.len())[..], content].concat();
    let body = [&number(body.len())[..], body].concat();
    let code = [number(count), body.repeat(count)].concat();
    let module = [
        b"\0asm\x01\0\0\0".to_vec(),
        section(1, b"\x01\x60\x00\x00"),
        section(3, &[number(count), vec![0; count]].concat()),
        section(10, &code),
    ]
    .concat();
    // An ordinary section of the component; nothing instantiates it.
    [TinyComponent::new(&["a"]).build(), section(1, &module)].concat()
}

/// Returns a component that exports the same function under this many names.
pub(crate) fn exports(count: usize) -> Vec<u8> {
    let mut text =
        "(component (core module $m (func (export \"f\"))) (core instance $i (instantiate $m))
        (func $f (canon lift (core func $i \"f\")))"
            .to_owned();
    for n in 0..count {
        let _ = write!(text, "(export \"f{n}\" (func $f))");
    }
    wat::parse_str(text + ")").unwrap()
}

/// Returns types of types: each contains the previous one eight times.
fn types(depth: u32) -> Vec<u8> {
    let mut text = "(type $t0 (tuple u8))".to_owned();
    for n in 0..depth {
        let _ = write!(
            text,
            "(type $t{} (tuple{}))",
            n + 1,
            format!(" $t{n}").repeat(8)
        );
    }
    TinyComponent::new(&["a"]).with_imports(&text).build()
}

/// Returns components in components, nested this deep.
fn nested(depth: usize) -> Vec<u8> {
    const START: &[u8] = b"\0asm\x0d\0\x01\0";
    let mut component = START.to_vec();
    for inside in (0..depth).rev() {
        // A section with one component: its length, always in five bytes, and then that component.
        let length = START.len() + inside * (START.len() + 6);
        component.push(4);
        component.extend((0..4).map(|n| ((length >> (7 * n)).to_le_bytes()[0] & 0x7f) | 0x80));
        component.push((length >> 28).to_le_bytes()[0]);
        component.extend(START);
    }
    component
}

const SMALL: &str = "[compile]\nmemory = \"512MiB\"";
const QUICK: &str = "[compile]\ncpu_time = \"1s\"";
const TOO_LARGE: &str =
    "compiling it needs more than 512.0 MiB of memory (to allow more, raise compile.memory)";
const TOO_SLOW: &str =
    "compiling it took more than 1s of CPU time (to allow more, raise compile.cpu_time)";

cases! {
    doubling_components: Compile, "is 1.4 KB in size: 24 levels of components, each of which contains the next twice",
        |folder| put(folder, doubling(24)) => config(SMALL) => refused(TOO_LARGE);

    doubling_components_on_time: Compile, "is the same file as above, with the default memory limit",
        |folder| put(folder, doubling(24)) => config(QUICK) => refused(TOO_SLOW);

    blocks_in_blocks: Compile, "has a function of 5,000 blocks, each of which branches to fifty others",
        |folder| put(folder, nested_blocks(5000)) => config(QUICK) => refused(TOO_SLOW);

    many_locals: Compile, "has 5,000 functions of 8 bytes, each with 49,000 variables",
        |folder| put(folder, functions(5000, b"\x01\xe8\xfe\x02\x7e\x0b")) => config(QUICK) => refused(TOO_SLOW);

    many_functions: Compile, "has 100,000 functions", |folder| put(folder, functions(100_000, b"\0\x0b"))
        => config(QUICK) => refused(TOO_SLOW);

    many_exports: Compile, "exports 100,000 functions", |folder| put(folder, exports(100_000))
        => refused("exports 100,000 functions, but at most 4,096 are allowed");

    types_of_types: Compile, "has types that are composed of other types, 8^20 in total", |folder| put(folder, types(20))
        => refused("invalid component: effective type size exceeds the limit of 1000000 (at offset …)");

    deep_nesting: Compile, "has components that are nested 100,000 levels deep", |folder| put(folder, nested(100_000))
        => refused("contains components that are nested more than 100 levels deep");

    many_core_modules: Compile, "has 2,000 core modules",
        |folder: &Folder| put(folder, TinyComponent::new(&["a"]).with_imports(&"(core module)".repeat(2000)).build())
        => refused("invalid component: modules count exceeds limit of 1000 (at offset …)");
}
