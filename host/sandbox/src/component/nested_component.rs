//! Components whose state is in a nested component, such as those that componentize-qjs builds.
//!
//! The library that writes state into components processes only the core modules of the outermost
//! component. If all state is in a single nested component, that component is extracted, processed
//! and put back. Runs in the compiler child process.

use std::ops::Range;

use wasmparser::{
    BinaryReader, ComponentAlias, ComponentExternalKind, ComponentInstance, Operator, Parser,
    Payload, SectionLimited,
};

/// Ids of the relevant sections of a component.
const MODULE_SECTION: u8 = 1;
const COMPONENT_SECTION: u8 = 4;
const INSTANCE_SECTION: u8 = 5;
const ALIAS_SECTION: u8 = 6;
const IMPORT_SECTION: u8 = 10;
const EXPORT_SECTION: u8 = 11;

/// The sort of instances, in the binary format.
const INSTANCE_SORT: u8 = 5;

/// Size of the component preamble, in bytes.
const PREAMBLE_BYTES: usize = 8;

/// A component that is nested in another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NestedComponent {
    /// The range of its section, including the section header.
    section: Range<usize>,
    /// The range of its bytes.
    bytes: Range<usize>,
    /// The index of its instance.
    instance: u32,
    /// The number of instances in the outer component.
    instance_count: u32,
}

impl NestedComponent {
    /// Finds the nested component that has all the state of `outer`. Returns `None` if the state is
    /// in `outer` itself, or if this cannot be determined.
    pub(crate) fn find(outer: &[u8]) -> Option<Self> {
        let mut components = Vec::new();
        let mut created = Vec::new();
        let mut instance_count = 0_u32;
        for (id, section, bytes) in read_sections(outer)? {
            let data = outer.get(bytes.clone())?;
            match id {
                MODULE_SECTION => return None,
                COMPONENT_SECTION => components.push((section, bytes, has_state(data)?)),
                INSTANCE_SECTION => {
                    for instance in read_items::<ComponentInstance<'_>>(data)? {
                        if let ComponentInstance::Instantiate {
                            component_index, ..
                        } = instance.ok()?
                        {
                            created.push((component_index, instance_count));
                        }
                        instance_count += 1;
                    }
                }
                ALIAS_SECTION => {
                    for alias in read_items::<ComponentAlias<'_>>(data)? {
                        match alias.ok()? {
                            ComponentAlias::InstanceExport {
                                kind: ComponentExternalKind::Instance,
                                ..
                            } => {
                                instance_count += 1;
                            }
                            // This adds a component whose content is unknown.
                            ComponentAlias::InstanceExport {
                                kind: ComponentExternalKind::Component,
                                ..
                            }
                            | ComponentAlias::Outer {
                                kind: wasmparser::ComponentOuterAliasKind::Component,
                                ..
                            } => {
                                return None;
                            }
                            _ => {}
                        }
                    }
                }
                IMPORT_SECTION => {
                    for import in read_items::<wasmparser::ComponentImport<'_>>(data)? {
                        match import.ok()?.ty.kind() {
                            ComponentExternalKind::Instance => instance_count += 1,
                            ComponentExternalKind::Component => return None,
                            _ => {}
                        }
                    }
                }
                EXPORT_SECTION => {
                    for export in read_items::<wasmparser::ComponentExport<'_>>(data)? {
                        match export.ok()?.kind {
                            ComponentExternalKind::Instance => instance_count += 1,
                            ComponentExternalKind::Component => return None,
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        let mut stateful = components
            .into_iter()
            .enumerate()
            .filter(|(_, (.., has_state))| *has_state);
        let (index, (section, bytes, _)) = stateful.next()?;
        if stateful.next().is_some() {
            return None;
        }
        let mut matching_instances = created
            .into_iter()
            .filter(|(component, _)| *component as usize == index);
        let (_, instance) = matching_instances.next()?;
        if matching_instances.next().is_some() {
            return None;
        }
        Some(Self {
            section,
            bytes,
            instance,
            instance_count,
        })
    }

    /// Returns the bytes of the nested component.
    pub(crate) fn bytes_in<'a>(&self, outer: &'a [u8]) -> &'a [u8] {
        outer.get(self.bytes.clone()).unwrap_or_default()
    }

    /// Returns `outer` with its nested component replaced.
    pub(crate) fn replace(&self, outer: &[u8], replacement: &[u8]) -> Vec<u8> {
        let mut replaced = outer.get(..self.section.start).unwrap_or_default().to_vec();
        push_section(COMPONENT_SECTION, replacement, &mut replaced);
        replaced.extend(outer.get(self.section.end..).unwrap_or_default());
        replaced
    }

    /// Adds an export to `outer`: the export `name` of the nested instance.
    pub(crate) fn reexport(&self, mut outer: Vec<u8>, name: &str) -> Vec<u8> {
        let mut alias = vec![1, INSTANCE_SORT, 0];
        push_leb128(self.instance, &mut alias);
        push_text(name, &mut alias);
        push_section(ALIAS_SECTION, &alias, &mut outer);
        let mut export = vec![1, 0];
        push_text(name, &mut export);
        export.push(INSTANCE_SORT);
        push_leb128(self.instance_count, &mut export);
        export.push(0);
        push_section(EXPORT_SECTION, &export, &mut outer);
        outer
    }
}

/// A section of a component: its id, its range, and the range of its contents.
type SectionRange = (u8, Range<usize>, Range<usize>);

