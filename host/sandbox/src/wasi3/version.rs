//! The names of the interfaces.

/// The version of the interfaces that `wasmtime-wasi` links for WASI 0.3. What is defined here must have the same name; a
/// test with a guest for each fails otherwise.
macro_rules! versioned {
    ($interface:literal) => {
        concat!($interface, "@0.3.0")
    };
}
pub(super) use versioned;
