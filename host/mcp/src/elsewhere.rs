//! Answers to the questions of a call that do not come from its client.

use std::any::Any;
use std::fmt;

use tokio::sync::oneshot::Receiver;
use toolbay_model::{Journal, Question};

/// Questions that are about to be put to a client, which waits for their answers in a session.
#[derive(Clone, Copy, Debug)]
pub struct Put<'a> {
    /// The caller's name.
    pub caller: &'a str,
    /// The questions.
    pub questions: &'a [Question],
    /// What the next run of the call gets, with the answers.
    pub journal: &'a Journal,
}

/// Somebody besides the client who may answer a question. Dropped when nobody waits any more.
pub struct Elsewhere {
    receiver: Receiver<AnsweredElsewhere>,
    /// Held for its Drop.
    _place: Box<dyn Any + Send + Sync>,
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

impl fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elsewhere").finish_non_exhaustive()
    }
}

impl Elsewhere {
    /// Whoever has the other end of `receiver` may answer. `place` is dropped with it.
    pub fn new(receiver: Receiver<AnsweredElsewhere>, place: impl Any + Send + Sync) -> Self {
        Self { receiver, _place: Box::new(place) }
    }

    /// Waits for an answer; for ever if there is nobody who could give one. Can be cancelled without losing one.
    pub async fn answered(elsewhere: &mut Option<Self>) -> AnsweredElsewhere {
        if let Some(Self { receiver, .. }) = elsewhere
            && let Ok(answered) = receiver.await
        {
            return answered;
        }
        // A receiver must not be asked again.
        *elsewhere = None;
        std::future::pending().await
    }

    /// Ends it: from here on nobody can answer. An answer that was given before is there.
    pub fn close(mut self) -> Option<AnsweredElsewhere> {
        self.receiver.close();
        self.receiver.try_recv().ok()
    }
}
