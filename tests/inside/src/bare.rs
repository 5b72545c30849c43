//! wasmtime without a host. The engine's settings are the same as in Toolbay, except for metering.

use std::fmt;

use anyhow::{Context as _, Result, anyhow};
use wasmtime::component::{Component, Linker, ResourceTable};
use wasmtime::{Config, Engine, OptLevel, Store};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

/// The metering that compiled code contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metering {
    None,
    Fuel,
    Epochs,
    Both,
}

impl Metering {
    pub(crate) const ALL: [Self; 4] = [Self::None, Self::Fuel, Self::Epochs, Self::Both];

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::None => "wasmtime, not metered",
            Self::Fuel => "fuel",
            Self::Epochs => "epochs",
            Self::Both => "fuel and epochs",
        }
    }
}

/// A component in its own engine.
pub(crate) struct Bare {
    engine: Engine,
    component: Component,
    linker: Linker<State>,
    metering: Metering,
}

struct State {
    wasi: WasiCtx,
    table: ResourceTable,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl Bare {
    pub(crate) fn new(guest: &[u8], metering: Metering) -> Result<Self> {
        let mut config = Config::new();
        config
            .consume_fuel(matches!(metering, Metering::Fuel | Metering::Both))
            .epoch_interruption(matches!(metering, Metering::Epochs | Metering::Both))
            .concurrency_support(false)
            .wasm_memory64(false)
            .wasm_custom_page_sizes(false)
            .cranelift_opt_level(OptLevel::Speed);
        let engine = Engine::new(&config).map_err(wrong("engine"))?;
        let component = Component::new(&engine, guest).map_err(wrong("component"))?;
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_sync(&mut linker).map_err(wrong("linker"))?;
        Ok(Self {
            engine,
            component,
            linker,
            metering,
        })
    }

    /// Runs a computation in a new instance.
    pub(crate) fn compute(&self, kernel: &str, size: u32) -> Result<String> {
        let state = State {
            wasi: WasiCtx::builder().build(),
            table: ResourceTable::new(),
        };
        let mut store = Store::new(&self.engine, state);
        if matches!(self.metering, Metering::Fuel | Metering::Both) {
            store.set_fuel(u64::MAX).map_err(wrong("fuel"))?;
        }
        if matches!(self.metering, Metering::Epochs | Metering::Both) {
            store.set_epoch_deadline(u64::MAX / 2);
        }
        let instance = self
            .linker
            .instantiate(&mut store, &self.component)
            .map_err(wrong("instance"))?;
        let compute = instance.get_typed_func::<(&str, u32), (String,)>(&mut store, "compute");
        let (said,) = compute
            .map_err(wrong("function"))?
            .call(&mut store, (kernel, size))
            .map_err(wrong("call"))?;
        Some(said).context("nothing came of it")
    }
}

/// Returns a function that converts an error of wasmtime and adds the failed operation.
fn wrong<E: fmt::Debug>(what: &'static str) -> impl Fn(E) -> anyhow::Error {
    move |error| anyhow!("{what}: {error:?}")
}
