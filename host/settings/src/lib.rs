//! Reads configuration files in TOML, and reports mistakes so that they are easy to fix.
//!
//! [`toml_file`] reads any TOML file and reports the position of a mistake and the expected value.
//! [`project`] reads `plugin.toml`, which authors write and several programs use. [`similar_name`]
//! recognizes misspelled names of TOML files. [`version`] compares the versions that programs
//! print. Input is text, and output is typed values; the types of other crates determine the keys.
//! The crate does not depend on the server, the protocol or WebAssembly.

pub mod project;
pub mod similar_name;
pub mod toml_file;
pub mod version;
