//! Answers to the questions of a call that come from an operator instead of its client, and
//! notification when a call that waits for answers ends.

use std::any::Any;
use std::fmt;

use tokio::sync::oneshot::Receiver;
use toolbay_model::{CallJournal, Question};

/// Questions that are about to be sent to a client.
#[derive(Clone, Copy, Debug)]
pub struct PendingQuestions<'a> {
    /// The caller's name.
    pub caller: &'a str,
    /// The questions.
    pub questions: &'a [Question],
    /// The journal that the next run of the call receives, with the answers.
    pub journal: &'a CallJournal,
}

/// A handle to a question while its call waits. An operator may answer in place of the client, and
/// the host is notified if the call ends without an answer.
#[derive(Default)]
pub struct OperatorAnswer {
    receiver: Option<Receiver<OperatorReply>>,
    /// Dropped when no call waits for the answer any more.
    guard: Option<Box<dyn Any + Send + Sync>>,
    /// Called if the call ends before there is an answer.
    on_withdrawn: Option<Box<dyn FnOnce() + Send + Sync>>,
}

/// The answer of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorReply {
    /// The key of the question.
    pub key: String,
    /// The answer, in the form in which a client would have sent it.
    pub answer: String,
    /// The name of the operator who answered.
    pub operator: String,
}

impl fmt::Debug for OperatorAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperatorAnswer").finish_non_exhaustive()
    }
}

impl OperatorAnswer {
    /// Creates the handle for a question that the sender of `receiver` may answer. `guard` is
    /// dropped when no call waits for the answer any more.
    pub fn new(receiver: Receiver<OperatorReply>, guard: impl Any + Send + Sync) -> Self {
        Self {
            receiver: Some(receiver),
            guard: Some(Box::new(guard)),
            on_withdrawn: None,
        }
    }

    /// Sets a callback for the case that the call ends without an answer, because its client has
    /// cancelled it or has disconnected.
    #[must_use]
    pub fn on_withdrawn(mut self, callback: impl FnOnce() + Send + Sync + 'static) -> Self {
        self.on_withdrawn = Some(Box::new(callback));
        self
    }

    /// Returns whether an operator may still answer.
    pub(crate) fn is_open(&self) -> bool {
        self.receiver.is_some()
    }

    /// Stops accepting an operator's answer: from now on, only the client can answer.
    pub(crate) fn leave_to_client(&mut self) {
        self.receiver = None;
        self.guard = None;
    }

    /// Waits for an operator's answer. Never returns if no operator can answer. Cancel safe: no
    /// answer is lost.
    pub async fn wait_for_answer(operator_answer: &mut Option<Self>) -> OperatorReply {
        if let Some(open_answer) = operator_answer
            && let Some(receiver) = &mut open_answer.receiver
        {
            if let Ok(reply) = receiver.await {
                open_answer.on_withdrawn = None;
                return reply;
            }
            // A closed receiver must not be polled again.
            open_answer.leave_to_client();
        }
        std::future::pending().await
    }

    /// Ends the wait because the client has answered. An operator can no longer answer. Returns an
    /// answer that was sent before.
    pub fn close(mut self) -> Option<OperatorReply> {
        self.on_withdrawn = None;
        let receiver = self.receiver.as_mut()?;
        receiver.close();
        receiver.try_recv().ok()
    }
}

impl Drop for OperatorAnswer {
    fn drop(&mut self) {
        if let Some(callback) = self.on_withdrawn.take() {
            callback();
        }
    }
}
