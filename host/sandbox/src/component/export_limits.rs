//! Counts the exports of a component before it is compiled. Runs in the compiler child process.
//!
//! Each exported function becomes a tool with its own schemas, and the host inspects every exported
//! item. A component of one megabyte can export a hundred thousand items.

use toolbay_model::text::format_thousands;
use wasmparser::component_types::ComponentEntityType;
use wasmparser::{BinaryReaderError, Parser, Payload, Validator, WasmFeatures};

/// Maximum number of functions that a component can export, including those in its interfaces.
const MAX_FUNCTIONS: usize = 4096;

/// Maximum number of other exported items, such as types.
const MAX_OTHER_ITEMS: usize = 16_384;

/// Maximum nesting depth of components and core modules. Tools that compose components nest only a
/// few levels.
const MAX_NESTING_DEPTH: usize = 100;

/// The number of exported items of a component.
#[derive(Debug, Default, PartialEq, Eq)]
struct ExportCounts {
    functions: usize,
    others: usize,
}

/// The kind of a component, as far as this check determines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ComponentKind {
    /// It is not valid. The compiler reports the reason.
    Invalid,
    /// It has only synchronous functions.
    Sync,
    /// It has async functions or uses related features.
    Async,
}

/// Rejects a component with too many exports, and determines its kind.
///
/// # Errors
///
/// Returns a message that names the exceeded limit.
pub(crate) fn check_exports(component: &[u8]) -> Result<ComponentKind, String> {
    if is_nested_too_deep(component) {
        return Err(format!(
            "contains components that are nested more than {MAX_NESTING_DEPTH} levels deep"
        ));
    }
    let all_features = WasmFeatures::all();
    let async_feature = WasmFeatures::CM_ASYNC;
    let counted = match count_exports(component, all_features.difference(async_feature)) {
        Ok(exports) => Ok((exports, ComponentKind::Sync)),
        Err(_) => {
            count_exports(component, all_features).map(|exports| (exports, ComponentKind::Async))
        }
    };
    let Ok((ExportCounts { functions, others }, kind)) = counted else {
        return Ok(ComponentKind::Invalid);
    };
    let too_many = |items: &str, n: usize, limit: usize| {
        let [count_text, limit_text] = [n, limit].map(|n| format_thousands(n as u64));
        Err(format!(
            "exports {count_text} {items}, but at most {limit_text} are allowed"
        ))
    };
    if functions > MAX_FUNCTIONS {
        too_many("functions", functions, MAX_FUNCTIONS)
    } else if others > MAX_OTHER_ITEMS {
        too_many("types and other items", others, MAX_OTHER_ITEMS)
    } else {
        Ok(kind)
    }
}

/// Returns whether components are nested so deeply that validating them takes minutes.
fn is_nested_too_deep(component: &[u8]) -> bool {
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(component).map_while(Result::ok) {
        match payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_NESTING_DEPTH {
            return true;
        }
    }
    false
}

/// Counts the exports and the items of exported instances. Does not check code.
fn count_exports(
    component: &[u8],
    features: WasmFeatures,
) -> Result<ExportCounts, BinaryReaderError> {
    let mut validator = Validator::new_with_features(features);
    let mut exports = ExportCounts::default();
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(component) {
        let payload = payload?;
        validator.payload(&payload)?;
        match payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentExportSection(section) if depth == 0 => {
                let Some(types) = validator.types(0) else {
                    continue;
                };
                for export in section {
                    let item = types.component_item_for_export(export?.name.name);
                    exports.add(item.map(|item| item.ty));
                    if let Some(ComponentEntityType::Instance(id)) = item.map(|item| item.ty) {
                        #[expect(
                            clippy::indexing_slicing,
                            reason = "the id comes from these types"
                        )]
                        let instance = &types[id];
                        instance
                            .exports
                            .values()
                            .for_each(|item| exports.add(Some(item.ty)));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(exports)
}

impl ExportCounts {
    fn add(&mut self, item: Option<ComponentEntityType>) {
        match item {
            Some(ComponentEntityType::Func(_)) => self.functions += 1,
            _ => self.others += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a component that exports `functions` functions, and one interface with
    /// `in_an_interface` functions.
    fn component(functions: usize, in_an_interface: usize) -> Vec<u8> {
        let exported: Vec<String> = (0..functions)
            .map(|n| format!("(export \"f{n}\" (func $f))"))
            .collect();
        let inner: Vec<String> = (0..in_an_interface)
            .map(|n| format!("(export \"g{n}\" (func $f))"))
            .collect();
        let text = format!(
            "(component (core module $m (func (export \"f\"))) (core instance $i (instantiate $m))
               (func $f (canon lift (core func $i \"f\"))) {} (instance $all {}) (export \"a:b/c\" (instance $all)))",
            exported.join(" "),
            inner.join(" ")
        );
        wat::parse_str(text).unwrap()
    }

    #[test]
    fn functions_are_counted_wherever_they_are() {
        assert_eq!(
            count_exports(&component(3, 4), WasmFeatures::all()).unwrap(),
            ExportCounts {
                functions: 7,
                others: 1
            }
        );
        assert_eq!(check_exports(&component(96, 4000)), Ok(ComponentKind::Sync));
        let too_many = "exports 4,097 functions, but at most 4,096 are allowed";
        assert_eq!(check_exports(&component(97, 4000)).unwrap_err(), too_many);
        assert_eq!(check_exports(&component(4097, 0)).unwrap_err(), too_many);
    }

    #[test]
    fn deep_nesting_is_refused() {
        // The text format cannot nest this deeply.
        let nested = |depth: usize| {
            (1..depth).fold(b"\0asm\x0d\0\x01\0".to_vec(), |inner, _| {
                let mut length = inner.len();
                let mut outer = b"\0asm\x0d\0\x01\0\x04".to_vec();
                while length > 0x7f {
                    outer.push(0x80 | u8::try_from(length & 0x7f).unwrap());
                    length >>= 7;
                }
                outer.push(u8::try_from(length).unwrap());
                [outer, inner].concat()
            })
        };
        assert_eq!(check_exports(&nested(101)), Ok(ComponentKind::Sync));
        assert_eq!(
            check_exports(&nested(102)).unwrap_err(),
            "contains components that are nested more than 100 levels deep"
        );
    }

    #[test]
    fn invalid_components_are_left_to_the_compiler() {
        let mut cut = component(5000, 0);
        cut.truncate(cut.len() - 1);
        assert_eq!(check_exports(&cut), Ok(ComponentKind::Invalid));
    }

    #[test]
    fn components_that_need_async_are_detected() {
        let check = |text: &str| check_exports(&wat::parse_str(text).unwrap());
        let function =
            r#"(core module $m (func (export "f"))) (core instance $i (instantiate $m))"#;
        let lifted = |ty: &str| {
            format!(
                r#"(component {function} (func (export "f"){ty} (canon lift (core func $i "f"))))"#
            )
        };
        assert_eq!(check(&lifted("")), Ok(ComponentKind::Sync));
        assert_eq!(check(&lifted(" async")), Ok(ComponentKind::Async));
        assert_eq!(
            check(r#"(component (import "f" (func async)))"#),
            Ok(ComponentKind::Async)
        );
        assert_eq!(
            check("(component (type (stream u8)))"),
            Ok(ComponentKind::Async)
        );
        assert_eq!(
            check("(component (core func (canon waitable-set.new)))"),
            Ok(ComponentKind::Async)
        );
        assert_eq!(
            check("(component (component (core func (canon task.return))))"),
            Ok(ComponentKind::Async)
        );
    }
}
