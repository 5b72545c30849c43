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
    receiver: Option<Receiver<AnsweredElsewhere>>,
    /// Dropped when no call waits for the answer any more.
    place: Option<Box<dyn Any + Send + Sync>>,
    /// Called if the call ends before there is an answer.
    withdrawn: Option<Box<dyn FnOnce() + Send + Sync>>,
}

/// The answer of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnsweredElsewhere {
    /// The key of the question.
    pub key: String,
    /// The answer, in the form in which a client would have sent it.
    pub answer: String,
    /// The name of the operator who answered.
    pub by: String,
}

impl fmt::Debug for OperatorAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperatorAnswer").finish_non_exhaustive()
    }
}

impl OperatorAnswer {
    /// Creates the handle for a question that the sender of `receiver` may answer. `guard` is
    /// dropped when no call waits for the answer any more.
    pub fn new(receiver: Receiver<AnsweredElsewhere>, place: impl Any + Send + Sync) -> Self {
        Self {
            receiver: Some(receiver),
            place: Some(Box::new(place)),
            withdrawn: None,
        }
    }

    /// Sets a callback for the case that the call ends without an answer, because its client has
    /// cancelled it or has disconnected.
    #[must_use]
    pub fn on_withdrawn(mut self, withdrawn: impl FnOnce() + Send + Sync + 'static) -> Self {
        self.withdrawn = Some(Box::new(withdrawn));
        self
    }

    /// Returns whether an operator may still answer.
    pub(crate) fn is_open(&self) -> bool {
        self.receiver.is_some()
    }

    /// Stops accepting an operator's answer: from now on, only the client can answer.
    pub(crate) fn leave_to_client(&mut self) {
        self.receiver = None;
        self.place = None;
    }

    /// Waits for an operator's answer. Never returns if no operator can answer. Cancel safe: no
    /// answer is lost.
    pub async fn wait_for_answer(elsewhere: &mut Option<Self>) -> AnsweredElsewhere {
        if let Some(waiting) = elsewhere
            && let Some(receiver) = &mut waiting.receiver
        {
            if let Ok(answered) = receiver.await {
                waiting.withdrawn = None;
                return answered;
            }
            // A closed receiver must not be polled again.
            waiting.leave_to_client();
        }
        std::future::pending().await
    }

    /// Ends the wait because the client has answered. An operator can no longer answer. Returns an
    /// answer that was sent before.
    pub fn close(mut self) -> Option<AnsweredElsewhere> {
        self.withdrawn = None;
        let receiver = self.receiver.as_mut()?;
        receiver.close();
        receiver.try_recv().ok()
    }
}

impl Drop for OperatorAnswer {
    fn drop(&mut self) {
        if let Some(withdrawn) = self.withdrawn.take() {
            withdrawn();
        }
    }
}
