//! The open streams of the HTTP+SSE transport of 2024-11-05.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::outbox::Outbox;
use crate::session::Session;

/// The open streams, by the id in the URL that each client received.
#[derive(Default)]
pub(super) struct Streams {
    open: Mutex<HashMap<String, Open>>,
}

#[derive(Clone)]
pub(super) struct Open {
    pub(super) session: Arc<Session>,
    pub(super) outbox: Outbox,
}

impl Streams {
    // Held for a few instructions and never across an await.
    pub(super) fn open(&self) -> MutexGuard<'_, HashMap<String, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
