//! MCP client for plugins that are MCP servers themselves.
//!
//! The crate consists of plain data and pure functions. A [`GuestConversation`] writes requests to
//! a guest, as headers and a body. [`ResponseReader`] reads HTTP response bodies, and
//! [`parse_message`] parses one message. [`lists`] and [`results`] convert results to the host's
//! types. The crate does no I/O and does not depend on wasmtime: the caller transfers the bytes,
//! bounds their size, and validates and cleans the content. The server side of the protocol is the
//! crate `toolbay-mcp`, which this crate does not depend on.

mod block;
mod conversation;
mod event_splitter;
mod guest_method;
mod lenient;
mod message;
mod question_answers;
mod response_reader;

pub mod lists;
pub mod results;

pub use self::block::GuestBlock;
pub use self::conversation::{
    ClientDescription, ClientMessage, GuestConversation, NEWEST_WITH_SESSIONS, STATELESS,
    respond_to_request, supports_revision,
};
pub use self::guest_method::{GuestList, GuestMethod};
pub use self::message::{
    GuestMessage, GuestNotification, ProtocolError, RequestOutcome, parse_message,
};
pub use self::question_answers::QuestionAnswers;
pub use self::response_reader::ResponseReader;
