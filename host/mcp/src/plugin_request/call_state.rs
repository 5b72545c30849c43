//! The state that all entries of one call share.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use toolbay_background::QuotaPortion;
use toolbay_model::{
    ArgumentCheck, CallError, CallFailure, CallJournal, CallObserver, Question, QuestionKind,
    TargetKind, TraceContext,
};

use crate::exchange::outbox::Outbox;
use crate::host::interface::RequestMetadata;
use crate::plugin_request::elicitation::NoAnswers;
use crate::plugin_request::params_memory::busy_rejection;
use crate::plugin_request::retained_request::RetainedRequest;
use crate::protocol::message_context::RequestContext;
use crate::session::client_session::Session;
use crate::tasks::LiveTask;

/// The state that all entries of one call share. It stays in memory while a person thinks, and is
/// therefore small.
pub(super) struct CallState<'a> {
    pub(super) session: &'a Session,
    pub(super) channel: QuestionChannel<'a>,
    pub(super) rules: RequestContext,
    pub(super) cancelled: &'a CancellationToken,
    pub(super) observer: Arc<dyn CallObserver>,
    /// `None` if the client answers no questions. In that case the plugin asks none.
    pub(super) retained: Option<RetainedRequest>,
    /// Reservation for the bytes of the journal while the client is asked, and afterwards.
    pub(super) journal_reservations: Vec<QuotaPortion>,
    /// If set, an entry was admitted. The request state that the client sent is then used up,
    /// however the call ends.
    pub(super) was_admitted: bool,
    pub(super) target: TargetKind,
    pub(super) permitted: bool,
    pub(super) arguments: Option<ArgumentCheck>,
    pub(super) trace: Option<Box<TraceContext>>,
    pub(super) wire: Option<Box<RequestMetadata>>,
}

/// The channel on which a call asks its client questions.
#[derive(Clone, Copy)]
pub(super) enum QuestionChannel<'a> {
    /// On the stream of its request.
    Stream(&'a Outbox),
    /// In the task, when the client polls it.
    Task(&'a LiveTask),
}

impl CallState<'_> {
    /// Reserves the bytes of the journal in the caller's share, unless they are reserved already.
    pub(super) fn reserve_journal(&mut self, journal: &CallJournal) -> Result<(), NoAnswers> {
        if self.journal_reservations.is_empty() {
            let room = self
                .session
                .request_quota
                .try_reserve(&self.session.opener.name, journal.size());
            // Exact capacity: few calls need more, and many calls wait.
            self.journal_reservations =
                vec![room.map_err(|none| {
                    NoAnswers::Failed(CallFailure::Rejected(busy_rejection(none)))
                })?];
        }
        Ok(())
    }

    /// Checks that the client answers questions of these kinds. The sandbox asks no others.
    pub(super) fn check_capabilities(&self, questions: &[Question]) -> Result<(), CallFailure> {
        let answerable = self.rules.capabilities.answerable(self.rules.revision);
        let missing: Vec<_> = questions
            .iter()
            .map(|question| question.kind)
            .filter(|kind| !answerable.contains(*kind))
            .collect();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(CallFailure::MissingCapabilities(
                QuestionKind::capabilities(&missing),
            ))
        }
    }

    /// Returns the failure for questions to a client that answers none. The sandbox has the
    /// client's capabilities and should not have passed the questions on.
    pub(super) fn unanswerable_failure(&self, questions: &[Question]) -> CallFailure {
        let keys: Vec<&str> = questions
            .iter()
            .map(|question| question.key.as_str())
            .collect();
        let what = format!(
            "a {} sent no questions, or sent them to a client that answers none: {}",
            self.target,
            keys.join(", ")
        );
        CallFailure::Call(CallError::Internal(what))
    }
}
