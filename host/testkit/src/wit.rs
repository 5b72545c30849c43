//! Builds components from WIT and a few lines of core code, independent of Toolbay's contract.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a component that cannot be made fails the test that wants it"
)]

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The template of every module, with a memory and an allocator that never frees.
const MODULE_TEMPLATE: &str = r#"(module
    (memory (export "memory") PAGES)
    (global $next (mut i32) (i32.const 32768))
    (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
        (local $at i32)
        (local.set $at (i32.and (i32.add (global.get $next) (i32.sub (local.get 2) (i32.const 1)))
                                (i32.sub (i32.const 0) (local.get 2))))
        (global.set $next (i32.add (local.get $at) (local.get 3)))
        (local.get $at))
    EXPORTS)"#;

/// Builds a component that implements the world in `wit` with the core functions in `exports`.
///
/// # Panics
///
/// Panics if `wit` or `exports` is invalid or they do not match.
pub fn build_component(wit: &str, exports: &str) -> Vec<u8> {
    build_component_with_memory(wit, exports, 2)
}

/// Like [`build_component`], with a memory of `pages` pages of 64 KiB. The allocator does not use
/// the first half page, which is available to `exports`.
///
/// # Panics
///
/// Panics if `wit` or `exports` is invalid or they do not match.
pub fn build_component_with_memory(wit: &str, exports: &str, pages: u32) -> Vec<u8> {
    let module = MODULE_TEMPLATE
        .replace("PAGES", &pages.to_string())
        .replace("EXPORTS", exports);
    let mut module = wat::parse_str(module).unwrap();
    let mut resolve = Resolve::default();
    let package = resolve
        .push_str("test.wit", wit)
        .unwrap_or_else(|error| panic!("{error:#}\n{wit}"));
    let world = resolve
        .select_world(&[package], Some("plugin"))
        .or_else(|_| resolve.select_world(&[package], None))
        .unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .unwrap()
        .encode()
        .unwrap()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_world_with_one_function_becomes_a_component() {
        let wit = "package a:b; world w { export f: func() -> u32; }";
        let component =
            super::build_component(wit, "(func (export \"f\") (result i32) (i32.const 7))");
        assert!(component.starts_with(b"\0asm\x0d\0\x01\0"));
    }
}
