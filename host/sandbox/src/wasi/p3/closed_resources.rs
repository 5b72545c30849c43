//! Resources that are not available to guests. Their interfaces can be imported, but no handle
//! exists.
//!
//! Toolbay defines their types. A WASI 0.2 handle therefore cannot be passed to a WASI 0.3 function
//! of `wasmtime-wasi`, which would not apply the call's limits.

use wasmtime::component::LinkerInstance;

use crate::store::state::StoreState;

/// A function of a resource without handles.
pub(super) enum ClosedFunction {
    Sync(&'static str),
    Async(&'static str),
}

/// Defines functions that cannot be called, because each takes a handle and none exists.
pub(super) fn define_closed(
    interface: &mut LinkerInstance<'_, StoreState>,
    functions: &[ClosedFunction],
) -> wasmtime::Result<()> {
    for function in functions {
        match function {
            ClosedFunction::Sync(name) => {
                interface.func_new(name, |_, _, _, _| unreachable_handle())?;
            }
            ClosedFunction::Async(name) => {
                interface.func_new_concurrent(name, |_, _, _, _| {
                    Box::pin(async { unreachable_handle() })
                })?;
            }
        }
    }
    Ok(())
}

fn unreachable_handle() -> wasmtime::Result<()> {
    wasmtime::bail!("there is no such handle")
}
