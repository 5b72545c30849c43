//! The lines of one call in the audit log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use toolbay_audit::{
    ArgumentsRecord, AuditEvent, AuditLog, CallRecord, CallSubject, QueueReservation,
    RejectedRecord, WhenFull, truncate_name,
};
use toolbay_catalog::Plugin;
use toolbay_model::{
    CallRejection, CallResult, Digest, ErrorKind, MissingApprovalReason, RejectionReason,
    TraceContext, milliseconds,
};
use toolbay_schema::ValueConversion;

use crate::approval::ruling::ApprovalDecision;
use crate::observe::call_event::{CallEvent, CallSink};
use crate::observe::call_outcome::{OutcomeLabel, limit_key};
use crate::observe::server_audit::{ServerAudit, plugin_record};

/// Maximum number of denials of one call that get their own line. A guest can cause any number of
/// them, and new lines evict old ones. Further denials are only counted.
const MAX_LISTED_DENIALS: u64 = 32;

/// Timeout for writing a line of a call without a reservation.
const UNRESERVED_LINE_TIMEOUT: Duration = Duration::from_millis(100);

/// Retry delay for a call that could not be recorded. The log probes the disk once a second.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The audit line of one call. If it is dropped before the call ends, it records a cancellation.
#[derive(Debug)]
pub(crate) struct CallAuditLines {
    audit: ServerAudit,
    record: CallRecord,
    /// True once the call has passed the checks that can reject it. Until then, it is counted with
    /// similar rejections.
    is_admitted: bool,
    /// Reserved space for the lines of the call; `None` before admission, or if there is no space
    /// and calls continue regardless.
    reservation: Option<QueueReservation>,
    /// Records that no person could be asked about the call.
    unsupported_approval: Option<AuditEvent>,
    /// Number of denials without their own line.
    unlisted: Arc<AtomicU64>,
    ended: bool,
}

impl CallAuditLines {
    /// Starts the line of a call in a log.
    pub(crate) fn start(audited: &ServerAudit, caller: &str, tool: &str) -> Self {
        let caller = truncate_name(caller);
        let tool = truncate_name(tool);
        let subject = CallSubject {
            call: audited.log().next_call_number(),
            caller,
            tool,
            ..CallSubject::default()
        };
        Self {
            audit: audited.clone(),
            record: CallRecord {
                subject,
                ..CallRecord::default()
            },
            is_admitted: false,
            reservation: None,
            unsupported_approval: None,
            unlisted: Arc::default(),
            ended: false,
        }
    }

    /// Returns whether complete arguments are recorded.
    pub(crate) fn records_full_arguments(&self) -> bool {
        self.audit.records_full_arguments()
    }

    /// Sets the plugin that serves the call, and the trace.
    fn set_plugin(&mut self, plugin: &Plugin, trace: Option<&TraceContext>) {
        self.record.subject.plugin = Some(plugin_record(plugin));
        self.record.subject.trace_id = trace.map(|trace| trace.trace_id.clone());
    }

    /// Sets the arguments, reduced to their digest unless the log records complete arguments.
    pub(crate) fn set_arguments(&mut self, arguments: ArgumentsRecord) {
        let ArgumentsRecord { digest, .. } = arguments;
        self.record.arguments = if self.audit.records_full_arguments() {
            arguments
        } else {
            ArgumentsRecord {
                digest,
                ..ArgumentsRecord::default()
            }
        };
    }

