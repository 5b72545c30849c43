//! Imports and exports of a component that are not part of the host's interfaces.

use wasmtime::Engine;
use wasmtime::component::ResourceType;
use wasmtime::component::types::{self, ComponentItem};

use crate::kind::functions;
use crate::prepare::linker::IMPORT_PREFIXES;

/// Prefix of the contract's interface names.
const CONTRACT_PREFIX: &str = "toolbay:plugin/";

/// Returns the names of imports that require an implementation and that the host does not provide.
pub(crate) fn unprovided_imports(engine: &Engine, component: &types::Component) -> Vec<String> {
    let is_known = |name: &str| {
        IMPORT_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
    };
    let imports = || {
        component
            .imports(engine)
            .map(|(name, import)| (name, import.ty))
    };
    let provided: Vec<ResourceType> = imports()
        .filter(|(name, _)| is_known(name))
        .flat_map(|(_, item)| resource_types(engine, item))
        .collect();
    let unknown = imports()
        .filter(|(name, item)| !is_known(name) && must_be_provided(engine, item, &provided));
    unknown.map(|(name, _)| name.to_owned()).collect()
}

/// Returns the resource types that an import is or contains.
fn resource_types(engine: &Engine, item: ComponentItem) -> Vec<ResourceType> {
    match item {
        ComponentItem::Resource(resource) => vec![resource],
        ComponentItem::ComponentInstance(instance) => instance
            .exports(engine)
            .flat_map(|(_, export)| resource_types(engine, export.ty))
            .collect(),
        _ => Vec::new(),
    }
}

/// Returns whether an import contains more than types and resources that are `provided` under
/// another name. A component also imports every interface whose types an exported interface uses.
fn must_be_provided(engine: &Engine, item: &ComponentItem, provided: &[ResourceType]) -> bool {
    match item {
        ComponentItem::Type(_) => false,
        ComponentItem::Resource(resource) => !provided.contains(resource),
        ComponentItem::ComponentInstance(instance) => instance
            .exports(engine)
            .any(|(_, export)| must_be_provided(engine, &export.ty, provided)),
        ComponentItem::ComponentFunc(_)
        | ComponentItem::CoreFunc(_)
        | ComponentItem::Module(_)
        | ComponentItem::Component(_) => true,
    }
}

/// Returns the exports that are or contain functions, except those of the contract and of language
/// runtimes.
pub(crate) fn other_exports(engine: &Engine, ty: &types::Component) -> Vec<String> {
    let has_functions = |item: &ComponentItem| match item {
        ComponentItem::ComponentFunc(_) => true,
        ComponentItem::ComponentInstance(instance) => instance
            .exports(engine)
            .any(|(_, export)| matches!(export.ty, ComponentItem::ComponentFunc(_))),
        _ => false,
    };
    let is_other =
        |name: &str| !name.starts_with(CONTRACT_PREFIX) && !functions::is_runtime_helper(name);
    let others = ty
        .exports(engine)
        .filter(|(name, export)| is_other(name) && has_functions(&export.ty));
    others.map(|(name, _)| name.to_owned()).collect()
}

/// Returns whether an export is a WASI interface.
pub(crate) fn is_wasi(name: &str) -> bool {
    name.starts_with("wasi:")
}

/// Returns a name for display.
pub(crate) fn display_name(name: &str) -> String {
    if name.trim().is_empty() {
        "one whose name is empty".to_owned()
    } else {
        name.to_owned()
    }
}
