//! Turns core modules into components, if they contain enough information for that.
//!
//! Runs in the compiler child process, because the file is untrusted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use toolbay_model::text::{clean_line, join_lines};
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER,
    WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wasmparser::{ExternalKind, Parser, Payload, TypeRef};
use wit_component::{
    ComponentEncoder, DecodedWasm, StringEncoding, decode, embed_component_metadata,
};
use wit_parser::{Resolve, UnresolvedPackageGroup, World, WorldId, WorldItem};

use crate::component::contract_interface::ContractInterface;
use crate::component::contract_versions::SERVED_VERSIONS;
use crate::component::foreign_host::ModuleNames;

/// The name and the text of a WIT file.
type WitPage = (&'static str, &'static str);

/// WASI interfaces that a core module can import in addition to the contract. Each entry has the
/// prefix of the import names, the imports of the world, and the WIT packages that define them.
const WASI_IMPORTS: [(&str, &str, &[WitPage]); 2] = [
    (
        "wasi:http/",
        "import wasi:http/types@0.2.0; import wasi:http/outgoing-handler@0.2.0;",
        &[
            ("io.wit", include_str!("../../../../wit/wasi/io.wit")),
            ("http.wit", include_str!("../../../../wit/wasi/http.wit")),
        ],
    ),
    (
        "wasi:keyvalue/",
        "import wasi:keyvalue/store@0.2.0-draft; import wasi:keyvalue/atomics@0.2.0-draft;",
        &[(
            "keyvalue.wit",
            include_str!("../../../../wit/wasi/keyvalue.wit"),
        )],
    ),
];

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

/// The error for a file that contains types and no code.
const WIT_PACKAGE_ERROR: &str = "a WIT package in binary form: it contains types (WIT), and no code; put the component that implements \
                       it here";

/// Maximum size of a quoted name, in bytes.
const MAX_QUOTED_BYTES: usize = 100;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PluginFileKind {
    /// A component.
    Component,
    /// A core module that contains the types of its component.
    Module,
    /// A core module that exports the functions of the contract.
    ContractModule,
    /// A core module whose functions have their types in the `.wit` file next to it.
    TypedModule,
    /// A core module with a `_start`: a WASI 0.1 command.
    CommandModule,
}

impl fmt::Display for PluginFileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Component => "a component",
            Self::Module => "a core module with an embedded component type",
            Self::ContractModule => "a core module that exports the functions of toolbay:plugin",
            Self::TypedModule => "a core module with its types in the .wit file next to it",
            Self::CommandModule => "a core module that exports `_start` (a WASI 0.1 command)",
        })
    }
}

/// Properties of a core module that parsing reveals.
#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent property of the file"
)]
struct ModuleSummary {
    has_type: bool,
    /// The contract interfaces whose functions the module exports, by contract version.
    contract: BTreeMap<String, BTreeSet<ContractInterface>>,
    has_start: bool,
    names: ModuleNames,
    /// True if the module imports the function that [`ABORT_MODULE`] provides.
    aborts: bool,
    /// The names of the first functions that the module imports from WASI 0.1.
    preview1: BTreeSet<String>,
    /// True if one of the module's memories has 64-bit addresses.
    has_memory64: bool,
}

/// Maximum number of imports from `env`, and from WASI 0.1, that are inspected.
const MAX_ENV_IMPORTS: usize = 256;

/// A component built from a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AdaptedComponent {
    pub(crate) component: Vec<u8>,
    pub(crate) kind: PluginFileKind,
    /// A remark on parts of the file that are not offered.
    pub(crate) remark: Option<String>,
}

/// The module from which `AssemblyScript` programs import what their runtime needs.
const ENV_MODULE: &str = "env";

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
    let look = inspect_module(&bytes).map_err(|error| format!("invalid module: {error}"))?;
    let (module, adapter, kind) = if look.has_type {
        (
            bytes,
            WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
            PluginFileKind::Module,
        )
    } else if let Some(contract) = find_contract(&look)? {
        let module =
            embed_contract(bytes, &contract, &look).map_err(|error| format!("{error:#}"))?;
        (
            module,
            WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
            PluginFileKind::ContractModule,
        )
    } else if let Some(why) = look.names.foreign_host() {
        return Err(why);
    } else if let Some(module) = embed_wit(&bytes, wit, &look)? {
        (
            module,
            WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
            PluginFileKind::TypedModule,
        )
    } else if look.has_start {
        (
            bytes,
            WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER,
            PluginFileKind::CommandModule,
        )
    } else {
        return Err(explain_untyped(&look, wit));
    };
    let component = ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .and_then(|encoder| encoder.adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, adapter))
        .and_then(|encoder| {
            if look.aborts {
                encoder.adapter(ENV_MODULE, ABORT_MODULE)
            } else {
                Ok(encoder)
            }
        })
        .and_then(|mut encoder| encoder.encode());
    let why = |error| {
        let said = || format!("a core module that cannot be converted to a component: {error:#}");
        look.names
            .foreign_host()
            .or_else(|| explain_failure(&look, adapter))
            .unwrap_or_else(said)
    };
    Ok(AdaptedComponent {
        component: component.map_err(why)?,
        kind,
        remark: omission_remark(kind, &look),
    })
}

