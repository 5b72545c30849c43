//! MCP client for plugins that are MCP servers themselves.
//!
//! The crate consists of plain data and pure functions. A [`GuestConversation`] writes requests to
//! a guest, as headers and a body. [`ResponseReader`] reads HTTP response bodies, and [`read`]
//! parses one message. [`lists`] and [`results`] convert results to the host's types. The crate
//! does no I/O and does not depend on wasmtime: the caller transfers the bytes, bounds their size,
//! and validates and cleans the content. The server side of the protocol is the crate
//! `toolbay-mcp`, which this crate does not depend on.

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
