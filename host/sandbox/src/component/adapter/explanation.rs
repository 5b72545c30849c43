//! Messages for authors: why a core module cannot be a plugin, and which parts of it are not offered.

use toolbay_model::text::clean_line;
use wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME;

use super::file_kind::PluginFileKind;
use super::module_summary::{ModuleSummary, inspect_module};
use crate::component::contract_versions::SUPPORTED_VERSIONS;

/// Functions that language runtimes export for their own use.
const RUNTIME_EXPORTS: [&str; 8] = [
    "memory",
    "malloc",
    "free",
    "cabi_realloc",
    "canonical_abi_realloc",
    "alloc",
    "dealloc",
    "main",
];

/// Names that toolchains give to the function that `_start` calls.
const MAIN_FUNCTION_NAMES: [&str; 3] = ["main", "start", "run"];

/// Maximum size of a quoted name, in bytes.
const MAX_QUOTED_BYTES: usize = 100;

/// Returns why a module cannot be converted, for failures that the encoder's own message does not
/// explain to the author.
pub(super) fn explain_failure(summary: &ModuleSummary, adapter: &[u8]) -> Option<String> {
    if summary.has_memory64 {
        return Some(
            "a core module whose memory has 64-bit addresses (memory64, wasm64), which WASI does not have; build it for \
             wasm32-wasip2 or wasm32-wasip1"
                .to_owned(),
        );
    }
    let provided = inspect_module(adapter).ok()?.names.exports;
    let missing = summary
        .preview1_imports
        .iter()
        .find(|name| !provided.contains(*name))?;
    Some(format!(
        "a core module that imports {WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME}.{}, which is not a function of WASI 0.1, but \
         an extension of one runtime, such as WASIX of Wasmer or the sockets of WasmEdge; build it for wasm32-wasip2, \
         or without that function",
        clean_line(missing, MAX_QUOTED_BYTES)
    ))
}

/// Returns a remark on parts of a module of this kind that are not offered.
pub(super) fn omission_remark(kind: PluginFileKind, summary: &ModuleSummary) -> Option<String> {
    let find_plugin_function = || {
        summary
            .names
            .exports
            .iter()
            .find(|name| is_plugin_function(name))
    };
    match kind {
        PluginFileKind::CommandModule => match (summary.names.spin_handler(), find_plugin_function()) {
            (Some(handler), _) => {
                Some(format!("it runs as a command; its request handler for Spin ({handler}) is not offered"))
            }
            (None, Some(function)) => Some(format!(
                "it runs as a command; its other functions, such as {}, are not offered: a .wit file of the same name with \
                 their types would offer them instead",
                quote_name(function)
            ))
            .filter(|_| is_wit_name(function) && !MAIN_FUNCTION_NAMES.contains(&function.as_str())),
            (None, None) => None,
        },
        PluginFileKind::TypedModule if summary.has_start => {
            Some("the functions of its .wit file are offered, and not its command (`_start`)".to_owned())
        }
        _ => None,
    }
}

/// Returns the reason why a core module cannot be called, and a possible remedy.
pub(super) fn explain_untyped(summary: &ModuleSummary, wit: &str) -> String {
    if let Some(version) = summary.contract.keys().next() {
        let supported = SUPPORTED_VERSIONS.map(|(version, _)| version).join(" and ");
        return format!(
            "a core WebAssembly module that exports functions of toolbay:plugin@{}, but this version of Toolbay supports \
             {supported}",
            clean_line(version, MAX_QUOTED_BYTES)
        );
    }
    if let Some(handler) = summary.names.spin_handler() {
        return format!(
            "a module for Spin, which handles requests (`{handler}`) and has no functions that can be tools; build it as a \
             component that is an MCP server over HTTP, or with an SDK of toolbay:plugin"
        );
    }
    let find_plugin_function = |is_match: fn(&str) -> bool| {
        summary
            .names
            .exports
            .iter()
            .find(|name| is_plugin_function(name) && is_match(name))
    };
    match find_plugin_function(is_wit_name).or_else(|| find_plugin_function(|_| true)) {
        Some(function) if !wit.is_empty() => format!(
            "a core WebAssembly module that exports none of the functions of its .wit file, but {}",
            quote_name(function)
        ),
        Some(function) if summary.names.unknown_import().is_some() => format!(
            "a core WebAssembly module that exports functions such as {}, but not their types, and imports {}, which no .wit \
             file can provide; build it for wasm32-wasip2",
            quote_name(function),
            summary.names.unknown_import().unwrap_or_default()
        ),
        Some(function) if is_wit_name(function) => format!(
            "a core WebAssembly module that exports functions such as {}, but not their types; put a .wit file of \
             the same name next to it, with a world that exports them, or build it for wasm32-wasip2",
            quote_name(function)
        ),
        Some(function) => format!(
            "a core WebAssembly module that exports functions such as {}, but not their types, and WIT cannot express such \
             names, but only lower-case words joined by `-`; rename them, or build it for wasm32-wasip2",
            quote_name(function)
        ),
        None if summary.names.exports.contains("_initialize") => {
            "a core WebAssembly module that can be initialized (`_initialize`) and has no functions that could be called \
             afterwards; export them and put a .wit file with their types next to it, or build a command (with a `_start`)"
                .to_owned()
        }
        None => {
            "a core WebAssembly module that exports neither `_start` nor its own functions, so it cannot be called; \
                 build it for wasm32-wasip2, or convert it with `wasm-tools component new`"
                .to_owned()
        }
    }
}

/// Returns whether a function is neither a runtime function of its language nor a linker
/// convention.
fn is_plugin_function(name: &str) -> bool {
    !name.starts_with('_') && !RUNTIME_EXPORTS.contains(&name)
}

/// Returns whether WIT can express a function that a core module exports under this name. The name
/// must consist of lower-case words, with an optional interface before it.
fn is_wit_name(name: &str) -> bool {
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_alphabetic())
            && word.chars().all(|c| c.is_ascii_alphanumeric())
            && !(word.contains(|c: char| c.is_ascii_lowercase())
                && word.contains(|c: char| c.is_ascii_uppercase()))
    };
    let function = match name.split_once('#') {
        Some((interface, function)) if interface.contains([':', '/']) => function,
        Some(_) => return false,
        None => name,
    };
    function.split('-').all(is_word)
}

/// Returns a name in backticks, or a description of a name that would be invisible.
fn quote_name(name: &str) -> String {
    if name.trim().is_empty() {
        "one whose name is empty".to_owned()
    } else {
        format!("`{}`", clean_line(name, MAX_QUOTED_BYTES))
    }
}
