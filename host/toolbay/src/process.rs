//! The process: standard error, logging, the allocator, and the limits of the machine.

pub(crate) mod allocator;
mod json_log;
pub(crate) mod log_export;
pub(crate) mod logging;
pub(crate) mod machine_limits;
pub(crate) mod stderr;
