//! Turns core modules into components, if they contain enough information for that.
//!
//! Runs in the compiler child process, because the file is untrusted.

mod embedded_types;
mod explanation;
mod file_kind;
mod module_summary;

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER,
    WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wasmparser::{Parser, Payload};
use wit_component::{ComponentEncoder, DecodedWasm, decode};

use self::embedded_types::{embed_contract, embed_wit, find_contract};
use self::explanation::{explain_failure, explain_untyped, omission_remark};
pub(crate) use self::file_kind::PluginFileKind;
use self::module_summary::{ENV_MODULE, inspect_module};

/// The error for a file that contains types and no code.
const WIT_PACKAGE_ERROR: &str = "a WIT package in binary form: it contains types (WIT), and no code; put the component that implements \
                       it here";

/// A component built from a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AdaptedComponent {
    pub(crate) component: Vec<u8>,
    pub(crate) kind: PluginFileKind,
    /// A remark on parts of the file that are not offered.
    pub(crate) remark: Option<String>,
}

/// A module that provides `abort (param i32 i32 i32 i32)`, which `AssemblyScript` calls when a
/// program fails. The function traps.
const ABORT_MODULE: &[u8] =
    b"\0asm\x01\0\0\0\x01\x08\x01\x60\x04\x7f\x7f\x7f\x7f\0\x03\x02\x01\0\x07\x09\x01\x05abort\0\0\
    \x0a\x05\x01\x03\0\0\x0b";

/// Converts these bytes to a component. `wit` is the text of the `.wit` file next to the plugin, or
/// empty.
///
/// # Errors
///
/// The reason why the bytes cannot become a component, and a possible remedy.
pub(crate) fn componentize(bytes: Vec<u8>, wit: &str) -> Result<AdaptedComponent, String> {
    if !Parser::is_core_wasm(&bytes) {
        if is_package(&bytes) {
            return Err(WIT_PACKAGE_ERROR.to_owned());
        }
        return Ok(AdaptedComponent {
            component: bytes,
            kind: PluginFileKind::Component,
            remark: None,
        });
    }
    let summary = inspect_module(&bytes).map_err(|error| format!("invalid module: {error}"))?;
    let (module, adapter, kind) = if summary.has_type {
        (
            bytes,
            WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
            PluginFileKind::Module,
        )
    } else if let Some(contract) = find_contract(&summary)? {
        let module =
            embed_contract(bytes, &contract, &summary).map_err(|error| format!("{error:#}"))?;
        (
            module,
            WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
            PluginFileKind::ContractModule,
        )
    } else if let Some(why) = summary.names.foreign_host() {
        return Err(why);
    } else if let Some(module) = embed_wit(&bytes, wit, &summary)? {
        (
            module,
            WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
            PluginFileKind::TypedModule,
        )
    } else if summary.has_start {
        (
            bytes,
            WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER,
            PluginFileKind::CommandModule,
        )
    } else {
        return Err(explain_untyped(&summary, wit));
    };
    let component = encode(&module, adapter, summary.imports_abort);
    let explain = |error| {
        let generic_message =
            || format!("a core module that cannot be converted to a component: {error:#}");
        summary
            .names
            .foreign_host()
            .or_else(|| explain_failure(&summary, adapter))
            .unwrap_or_else(generic_message)
    };
    Ok(AdaptedComponent {
        component: component.map_err(explain)?,
        kind,
        remark: omission_remark(kind, &summary),
    })
}

/// Encodes a module as a component. If it `imports_abort`, adds the module that provides that
/// function.
fn encode(module: &[u8], adapter: &[u8], imports_abort: bool) -> anyhow::Result<Vec<u8>> {
    let mut encoder = ComponentEncoder::default()
        .validate(true)
        .module(module)?
        .adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, adapter)?;
    if imports_abort {
        encoder = encoder.adapter(ENV_MODULE, ABORT_MODULE)?;
    }
    encoder.encode()
}

/// Returns whether a file is a WIT package in binary form, which contains only types.
fn is_package(bytes: &[u8]) -> bool {
    let is_code = |payload: &Payload<'_>| {
        matches!(
            payload,
            Payload::ModuleSection { .. }
                | Payload::ComponentSection { .. }
                | Payload::ComponentCanonicalSection(_)
        )
    };
    let mut payloads = Parser::new(0).parse_all(bytes).map_while(Result::ok);
    !payloads.any(|payload| is_code(&payload))
        && matches!(decode(bytes), Ok(DecodedWasm::WitPackage(..)))
}

#[cfg(test)]
mod tests;
