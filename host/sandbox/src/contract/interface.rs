//! Inspects the types of an exported interface without instantiating the component.

use wasmtime::Engine;
use wasmtime::component::Component;
use wasmtime::component::types::{self, ComponentFunc, ComponentItem};

/// An exported interface whose types are to be checked.
pub(super) struct Interface<'a> {
    engine: &'a Engine,
    component: types::Component,
    name: &'a str,
}

impl<'a> Interface<'a> {
    pub(super) fn of(engine: &'a Engine, component: &Component, name: &'a str) -> Option<Self> {
        let component = component.component_type();
        let is_interface = matches!(component.get_export(engine, name)?.ty, ComponentItem::ComponentInstance(_));
        is_interface.then_some(Self { engine, component, name })
    }

    /// Passes the function `name` to `check`, together with what is needed to inspect its types.
    pub(super) fn check(
        &self,
        name: &str,
        check: impl FnOnce(&ComponentFunc, &types::Component) -> wasmtime::Result<()>,
    ) -> wasmtime::Result<()> {
        let interface = self.component.get_export(self.engine, self.name).map(|export| export.ty);
        let Some(ComponentItem::ComponentInstance(interface)) = interface else {
            wasmtime::bail!("there is no interface {}", self.name);
        };
        match interface.get_export(self.engine, name).map(|export| export.ty) {
            Some(ComponentItem::ComponentFunc(function)) => {
                check(&function, &self.component).map_err(|error| error.context(format!("function {name}")))
            }
            _ => wasmtime::bail!("there is no function {name}"),
        }
    }
}
