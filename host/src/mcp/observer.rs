//! What a guest says while it runs, on its way to the peer.

use std::num::NonZeroU32;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::jsonrpc::{self, Id};
use super::outbox::Outbox;
use super::revision::Revision;
use crate::sandbox::{LogLevel, Observer, Progress};

/// Progress a second that reaches the peer; more is for nobody to read.
const PER_SECOND: NonZeroU32 = NonZeroU32::new(20).unwrap();

/// Progress at once: short tools that report every step lose none of it.
const BURST: NonZeroU32 = NonZeroU32::new(100).unwrap();

/// The peer of one call.
pub(super) struct Peer {
    outbox: Outbox,
    revision: Revision,
    /// Where progress goes, if the peer wants any.
    progress: Option<(Id, DefaultDirectRateLimiter)>,
    cancel: CancellationToken,
}

impl Peer {
    pub(super) fn new(outbox: Outbox, revision: Revision, token: Option<Id>, cancel: CancellationToken) -> Self {
        let quota = Quota::per_second(PER_SECOND).allow_burst(BURST);
        Self { outbox, revision, progress: token.map(|token| (token, RateLimiter::direct(quota))), cancel }
    }
}

impl Observer for Peer {
    fn log(&self, _level: LogLevel, _message: &str) {
        // The logging capability is not declared: the operator's log has it.
    }

    fn progress(&self, progress: Progress) {
        let Some((token, limiter)) = &self.progress else { return };
        if limiter.check().is_err() {
            return;
        }
        let mut params = Map::new();
        params.insert("progressToken".into(), json!(token));
        params.insert("progress".into(), json!(progress.progress));
        if let Some(total) = progress.total {
            params.insert("total".into(), json!(total));
        }
        if let Some(message) = progress.message.filter(|_| self.revision.annotations()) {
            params.insert("message".into(), message.into());
        }
        self.outbox.offer(jsonrpc::notification("notifications/progress", Some(&Value::Object(params))));
    }

    fn cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}
