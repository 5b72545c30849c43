//! Configurations of MCP clients: where they are, and how to add a server to them.
//!
//! [`CLIENTS`] is the table of clients. [`ClientConfiguration::spots`] returns the possible paths
//! of a client's configuration, given a [`PathEnvironment`] that the caller provides. A
//! [`ServerEntry`] is written as an entry in a client's [`EntryFormat`]. A [`ConfigurationText`] is
//! the text of a configuration; adding or removing an entry returns a new text in which everything
//! else is unchanged. Only [`ConfigFile`] accesses files. The crate does not depend on plugins or
//! the protocol.

mod client;
mod clients;
mod dialect;
mod document;
mod entry;
mod file;
mod json;
mod mistake;
mod place;
mod server;
mod toml;

pub use self::client::ClientConfiguration;
pub use self::clients::{CLIENTS, client_named};
pub use self::dialect::{EntryFormat, FileFormat, TokenForm};
pub use self::document::{ConfigurationText, EditOutcome};
pub use self::entry::{is_toolbay, same, shown};
pub use self::file::{ConfigFile, FileError};
pub use self::mistake::ConfigurationMistake;
pub use self::place::{ConfigurationPath, ConfigurationScope, OperatingSystem, PathEnvironment, WslEnvironment};
pub use self::server::{EntryName, ServerEntry, UnsupportedEntry};
