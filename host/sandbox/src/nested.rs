//! A component whose state is in a component within it: componentize-qjs makes such files.
//!
//! The library that writes state into files looks only at the core modules of a component itself. If all memories are in a
//! single component within, that one is given to it, and put back. Runs in the compiling child.

use std::ops::Range;

use wasmparser::{
    BinaryReader, ComponentAlias, ComponentExternalKind, ComponentInstance, Parser, Payload, SectionLimited,
};

/// The sections of a component that matter here.
const MODULE: u8 = 1;
const COMPONENT: u8 = 4;
const INSTANCE: u8 = 5;
const ALIAS: u8 = 6;
const IMPORT: u8 = 10;
const EXPORT: u8 = 11;

/// The sort of instances.
const OF_INSTANCES: u8 = 5;

/// Bytes before the first section.
const PREAMBLE: usize = 8;

/// A component within another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Nested {
    /// Its section, with the section's header.
    section: Range<usize>,
    /// Its bytes.
    bytes: Range<usize>,
    /// The index of its instance.
    instance: u32,
    /// How many instances there are.
    instances: u32,
}

impl Nested {
    /// The component within `outer` that has all its state; `None` if the state is in `outer` itself, or if this cannot be
    /// told.
    pub(crate) fn find(outer: &[u8]) -> Option<Self> {
        let (mut components, mut made, mut instances) = (Vec::new(), Vec::new(), 0_u32);
        for (id, section, bytes) in sections(outer)? {
            let data = outer.get(bytes.clone())?;
            match id {
                MODULE => return None,
                COMPONENT => components.push((section, bytes, has_state(data)?)),
                INSTANCE => {
                    for instance in items::<ComponentInstance<'_>>(data)? {
                        if let ComponentInstance::Instantiate { component_index, .. } = instance.ok()? {
                            made.push((component_index, instances));
                        }
                        instances += 1;
                    }
                }
                ALIAS => {
                    for alias in items::<ComponentAlias<'_>>(data)? {
                        match alias.ok()? {
                            ComponentAlias::InstanceExport { kind: ComponentExternalKind::Instance, .. } => {
                                instances += 1;
                            }
                            // Another component of which nobody knows what it has.
                            ComponentAlias::InstanceExport { kind: ComponentExternalKind::Component, .. }
                            | ComponentAlias::Outer { kind: wasmparser::ComponentOuterAliasKind::Component, .. } => {
                                return None;
                            }
                            _ => {}
                        }
                    }
                }
                IMPORT => {
                    for import in items::<wasmparser::ComponentImport<'_>>(data)? {
                        match import.ok()?.ty.kind() {
                            ComponentExternalKind::Instance => instances += 1,
                            ComponentExternalKind::Component => return None,
                            _ => {}
                        }
                    }
                }
                EXPORT => {
                    for export in items::<wasmparser::ComponentExport<'_>>(data)? {
                        match export.ok()?.kind {
                            ComponentExternalKind::Instance => instances += 1,
                            ComponentExternalKind::Component => return None,
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        let mut stateful = components.into_iter().enumerate().filter(|(_, (.., has_state))| *has_state);
        let (index, (section, bytes, _)) = stateful.next()?;
        if stateful.next().is_some() {
            return None;
        }
        let mut of_it = made.into_iter().filter(|(component, _)| *component as usize == index);
        let (_, instance) = of_it.next()?;
        if of_it.next().is_some() {
            return None;
        }
        Some(Self { section, bytes, instance, instances })
    }

    /// The component within.
    pub(crate) fn of<'a>(&self, outer: &'a [u8]) -> &'a [u8] {
        outer.get(self.bytes.clone()).unwrap_or_default()
    }

    /// `outer` with another component in its place.
    pub(crate) fn replaced(&self, outer: &[u8], by: &[u8]) -> Vec<u8> {
        let mut replaced = outer.get(..self.section.start).unwrap_or_default().to_vec();
        section(COMPONENT, by, &mut replaced);
        replaced.extend(outer.get(self.section.end..).unwrap_or_default());
        replaced
    }

    /// Lets `outer` export what the instance within exports by this name.
    pub(crate) fn exporting(&self, mut outer: Vec<u8>, name: &str) -> Vec<u8> {
        let mut alias = vec![1, OF_INSTANCES, 0];
        number(self.instance, &mut alias);
        text(name, &mut alias);
        section(ALIAS, &alias, &mut outer);
        let mut export = vec![1, 0];
        text(name, &mut export);
        export.push(OF_INSTANCES);
        number(self.instances, &mut export);
        export.push(0);
        section(EXPORT, &export, &mut outer);
        outer
    }
}

