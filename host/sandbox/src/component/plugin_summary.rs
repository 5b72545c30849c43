//! Describes a plugin file for people. Runs in the compiler child process, because the file is
//! untrusted.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use toolbay_model::text::clean_line;
use wasmparser::{ExternalKind, KnownCustom, Parser, Payload};
use wit_component::{DecodedWasm, WitPrinter, decode};

use crate::component::adapter::PluginFileKind;
use crate::component::wasm_proposals::WasmProposals;

/// Maximum size of the printed WIT text, in bytes.
const MAX_WIT_BYTES: usize = 256 << 10;

/// Maximum number of imports, exports and tools in a shortened description.
const MAX_LISTED_NAMES: usize = 1_000;

/// The custom section with the description of a component.
const DESCRIPTION_SECTION: &str = "description";

/// Maximum size of a retained description, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 200;

/// The name of the library that converts core modules to components, in the list of producers.
const ENCODER_NAME: &str = "wit-component ";

/// Maximum size of each name in a shortened description, in bytes.
const MAX_NAME_BYTES: usize = 100;

/// Human-readable information about a plugin file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct PluginSummary {
    /// The kind of the file, for people.
    pub kind: String,
    /// The languages and tools that made it, with their versions.
    pub made_with: Vec<String>,
    /// The proposals for WebAssembly that it uses: `WebAssembly GC`, `exceptions`.
    #[serde(default)]
    pub uses: Vec<String>,
    /// The purpose, on one line: the custom section `description`, which tools such as `wasm-tools
    /// metadata add` write.
    #[serde(default)]
    pub description: Option<String>,
    /// The interfaces that it imports.
    pub imports: Vec<String>,
    /// The names that it exports.
    pub exports: Vec<String>,
    /// Its types in WIT, if they can be printed.
    pub wit: Option<String>,
    /// The length of its compiled code, in bytes.
    pub code: u64,
}

impl PluginSummary {
    pub(crate) fn new(
        kind: PluginFileKind,
        uses: &WasmProposals,
        component: &[u8],
        code: usize,
    ) -> Self {
        let uses = uses.names();
        let mut summary = Self {
            kind: kind.to_string(),
            uses,
            code: code as u64,
            ..Self::default()
        };
        // The file compiled, so parsing it cannot fail.
        summary.read_sections(component).unwrap_or_default();
        if kind != PluginFileKind::Component {
            // The host used it to convert the file to a component.
            summary
                .made_with
                .retain(|tool| !tool.starts_with(ENCODER_NAME));
        }
        summary.wit = print_wit(component).filter(|wit| wit.len() <= MAX_WIT_BYTES);
        summary
    }

    /// Returns a copy that has only the beginning of each list and name, and no types. It is at
    /// most 1 MiB, whatever the file contains.
    pub(crate) fn truncate(self) -> Self {
        let truncate_names = |names: Vec<String>| {
            names
                .into_iter()
                .take(MAX_LISTED_NAMES)
                .map(|name| clean_line(&name, MAX_NAME_BYTES))
                .collect()
        };
        let made_with = truncate_names(self.made_with);
        let imports = truncate_names(self.imports);
        let exports = truncate_names(self.exports);
        Self {
            made_with,
            imports,
            exports,
            wit: None,
            ..self
        }
    }