/// Returns the sections of a component.
fn read_sections(component: &[u8]) -> Option<Vec<SectionRange>> {
    let mut sections = Vec::new();
    let mut offset = PREAMBLE_BYTES;
    while offset < component.len() {
        let mut reader = BinaryReader::new(component.get(offset..)?, 0);
        let id = reader.read_u8().ok()?;
        let length = reader.read_var_u32().ok()? as usize;
        let start = offset + reader.original_position();
        let end = start
            .checked_add(length)
            .filter(|end| *end <= component.len())?;
        sections.push((id, offset..end, start..end));
        offset = end;
    }
    Some(sections)
}

fn read_items<'a, T: wasmparser::FromReader<'a>>(data: &'a [u8]) -> Option<SectionLimited<'a, T>> {
    SectionLimited::new(BinaryReader::new(data, 0)).ok()
}

/// Returns whether a component can keep state in an instance: in a memory that is not always empty,
/// in a mutable global or in a table.
fn has_state(component: &[u8]) -> Option<bool> {
    for payload in Parser::new(0).parse_all(component) {
        match payload.ok()? {
            Payload::MemorySection(memories) => {
                for memory in memories {
                    if memory.ok()?.initial > 0 {
                        return Some(true);
                    }
                }
            }
            Payload::GlobalSection(globals) => {
                for global in globals {
                    if global.ok()?.ty.mutable {
                        return Some(true);
                    }
                }
            }
            Payload::CodeSectionEntry(body) => {
                for operator in body.get_operators_reader().ok()? {
                    if changes_state(&operator.ok()?) {
                        return Some(true);
                    }
                }
            }
            _ => {}
        }
    }
    Some(false)
}

fn changes_state(operator: &Operator<'_>) -> bool {
    matches!(
        operator,
        Operator::MemoryGrow { .. }
            | Operator::TableSet { .. }
            | Operator::TableGrow { .. }
            | Operator::TableFill { .. }
            | Operator::TableCopy { .. }
            | Operator::TableInit { .. }
    )
}

fn push_section(id: u8, contents: &[u8], output: &mut Vec<u8>) {
    output.push(id);
    push_leb128(u32::try_from(contents.len()).unwrap_or(u32::MAX), output);
    output.extend(contents);
}

fn push_text(text: &str, output: &mut Vec<u8>) {
    push_leb128(u32::try_from(text.len()).unwrap_or(u32::MAX), output);
    output.extend(text.as_bytes());
}

/// Appends a number as LEB128.
fn push_leb128(mut number: u32, output: &mut Vec<u8>) {
    loop {
        let byte = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            output.push(byte);
            return;
        }
        output.push(byte | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use wasmparser::Validator;

    use super::*;

    /// Builds a component that contains one with a memory, and a stateless one.
    fn outer(shim: &str, instances: &str) -> Vec<u8> {
        let text = format!(
            r#"(component
                (import "a:b/c" (instance $host (export "f" (func))))
                (component $shim (core module $m {shim} (func (export "f"))))
                (component $state
                    (import "a:b/c" (instance $host (export "f" (func))))
                    (core module $m (memory (export "m") 1) (func (export "f")))
                    (core instance $i (instantiate $m))
                    (func $f (canon lift (core func $i "f")))
                    (instance $e (export "f" (func $f)))
                    (export "d:e/f" (instance $e)))
                (instance $s (instantiate $state (with "a:b/c" (instance $host))))
                {instances})"#
        );
        wat::parse_str(text).unwrap()
    }

    #[test]
    fn the_component_with_the_state_is_found_replaced_and_reexported() {
        for shim in [
            "",
            "(memory 0)",
            "(func $s) (start $s)",
            "(global i32 (i32.const 1))",
        ] {
            let alone = outer(shim, "");
            let nested = NestedComponent::find(&alone).unwrap();
            assert_eq!((nested.instance, nested.instance_count), (1, 2));
            assert_eq!(nested.replace(&alone, nested.bytes_in(&alone)), alone);
            Validator::new()
                .validate_all(nested.bytes_in(&alone))
                .unwrap();
            Validator::new()
                .validate_all(&nested.reexport(alone, "d:e/f"))
                .unwrap();
        }
        let exporting = outer(
            "",
            "(alias export $s \"d:e/f\" (instance $e)) (export \"g:h/i\" (instance $e))",
        );
        let nested = NestedComponent::find(&exporting).unwrap();
        assert_eq!((nested.instance, nested.instance_count), (1, 4));
        Validator::new()
            .validate_all(&nested.reexport(exporting, "d:e/f"))
            .unwrap();
    }

    #[test]
    fn components_without_a_single_stateful_component_are_left_alone() {
        let again = "(instance (instantiate $state (with \"a:b/c\" (instance $host))))";
        let whole = "(core module (memory 1))";
        let mut cases: Vec<Vec<u8>> = ["", "(core module (memory 1))"]
            .iter()
            .map(|inside| wat::parse_str(format!("(component {inside})")).unwrap())
            .collect();
        for shim in [
            "(memory 1)",
            "(global (mut i32) (i32.const 1))",
            "(memory 0) (func (drop (memory.grow (i32.const 1))))",
        ] {
            cases.push(outer(shim, ""));
        }
        cases.extend([
            outer("", again),
            outer("", whole),
            b"\0asm\x0d\0\x01\0\x04\xff".to_vec(),
        ]);
        for case in cases {
            assert_eq!(NestedComponent::find(&case), None);
        }
    }
}
