//! Compilation of component files in a child process, and pre-initialization of their state.

pub(crate) mod compile_counts;
pub(crate) mod compiler;
pub(crate) mod compiler_process;
pub(crate) mod engine;
pub(crate) mod memory_snapshot;
pub(crate) mod preinit;
pub(crate) mod source;
