//! The host's side of `wit/plugin.wit`, generated.

#![expect(missing_docs, unreachable_pub, clippy::pedantic, reason = "generated code")]

wasmtime::component::bindgen!({
    path: "../wit",
    world: "plugin",
    imports: { default: trappable },
    exports: { default: async },
});
