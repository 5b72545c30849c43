//! Chunks of stream data. Their size is bounded, and their memory is charged to the call.

use std::task::Context;

use wasmtime::StoreContextMut;
use wasmtime::component::{Destination, DirectSource};

/// Maximum size of a chunk, in bytes.
pub(super) const MAX_CHUNK_BYTES: usize = 16 << 10;

/// Memory that a host stream uses, in bytes: the chunk that waits in it, and the chunk that is
/// passed to another host stream.
pub(super) const STREAM_MEMORY_BYTES: usize = 2 * MAX_CHUNK_BYTES;

/// Number of consecutive chunks after which a host stream yields. Without that, two connected host
/// streams could transfer data indefinitely and never run guest code.
const CHUNKS_PER_YIELD: u8 = 16;

/// Counter of a stream's chunks.
#[derive(Default)]
pub(super) struct ChunkCounter(u8);

impl ChunkCounter {
    /// Counts a chunk. Returns whether to yield; the task is then woken immediately.
    pub(super) fn should_yield(&mut self, context: &Context<'_>) -> bool {
        self.0 = (self.0 + 1) % CHUNKS_PER_YIELD;
        if self.0 == 0 {
            context.waker().wake_by_ref();
        }
        self.0 == 0
    }
}

/// Copies a chunk to the reader's buffer. Returns the number of bytes that fit.
pub(super) fn write_chunk<D, B>(
    destination: Destination<'_, u8, B>,
    store: StoreContextMut<'_, D>,
    chunk: &[u8],
) -> usize {
    let mut direct = destination.as_direct(store, chunk.len());
    let buffer = direct.remaining();
    let length = buffer.len().min(chunk.len());
    if let (Some(target), Some(fitting)) = (buffer.get_mut(..length), chunk.get(..length)) {
        target.copy_from_slice(fitting);
    }
    direct.mark_written(length);
    length
}

/// Returns the writer's next chunk.
pub(super) fn next_chunk<'a, D>(source: &'a mut DirectSource<'_, D>) -> &'a [u8] {
    let remaining = source.remaining();
    remaining.get(..MAX_CHUNK_BYTES).unwrap_or(remaining)
}
