//! Names of the replaced interfaces.

/// Appends the version of the interfaces that `wasmtime-wasi` links. A replacement must have the
/// same name; otherwise, a test with a guest for each interface fails.
macro_rules! versioned {
    ($interface:literal) => {
        concat!($interface, "@0.2.12")
    };
}
pub(super) use versioned;
