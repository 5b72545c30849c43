//! Determines whether components with async functions can run here, and the resources that they
//! need. Runs in the compiler child process.
//!
//! Each call of such a component is a task, which can start others. Only one task at a time can
//! enter an instance within the component, and a task that waits in the middle of its code keeps
//! its native stack. So a component has as many stacks as it has instances with functions. Their
//! number is bounded here, and each call pays for them from its memory budget.

use toolbay_model::text::{clean_line, format_thousands};
use wasmparser::{
    BinaryReaderError, CanonicalFunction, ComponentAlias, ComponentExternalKind, ComponentInstance,
    ComponentOuterAliasKind, ComponentTypeRef, Parser, Payload,
};

use crate::component::wasi_p3_names::{is_wasi_p3, is_wasi_p3_candidate};

/// Maximum number of instances with functions within a component with async functions. Tools that
/// compose components create one for each component, and language toolchains create one.
pub(crate) const MAX_ASYNC_INSTANCES: u32 = 16;

/// Maximum number of WASI 0.3 interfaces that a message names.
const MAX_LISTED_INTERFACES: usize = 4;

/// Maximum size of one of these names, in bytes.
const MAX_NAME_BYTES: usize = 100;

/// The WASI 0.3 requirements of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WasiP3Requirements {
    /// It uses no interfaces of WASI 0.3.
    Nothing,
    /// It uses interfaces of WASI 0.3, which only the engine for components with async functions
    /// provides.
    Required,
    /// It uses unsupported interfaces. The text is the reason.
    Unsupported(String),
}

/// Returns the WASI 0.3 requirements of a component. Release candidates of WASI 0.3 are
/// incompatible with the final version.
pub(crate) fn wasi_p3_requirements(component: &[u8]) -> WasiP3Requirements {
    let mut names = Vec::new();
    // The compiler rejects a component that cannot be parsed.
    read_names(component, &mut names).unwrap_or_default();
    names.retain(|name| is_wasi_p3(name));
    if names.is_empty() {
        return WasiP3Requirements::Nothing;
    }
    names.retain(|name| is_wasi_p3_candidate(name));
    let further = names.len().saturating_sub(MAX_LISTED_INTERFACES);
    let listed: Vec<String> = names
        .iter()
        .take(MAX_LISTED_INTERFACES)
        .map(|name| clean_line(name, MAX_NAME_BYTES))
        .collect();
    let interfaces = match (listed.is_empty(), further) {
        (true, _) => return WasiP3Requirements::Required,
        (false, 0) => listed.join(", "),
        (false, further) => format!(
            "{} and {} more",
            listed.join(", "),
            format_thousands(further as u64)
        ),
    };
    WasiP3Requirements::Unsupported(format!(
        "needs a release candidate of WASI 0.3, which Toolbay does not offer: {interfaces} (build it with a newer toolchain, for \
         WASI 0.3.0)"
    ))
}

