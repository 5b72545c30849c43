//! Audit records of plugins and calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::time::timeout_at;
use toolbay_audit::{
    ArgumentsRecord, AuditEvent, AuditLog, CallRecord, CallSubject, OperatorRecord, PluginRecord,
    QueueReservation, RejectedRecord, WhenFull, hash, truncate_name,
};
use toolbay_catalog::{Plugin, PluginFileStatus, PluginReport, PublishListener, Snapshot};
use toolbay_model::{
    CallRejection, CallResult, CallerIdentity, ErrorKind, MissingApprovalReason, RejectionReason,
    TraceContext, milliseconds,
};
use toolbay_schema::ValueConversion;
use toolbay_secrets::{SecretFilter, SecretVault};

use crate::approval::ruling::ApprovalDecision;
use crate::observe::call_outcome::{CallEnding, limit_key};

/// Maximum length of recorded arguments, in bytes.
const MAX_ARGUMENTS_BYTES: usize = 16 << 10;

/// Maximum number of denials of one call that get their own line. A guest can cause any number of
/// them, and new lines evict old ones. Further denials are only counted.
const MAX_LISTED_DENIALS: u64 = 32;

/// Timeout for closing the log when the server stops.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout for writing a line of a call without a reservation.
const UNRESERVED_LINE_TIMEOUT: Duration = Duration::from_millis(100);

/// Retry delay for a call that could not be recorded. The log probes the disk once a second.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The audit log of a server.
#[derive(Clone, Debug)]
pub(crate) struct AuditSink {
    audit: AuditLog,
    /// If set, complete arguments are recorded instead of only their digest.
    full: bool,
}

/// The audit line of one call. If it is dropped before the call ends, it records a cancellation.
#[derive(Debug)]
pub(crate) struct CallLine {
    audited: AuditSink,
    record: CallRecord,
    /// True once the call has passed the checks that can reject it. Until then, it is counted with
    /// similar rejections.
    let_in: bool,
    /// Reserved space for the lines of the call; `None` before admission, or if there is no space
    /// and calls continue regardless.
    room: Option<QueueReservation>,
    /// Records that no person could be asked about the call.
    unasked: Option<AuditEvent>,
    /// Number of denials without their own line.
    unlisted: Arc<AtomicU64>,
    ended: bool,
}

/// Closes the log on drop.
#[derive(Debug)]
pub(crate) struct AuditGuard(pub(crate) AuditSink);

impl Drop for AuditGuard {
    fn drop(&mut self) {
        self.0.audit.end(SHUTDOWN_TIMEOUT);
    }
}

impl AuditSink {
    /// Creates a sink that records complete arguments if `full` is set, otherwise their digest.
    pub(crate) fn new(audit: AuditLog, full: bool) -> Self {
        Self { audit, full }
    }

    /// Returns the number of lost lines.
    pub(crate) fn lost_lines(&self) -> u64 {
        self.audit.lost_records()
    }

    /// Starts the line of a call.
    pub(crate) fn start_line(&self, caller: &str, tool: &str) -> CallLine {
        let (caller, tool) = (truncate_name(caller), truncate_name(tool));
        let subject = CallSubject {
            call: self.audit.next_call_number(),
            caller,
            tool,
            ..CallSubject::default()
        };
        CallLine {
            audited: self.clone(),
            record: CallRecord {
                subject,
                ..CallRecord::default()
            },
            let_in: false,
            room: None,
            unasked: None,
            unlisted: Arc::default(),
            ended: false,
        }
    }

    /// Returns whether complete arguments are recorded.
    pub(crate) fn records_full_arguments(&self) -> bool {
        self.full
    }

    /// Records an operator's action on a plugin or on the whole server, and whether it succeeded.
    /// Does not wait.
    pub(crate) fn record_operator_action(
        &self,
        caller: &str,
        action: &'static str,
        of: Option<&Arc<Plugin>>,
        done: bool,
    ) {
        let outcome = if done { "ok" } else { "failed" };
        let plugin = of.map(|of| plugin_record(of));
        let did = OperatorRecord {
            caller: truncate_name(caller),
            action,
            plugin,
            outcome,
        };
        self.audit
            .record_server_event(AuditEvent::Operator(Box::new(did)));
    }
}

