//! Reads the TOML files that people write, and reports mistakes so that they are easy to fix.
//!
//! [`toml_file`] reads any TOML file and reports the place of a mistake and what was expected. [`project`] is
//! `plugin.toml`, which authors write and several programs read. [`version`] compares the versions that programs print.
//! Input is text, output is typed values; the types of other crates determine the keys. Nothing here knows the server,
//! the protocol or WebAssembly.

pub mod project;
pub mod toml_file;
pub mod version;
