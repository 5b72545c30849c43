//! The client's side of the Model Context Protocol, for plugins that are MCP servers of their own.
//!
//! Plain data and pure functions: a [`GuestConversation`] writes what a guest is asked, as headers and a body; [`ResponseReader`] takes what
//! comes back over HTTP, and [`read`] one message of it; [`lists`] and [`results`] make the host's words of the results.
//! Nothing here reads or writes, waits, or knows wasmtime: whoever carries the bytes bounds them, and checks and cleans
//! what they say. The server's side of the protocol is another crate, `toolbay-mcp`, which this one does not know.

mod answers;
mod ask;
mod block;
mod events;
mod message;
mod reader;
mod speaker;

pub mod lists;
pub mod results;

pub use self::answers::QuestionAnswers;
pub use self::ask::{GuestList, GuestMethod};
pub use self::block::GuestBlock;
pub use self::message::{GuestMessage, GuestNotification, ProtocolError, RequestOutcome, read};
pub use self::reader::ResponseReader;
pub use self::speaker::{ClientDescription, ClientMessage, GuestConversation, SESSIONS, STATELESS, knows, refusal};
