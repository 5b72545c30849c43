//! Reads the TOML files that people write, and reports mistakes so that they are easy to fix.
//!
//! [`toml_file`] reads any of them and says where a mistake is and what was expected; [`project`] is `plugin.toml`,
//! which authors write and several programs read. Text goes in, typed values come out; which keys there are is
//! decided by the types of other crates. Nothing here knows the server, the protocol or WebAssembly.

pub mod project;
pub mod toml_file;
