//! Open streams of the HTTP+SSE transport of 2024-11-05.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::exchange::outbox::Outbox;
use crate::session::client_session::Session;

/// Open streams, by the id in the URL that each client received.
#[derive(Default)]
pub(super) struct SseStreams {
    open: Mutex<HashMap<String, OpenStream>>,
}

#[derive(Clone)]
pub(super) struct OpenStream {
    pub(super) session: Arc<Session>,
    pub(super) outbox: Outbox,
}

impl SseStreams {
    // Held for a few instructions and never across an await.
    pub(super) fn open_streams(&self) -> MutexGuard<'_, HashMap<String, OpenStream>> {
        self.open.lock()
    }
}