    /// Counts the conversions of arguments by kind.
    fn set_conversions(&mut self, converted: &[ValueConversion]) {
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
    async fn admit(&mut self, deadline: Instant) -> Result<(), CallRejection> {
        let audit = self.audit.log();
        self.reservation = audit
            .reserve(AuditLog::reservation_bytes(&self.record), deadline)
            .await;
        if self.reservation.is_none() && audit.when_full() != WhenFull::Drop {
            return Err(CallRejection {
                reason: RejectionReason::AuditLogFull,
                retry_after: Some(RETRY_INTERVAL),
            });
        }
        self.is_admitted = true;
        Ok(())
    }

    /// Returns a recorder for the denials of the call.
    pub(crate) fn denial_recorder(&self) -> DenialRecorder {
        let audit = self.audit.log().clone();
        let subject = self.record.subject.clone();
        DenialRecorder {
            audit,
            subject,
            count: AtomicU64::new(0),
            unlisted: Arc::clone(&self.unlisted),
        }
    }

    /// Records the outcome of asking a person about the call.
    async fn record_approval(&mut self, decision: &ApprovalDecision) {
        let event = self.approval_event(decision);
        if decision.outcome == MissingApprovalReason::Unsupported.as_str() {
            // A client can cause this at will, so it counts as a rejection.
            (
                self.unsupported_approval,
                self.is_admitted,
                self.reservation,
            ) = (Some(event), false, None);
        } else {
            self.add_event(event).await;
        }
    }

    /// Records that an admitted call ended while a person was asked about it. Does not wait.
    fn record_withdrawal(&mut self, arguments: Digest, decision: &ApprovalDecision) {
        self.record.arguments.digest = Some(arguments);
        self.is_admitted = true;
        self.audit.log().record_now(self.approval_event(decision));
    }

    fn approval_event(&self, decision: &ApprovalDecision) -> AuditEvent {
        AuditEvent::Approval {
            subject: self.record.subject.clone(),
            decision: decision.outcome,
            arguments: self.record.arguments.digest,
            waited_ms: decision.waited.map(milliseconds),
            answered_by: decision.operator.as_deref().map(truncate_name),
        }
    }

    /// Writes the line of the finished call.
    async fn finish(&mut self, answer: &CallResult) {
        self.record.usage = answer.usage;
        let outcome = OutcomeLabel::from_answer(answer).as_str();
        let limit = limit_key(answer);
        if !self.is_admitted {
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

    /// Adds an event about the call. Waits only if the call has no reservation, which is possible
    /// only if the configuration lets calls continue when the log is full.
    async fn add_event(&mut self, event: AuditEvent) {
        let audit = self.audit.log();
        match &mut self.reservation {
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
        let before = self.unsupported_approval.take().or(of_limit);
        let call = self.take_event(outcome);
        self.audit.log().record_rejection(
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
        let rejected = !self.is_admitted;
        let unlisted = self.unlisted.load(Ordering::Relaxed);
        AuditEvent::Call(Box::new(CallRecord {
            outcome,
            unlisted,
            was_rejected: rejected,
            ..std::mem::take(&mut self.record)
        }))
    }
}

impl CallSink for CallAuditLines {
    fn record(&mut self, event: &CallEvent<'_>) {
        match event {
            CallEvent::Refused(rejection) => {
                self.finish_rejected(rejection.reason.kind().as_str(), rejection.reason.key());
            }
            CallEvent::Resolved { target, trace, .. } => self.set_plugin(target.plugin(), *trace),
            CallEvent::ArgumentsConverted { converted, .. } => self.set_conversions(converted),
            CallEvent::ApprovalWithdrawn {
                subject, decision, ..
            } => self.record_withdrawal(subject.arguments, decision),
            _ => {}
        }
    }

    async fn commit(&mut self, event: &CallEvent<'_>) -> Result<(), CallRejection> {
        match event {
            CallEvent::Permitted { deadline } => return self.admit(*deadline).await,
            CallEvent::ApprovalDecided { decision, .. } => self.record_approval(decision).await,
            CallEvent::Ended(answer) => self.finish(answer).await,
            event => self.record(event),
        }
        Ok(())
    }
}

impl Drop for CallAuditLines {
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
        if !self.is_admitted {
            return self.finish_rejected(outcome, None);
        }
        let call = self.take_event(outcome);
        match &mut self.reservation {
            Some(room) => self.audit.log().record_reserved(room, call),
            None => self.audit.log().record_now(call),
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

/// Shared by the threads of the call.
impl CallSink for &DenialRecorder {
    fn record(&mut self, event: &CallEvent<'_>) {
        let CallEvent::Denied { what, remedy, .. } = event else {
            return;
        };
        let is_listed = self.count.fetch_add(1, Ordering::Relaxed) < MAX_LISTED_DENIALS && {
            let remedy = remedy.map(str::to_owned);
            self.audit.try_record(AuditEvent::Denied {
                subject: self.subject.clone(),
                message: (*what).to_owned(),
                remedy,
            })
        };
        if !is_listed {
            self.unlisted.fetch_add(1, Ordering::Relaxed);
        }
    }
}
