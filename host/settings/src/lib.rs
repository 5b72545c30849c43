//! Reads the TOML files that people write, and reports mistakes so that they are easy to fix.
//!
//! [`toml_file`] reads any of them and says where a mistake is and what was expected; [`project`] is `plugin.toml`,
//! which authors write and several programs read; [`version`] compares the versions that programs report. Text goes in,
//! typed values come out; the types of other crates decide which keys there are. Nothing here knows the
//! server, the protocol or WebAssembly.

pub mod project;
pub mod toml_file;
pub mod version;
