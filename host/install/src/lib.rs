//! The configurations of MCP clients: where they are, and how a server is added to them.
//!
//! [`CLIENTS`] is the table of clients, as data: [`ClientConfiguration::spots`] says where a client's configuration is, given
//! [`PathEnvironment`] that nobody here reads. A [`ServerEntry`] is written in a client's [`EntryFormat`] as an entry, and a
//! [`ConfigurationText`] is the text of a configuration: it takes an entry in or loses one, from text to text, and everything else
//! stays as it is. [`ConfigFile`] is the one part that touches files. Nothing here knows plugins or the protocol.

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
