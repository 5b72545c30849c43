//! Tests of `adapter`.

use super::*;

fn adapted(wat: &str) -> Result<PluginFileKind, String> {
    adapted_with(wat, "")
}

fn adapted_with(wat: &str, wit: &str) -> Result<PluginFileKind, String> {
    componentize(wat::parse_str(wat).unwrap(), wit).map(|adapted| {
        assert!(Parser::is_component(&adapted.component));
        adapted.kind
    })
}

#[test]
fn a_component_is_unchanged() {
    let bytes = wat::parse_str("(component)").unwrap();
    let adapted = componentize(bytes.clone(), "").unwrap();
    assert_eq!(
        adapted,
        AdaptedComponent {
            component: bytes,
            kind: PluginFileKind::Component,
            remark: None
        }
    );
}

#[test]
fn a_command_is_adapted() {
    let command = r#"(module (import "wasi_snapshot_preview1" "proc_exit" (func (param i32)))
            (memory (export "memory") 1) (func (export "_start") (call 0 (i32.const 0))))"#;
    assert_eq!(adapted(command), Ok(PluginFileKind::CommandModule));
}

#[test]
fn a_module_of_the_contract_can_import_http_and_stores() {
    let module = |imports: &str| {
        format!(
            r#"(module {imports} (memory (export "memory") 1)
                (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 0)
                (func (export "toolbay:plugin/tools@0.2.0#list-tools") (result i32) i32.const 0)
                (func (export "toolbay:plugin/tools@0.2.0#call-tool") (param i32 i32 i32 i32) (result i32) i32.const 0))"#
        )
    };
    let block = r#"(import "wasi:io/poll@0.2.0" "[method]pollable.block" (func (param i32)))"#;
    let subscribe = r#"(import "wasi:http/types@0.2.0" "[method]future-incoming-response.subscribe"
            (func (param i32) (result i32)))"#;
    let delete = r#"(import "wasi:keyvalue/store@0.2.0-draft" "[method]bucket.delete"
            (func (param i32 i32 i32 i32)))"#;
    for imports in [
        "",
        subscribe,
        delete,
        &format!("{subscribe} {block}"),
        &format!("{subscribe} {delete}"),
    ] {
        assert_eq!(
            adapted(&module(imports)),
            Ok(PluginFileKind::ContractModule),
            "{imports}"
        );
    }
    // Not in the part of WASI that an untyped module can import.
    let server = r#"(import "wasi:http/types@0.2.0" "[constructor]outgoing-response" (func (param i32) (result i32)))"#;
    assert!(
        adapted(&module(server))
            .unwrap_err()
            .contains("cannot be converted")
    );
}

#[test]
fn a_module_can_export_some_interfaces_of_the_contract() {
    let module = |functions: &[(&str, usize)]| {
        let function = |(name, parameters): &(&str, usize)| {
            let parameters = "i32 ".repeat(*parameters);
            format!(
                r#"(func (export "toolbay:plugin/{name}") (param {parameters}) (result i32) i32.const 0)"#
            )
        };
        format!(
            r#"(module (memory (export "memory") 1)
                (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 0) {})"#,
            functions.iter().map(function).collect::<String>()
        )
    };
    let prompts = [
        ("prompts@0.2.0#list-prompts", 0),
        ("prompts@0.2.0#get-prompt", 4),
    ];
    let resources = [
        ("resources@0.2.0#list-resources", 0),
        ("resources@0.2.0#list-resource-templates", 0),
        ("resources@0.2.0#read-resource", 2),
    ];
    let completion = [("completion@0.2.0#complete", 9)];
    let all = [prompts.as_slice(), &resources, &completion].concat();
    for functions in [prompts.as_slice(), &resources, &all] {
        assert_eq!(
            adapted(&module(functions)),
            Ok(PluginFileKind::ContractModule),
            "{functions:?}"
        );
    }
    let half = adapted(&module(&prompts[..1])).unwrap_err();
    assert!(half.contains("get-prompt"), "{half}");
    let older = [("tools@0.1.0#list-tools", 0), ("tools@0.1.0#call-tool", 4)];
    let mixed = adapted(&module(&[older.as_slice(), &prompts].concat())).unwrap_err();
    assert!(
        mixed.contains("toolbay:plugin@0.1.0 and of toolbay:plugin@0.2.0"),
        "{mixed}"
    );
    let unknown = adapted(&module(&[("tools@0.9.0#list-tools", 0)])).unwrap_err();
    assert!(
        unknown.ends_with(
            "toolbay:plugin@0.9.0, but this version of Toolbay supports 0.1.0 and 0.2.0"
        ),
        "{unknown}"
    );
}