/// Records the arguments of one call.
#[derive(Clone)]
pub(crate) struct ArgumentRecorder {
    /// The secrets to redact from the arguments; `None` to record only a digest.
    redacted: Option<Arc<SecretFilter>>,
}

impl ArgumentRecorder {
    /// Creates a recorder for a call of `caller`. If `full` is set, it records complete arguments
    /// without the secrets of `vault`. Otherwise, or if the secrets are not available by
    /// `deadline`, it records only a digest.
    pub(crate) async fn open(
        full: bool,
        vault: &SecretVault,
        caller: Option<&CallerIdentity>,
        deadline: Instant,
    ) -> Self {
        if !full {
            return Self { redacted: None };
        }
        // A secret can be stored in a file, and a file system can hang.
        let opened = timeout_at(deadline.into(), vault.open(caller)).await;
        let opened = opened.ok().and_then(Result::ok);
        Self {
            redacted: opened.map(|opened| Arc::clone(&opened.filter)),
        }
    }

    /// Returns the record of the arguments. Takes time in proportion to their length.
    pub(crate) fn record(&self, text: &str) -> ArgumentsRecord {
        let digest = Some(hash(text.as_bytes()));
        let Some(secrets) = &self.redacted else {
            return ArgumentsRecord {
                digest,
                ..ArgumentsRecord::default()
            };
        };
        let is_truncated = text.len() > MAX_ARGUMENTS_BYTES;
        let shown = if is_truncated {
            secrets.scrub_truncated(
                text.get(..text.floor_char_boundary(MAX_ARGUMENTS_BYTES))
                    .unwrap_or_default(),
            )
        } else {
            secrets.scrub(text).into_owned()
        };
        ArgumentsRecord {
            digest,
            text: Some(shown),
            is_truncated,
        }
    }
}

impl CallLine {
    /// Returns the log that the line belongs to.
    pub(crate) fn sink(&self) -> &AuditSink {
        &self.audited
    }

    /// Sets the plugin that serves the call, and the trace.
    pub(crate) fn set_plugin(&mut self, plugin: &Plugin, trace: Option<&TraceContext>) {
        self.record.subject.plugin = Some(self::plugin_record(plugin));
        self.record.subject.trace_id = trace.map(|trace| trace.trace.clone());
    }

    /// Sets the arguments, reduced to their digest unless the log records complete arguments.
    pub(crate) fn set_arguments(&mut self, arguments: ArgumentsRecord) {
        let ArgumentsRecord { digest, .. } = arguments;
        self.record.arguments = if self.audited.full {
            arguments
        } else {
            ArgumentsRecord {
                digest,
                ..ArgumentsRecord::default()
            }
        };
    }

    /// Counts the conversions of arguments by kind.
    pub(crate) fn set_conversions(&mut self, converted: &[ValueConversion]) {
        for conversion in converted {
            *self
                .record
                .converted
                .entry(conversion.kind.as_str())
                .or_default() += 1;
        }
    }

    /// Reserves space for the lines of the call before any operation that must be recorded. Waits
    /// until `deadline` at most, as configured for a full log.
    ///
    /// # Errors
    ///
    /// The call could not be recorded.
    pub(crate) async fn admit(&mut self, deadline: Instant) -> Result<(), CallRejection> {
        let audit = &self.audited.audit;
        self.room = audit
            .reserve(AuditLog::reservation_bytes(&self.record), deadline)
            .await;
        if self.room.is_none() && audit.when_full() != WhenFull::Drop {
            return Err(CallRejection {
                reason: RejectionReason::AuditLogFull,
                retry_after: Some(RETRY_INTERVAL),
            });
        }
        self.let_in = true;
        Ok(())
    }

