//! Answers to the questions of a call that do not come from its client, and the end of calls that wait for answers.

use std::any::Any;
use std::fmt;

use tokio::sync::oneshot::Receiver;
use toolbay_model::{CallJournal, Question};

/// Questions that are about to be put to a client, which waits for their answers in a session.
#[derive(Clone, Copy, Debug)]
pub struct PendingQuestions<'a> {
    /// The caller's name.
    pub caller: &'a str,
    /// The questions.
    pub questions: &'a [Question],
    /// What the next run of the call gets, with the answers.
    pub journal: &'a CallJournal,
}

/// What the host has to do with a question while its call waits: somebody besides the client may answer it, and the host
/// may want to know if nobody does.
#[derive(Default)]
pub struct OperatorAnswer {
    receiver: Option<Receiver<AnsweredElsewhere>>,
    /// Held for its Drop.
    place: Option<Box<dyn Any + Send + Sync>>,
    /// Called if the call ends before there is an answer.
    withdrawn: Option<Box<dyn FnOnce() + Send + Sync>>,
}

/// An answer that does not come from the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnsweredElsewhere {
    /// The key of the question.
    pub key: String,
    /// The answer, as a client would have given it.
    pub answer: String,
    /// Who gave it.
    pub by: String,
}

impl fmt::Debug for OperatorAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elsewhere").finish_non_exhaustive()
    }
}

impl OperatorAnswer {
    /// Whoever has the other end of `receiver` may answer. `place` is dropped when nobody waits any more.
    pub fn new(receiver: Receiver<AnsweredElsewhere>, place: impl Any + Send + Sync) -> Self {
        Self { receiver: Some(receiver), place: Some(Box::new(place)), withdrawn: None }
    }

    /// The same, with what is called if the call ends before it has an answer: its client has cancelled it, or has gone.
    #[must_use]
    pub fn on_withdrawn(mut self, withdrawn: impl FnOnce() + Send + Sync + 'static) -> Self {
        self.withdrawn = Some(Box::new(withdrawn));
        self
    }

    /// Whether somebody besides the client may answer.
    pub(crate) fn is_open(&self) -> bool {
        self.receiver.is_some()
    }

    /// From here on, the client alone can answer.
    pub(crate) fn leave_to_client(&mut self) {
        self.receiver = None;
        self.place = None;
    }

    /// Waits for an answer; for ever if there is nobody who could give one. Can be cancelled without losing one.
    pub async fn wait_for_answer(elsewhere: &mut Option<Self>) -> AnsweredElsewhere {
        if let Some(waiting) = elsewhere
            && let Some(receiver) = &mut waiting.receiver
        {
            if let Ok(answered) = receiver.await {
                waiting.withdrawn = None;
                return answered;
            }
            // A receiver must not be asked again.
            waiting.leave_to_client();
        }
        std::future::pending().await
    }

    /// Ends it, because the client has answered: from here on nobody else can. An answer that was given before is there.
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
