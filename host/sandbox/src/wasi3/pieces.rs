//! What goes through streams: pieces of bounded size, which are drawn from the call's account.

use std::task::Context;

use wasmtime::StoreContextMut;
use wasmtime::component::{Destination, DirectSource};

/// Largest piece that goes through a stream at once, in bytes.
pub(super) const PIECE: usize = 16 << 10;

/// Bytes that a stream of the host holds: the piece that waits in it, and the one on its way to another such stream.
pub(super) const STREAM_HELD: usize = 2 * PIECE;

/// After so many pieces without a pause, a stream of the host gives way: another one may take them as fast as it gives
/// them, without any code of the guest between the two.
const ROUND: u8 = 16;

/// Counts the pieces of a stream.
#[derive(Default)]
pub(super) struct StreamRound(u8);

impl StreamRound {
    /// Counts one. Whether to give way: then the task is woken at once.
    pub(super) fn is_over(&mut self, context: &Context<'_>) -> bool {
        self.0 = (self.0 + 1) % ROUND;
        if self.0 == 0 {
            context.waker().wake_by_ref();
        }
        self.0 == 0
    }
}

/// Puts a piece where a reader wants to have it. Returns how much of it had room.
pub(super) fn put<D, B>(to: Destination<'_, u8, B>, store: StoreContextMut<'_, D>, piece: &[u8]) -> usize {
    let mut to = to.as_direct(store, piece.len());
    let room = to.remaining();
    let length = room.len().min(piece.len());
    if let (Some(room), Some(piece)) = (room.get_mut(..length), piece.get(..length)) {
        room.copy_from_slice(piece);
    }
    to.mark_written(length);
    length
}

/// The next piece that a writer has.
pub(super) fn next<'a, D>(from: &'a mut DirectSource<'_, D>) -> &'a [u8] {
    let all = from.remaining();
    all.get(..PIECE).unwrap_or(all)
}