    /// Returns a recorder for the denials of the call.
    pub(crate) fn denial_recorder(&self) -> DenialRecorder {
        let (audit, subject) = (self.audited.audit.clone(), self.record.subject.clone());
        DenialRecorder {
            audit,
            subject,
            count: AtomicU64::new(0),
            unlisted: Arc::clone(&self.unlisted),
        }
    }

    /// Records the outcome of asking a person about the call.
    pub(crate) async fn record_approval(&mut self, decision: ApprovalDecision) {
        let word = decision.word;
        let event = self.approval_event(decision);
        if word == MissingApprovalReason::Unsupported.as_str() {
            // A client can cause this at will, so it counts as a rejection.
            (self.unasked, self.let_in, self.room) = (Some(event), false, None);
        } else {
            self.add_event(event).await;
        }
    }

    /// Records that an admitted call ended while a person was asked about it. Does not wait.
    pub(crate) fn record_withdrawal(mut self, decision: ApprovalDecision) {
        self.let_in = true;
        self.audited.audit.record_now(self.approval_event(decision));
    }

    fn approval_event(&self, decision: ApprovalDecision) -> AuditEvent {
        let ApprovalDecision { word, waited, by } = decision;
        AuditEvent::Approval {
            subject: self.record.subject.clone(),
            decision: word,
            arguments: self.record.arguments.digest,
            waited_ms: waited.map(milliseconds),
            answered_by: by.as_deref().map(truncate_name),
        }
    }

    /// Writes the line of the finished call.
    pub(crate) async fn finish(&mut self, answer: &CallResult) {
        self.record.usage = answer.usage;
        let (outcome, limit) = (CallEnding::from_answer(answer).as_str(), limit_key(answer));
        if !self.let_in {
            return self.finish_rejected(outcome, limit);
        }
        if let Some(limit) = limit {
            self.add_event(AuditEvent::Limit {
                subject: self.record.subject.clone(),
                limit,
            })
            .await;
        }
        let call = self.take_event(outcome);
        self.add_event(call).await;
    }

    /// Writes the line of a call that was rejected before it entered the queue.
    pub(crate) fn reject(mut self, rejection: CallRejection) {
        self.finish_rejected(rejection.reason.kind().as_str(), rejection.reason.key());
    }

    /// Adds an event about the call. Waits only if the call has no reservation, which requires that
    /// calls continue without one.
    async fn add_event(&mut self, event: AuditEvent) {
        let audit = &self.audited.audit;
        match &mut self.room {
            Some(room) => audit.record_reserved(room, event),
            None => {
                audit
                    .record(event, Instant::now() + UNRESERVED_LINE_TIMEOUT)
                    .await;
            }
        }
    }

    /// Ends the line of a call that was not admitted. Does not wait.
    fn finish_rejected(&mut self, outcome: &'static str, limit: Option<&'static str>) {
        let CallSubject { caller, tool, .. } = self.record.subject.clone();
        let of_limit = limit.map(|limit| AuditEvent::Limit {
            subject: self.record.subject.clone(),
            limit,
        });
        let before = self.unasked.take().or(of_limit);
        let call = self.take_event(outcome);
        self.audited.audit.record_rejection(
            &RejectedRecord {
                caller,
                tool,
                outcome,
                limit,
                count: 1,
            },
            [before, Some(call)],
        );
    }

    fn take_event(&mut self, outcome: &'static str) -> AuditEvent {
        self.ended = true;
        let (rejected, unlisted) = (!self.let_in, self.unlisted.load(Ordering::Relaxed));
        AuditEvent::Call(Box::new(CallRecord {
            outcome,
            unlisted,
            rejected,
            ..std::mem::take(&mut self.record)
        }))
    }
}

impl Drop for CallLine {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let outcome = if std::thread::panicking() {
            ErrorKind::Internal
        } else {
            ErrorKind::Cancelled
        }
        .as_str();
        if !self.let_in {
            return self.finish_rejected(outcome, None);
        }
        let call = self.take_event(outcome);
        match &mut self.room {
            Some(room) => self.audited.audit.record_reserved(room, call),
            None => self.audited.audit.record_now(call),
        }
    }
}

