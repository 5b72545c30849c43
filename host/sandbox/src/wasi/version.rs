//! The names of the interfaces that are replaced.

/// The version of the interfaces that `wasmtime-wasi` links. A replacement must have the same name; a test with a guest
/// for each fails otherwise.
macro_rules! versioned {
    ($interface:literal) => {
        concat!($interface, "@0.2.12")
    };
}
pub(super) use versioned;