/// The sections of a component: their ids, where they are, and where their contents are.
fn sections(component: &[u8]) -> Option<Vec<(u8, Range<usize>, Range<usize>)>> {
    let mut found = Vec::new();
    let mut at = PREAMBLE;
    while at < component.len() {
        let mut reader = BinaryReader::new(component.get(at..)?, 0);
        let id = reader.read_u8().ok()?;
        let length = reader.read_var_u32().ok()? as usize;
        let start = at + reader.original_position();
        let end = start.checked_add(length).filter(|end| *end <= component.len())?;
        found.push((id, at..end, start..end));
        at = end;
    }
    Some(found)
}

fn items<'a, T: wasmparser::FromReader<'a>>(data: &'a [u8]) -> Option<SectionLimited<'a, T>> {
    SectionLimited::new(BinaryReader::new(data, 0)).ok()
}

/// Whether a component has memories, globals that change, or something that runs when it is instantiated.
fn has_state(component: &[u8]) -> Option<bool> {
    for payload in Parser::new(0).parse_all(component) {
        match payload.ok()? {
            Payload::MemorySection(_) | Payload::StartSection { .. } | Payload::ComponentStartSection { .. } => {
                return Some(true);
            }
            Payload::GlobalSection(globals) => {
                for global in globals {
                    if global.ok()?.ty.mutable {
                        return Some(true);
                    }
                }
            }
            _ => {}
        }
    }
    Some(false)
}

fn section(id: u8, contents: &[u8], to: &mut Vec<u8>) {
    to.push(id);
    number(u32::try_from(contents.len()).unwrap_or(u32::MAX), to);
    to.extend(contents);
}

fn text(text: &str, to: &mut Vec<u8>) {
    number(u32::try_from(text.len()).unwrap_or(u32::MAX), to);
    to.extend(text.as_bytes());
}

/// Writes LEB128.
fn number(mut number: u32, to: &mut Vec<u8>) {
    loop {
        let byte = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            to.push(byte);
            return;
        }
        to.push(byte | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use wasmparser::Validator;

    use super::*;

    /// A component around one with a memory, which exports an instance.
    const OUTER: &str = r#"(component
        (import "a:b/c" (instance $host (export "f" (func))))
        (component $shim (core module $m (func (export "f"))))
        (component $state
            (import "a:b/c" (instance $host (export "f" (func))))
            (core module $m (memory (export "m") 1) (func (export "f")))
            (core instance $i (instantiate $m))
            (func $f (canon lift (core func $i "f")))
            (instance $e (export "f" (func $f)))
            (export "d:e/f" (instance $e)))
        (instance $s (instantiate $state (with "a:b/c" (instance $host))))
        (alias export $s "d:e/f" (instance $e))
        (export "d:e/f" (instance $e)))"#;

    #[test]
    fn the_component_with_the_state_is_found_replaced_and_shown() {
        let outer = wat::parse_str(OUTER).unwrap();
        let nested = Nested::find(&outer).unwrap();
        assert_eq!((nested.instance, nested.instances), (1, 4));
        assert_eq!(nested.replaced(&outer, nested.of(&outer)), outer);
        // Without its own export, the one that is added is the only one.
        let other = wat::parse_str(
            OUTER
                .replace(
                    "(export \"d:e/f\" (instance $e)))\n        (instance",
                    "(export \"g:h/i\" (instance $e)))\n        (instance",
                )
                .replace("(alias export $s \"d:e/f\" (instance $e))\n        (export \"d:e/f\" (instance $e))", ""),
        )
        .unwrap();
        let nested = Nested::find(&other).unwrap();
        let shown = nested.exporting(other, "g:h/i");
        Validator::new().validate_all(&shown).unwrap();
    }

    #[test]
    fn several_components_with_state_and_none_are_not_taken_apart() {
        let two = OUTER
            .replace("(func (export \"f\"))))\n        (component $state", "(memory 1)))\n        (component $state");
        assert_ne!(two, OUTER);
        let twice = OUTER.replace(
            "(alias export",
            "(instance (instantiate $state (with \"a:b/c\" (instance $host)))) (alias export",
        );
        for text in [&two, &twice, "(component)", "(component (core module (memory 1)))"] {
            assert_eq!(Nested::find(&wat::parse_str(text).unwrap()), None, "{text}");
        }
        assert_eq!(Nested::find(b"\0asm\x0d\0\x01\0\x04\xff"), None);
    }
}
