//! Resources of which no guest gets any: their interfaces can be imported, and that is all.
//!
//! Their types are Toolbay's own. A handle of WASI 0.2 can therefore not be passed to a function of WASI 0.3, which would
//! not know what it is bound by.

use wasmtime::component::LinkerInstance;

use crate::state::StoreState;

/// A function of a resource of which there is none.
pub(super) enum ClosedFunction {
    Sync(&'static str),
    Async(&'static str),
}

/// Defines functions that nobody can call: each takes a handle, and there is none.
pub(super) fn close(
    interface: &mut LinkerInstance<'_, StoreState>,
    functions: &[ClosedFunction],
) -> wasmtime::Result<()> {
    for function in functions {
        match function {
            ClosedFunction::Sync(name) => interface.func_new(name, |_, _, _, _| unreachable_handle())?,
            ClosedFunction::Async(name) => {
                interface.func_new_concurrent(name, |_, _, _, _| Box::pin(async { unreachable_handle() }))?;
            }
        }
    }
    Ok(())
}

fn unreachable_handle() -> wasmtime::Result<()> {
    wasmtime::bail!("there is no such handle")
}
