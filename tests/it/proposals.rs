//! WASI proposals, for components that do not use Toolbay's contract.

use serde_json::json;

use crate::hostile::calls;
use crate::support::{Folder, StdioServer};

/// Builds a tool that logs the value of the key `units`, the first key and value of the whole
/// configuration, and a word without a context, each at another level. It imports `wasi:logging`
/// under the name `logging`.
fn tiny(logging: &str) -> Vec<u8> {
    let interfaces = format!(
        r#"
        (import "wasi:config/store@0.2.0-rc.1" (instance $store
          (type $error' (variant (case "upstream" string) (case "io" string)))
          (export "error" (type $wrong (eq $error')))
          (export "get" (func (param "key" string) (result (result (option string) (error $wrong)))))
          (export "get-all" (func (result (result (list (tuple string string)) (error $wrong)))))))
        (import "{logging}" (instance $logging
          (type $level' (enum "trace" "debug" "info" "warn" "error" "critical"))
          (export "level" (type $level (eq $level')))
          (export "log" (func (param "level" $level) (param "context" string) (param "message" string)))))
        (alias export $store "get" (func $get))
        (alias export $store "get-all" (func $get-all))
        (alias export $logging "log" (func $log))
        (core func $get (canon lower (func $get) (memory $memory) (realloc $realloc)))
        (core func $get-all (canon lower (func $get-all) (memory $memory) (realloc $realloc)))
        (core func $log (canon lower (func $log) (memory $memory)))"#
    );
    let functions = [
        ("get", "(param i32 i32 i32)"),
        ("get-all", "(param i32)"),
        ("log", "(param i32 i32 i32 i32 i32)"),
    ];
    calls(
        &interfaces,
        &functions,
        ";; The word units is at 60000, and what the functions return at 61000.
        (i64.store (i32.const 60000) (i64.const 0x7374696e75))
        (call $get (i32.const 60000) (i32.const 5) (i32.const 61000))
        ;; No error, and a value.
        (if (i32.load8_u (i32.const 61000)) (then unreachable))
        (if (i32.eqz (i32.load8_u (i32.const 61004))) (then unreachable))
        (call $log (i32.const 3) (i32.const 60000) (i32.const 5) (i32.load (i32.const 61008)) (i32.load (i32.const 61012)))
        (call $get-all (i32.const 61000))
        (if (i32.load8_u (i32.const 61000)) (then unreachable))
        (if (i32.ne (i32.load (i32.const 61008)) (i32.const 2)) (then unreachable))
        (i32.store (i32.const 61020) (i32.load (i32.const 61004)))
        (call $log (i32.const 0)
          (i32.load (i32.load (i32.const 61020))) (i32.load offset=4 (i32.load (i32.const 61020)))
          (i32.load offset=8 (i32.load (i32.const 61020))) (i32.load offset=12 (i32.load (i32.const 61020))))
        ;; An unknown key, and no context.
        (call $get (i32.const 60000) (i32.const 4) (i32.const 61000))
        (if (i32.load8_u (i32.const 61004)) (then unreachable))
        (call $log (i32.const 5) (i32.const 0) (i32.const 0) (i32.const 60000) (i32.const 4))",
    )
    .build()
}

#[test]
fn configuration_and_log_are_available_through_wasi_interfaces() {
    for logging in ["wasi:logging/logging", "wasi:logging/logging@0.1.0-draft"] {
        let folder = Folder::with("a.wasm", tiny(logging));
        folder.put("a.toml", "[config]\nunits = \"metric\"\ndepth = 3");
        let mut server = StdioServer::start_with_config(&folder, "log = \"toolbay=debug\"");
        assert_eq!(server.text("a", json!({})), "fine");
        let mut lines = Vec::new();
        for said in ["units: metric", "depth: 3", "unit"] {
            let line = server.log.wait_for(&format!(" {said} plugin=\"a\""));
            lines.push(
                line.split_whitespace()
                    .nth(1)
                    .unwrap_or_default()
                    .to_owned(),
            );
        }
        assert_eq!(
            lines,
            ["WARN", "DEBUG", "ERROR"],
            "{logging}:\n{}",
            server.log.text()
        );
    }
}