/// Returns why a module cannot be converted, if the encoder's own words do not tell its author what
/// to do.
fn explain_failure(look: &ModuleSummary, adapter: &[u8]) -> Option<String> {
    if look.has_memory64 {
        return Some(
            "a core module whose memory has 64-bit addresses (memory64, wasm64), which WASI does not have; build it for \
             wasm32-wasip2 or wasm32-wasip1"
                .to_owned(),
        );
    }
    let provided = inspect_module(adapter).ok()?.names.exports;
    let missing = look
        .preview1
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
fn omission_remark(kind: PluginFileKind, look: &ModuleSummary) -> Option<String> {
    let own = || {
        look.names
            .exports
            .iter()
            .find(|name| is_plugin_function(name))
    };
    match kind {
        PluginFileKind::CommandModule => match (look.names.spin_handler(), own()) {
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
        PluginFileKind::TypedModule if look.has_start => {
            Some("the functions of its .wit file are offered, and not its command (`_start`)".to_owned())
        }
        _ => None,
    }
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

fn inspect_module(bytes: &[u8]) -> wasmparser::Result<ModuleSummary> {
    let mut look = ModuleSummary::default();
    for payload in Parser::new(0).parse_all(bytes) {
        match payload? {
            Payload::CustomSection(section) => {
                look.has_type |= section.name().starts_with("component-type")
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    let export = export?;
                    if export.kind == ExternalKind::Func {
                        if let Some((part, function)) = ContractInterface::from_export(export.name)
                            && let Some((version, _)) = function.split_once('#')
                        {
                            look.contract
                                .entry(version.to_owned())
                                .or_default()
                                .insert(part);
                        }
                        look.has_start |= export.name == "_start";
                        look.names.exports.insert(export.name.to_owned());
                    }
                }
            }
            Payload::MemorySection(memories) => {
                for memory in memories {
                    look.has_memory64 |= memory?.memory64;
                }
            }
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    let import = import?;
                    if (import.module, import.name) == (ENV_MODULE, "abort") {
                        look.aborts = true;
                        continue;
                    }
                    if let TypeRef::Memory(memory) = import.ty {
                        look.has_memory64 |= memory.memory64;
                    }
                    if import.module == WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME
                        && look.preview1.len() < MAX_ENV_IMPORTS
                    {
                        look.preview1.insert(import.name.to_owned());
                    }
                    if import.module == ENV_MODULE && look.names.env.len() < MAX_ENV_IMPORTS {
                        look.names.env.insert(import.name.to_owned());
                    }
                    if !look
                        .names
                        .imports
                        .iter()
                        .any(|(module, _)| module == import.module)
                    {
                        look.names
                            .imports
                            .push((import.module.to_owned(), import.name.to_owned()));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(look)
}

/// A supported version of the contract, its WIT, and the interfaces whose functions a module
/// exports.
struct ServedContract<'a> {
    version: &'static str,
    wit: &'static str,
    parts: &'a BTreeSet<ContractInterface>,
}

/// Returns the contract that a module implements, or `None` if it implements no supported contract.
///
/// # Errors
///
/// It implements several.
fn find_contract(look: &ModuleSummary) -> Result<Option<ServedContract<'_>>, String> {
    let mut served = SERVED_VERSIONS.into_iter().filter_map(|(version, wit)| {
        let parts = look.contract.get(version)?;
        Some(ServedContract {
            version,
            wit,
            parts,
        })
    });
    match (served.next(), served.next()) {
        (Some(one), Some(other)) => Err(format!(
            "a core module that exports functions of toolbay:plugin@{} and of toolbay:plugin@{}; build it against one \
             version of the contract",
            one.version, other.version
        )),
        (only, _) => Ok(only),
    }
}

/// Embeds the types of the contract and of the module's WASI imports in the module.
fn embed_contract(
    mut module: Vec<u8>,
    contract: &ServedContract<'_>,
    look: &ModuleSummary,
) -> anyhow::Result<Vec<u8>> {
    let ServedContract {
        version,
        wit,
        parts,
    } = contract;
    let mut resolve = Resolve::default();
    resolve.push_str("plugin.wit", wit)?;
    let exports = parts
        .iter()
        .map(|part| format!("export toolbay:plugin/{}@{version};", part.name()));
    let exports: String = exports.collect();
    let mut world = format!(
        "package toolbay:module; world module {{ import toolbay:plugin/host@{version}; {exports}"
    );
    for (name, imports, packages) in WASI_IMPORTS {
        if look
            .names
            .imports
            .iter()
            .any(|(module, _)| module.starts_with(name))
        {
            world += imports;
            for (file, wit) in packages {
                resolve.push_str(file, wit)?;
            }
        }
    }
    let package = resolve.push_str("module.wit", &(world + "}"))?;
    let world = resolve.select_world(&[package], Some("module"))?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
    Ok(module)
}

/// Embeds the types of the world in `wit` in the module. Returns `None` if the module exports no
/// function of that world.
///
/// # Errors
///
/// The text is not valid WIT, or does not identify one world.
fn embed_wit(module: &[u8], wit: &str, look: &ModuleSummary) -> Result<Option<Vec<u8>>, String> {
    if wit.is_empty() {
        return Ok(None);
    }
    let (resolve, world) = parse_world(wit)?;
    let Some(functions) = resolve
        .worlds
        .get(world)
        .map(|world| core_export_names(&resolve, world))
    else {
        return Ok(None);
    };
    if !functions
        .iter()
        .any(|name| look.names.exports.contains(name))
    {
        return Ok(None);
    }
    let mut module = module.to_vec();
    let embedded = embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8);
    embedded.map_err(|error| format!("its .wit file does not fit: {error:#}"))?;
    Ok(Some(module))
}

/// Parses a WIT file and returns its only world.
fn parse_world(wit: &str) -> Result<(Resolve, WorldId), String> {
    let wrong = |why: String| format!("its .wit file is not valid: {}", join_lines(&why));
    let mut resolve = Resolve::default();
    let group = UnresolvedPackageGroup::parse("wit", wit)
        .map_err(|(sources, error)| wrong(error.render(&sources)))?;
    let package = resolve
        .push_group(group)
        .map_err(|error| wrong(format!("{error:#}")))?;
    let world = resolve
        .select_world(&[package], None)
        .map_err(|error| wrong(format!("{error:#}")))?;
    Ok((resolve, world))
}

/// Returns the names under which a core module exports the functions of a world.
fn core_export_names(resolve: &Resolve, world: &World) -> Vec<String> {
    let mut names = Vec::new();
    for (key, item) in &world.exports {
        match item {
            WorldItem::Function(function) => names.push(function.name.clone()),
            WorldItem::Interface { id, .. } => {
                let interface = resolve.name_world_key(key);
                let functions = resolve
                    .interfaces
                    .get(*id)
                    .into_iter()
                    .flat_map(|interface| interface.functions.keys());
                names.extend(functions.map(|function| format!("{interface}#{function}")));
            }
            WorldItem::Type { .. } => {}
        }
    }
    names
}

/// Returns the reason why a core module cannot be called, and a possible remedy.
fn explain_untyped(look: &ModuleSummary, wit: &str) -> String {
    if let Some(version) = look.contract.keys().next() {
        let served = SERVED_VERSIONS.map(|(version, _)| version).join(" and ");
        return format!(
            "a core WebAssembly module that exports functions of toolbay:plugin@{}, but this version of Toolbay supports \
             {served}",
            clean_line(version, MAX_QUOTED_BYTES)
        );
    }
    if let Some(handler) = look.names.spin_handler() {
        return format!(
            "a module for Spin, which handles requests (`{handler}`) and has no functions that can be tools; build it as a \
             component that is an MCP server over HTTP, or with an SDK of toolbay:plugin"
        );
    }
    let own = |only: fn(&str) -> bool| {
        look.names
            .exports
            .iter()
            .find(|name| is_plugin_function(name) && only(name))
    };
    match own(is_wit_name).or_else(|| own(|_| true)) {
        Some(function) if !wit.is_empty() => format!(
            "a core WebAssembly module that exports none of the functions of its .wit file, but {}",
            quote_name(function)
        ),
        Some(function) if look.names.unknown_import().is_some() => format!(
            "a core WebAssembly module that exports functions such as {}, but not their types, and imports {}, which no .wit \
             file can provide; build it for wasm32-wasip2",
            quote_name(function),
            look.names.unknown_import().unwrap_or_default()
        ),
        Some(function) if is_wit_name(function) => format!(
            "a core WebAssembly module that exports functions such as {}, but not their types; put a .wit file of \
             the same name next to it, with a world that exports them, or build it for wasm32-wasip2",
            quote_name(function)
        ),
        Some(function) => format!(
            "a core WebAssembly module that exports functions such as {}, but not their types, and a .wit file has no words \
             for such names: only for lower-case words joined by `-`; rename them, or build it for wasm32-wasip2",
            quote_name(function)
        ),
        None if look.names.exports.contains("_initialize") => {
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

#[cfg(test)]
mod tests;
