//! Notifications about calls that wait for an operator (`approve.notify`): a program or a webhook
//! receives a small JSON object for each call.
//!
//! A notification never delays a call, and its failure changes nothing but the log. One task sends
//! them one after the other, at most one per second. Further ones wait in a queue that bounds each
//! caller.

mod command;
mod notice_queue;
mod webhook;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;
use tokio::time::{sleep, timeout};
use toolbay_console::WaitingApproval;
use toolbay_model::text::clean_line;

pub(crate) use self::command::{CommandWorker, NotifyCommand, serve_commands};
use self::notice_queue::NoticeQueue;
use self::webhook::Webhook;
use crate::config::{Config, NotifyTarget};

/// Time limit for one notification.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause after each notification.
const PAUSE: Duration = Duration::from_secs(1);

/// Maximum length of a name in a notification, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// Sender of notifications. Clones share a queue.
#[derive(Clone, Debug)]
pub(crate) struct ApprovalNotifier {
    queue: Arc<NoticeQueue>,
}

/// The receiver of the notifications.
enum NotifyChannel {
    Command(NotifyCommand),
    Webhook(Box<Webhook>),
}

impl ApprovalNotifier {
    /// Starts the notifier that the configuration requests. `worker` runs its command for a
    /// confined server. Must be called on a tokio runtime.
    pub(crate) fn start(config: &Config, worker: Option<&Arc<CommandWorker>>) -> Option<Self> {
        let target = config.approve.notify.as_ref()?;
        let channel = match target {
            NotifyTarget::Command(words) => NotifyChannel::Command(match worker {
                Some(worker) => NotifyCommand::Worker(Arc::clone(worker)),
                None => NotifyCommand::InProcess(words.clone()),
            }),
            NotifyTarget::Webhook(url) => {
                match Webhook::new(&url.0, &config.http_client.options()) {
                    Ok(webhook) => NotifyChannel::Webhook(Box::new(webhook)),
                    Err(why) => {
                        tracing::warn!("no notification of waiting calls is sent: {why}");
                        return None;
                    }
                }
            }
        };
        let queue = Arc::<NoticeQueue>::default();
        tokio::spawn(send_notices(channel, Arc::clone(&queue)));
        Some(Self { queue })
    }

    /// Queues a notification about a call, unless there are too many of its caller or in total.
    /// Never waits.
    pub(crate) fn notify(&self, approval: &WaitingApproval) {
        let text = notice_text(approval);
        let caller = &approval.caller;
        if let Some(count) = self.queue.add(approval.id, caller, text, Instant::now()) {
            tracing::warn!(
                caller = clean_line(caller, MAX_NAME_BYTES),
                count,
                "approval: notifications of waiting calls are omitted, because there are too many (approve.notify)"
            );
        }
    }

    /// Removes the notification about a call that no longer waits, if it was not sent yet.
    pub(crate) fn withdraw(&self, id: u64) {
        self.queue.withdraw(id);
    }
}

/// Sends notifications until the server ends.
async fn send_notices(channel: NotifyChannel, queue: Arc<NoticeQueue>) {
    loop {
        let notice = queue.next().await;
        let sending = async {
            match &channel {
                NotifyChannel::Command(command) => command.send(notice).await,
                NotifyChannel::Webhook(webhook) => webhook.send(notice).await,
            }
        };
        let sent = timeout(SEND_TIMEOUT, sending)
            .await
            .unwrap_or_else(|_| Err(format!("no end within {} s", SEND_TIMEOUT.as_secs())));
        match sent {
            Ok(()) => tracing::debug!("approval: a notification of a waiting call was sent"),
            Err(why) => tracing::warn!(
                "approval: a notification of a waiting call failed (approve.notify): {}",
                clean_line(&why, MAX_NAME_BYTES)
            ),
        }
        sleep(PAUSE).await;
    }
}

/// Returns the JSON object about a call. It contains no arguments and no secrets.
fn notice_text(approval: &WaitingApproval) -> String {
    let name = |text: &str| clean_line(text, MAX_NAME_BYTES);
    let time = |at: SystemTime| humantime::format_rfc3339_seconds(at).to_string();
    json!({
        "event": "approval-waiting",
        "id": approval.id,
        "tool": name(&approval.tool),
        "plugin": name(&approval.plugin),
        "caller": name(&approval.caller),
        "asked_at": time(approval.asked_at),
        "expires_at": time(approval.expires_at),
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_one_short_line_without_the_question() {
        let approval = WaitingApproval {
            id: 7,
            asked_at: SystemTime::UNIX_EPOCH,
            expires_at: SystemTime::UNIX_EPOCH + Duration::from_mins(5),
            caller: "x\n".repeat(10_000),
            plugin: "\u{202e}\"a".to_owned(),
            tool: "erase".to_owned(),
            question: "s3cret".to_owned(),
            covered_calls: "this call",
            is_for_operator: true,
        };
        let text = notice_text(&approval);
        assert!(
            text.len() < 2_000 && !text.contains('\n') && !text.contains("s3cret"),
            "{text}"
        );
        let notice: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(notice["tool"], "erase");
        assert_eq!(notice["expires_at"], "1970-01-01T00:05:00Z");
    }
}
