//! `wasi:config`: the grant's `[config]` for components that do not use Toolbay's contract.

use wasmtime::component::{ComponentType, Linker, Lower};

use crate::store::state::StoreState;

/// The version that toolchains use. As a release candidate, it is not compatible with any other
/// version.
const CONFIG_STORE_INTERFACE: &str = "wasi:config/store@0.2.0-rc.1";

/// Error of reading a value (`store.error`). Values are in memory, so it never occurs.
#[derive(ComponentType, Lower)]
#[component(variant)]
#[expect(
    dead_code,
    reason = "the interface has these cases, and they never occur"
)]
enum ConfigStoreError {
    #[component(name = "upstream")]
    Upstream(String),
    #[component(name = "io")]
    Io(String),
}

pub(super) fn add(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    let mut store = linker.instance(CONFIG_STORE_INTERFACE)?;
    store.func_wrap("get", |store, (key,): (String,)| {
        Ok((Ok::<_, ConfigStoreError>(store.data().imports.config(&key)),))
    })?;
    store.func_wrap("get-all", |store, (): ()| {
        Ok((Ok::<_, ConfigStoreError>(store.data().imports.config_all()),))
    })
}
