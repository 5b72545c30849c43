//! Inspects the types of an exported interface without instantiating the component.

use std::collections::BTreeMap;

use toolbay_model::text::join_lines;
use wasmtime::Engine;
use wasmtime::component::Component;
use wasmtime::component::types::{self, ComponentFunc, ComponentItem};

use crate::component::contract_interface::ContractInterface;
use crate::component::prepare_error::PrepareError;

/// An exported interface whose types are to be checked.
pub(super) struct ExportedInterface<'a> {
    engine: &'a Engine,
    component: types::Component,
    name: &'a str,
}

/// The interfaces that a component exports.
pub(super) type ExportedInterfaces<'a> = BTreeMap<ContractInterface, ExportedInterface<'a>>;

impl<'a> ExportedInterface<'a> {
    /// Finds the interface.
    ///
    /// # Errors
    ///
    /// The export with this name is not an interface.
    pub(super) fn find(
        engine: &'a Engine,
        component: &Component,
        name: &'a str,
    ) -> Result<Self, PrepareError> {
        let interface = Self {
            engine,
            component: component.component_type(),
            name,
        };
        match interface
            .component
            .get_export(engine, name)
            .map(|export| export.ty)
        {
            Some(ComponentItem::ComponentInstance(_)) => Ok(interface),
            _ => Err(interface.rejection("it is not an interface")),
        }
    }

    /// Passes the function `name` and the component to `check`, which inspects the function's
    /// types.
    pub(super) fn check_function(
        &self,
        name: &str,
        check: impl FnOnce(&ComponentFunc, &types::Component) -> wasmtime::Result<()>,
    ) -> Result<(), PrepareError> {
        let interface = self
            .component
            .get_export(self.engine, self.name)
            .map(|export| export.ty);
        let Some(ComponentItem::ComponentInstance(interface)) = interface else {
            return Err(self.rejection("it is not an interface"));
        };
        match interface
            .get_export(self.engine, name)
            .map(|export| export.ty)
        {
            Some(ComponentItem::ComponentFunc(function)) if function.async_() => {
                Err(self.rejection(&format!("function {name} is async")))
            }
            Some(ComponentItem::ComponentFunc(function)) => check(&function, &self.component)
                .map_err(|error| self.type_mismatch(&error.context(format!("function {name}")))),
            _ => Err(self.rejection(&format!("there is no function {name}"))),
        }
    }

    /// Returns the error for an interface that differs from that of its version.
    pub(super) fn type_mismatch(&self, error: &wasmtime::Error) -> PrepareError {
        self.rejection(&join_lines(&format!("{error:#}")))
    }

    /// Like [`ExportedInterface::type_mismatch`], for a reason that is already a message.
    pub(super) fn rejection(&self, why: &str) -> PrepareError {
        PrepareError::ContractTypes(self.name.to_owned(), why.to_owned())
    }
}
