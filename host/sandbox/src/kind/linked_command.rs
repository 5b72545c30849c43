//! Commands: components that export `wasi:cli/run`, of WASI 0.2 or 0.3.

use wasmtime::Store;
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, TypedFunc};
use wasmtime_wasi::p2::bindings::{Command, CommandPre};

use crate::component::wasi_p3_names::is_wasi_p3;
use crate::store::state::StoreState;

/// A linked command.
pub(crate) enum LinkedCommand {
    /// Imports WASI 0.2.
    P2(CommandPre<StoreState>),
    /// Imports WASI 0.3. Its `run` function is async.
    P3(InstancePre<StoreState>, ComponentExportIndex),
}

/// An instance of a command.
pub(crate) enum CommandInstance {
    P2(Command),
    P3(TypedFunc<(), (Result<(), ()>,)>),
}

impl LinkedCommand {
    /// Returns the command that a component exports as `interface`.
    pub(crate) fn new(
        component: &Component,
        pre: InstancePre<StoreState>,
        interface: &str,
    ) -> wasmtime::Result<Self> {
        if !is_wasi_p3(interface) {
            return CommandPre::new(pre).map(Self::P2);
        }
        let exported = component.get_export_index(None, interface);
        let run =
            exported.and_then(|interface| component.get_export_index(Some(&interface), "run"));
        let run = run.ok_or_else(|| wasmtime::format_err!("{interface} has no function run"))?;
        Ok(Self::P3(pre, run))
    }

    pub(crate) async fn instantiate(
        &self,
        store: &mut Store<StoreState>,
    ) -> wasmtime::Result<CommandInstance> {
        match self {
            Self::P2(pre) => pre
                .instantiate_async(&mut *store)
                .await
                .map(CommandInstance::P2),
            Self::P3(pre, run) => {
                let instance = pre.instantiate_async(&mut *store).await?;
                instance
                    .get_typed_func(&mut *store, run)
                    .map(CommandInstance::P3)
            }
        }
    }
}

impl CommandInstance {
    /// Runs the command until it ends.
    pub(crate) async fn run(
        &self,
        store: &mut Store<StoreState>,
    ) -> wasmtime::Result<Result<(), ()>> {
        match self {
            Self::P2(command) => command.wasi_cli_run().call_run(&mut *store).await,
            Self::P3(run) => Box::pin(run.call_async(&mut *store, ()))
                .await
                .map(|(result,)| result),
        }
    }
}
