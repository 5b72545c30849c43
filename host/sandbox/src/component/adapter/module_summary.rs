//! Properties of core modules.

use std::collections::{BTreeMap, BTreeSet};

use wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME;
use wasmparser::{Export, ExternalKind, Import, Parser, Payload, TypeRef};

use crate::component::contract_interface::ContractInterface;
use crate::component::foreign_host::ModuleNames;

/// The module from which `AssemblyScript` programs import what their runtime needs.
pub(super) const ENV_MODULE: &str = "env";

/// Properties of a core module that parsing reveals.
#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent property of the file"
)]
pub(super) struct ModuleSummary {
    pub(super) has_type: bool,
    /// The contract interfaces whose functions the module exports, by contract version.
    pub(super) contract: BTreeMap<String, BTreeSet<ContractInterface>>,
    pub(super) has_start: bool,
    pub(super) names: ModuleNames,
    /// True if the module imports the function that [`ABORT_MODULE`] provides.
    pub(super) imports_abort: bool,
    /// The names of the first functions that the module imports from WASI 0.1.
    pub(super) preview1_imports: BTreeSet<String>,
    /// True if one of the module's memories has 64-bit addresses.
    pub(super) has_memory64: bool,
}

/// Maximum number of imports from `env`, and from WASI 0.1, that are inspected.
const MAX_ENV_IMPORTS: usize = 256;

/// Parses a module.
pub(super) fn inspect_module(bytes: &[u8]) -> wasmparser::Result<ModuleSummary> {
    let mut summary = ModuleSummary::default();
    for payload in Parser::new(0).parse_all(bytes) {
        match payload? {
            Payload::CustomSection(section) => {
                summary.has_type |= section.name().starts_with("component-type");
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    summary.add_export(&export?);
                }
            }
            Payload::MemorySection(memories) => {
                for memory in memories {
                    summary.has_memory64 |= memory?.memory64;
                }
            }
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    summary.add_import(&import?);
                }
            }
            _ => {}
        }
    }
    Ok(summary)
}

impl ModuleSummary {
    fn add_export(&mut self, export: &Export<'_>) {
        if export.kind != ExternalKind::Func {
            return;
        }
        if let Some((interface, function)) = ContractInterface::from_export(export.name)
            && let Some((version, _)) = function.split_once('#')
        {
            self.contract
                .entry(version.to_owned())
                .or_default()
                .insert(interface);
        }
        self.has_start |= export.name == "_start";
        self.names.exports.insert(export.name.to_owned());
    }

    fn add_import(&mut self, import: &Import<'_>) {
        let Import { module, name, ty } = *import;
        if (module, name) == (ENV_MODULE, "abort") {
            self.imports_abort = true;
            return;
        }
        if let TypeRef::Memory(memory) = ty {
            self.has_memory64 |= memory.memory64;
        }
        if module == WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME
            && self.preview1_imports.len() < MAX_ENV_IMPORTS
        {
            self.preview1_imports.insert(name.to_owned());
        }
        if module == ENV_MODULE && self.names.env.len() < MAX_ENV_IMPORTS {
            self.names.env.insert(name.to_owned());
        }
        let mut imports = self.names.imports.iter();
        if !imports.any(|(imported, _)| imported == module) {
            self.names
                .imports
                .push((module.to_owned(), name.to_owned()));
        }
    }
}