    fn read_sections(&mut self, component: &[u8]) -> wasmparser::Result<()> {
        let mut made_with = BTreeSet::new();
        let mut depth = 0_usize;
        // The core module that is being read. Core modules are not nested.
        let mut module: Option<CoreModule> = None;
        for payload in Parser::new(0).parse_all(component) {
            match payload? {
                Payload::ModuleSection { .. } => {
                    depth += 1;
                    module = Some(CoreModule::default());
                }
                Payload::ComponentSection { .. } => depth += 1,
                Payload::ExportSection(exports) => {
                    for export in exports {
                        let export = export?;
                        if let Some(module) = &mut module {
                            module.has_memory |= export.kind == ExternalKind::Memory;
                            module.provides_wasi |= is_preview1_function(export.name);
                        }
                    }
                }
                Payload::End(_) => {
                    depth = depth.saturating_sub(1);
                    if let Some(module) = module.take().filter(|module| !module.is_adapter()) {
                        made_with.extend(module.made_with);
                    }
                }
                Payload::ComponentImportSection(imports) if depth == 0 => {
                    for import in imports {
                        self.imports.push(import?.name.name.to_owned());
                    }
                }
                Payload::ComponentExportSection(exports) if depth == 0 => {
                    for export in exports {
                        self.exports.push(export?.name.name.to_owned());
                    }
                }
                // The component's own section can come before or after those of its modules.
                Payload::CustomSection(section) if section.name() == DESCRIPTION_SECTION => {
                    let text = String::from_utf8_lossy(section.data());
                    let text = Some(clean_line(text.trim(), MAX_DESCRIPTION_BYTES))
                        .filter(|text| !text.is_empty());
                    if depth == 0 || self.description.is_none() {
                        self.description = text;
                    }
                }
                Payload::CustomSection(section) => {
                    let KnownCustom::Producers(fields) = section.as_known() else {
                        continue;
                    };
                    for field in fields {
                        for value in field?.values {
                            let value = value?;
                            let producer = format!("{} {}", value.name, value.version)
                                .trim()
                                .to_owned();
                            match &mut module {
                                Some(module) => module.made_with.push(producer),
                                None => drop(made_with.insert(producer)),
                            }
                        }
                    }
                }
                _ => {}
            }
        }
        self.made_with = made_with.into_iter().collect();
        Ok(())
    }
}

/// The content of the sections of a core module.
#[derive(Default)]
struct CoreModule {
    /// The languages and tools that made it.
    made_with: Vec<String>,
    /// True if it exports a memory.
    has_memory: bool,
    /// True if it exports functions of WASI 0.1.
    provides_wasi: bool,
}

impl CoreModule {
    /// Returns whether the module is an adapter between WASI 0.1 and WASI 0.2, which works on the
    /// memory of another module. The tools that built it are not those that built the plugin.
    fn is_adapter(&self) -> bool {
        self.provides_wasi && !self.has_memory
    }
}

/// Returns whether a function of WASI 0.1 has this name. Some names are missing: those that
/// functions of C libraries also have.
fn is_preview1_function(name: &str) -> bool {
    ["fd_", "path_"].iter().any(|start| name.starts_with(start))
        || matches!(
            name,
            "args_get"
                | "args_sizes_get"
                | "clock_res_get"
                | "clock_time_get"
                | "environ_get"
                | "environ_sizes_get"
                | "poll_oneoff"
                | "proc_exit"
                | "random_get"
        )
}

fn print_wit(component: &[u8]) -> Option<String> {
    let Ok(DecodedWasm::Component(resolve, world)) = decode(component) else {
        return None;
    };
    let package = resolve.worlds.get(world)?.package?;
    let mut printer = WitPrinter::default();
    printer.print(&resolve, package, &[]).ok()?;
    Some(printer.output.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::component::adapter::componentize;

    #[test]
    fn only_the_makers_of_the_file_itself_are_named() {
        let import = r#"(import "wasi_snapshot_preview1" "proc_exit" (func (param i32)))"#;
        let command = |producers: &str| {
            let start = r#"(func (export "_start") (call 0 (i32.const 0)))"#;
            let module =
                format!(r#"(module {import} (memory (export "memory") 1) {start} {producers})"#);
            componentize(wat::parse_str(module).unwrap(), "").unwrap()
        };
        let made_with = |kind, component: &[u8]| {
            PluginSummary::new(
                kind,
                &WasmProposals::detect(component).unwrap(),
                component,
                0,
            )
            .made_with
        };
        let zig = command(r#"(@producers (language "Zig" "") (processed-by "clang" "21.1.0"))"#);
        assert_eq!(made_with(zig.kind, &zig.component), ["Zig", "clang 21.1.0"]);
        let plain = command("");
        assert!(made_with(plain.kind, &plain.component).is_empty());
        // The same file, converted by its author: the adapter in it is not part of the plugin
        // either.
        let made = made_with(PluginFileKind::Component, &zig.component);
        assert!(
            made.iter().any(|tool| tool.starts_with(ENCODER_NAME)),
            "{made:?}"
        );
        assert!(!made.iter().any(|tool| tool.contains("rustc")), "{made:?}");
    }
}
