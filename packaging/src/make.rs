//! Makes the packages, one module per format.

pub(crate) mod archive;
pub(crate) mod bundle;
pub(crate) mod deb;
pub(crate) mod formula;
pub(crate) mod image;
pub(crate) mod npm;
pub(crate) mod registry;
pub(crate) mod rpm;
pub(crate) mod wheel;
