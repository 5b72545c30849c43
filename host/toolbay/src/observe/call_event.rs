//! The events of a call, and the trait of those that receive them.
//!
//! The path of a call (`call`) emits events, and each sink decides which of them it records. A sink
//! that is off is an empty `Option`: it costs one comparison per event, and nothing is formatted or
//! copied for it.

use std::future::{Future, ready};
use std::sync::Arc;
use std::time::Instant;

use bytesize::ByteSize;
use toolbay_audit::ArgumentsRecord;
use toolbay_catalog::ToolOffer;
use toolbay_mcp::ClientCall;
use toolbay_model::{
    CallError, CallJournal, CallRejection, CallReply, CallResult, DenialKind, Digest, LogLevel,
    QuestionKindSet, QuestionSubject, TraceContext,
};
use toolbay_schema::ValueConversion;

use crate::approval::call_target::CallTarget;
use crate::approval::ruling::ApprovalDecision;
use crate::observe::guest_run::GuestRun;
use crate::observe::metrics::PluginMeters;
use crate::observe::stage_times::StageTimes;

/// An event of a call. They are listed in the order in which they can occur.
pub(crate) enum CallEvent<'a> {
    /// The call was rejected before it entered its client's queue.
    Refused(CallRejection),
    /// The call left its client's queue.
    Started(&'a ClientCall),
    /// The call reads a stored result, without a plugin.
    StoredResultFound,
    /// The target of the call was found.
    Resolved {
        target: &'a CallTarget,
        /// The meters of the target's plugin.
        meters: &'a PluginMeters,
        is_completion: bool,
        /// The call's own span, or its caller's.
        trace: Option<&'a TraceContext>,
    },
    /// The arguments were recorded, because a sink requires it.
    ArgumentsRecorded(&'a ArgumentsRecord),
    /// The arguments were not checked before the deadline.
    CheckStopped {
        target: &'a CallTarget,
        error: &'a CallError,
    },
    /// Arguments were converted because their form did not match the schema.
    ArgumentsConverted {
        target: &'a CallTarget,
        caller: &'a str,
        converted: &'a [ValueConversion],
    },
    /// The call passed all checks that can reject it without a guest or a person. It continues when
    /// all sinks can record what follows, at most until `deadline`.
    Permitted { deadline: Instant },
    /// It was decided whether the call needs a person's approval, or a person has approved or
    /// rejected it.
    ApprovalDecided {
        offer: &'a ToolOffer,
        caller: &'a str,
        decision: &'a ApprovalDecision,
        /// Digest of the arguments, if a sink requires it.
        arguments: Option<Digest>,
    },
    /// The call ended while it waited for a person's approval: its client cancelled it or
    /// disconnected.
    ApprovalWithdrawn {
        subject: &'a QuestionSubject,
        caller: &'a str,
        decision: &'a ApprovalDecision,
    },
    /// The guest is about to be entered.
    GuestEntering {
        target: &'a CallTarget,
        arguments: &'a str,
        journal: &'a Arc<CallJournal>,
        answerable: QuestionKindSet,
        /// Maximum size of the result before truncation, if it can exceed `limits.output` because
        /// the whole is stored.
        kept: Option<ByteSize>,
    },
    /// The guest wrote a log message.
    GuestLogged {
        target: &'a CallTarget,
        level: LogLevel,
        message: &'a str,
    },
    /// The guest, or a view, was denied an operation. `what` is a sentence. `remedy` contains the
    /// lines of `[permissions]` that would allow the operation.
    Denied {
        target: &'a CallTarget,
        kind: DenialKind,
        what: &'a str,
        remedy: Option<&'a str>,
    },
    /// The guest returned, or could not be entered.
    GuestReturned(&'a GuestRun),
    /// The guest's result was checked. It had `size` bytes.
    ResultChecked {
        result: &'a Result<Option<CallReply>, CallError>,
        size: usize,
        run: &'a GuestRun,
    },
    /// The outcome of the guest is final.
    GuestFinished {
        target: &'a CallTarget,
        result: &'a Result<Option<CallReply>, CallError>,
        run: &'a GuestRun,
        times: &'a StageTimes,
    },
    /// The stages of the call ended, however they ended, at `now`.
    StagesEnded { times: &'a StageTimes, now: Instant },
    /// The call ended with this result.
    Ended(&'a CallResult),
    /// The response was written. Contains the code of an error response.
    Responded(Option<i32>),
}

/// Receives the events of calls.
pub(crate) trait CallSink {
    /// Records an event. Does not wait.
    fn record(&mut self, event: &CallEvent<'_>);

    /// Records an event that the call must not pass before it is recorded as durably as the
    /// configuration requires. Only the audit log waits.
    ///
    /// # Errors
    ///
    /// The event cannot be recorded, and the call must end.
    fn commit(
        &mut self,
        event: &CallEvent<'_>,
    ) -> impl Future<Output = Result<(), CallRejection>> + Send {
        self.record(event);
        ready(Ok(()))
    }
}

/// A sink that can be off.
impl<S: CallSink + Send> CallSink for Option<S> {
    fn record(&mut self, event: &CallEvent<'_>) {
        if let Some(sink) = self {
            sink.record(event);
        }
    }

    async fn commit(&mut self, event: &CallEvent<'_>) -> Result<(), CallRejection> {
        match self {
            Some(sink) => sink.commit(event).await,
            None => Ok(()),
        }
    }
}
