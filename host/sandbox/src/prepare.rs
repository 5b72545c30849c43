//! Preparation of compiled components: linking, and detection of their kind.

pub(crate) mod compiled;
pub(crate) mod component_summary;
pub(crate) mod engine_pair;
pub(crate) mod linker;
pub(crate) mod prepared_component;
pub(crate) mod unknown_items;
