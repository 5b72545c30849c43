//! Names of the interfaces.

/// Appends the version of the interfaces that `wasmtime-wasi` links for WASI 0.3. A definition must
/// have the same name; otherwise, a test with a guest for each interface fails.
macro_rules! versioned {
    ($interface:literal) => {
        concat!($interface, "@0.3.0")
    };
}
pub(super) use versioned;
