//! Standard input of a guest that reads it through WASI 0.3.

use std::task::{Context, Poll};

use bytes::Bytes;
use wasmtime_wasi::p2::InputStream as _;
use wasmtime_wasi::p2::pipe::MemoryInputPipe;

use crate::capability::stdio::stdio_transport::StdinMessageReader;

/// The standard input of a guest. Clones share the read position: each byte is read from only one
/// of them.
#[derive(Clone, Default)]
pub(crate) enum GuestStdin {
    /// No input.
    #[default]
    Empty,
    /// The arguments of a command.
    Text(MemoryInputPipe),
    /// The messages to an MCP server.
    Messages(StdinMessageReader),
}

impl GuestStdin {
    /// Reads the next part, of at most `max_bytes` bytes. Returns `None` at the end.
    pub(crate) fn poll(
        &mut self,
        context: &mut Context<'_>,
        max_bytes: usize,
    ) -> Poll<Option<Bytes>> {
        match self {
            Self::Empty => Poll::Ready(None),
            Self::Text(text) => {
                Poll::Ready(text.read(max_bytes).ok().filter(|part| !part.is_empty()))
            }
            Self::Messages(reader) => reader.poll(context, max_bytes),
        }
    }
}
