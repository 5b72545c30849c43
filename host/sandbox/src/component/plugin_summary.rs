//! Describes a plugin file for people. Runs in the compiler child process, because the file is
//! untrusted.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use toolbay_model::text::clean_line;
use wasmparser::{KnownCustom, Parser, Payload};
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
    pub(crate) fn new(kind: PluginFileKind, uses: &WasmProposals, component: &[u8], code: usize) -> Self {
        let uses = uses.names();
        let mut about = Self { kind: kind.to_string(), uses, code: code as u64, ..Self::default() };
        // The file compiled, so parsing it cannot fail.
        about.read_sections(component).unwrap_or_default();
        about.wit = print_wit(component).filter(|wit| wit.len() <= MAX_WIT_BYTES);
        about
    }

    /// Returns a copy that has only the beginning of each list and name, and no types. It is at
    /// most 1 MiB, whatever the file contains.
    pub(crate) fn truncated(self) -> Self {
        let short = |names: Vec<String>| {
            names.into_iter().take(MAX_LISTED_NAMES).map(|name| clean_line(&name, MAX_NAME_BYTES)).collect()
        };
        let (made_with, imports, exports) = (short(self.made_with), short(self.imports), short(self.exports));
        Self { made_with, imports, exports, wit: None, ..self }
    }

    fn read_sections(&mut self, component: &[u8]) -> wasmparser::Result<()> {
        let mut made_with = BTreeSet::new();
        let mut depth = 0_usize;
        for payload in Parser::new(0).parse_all(component) {
            match payload? {
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
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
                    let text = Some(clean_line(text.trim(), MAX_DESCRIPTION_BYTES)).filter(|text| !text.is_empty());
                    if depth == 0 || self.description.is_none() {
                        self.description = text;
                    }
                }
                Payload::CustomSection(section) => {
                    let KnownCustom::Producers(fields) = section.as_known() else { continue };
                    for field in fields {
                        for value in field?.values {
                            let value = value?;
                            made_with.insert(format!("{} {}", value.name, value.version).trim().to_owned());
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

fn print_wit(component: &[u8]) -> Option<String> {
    let Ok(DecodedWasm::Component(resolve, world)) = decode(component) else { return None };
    let package = resolve.worlds.get(world)?.package?;
    let mut printer = WitPrinter::default();
    printer.print(&resolve, package, &[]).ok()?;
    Some(printer.output.to_string())
}
