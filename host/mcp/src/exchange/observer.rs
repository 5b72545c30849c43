//! Forwards a guest's log messages and progress to the peer, and its resource changes to
//! subscribers.

use std::num::NonZeroU32;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolbay_model::{CallObserver, LogLevel, ProgressUpdate};

use crate::exchange::outbox::{Outbox, OutgoingMessage};
use crate::exchange::resource_subscriptions::ResourceUpdates;
use crate::protocol::jsonrpc::{self, RequestId};
use crate::protocol::message_context::RequestContext;
use crate::protocol::revision::Revision;

/// Progress notifications per second that are forwarded. People could not read more.
const PROGRESS_PER_SECOND: NonZeroU32 = NonZeroU32::new(20).unwrap();

/// Maximum burst of progress notifications, so that short tools that report every step lose none.
const PROGRESS_BURST: NonZeroU32 = NonZeroU32::new(100).unwrap();

/// The observer of one call, for the peer that made it.
pub(crate) struct PeerObserver {
    outbox: Outbox,
    /// The name or URI of the call's target, sent as the logger.
    target: String,
    revision: Revision,
    /// Lowest level of log messages to send; `None` sends none.
    min_log_level: Option<LogLevel>,
    /// The progress token and its rate limiter; `None` if the peer requested no progress.
    progress: Option<(RequestId, DefaultDirectRateLimiter)>,
    cancel: CancellationToken,
    /// The last progress value sent. Values must increase, even if the call enters the plugin again
    /// and its progress restarts.
    last_progress: Mutex<Option<f64>>,
    /// Subscribers of resource changes.
    updates: ResourceUpdates,
}

impl PeerObserver {
    pub(crate) fn new(
        outbox: Outbox,
        target: &str,
        context: &RequestContext,
        token: Option<RequestId>,
        cancel: CancellationToken,
        updates: ResourceUpdates,
    ) -> Self {
        let quota = Quota::per_second(PROGRESS_PER_SECOND).allow_burst(PROGRESS_BURST);
        let progress = token.map(|token| (token, RateLimiter::direct(quota)));
        Self {
            outbox,
            target: target.to_owned(),
            revision: context.revision,
            min_log_level: context.min_log_level,
            progress,
            cancel,
            last_progress: Mutex::default(),
            updates,
        }
    }
}

/// The parameters of `notifications/progress`.
#[derive(Serialize)]
struct ProgressParams<'a> {
    #[serde(rename = "progressToken")]
    token: &'a RequestId,
    progress: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl CallObserver for PeerObserver {
    fn log(&self, level: LogLevel, message: &str) {
        // The sandbox already enforces `limits.log`.
        if self
            .min_log_level
            .is_some_and(|min_level| level >= min_level)
        {
            let params = json!({"level": level, "logger": self.target, "data": message});
            self.outbox
                .try_send(OutgoingMessage::notification(jsonrpc::notification(
                    "notifications/message",
                    Some(&params),
                )));
        }
    }

    fn progress(&self, progress: ProgressUpdate) {
        let Some((token, limiter)) = &self.progress else {
            return;
        };
        {
            let mut last = self.last_progress.lock();
            if last.is_some_and(|last| progress.progress <= last) || limiter.check().is_err() {
                return;
            }
            *last = Some(progress.progress);
        }
        let params = ProgressParams {
            token,
            progress: progress.progress,
            total: progress.total,
            message: progress
                .message
                .filter(|_| self.revision.features().progress_message),
        };
        let message = jsonrpc::notification("notifications/progress", Some(&params));
        self.outbox.try_send(OutgoingMessage::notification(message));
    }

    fn resource_updated(&self, uri: &str) {
        self.updates.notify_changed(uri);
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}
