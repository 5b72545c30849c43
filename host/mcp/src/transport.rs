//! Transports: standard input and output, HTTP, and calls inside the process.

pub mod http;
pub(crate) mod local_client;
pub mod process_stdio;
pub mod stdio;
