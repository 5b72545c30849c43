//! State that the two halves of a request share.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::error::SendError;

/// The state that the body of a request shares with the task that waits for the response.
#[derive(Debug)]
pub(crate) struct UploadState {
    /// The reason why the body of the request failed. Other errors that result from it are less
    /// specific.
    error: OnceLock<SendError>,
    /// Start of the wait for the server. `None` while the guest must write more of its body.
    waiting_for_server_since: Mutex<Option<Instant>>,
    /// True if the whole request has been sent.
    sent: AtomicBool,
}

impl UploadState {
    pub(crate) fn new() -> Self {
        Self {
            error: OnceLock::new(),
            waiting_for_server_since: Mutex::new(Some(Instant::now())),
            sent: AtomicBool::new(false),
        }
    }

    /// Records the reason why the request failed. The first reason takes precedence.
    pub(crate) fn fail(&self, error: SendError) {
        let _first_one_stays = self.error.set(error);
    }

    /// Returns the recorded reason why the request failed, or `error` if there is none.
    pub(crate) fn error_or(&self, error: SendError) -> SendError {
        self.error.get().cloned().unwrap_or(error)
    }

    /// Records that the guest must write more of the body.
    pub(crate) fn wait_for_guest(&self) {
        *self.waiting_for_server_since.lock() = None;
    }

    /// Records that the server must accept written data, or respond.
    pub(crate) fn wait_for_server(&self) {
        *self.waiting_for_server_since.lock() = Some(Instant::now());
    }

    /// Returns the start of the wait for the server, or `None` while the guest must write more.
    pub(crate) fn waiting_for_server_since(&self) -> Option<Instant> {
        *self.waiting_for_server_since.lock()
    }

    pub(crate) fn set_sent(&self) {
        self.sent.store(true, Ordering::Release);
    }

    pub(crate) fn is_sent(&self) -> bool {
        self.sent.load(Ordering::Acquire)
    }
}