#[test]
fn errors_of_modules_that_cannot_be_adapted_say_what_to_do() {
    let import = |module: &str| {
        format!(r#"(module (import "{module}" "x" (func)) (func (export "_start")))"#)
    };
    let cases = [
            ("(module)".to_owned(), "so it cannot be called"),
            ("(module (func (export \"f\")))".to_owned(), "such as `f`, but not their types; put a .wit file"),
            (import("gojs"), "GOOS=wasip1"),
            (import("wasi_unstable"), "before 0.1"),
            (import("__wbindgen_placeholder__"), "wasm32-wasip2"),
            (import("env"), "imports env.x"),
            (import("extism:host/env"), "a plugin for Extism"),
            (import("fermyon:spin/key-value"), "a module for Spin"),
            (import("wasi-outbound-http"), "a module for Spin"),
            (import("wapc"), "a module for waPC"),
            (import("a"), "built by Emscripten"),
            (import("fastly_http_req"), "a program for Fastly Compute"),
            (import("__main_module__"), "an adapter between WASI 0.1 and WASI 0.2"),
            (r#"(module (import "env" "extism_length" (func)))"#.to_owned(), "a plugin for Extism"),
            (r#"(module (import "env" "emscripten_resize_heap" (func)))"#.to_owned(), "built by Emscripten"),
            (r#"(module (func (export "proxy_abi_version_0_2_1")))"#.to_owned(), "a filter for Envoy"),
            (
                r#"(module (func (export "handle-http-request")))"#.to_owned(),
                "a module for Spin, which handles requests",
            ),
            (r#"(module (func (export "")))"#.to_owned(), "such as one whose name is empty, but not their types"),
            (r#"(module (func (export "add_two")))"#.to_owned(), "but only lower-case words joined by `-`"),
            (
                r#"(module (import "other" "x" (func)) (func (export "f")))"#.to_owned(),
                "imports other.x, which no .wit",
            ),
            (r#"(module (func (export "_initialize")))"#.to_owned(), "can be initialized (`_initialize`) and has no"),
            (import("other"), "cannot be converted"),
            (import("wasix_32v1"), "built for WASIX"),
            (
                r#"(module (import "wasi_snapshot_preview1" "sock_open" (func (param i32 i32 i32) (result i32)))
                (memory (export "memory") 1) (func (export "_start")))"#
                    .to_owned(),
                "imports wasi_snapshot_preview1.sock_open, which is not a function of WASI 0.1",
            ),
            (
                r#"(module (import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))
                (memory (export "memory") i64 1) (func (export "_start")))"#
                    .to_owned(),
                "whose memory has 64-bit addresses",
            ),
        ];
    for (module, expected) in cases {
        let why = adapted(&module).unwrap_err();
        assert!(why.contains(expected), "{module}: {why}");
    }
}

#[test]
fn a_module_gets_its_types_from_the_wit_file_next_to_it() {
    let wit =
        "package local:sums; interface sums { add: func(a: s32, b: s32) -> s32; } world plugin {
            export sums; export double: func(n: f64) -> f64; }";
    let add = r#"(func (export "local:sums/sums#add") (param i32 i32) (result i32) i32.const 7)"#;
    let double = r#"(func (export "double") (param f64) (result f64) local.get 0)"#;
    let module = |items: &str| format!("(module {items})");
    assert_eq!(
        adapted_with(&module(&format!("{add} {double}")), wit),
        Ok(PluginFileKind::TypedModule)
    );
    // As AssemblyScript generates it.
    let aborts =
        r#"(import "env" "abort" (func (param i32 i32 i32 i32))) (memory (export "memory") 1)"#;
    assert_eq!(
        adapted_with(&module(&format!("{aborts} {add} {double}")), wit),
        Ok(PluginFileKind::TypedModule)
    );
    let half = adapted_with(&module(double), wit).unwrap_err();
    assert!(
        half.contains("interface `local:sums/sums` function `add`"),
        "{half}"
    );
    let other = adapted_with(&module(r#"(func (export "other"))"#), wit).unwrap_err();
    assert_eq!(
        other,
        "a core WebAssembly module that exports none of the functions of its .wit file, but `other`"
    );
    let invalid = adapted_with(&module(double), "world {").unwrap_err();
    assert!(
        invalid.starts_with("its .wit file is not valid: "),
        "{invalid}"
    );
    let two = adapted_with(&module(double), "package a:b; world c {} world d {}").unwrap_err();
    assert!(two.contains("its .wit file is not valid: "), "{two}");
}

#[test]
fn a_command_of_assemblyscript_can_abort() {
    let command = r#"(module (import "env" "abort" (func (param i32 i32 i32 i32)))
            (memory (export "memory") 1) (func (export "_start")))"#;
    assert_eq!(adapted(command), Ok(PluginFileKind::CommandModule));
    let seed = r#"(module (import "env" "abort" (func (param i32 i32 i32 i32))) (import "env" "seed" (func (result f64)))
            (memory (export "memory") 1) (func (export "_start")))"#;
    assert!(adapted(seed).unwrap_err().contains("imports env.seed"));
}
