//! TOML files that people write, read so that a mistake in one is easy to mend.
//!
//! [`toml_file`] reads any of them and says where a mistake is and what would be right; [`project`] is `plugin.toml`,
//! which authors write and several programs read;
//! [`version`] compares what programs say of themselves. Text goes in, typed values come out; which keys there are is
//! decided by the types of other crates. Nothing here knows the server, the protocol or WebAssembly.

pub mod project;
pub mod toml_file;
pub mod version;
