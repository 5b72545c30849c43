//! Configurations of MCP clients: where they are, and how to add a server to them.
//!
//! [`CLIENTS`] is the table of clients. [`ClientConfiguration::configuration_paths`] returns the
//! possible paths of a client's configuration, given a [`PathEnvironment`] that the caller
//! provides. A [`ServerEntry`] is written as an entry in a client's [`EntryFormat`]. A
//! [`ConfigurationText`] is the text of a configuration; adding or removing an entry returns a new
//! text in which everything else is unchanged. Only [`ConfigFile`] accesses files. The crate does
//! not depend on plugins or the protocol.

mod client;
mod clients;
mod configuration_file;
mod configuration_path;
mod document;
mod entry;
mod entry_format;
mod json;
mod mistake;
mod server_entry;
mod toml;

pub use self::client::ClientConfiguration;
pub use self::clients::{CLIENTS, client_with_id};
pub use self::configuration_file::{ConfigFile, FileError};
pub use self::configuration_path::{
    ConfigurationPath, ConfigurationScope, OperatingSystem, PathEnvironment, WslEnvironment,
};
pub use self::document::{ConfigurationText, EditOutcome};
pub use self::entry::{has_same_connection, is_toolbay, redacted_connection};
pub use self::entry_format::{EntryFormat, FileFormat, TokenForm};
pub use self::mistake::ConfigurationMistake;
pub use self::server_entry::{EntryName, InvalidEntry, ServerEntry, UnsupportedEntry};
