//! The configurations of MCP clients: where they are, and how a server is added to them.
//!
//! [`CLIENTS`] is the table of clients, as data: [`Client::spots`] says where a client's configuration is, given
//! [`Surroundings`] that nobody here reads. A [`Server`] is written in a client's [`Dialect`] as an entry, and a
//! [`Document`] is the text of a configuration: it takes an entry in or loses one, from text to text, and everything else
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

pub use self::client::Client;
pub use self::clients::{CLIENTS, client_named};
pub use self::dialect::{Dialect, Format, TokenForm};
pub use self::document::{Document, Edit};
pub use self::entry::{is_toolbay, same, shown};
pub use self::file::{ConfigFile, FileError};
pub use self::mistake::Mistake;
pub use self::place::{Scope, Spot, Surroundings, System, Wsl};
pub use self::server::{Name, Server, Unsupported};