/// Collects the names of the imports and exports of a component.
fn read_names(component: &[u8], names: &mut Vec<String>) -> Result<(), BinaryReaderError> {
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(component) {
        match payload? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(imports) if depth == 0 => {
                for import in imports {
                    names.push(import?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(exports) if depth == 0 => {
                for export in exports {
                    names.push(export?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the number of instances with functions within a valid component with async functions.
///
/// # Errors
///
/// The number exceeds the limit or cannot be determined.
pub(crate) fn count_async_instances(component: &[u8]) -> Result<u32, String> {
    let counted = count_instances(component).map_err(|error| error.to_string())?;
    match counted {
        Some(count) if count <= u64::from(MAX_ASYNC_INSTANCES) => {
            Ok(u32::try_from(count).unwrap_or(MAX_ASYNC_INSTANCES))
        }
        Some(count) => Err(format!(
            "has async functions, and is composed of {} components with functions, but at most {MAX_ASYNC_INSTANCES} are allowed",
            format_thousands(count)
        )),
        None => {
            Err("has async functions, and makes instances of a component that it imports, which are not counted and \
                     therefore not allowed"
                .to_owned())
        }
    }
}

/// A nested component that has been read in part.
#[derive(Default)]
struct ComponentScope {
    /// The number of instances with functions that one instance of each of its components contains,
    /// by index. `None` if unknown.
    components: Vec<Option<u64>>,
    /// The same number for each instance that it creates, in order.
    instances: Vec<Option<u64>>,
    /// True if it lifts functions itself.
    has_functions: bool,
}

impl ComponentScope {
    fn total(&self) -> Option<u64> {
        let own = u64::from(self.has_functions);
        self.instances
            .iter()
            .try_fold(own, |sum, count| Some(sum.saturating_add((*count)?)))
    }
}

/// Returns the number of instances with functions, or `None` if it depends on imported components.
fn count_instances(component: &[u8]) -> Result<Option<u64>, BinaryReaderError> {
    // Core modules also have an entry, so that each `End` payload matches one entry.
    let mut open = vec![Some(ComponentScope::default())];
    let mut has_payload = false;
    for payload in Parser::new(0).parse_all(component) {
        let payload = payload?;
        match &payload {
            Payload::ModuleSection { .. } => open.push(None),
            Payload::ComponentSection { .. } => open.push(Some(ComponentScope::default())),
            Payload::End(_) if open.len() > 1 => {
                let finished = open.pop().flatten();
                if let (Some(scope), Some(Some(parent))) = (finished, open.last_mut()) {
                    parent.components.push(scope.total());
                }
            }
            _ => read_section(&payload, &mut open)?,
        }
        has_payload = true;
    }
    Ok(open
        .first()
        .filter(|_| has_payload)
        .and_then(Option::as_ref)
        .and_then(ComponentScope::total))
}

/// Reads a section of the innermost open component.
fn read_section(
    payload: &Payload<'_>,
    open: &mut [Option<ComponentScope>],
) -> Result<(), BinaryReaderError> {
    let Some((Some(scope), ancestors)) = open.split_last_mut() else {
        return Ok(());
    };
    let count_at = |scope: &ComponentScope, index: u32| {
        scope.components.get(index as usize).copied().flatten()
    };
    match payload {
        Payload::ComponentImportSection(imports) => {
            for import in imports.clone() {
                if matches!(import?.ty, ComponentTypeRef::Component(_)) {
                    scope.components.push(None);
                }
            }
        }
        Payload::ComponentAliasSection(aliases) => {
            for alias in aliases.clone() {
                match alias? {
                    ComponentAlias::InstanceExport {
                        kind: ComponentExternalKind::Component,
                        ..
                    } => {
                        scope.components.push(None);
                    }
                    ComponentAlias::Outer {
                        kind: ComponentOuterAliasKind::Component,
                        count,
                        index,
                    } => {
                        let target = match count.checked_sub(1) {
                            None => count_at(scope, index),
                            Some(out) => {
                                let outer = ancestors
                                    .iter()
                                    .rev()
                                    .nth(out as usize)
                                    .and_then(Option::as_ref);
                                outer.and_then(|outer| count_at(outer, index))
                            }
                        };
                        scope.components.push(target);
                    }
                    _ => {}
                }
            }
        }
        Payload::ComponentExportSection(exports) => {
            for export in exports.clone() {
                let export = export?;
                // An exported component gets a new index.
                if export.kind == ComponentExternalKind::Component {
                    scope.components.push(count_at(scope, export.index));
                }
            }
        }
        Payload::ComponentInstanceSection(instances) => {
            for instance in instances.clone() {
                if let ComponentInstance::Instantiate {
                    component_index, ..
                } = instance?
                {
                    scope.instances.push(count_at(scope, component_index));
                }
            }
        }
        Payload::ComponentCanonicalSection(functions) => {
            for function in functions.clone() {
                scope.has_functions |= matches!(function?, CanonicalFunction::Lift { .. });
            }
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    const MODULE: &str = r#"(core module $m (func (export "f"))) (core instance $i (instantiate $m))
        (func (export "f") (canon lift (core func $i "f")))"#;

    fn counted(text: &str) -> Option<u64> {
        count_instances(&wat::parse_str(text).unwrap()).unwrap()
    }

    #[test]
    fn instances_with_functions_are_counted_wherever_their_components_are_from() {
        assert_eq!(counted("(component)"), Some(0));
        assert_eq!(counted(&format!("(component {MODULE})")), Some(1));
        let twice = "(instance (instantiate $c)) (instance (instantiate $c))";
        assert_eq!(
            counted(&format!("(component (component $c {MODULE}) {twice})")),
            Some(2)
        );
        assert_eq!(
            counted(&format!(
                "(component (component $c {MODULE}) {MODULE} {twice})"
            )),
            Some(3)
        );
        let nested = format!("(component $d (component $c {MODULE}) {twice} {MODULE})");
        let thrice =
            "(instance (instantiate $d)) (instance (instantiate $d)) (instance (instantiate $d))";
        assert_eq!(counted(&format!("(component {nested} {thrice})")), Some(9));
        // From outside the component.
        let outer = format!("(component (component $c {MODULE}) (component $d {twice}) {thrice})");
        assert_eq!(counted(&outer), Some(6));
        // Components without lifted functions, such as those that wit-component creates for an
        // exported interface, are not counted.
        let shim = r#"(component $s (import "f" (func $f)) (export "g" (func $f)))"#;
        assert_eq!(
            counted(&format!(
                r#"(component {MODULE} {shim} (instance (instantiate $s (with "f" (func 0)))))"#
            )),
            Some(1)
        );
    }

    #[test]
    fn instances_of_imported_components_make_the_count_unknown() {
        assert_eq!(
            counted(r#"(component (import "c" (component $c)) (instance (instantiate $c)))"#),
            None
        );
        let exported = r#"(component
            (component $a (component $c) (export "c" (component $c)))
            (instance $i (instantiate $a))
            (alias export $i "c" (component $c))
            (instance (instantiate $c)))"#;
        assert_eq!(counted(exported), None);
        let why = count_async_instances(&wat::parse_str(exported).unwrap()).unwrap_err();
        assert!(why.contains("of a component that it imports"), "{why}");
    }

    #[test]
    fn powers_of_two_are_too_many() {
        let mut text = format!("(component $c0 {MODULE})");
        for n in 1..=40 {
            let below = format!("(alias outer $root $c{} (component $b))", n - 1);
            let _ = write!(
                text,
                "(component $c{n} {below} (instance (instantiate $b)) (instance (instantiate $b)))"
            );
        }
        let text = format!("(component $root {text} (instance (instantiate $c40)))");
        let why = count_async_instances(&wat::parse_str(text).unwrap()).unwrap_err();
        assert!(
            why.contains("composed of 1,099,511,627,776 components"),
            "{why}"
        );
    }

    #[test]
    fn wasi_0_3_is_recognised_by_the_version_of_an_interface_of_wasi() {
        let wanted = |imports: &[&str]| {
            let imports: Vec<String> = imports
                .iter()
                .map(|name| format!("(import \"{name}\" (instance))"))
                .collect();
            wasi_p3_requirements(
                &wat::parse_str(format!("(component {})", imports.concat())).unwrap(),
            )
        };
        assert_eq!(
            wanted(&[
                "wasi:cli/stdout@0.2.6",
                "acme:cli/stdout@0.3.0",
                "wasi:cli/stderr"
            ]),
            WasiP3Requirements::Nothing
        );
        assert_eq!(
            wanted(&["wasi:cli/stdout@0.3.0", "wasi:cli/stderr@0.2.0"]),
            WasiP3Requirements::Required
        );
        let many: Vec<String> = (0..6)
            .map(|n| format!("wasi:cli/s{n}@0.3.0-rc-2026-03-15"))
            .collect();
        let many = many
            .iter()
            .map(String::as_str)
            .chain(["wasi:cli/stdout@0.3.0"])
            .collect::<Vec<_>>();
        let WasiP3Requirements::Unsupported(why) = wanted(&many) else {
            panic!()
        };
        assert!(
            why.starts_with(
                "needs a release candidate of WASI 0.3, which Toolbay does not offer: "
            ),
            "{why}"
        );
        assert!(
            why.contains("wasi:cli/s3@0.3.0-rc-2026-03-15 and 2 more (build"),
            "{why}"
        );
    }
}
