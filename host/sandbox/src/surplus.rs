//! What a component imports and exports beyond what the host provides and offers.

use wasmtime::Engine;
use wasmtime::component::ResourceType;
use wasmtime::component::types::{self, ComponentItem};

use crate::functions;
use crate::linker::IMPORT_PREFIXES;

/// The beginning of the names of the interfaces of the contract.
const CONTRACT: &str = "toolbay:plugin/";

/// The names of the imports that somebody would have to provide and the host does not.
pub(crate) fn unprovided(engine: &Engine, component: &types::Component) -> Vec<String> {
    let is_known = |name: &str| IMPORT_PREFIXES.iter().any(|known| name.starts_with(known));
    let imports = || component.imports(engine).map(|(name, import)| (name, import.ty));
    let provided: Vec<ResourceType> =
        imports().filter(|(name, _)| is_known(name)).flat_map(|(_, item)| resources(engine, item)).collect();
    let unknown = imports().filter(|(name, item)| !is_known(name) && must_be_provided(engine, item, &provided));
    unknown.map(|(name, _)| name.to_owned()).collect()
}

/// The resources that an import is or has.
fn resources(engine: &Engine, item: ComponentItem) -> Vec<ResourceType> {
    match item {
        ComponentItem::Resource(resource) => vec![resource],
        ComponentItem::ComponentInstance(instance) => {
            instance.exports(engine).flat_map(|(_, export)| resources(engine, export.ty)).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether an import has anything but types and resources that are `provided` under another name. Every interface whose
/// types an exported one uses is imported, too.
fn must_be_provided(engine: &Engine, item: &ComponentItem, provided: &[ResourceType]) -> bool {
    match item {
        ComponentItem::Type(_) => false,
        ComponentItem::Resource(resource) => !provided.contains(resource),
        ComponentItem::ComponentInstance(instance) => {
            instance.exports(engine).any(|(_, export)| must_be_provided(engine, &export.ty, provided))
        }
        ComponentItem::ComponentFunc(_)
        | ComponentItem::CoreFunc(_)
        | ComponentItem::Module(_)
        | ComponentItem::Component(_) => true,
    }
}

/// The exports of a component that have or are functions, except those of the contract and of runtimes.
pub(crate) fn other_exports(engine: &Engine, ty: &types::Component) -> Vec<String> {
    let has_functions = |item: &ComponentItem| match item {
        ComponentItem::ComponentFunc(_) => true,
        ComponentItem::ComponentInstance(instance) => {
            instance.exports(engine).any(|(_, export)| matches!(export.ty, ComponentItem::ComponentFunc(_)))
        }
        _ => false,
    };
    let is_other = |name: &str| !name.starts_with(CONTRACT) && !functions::is_runtime_helper(name);
    let others = ty.exports(engine).filter(|(name, export)| is_other(name) && has_functions(&export.ty));
    others.map(|(name, _)| name.to_owned()).collect()
}

/// Whether an export is an interface of WASI.
pub(crate) fn is_wasi(name: &str) -> bool {
    name.starts_with("wasi:")
}

/// A name as people see it.
pub(crate) fn shown(name: &str) -> String {
    if name.trim().is_empty() { "one whose name is empty".to_owned() } else { name.to_owned() }
}