/// Records the denials of one call.
#[derive(Debug)]
pub(crate) struct DenialRecorder {
    audit: AuditLog,
    subject: CallSubject,
    count: AtomicU64,
    /// Number of denials without their own line: beyond the maximum, or without space in the queue.
    unlisted: Arc<AtomicU64>,
}

impl DenialRecorder {
    /// Records a denial. `what` is a sentence. `remedy` contains the lines of `[permissions]` that
    /// would allow the operation. Does not wait.
    pub(crate) fn record_denial(&self, what: &str, remedy: Option<&str>) {
        let is_listed = self.count.fetch_add(1, Ordering::Relaxed) < MAX_LISTED_DENIALS && {
            let remedy = remedy.map(str::to_owned);
            self.audit.try_record(AuditEvent::Denied {
                subject: self.subject.clone(),
                message: what.to_owned(),
                remedy,
            })
        };
        if !is_listed {
            self.unlisted.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn plugin_record(plugin: &Plugin) -> PluginRecord {
    let (digest, grant) = (plugin.digest(), plugin.terms.grant_digest);
    PluginRecord {
        plugin: truncate_name(&plugin.id),
        digest,
        grant,
    }
}

/// Records the changes of each snapshot.
impl PublishListener for AuditSink {
    fn before_publish(&self, previous: &Snapshot, next: &Snapshot) {
        change_events(previous, next).for_each(|event| self.audit.record_server_event(event));
    }
}

/// Returns the events for replacing one snapshot by another.
pub(crate) fn change_events(
    previous: &Snapshot,
    next: &Snapshot,
) -> impl Iterator<Item = AuditEvent> {
    let changed = next
        .plugins
        .iter()
        .filter_map(|(id, report)| plugin_change(id, previous.plugins.get(id), report));
    let removed = previous
        .plugins
        .iter()
        .filter(|(id, _)| !next.plugins.contains_key(*id));
    changed.chain(removed.map(|(id, report)| AuditEvent::Removed {
        plugin: report_record(id, report),
    }))
}

/// Returns the event for the change of a plugin's file, if any.
fn plugin_change(
    id: &str,
    before: Option<&PluginReport>,
    now: &PluginReport,
) -> Option<AuditEvent> {
    let plugin = report_record(id, now);
    let served = |report: &PluginReport| report.status == PluginFileStatus::Ready;
    match now.status {
        PluginFileStatus::Loading => None,
        PluginFileStatus::Refused | PluginFileStatus::Stale => {
            let told = before.is_some_and(|before| {
                before.status == now.status && before.problems == now.problems
            });
            let reason = now.problems.join("; ");
            (!told).then_some(AuditEvent::Refused { plugin, reason })
        }
        PluginFileStatus::Ready => {
            let before = before.filter(|before| before.source_digests.is_some());
            let same = |part: fn(&PluginReport) -> Option<_>| {
                before.is_some_and(|before| part(before) == part(now))
            };
            let component = same(|report| report.source_digests.map(|from| from.component));
            let previous = before.and_then(|before| before.source_digests?.grant);
            let offers = |report: &PluginReport| (report.tools.clone(), report.prompts.clone());
            if !component
                || before
                    .is_some_and(|before| offers(before) != offers(now) && previous == plugin.grant)
            {
                return Some(AuditEvent::Load {
                    plugin,
                    tools: now.tools.len(),
                });
            }
            if previous != plugin.grant {
                return Some(AuditEvent::Grant { plugin, previous });
            }
            // The served file is back after a rejected one, or its mounts now refer to other
            // folders.
            (!before.is_some_and(served)).then_some(AuditEvent::Load {
                plugin,
                tools: now.tools.len(),
            })
        }
    }
}

fn report_record(id: &str, report: &PluginReport) -> PluginRecord {
    let digest = report.source_digests.and_then(|from| from.component);
    PluginRecord {
        plugin: truncate_name(id),
        digest,
        grant: report.source_digests.and_then(|from| from.grant),
    }
}

#[cfg(test)]
mod tests;
