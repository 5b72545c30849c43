//! What the two halves of a request know of each other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use tokio::time::Instant;

use crate::error::SendError;

/// The state that the body of a request shares with whoever waits for the response.
#[derive(Debug)]
pub(crate) struct UploadState {
    /// Why the body of the request failed. The error that this causes elsewhere says less.
    fault: OnceLock<SendError>,
    /// Since when it is the server's turn. `None` while the guest has to write more of its body.
    servers_turn: Mutex<Option<Instant>>,
    /// Whether nothing of the request is left to send.
    sent: AtomicBool,
}

impl UploadState {
    pub(crate) fn new() -> Self {
        Self { fault: OnceLock::new(), servers_turn: Mutex::new(Some(Instant::now())), sent: AtomicBool::new(false) }
    }

    /// Remembers why the request failed. The first reason stays.
    pub(crate) fn fail(&self, error: SendError) {
        let _first_one_stays = self.fault.set(error);
    }

    /// Why the request failed, or else this error.
    pub(crate) fn fault_or(&self, error: SendError) -> SendError {
        self.fault.get().cloned().unwrap_or(error)
    }

    /// The guest has to write more.
    pub(crate) fn wait_for_guest(&self) {
        *self.servers_turn.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The server has to take in what was written, or to answer.
    pub(crate) fn wait_for_server(&self) {
        *self.servers_turn.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Since when it is the server's turn. `None` if it is the guest's.
    pub(crate) fn servers_turn(&self) -> Option<Instant> {
        *self.servers_turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_sent(&self) {
        self.sent.store(true, Ordering::Release);
    }

    pub(crate) fn is_sent(&self) -> bool {
        self.sent.load(Ordering::Acquire)
    }
}
