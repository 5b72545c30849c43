//! The names that a component imports and exports.

use wasmparser::{Encoding, Parser, Payload};

/// The names that a component or core module imports and exports, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComponentInterface {
    /// True for a component, false for a core module.
    pub is_component: bool,
    /// The imports. Those of a core module have the form `module/name`.
    pub imports: Vec<String>,
    /// The exports.
    pub exports: Vec<String>,
}

impl ComponentInterface {
    /// Reads the names of the outermost component or module.
    ///
    /// # Errors
    ///
    /// The bytes are not a component or a core module.
    pub fn read(wasm: &[u8]) -> Result<Self, String> {
        let mut interface = Self::default();
        let mut depth = 0_usize;
        for payload in Parser::new(0).parse_all(wasm) {
            let payload = payload.map_err(|why| why.message().to_owned())?;
            match payload {
                Payload::Version { encoding, .. } if depth == 0 => {
                    interface.is_component = encoding == Encoding::Component;
                }
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                payload if depth == 0 => interface
                    .add(payload)
                    .map_err(|why| why.message().to_owned())?,
                _ => {}
            }
        }
        Ok(interface)
    }

    fn add(&mut self, payload: Payload<'_>) -> wasmparser::Result<()> {
        match payload {
            Payload::ComponentImportSection(section) => {
                for import in section {
                    self.imports.push(import?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section {
                    self.exports.push(export?.name.name.to_owned());
                }
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import?;
                    self.imports
                        .push(format!("{}/{}", import.module, import.name));
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    self.exports.push(export?.name.to_owned());
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_outermost_component_are_read() {
        // A component with the import "a", the export "b" of it, and a core module inside.
        let mut component = b"\0asm\x0d\0\x01\0".to_vec();
        let module = b"\0asm\x01\0\0\0";
        component.extend([1, 8]);
        component.extend(module);
        // Import section: one import of a type, `(type (sub resource))`.
        component.extend([10, 6, 1, 0, 1, b'a', 3, 1]);
        // Export section: one export of that type.
        component.extend([11, 7, 1, 0, 1, b'b', 3, 0, 0]);
        let interface = ComponentInterface::read(&component).unwrap();
        assert!(interface.is_component);
        assert_eq!(interface.imports, ["a"]);
        assert_eq!(interface.exports, ["b"]);
        let core = ComponentInterface::read(module).unwrap();
        assert_eq!(core, ComponentInterface::default());
        assert!(ComponentInterface::read(b"\0asm").is_err());
        assert!(ComponentInterface::read(b"text").is_err());
    }
}
