//! Reads, compiles and recompiles component files, and finds the components that are in use or in
//! the compile cache.

pub(crate) mod blocking_work;
pub(crate) mod check_queue;
pub(crate) mod code_recovery;
pub(crate) mod compile_queue;
pub(crate) mod component_code;
pub(crate) mod component_compiler;
pub(crate) mod component_lookup;
pub(crate) mod component_registry;
pub(crate) mod failed_step;
pub(crate) mod load_environment;
pub(crate) mod loaded_component;
pub(crate) mod refusal_cache;
pub(crate) mod source_reader;
pub(crate) mod stored_component;
