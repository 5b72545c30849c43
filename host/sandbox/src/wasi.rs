//! The host's implementations of WASI 0.2 and 0.3.

pub(crate) mod p2;
pub(crate) mod p3;
