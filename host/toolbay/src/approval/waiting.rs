//! Calls that wait for a person at their client, and that an operator may answer in the console instead.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use tokio::sync::oneshot;
use toolbay_console::{ApprovalOutcome, WaitingApproval};
use toolbay_mcp::{AnsweredElsewhere, OperatorAnswer};
use toolbay_model::Digest;

use super::{KEY, answer};

/// The most that are kept for the console. Further ones can be answered by their clients alone.
const MOST: usize = 200;

/// The most of one caller. Others can be answered whatever one caller leaves unanswered.
const EACH: usize = MOST / 4;

/// The calls that wait. Clones are the same. The first answer counts, whoever gives it.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitingApprovals(Arc<Mutex<ApprovalTable>>);

#[derive(Debug, Default)]
struct ApprovalTable {
    /// How many there were.
    count: u64,
    waiting: BTreeMap<u64, WaitingQuestion>,
}

#[derive(Debug)]
struct WaitingQuestion {
    shown: WaitingApproval,
    /// The plugin and the grant that it was asked under.
    edition: Option<Digest>,
    sender: oneshot::Sender<AnsweredElsewhere>,
    /// Closed as soon as the call has left its place: its question is withdrawn by then.
    withdrawn: oneshot::Receiver<()>,
}

/// What a call that waits is about.
#[derive(Debug)]
pub(crate) struct ApprovalSubject {
    /// The caller's name.
    pub(crate) caller: String,
    /// The plugin.
    pub(crate) plugin: String,
    /// The tool, as clients call it.
    pub(crate) tool: String,
    /// The question.
    pub(crate) question: String,
    /// When an answer comes too late.
    pub(crate) until: SystemTime,
    /// The plugin and the grant.
    pub(crate) edition: Option<Digest>,
}

/// The place of a call that waits, until this is dropped.
#[derive(Debug)]
struct ApprovalPlace {
    id: u64,
    all: WaitingApprovals,
    /// Held for its Drop.
    _left: oneshot::Sender<()>,
}

impl Drop for ApprovalPlace {
    fn drop(&mut self) {
        drop(self.all.all().waiting.remove(&self.id));
    }
}

impl WaitingApprovals {
    /// Has a call wait for an answer here as well; `None` if too many wait, of all callers or of this one.
    pub(crate) fn begin(&self, subject: ApprovalSubject) -> Option<OperatorAnswer> {
        let mut all = self.all();
        let own = all.waiting.values().filter(|one| one.shown.caller == subject.caller).count();
        if all.waiting.len() >= MOST || own >= EACH {
            return None;
        }
        all.count += 1;
        let id = all.count;
        let ApprovalSubject { caller, plugin, tool, question, until, edition } = subject;
        let shown = WaitingApproval { id, at: SystemTime::now(), until, caller, plugin, tool, question };
        let (sender, receiver) = oneshot::channel();
        let (left, withdrawn) = oneshot::channel();
        all.waiting.insert(id, WaitingQuestion { shown, edition, sender, withdrawn });
        drop(all);
        Some(OperatorAnswer::new(receiver, ApprovalPlace { id, all: self.clone(), _left: left }))
    }

    /// The calls that wait, the oldest first.
    pub(crate) fn list(&self) -> Vec<WaitingApproval> {
        self.all().waiting.values().map(|one| one.shown.clone()).collect()
    }

    /// Answers a call for the operator with this name, if they may: `may` gets the tool. Returns when no client can be asked
    /// any more what is decided: the call has taken the answer and withdrawn its question. `allowed` says what becomes of a
    /// call of that edition after a yes.
    pub(crate) async fn answer(
        &self,
        id: u64,
        yes: bool,
        by: &str,
        may: impl FnOnce(&str) -> bool,
        allowed: impl FnOnce(&WaitingApproval, Option<Digest>) -> ApprovalOutcome,
    ) -> ApprovalOutcome {
        let WaitingQuestion { shown, edition, sender, withdrawn } = match self.take(id, may) {
            Ok(one) => one,
            Err(none) => return none,
        };
        let given = AnsweredElsewhere { key: KEY.to_owned(), answer: answer(yes), by: by.to_owned() };
        if sender.send(given).is_err() || SystemTime::now() > shown.until {
            return ApprovalOutcome::Gone;
        }
        // Nothing is ever sent: it ends when the place is dropped.
        drop(withdrawn.await);
        if yes { allowed(&shown, edition) } else { ApprovalOutcome::Done }
    }

    /// Takes a call out, so that nobody else can answer it here.
    fn take(&self, id: u64, may: impl FnOnce(&str) -> bool) -> Result<WaitingQuestion, ApprovalOutcome> {
        let mut all = self.all();
        let one = all.waiting.get(&id).ok_or(ApprovalOutcome::Gone)?;
        if !may(&one.shown.tool) {
            return Err(ApprovalOutcome::Forbidden);
        }
        all.waiting.remove(&id).ok_or(ApprovalOutcome::Gone)
    }

    // Held for a few comparisons and never across an await.
    fn all(&self) -> MutexGuard<'_, ApprovalTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn subject(tool: &str) -> ApprovalSubject {
        ApprovalSubject {
            caller: "stdio".to_owned(),
            plugin: "notes".to_owned(),
            tool: tool.to_owned(),
            question: "Allow it?".to_owned(),
            until: SystemTime::now() + Duration::from_mins(1),
            edition: None,
        }
    }

    /// A yes makes the call.
    fn made(_: &WaitingApproval, _: Option<Digest>) -> ApprovalOutcome {
        ApprovalOutcome::Done
    }

    /// Gives an answer while the call takes it.
    async fn answered(
        waiting: &WaitingApprovals,
        elsewhere: OperatorAnswer,
        yes: bool,
        by: &str,
    ) -> (ApprovalOutcome, AnsweredElsewhere) {
        let id = waiting.list()[0].id;
        let taking = async {
            let mut elsewhere = Some(elsewhere);
            OperatorAnswer::answered(&mut elsewhere).await
        };
        tokio::join!(waiting.answer(id, yes, by, |tool| tool == "erase", made), taking)
    }

    #[tokio::test]
    async fn the_first_answer_counts_and_the_next_one_comes_too_late() {
        let waiting = WaitingApprovals::default();
        let elsewhere = waiting.begin(subject("erase")).unwrap();
        let id = waiting.list()[0].id;
        assert_eq!(waiting.answer(id, true, "ada", |_| false, made).await, ApprovalOutcome::Forbidden);
        assert_eq!(waiting.answer(id + 1, true, "ada", |_| true, made).await, ApprovalOutcome::Gone, "it never was");
        let (said, given) = answered(&waiting, elsewhere, false, "ada").await;
        assert_eq!(said, ApprovalOutcome::Done);
        assert_eq!(waiting.answer(id, true, "bob", |_| true, made).await, ApprovalOutcome::Gone);
        assert_eq!((given.key.as_str(), given.answer, given.by.as_str()), (KEY, answer(false), "ada"));
    }

    #[tokio::test]
    async fn an_answer_is_confirmed_when_the_call_has_withdrawn_its_question() {
        let waiting = WaitingApprovals::default();
        let mut elsewhere = waiting.begin(subject("erase"));
        let id = waiting.list()[0].id;
        let mut answering = std::pin::pin!(waiting.answer(id, true, "ada", |_| true, made));
        assert!(futures_util::poll!(&mut answering).is_pending(), "nobody has taken it");
        OperatorAnswer::answered(&mut elsewhere).await;
        assert!(futures_util::poll!(&mut answering).is_pending(), "the question is not withdrawn");
        drop(elsewhere);
        assert_eq!(answering.await, ApprovalOutcome::Done);
    }

    #[tokio::test]
    async fn a_call_that_has_ended_waits_no_more_and_no_caller_takes_all_places() {
        let waiting = WaitingApprovals::default();
        let elsewhere = waiting.begin(subject("erase")).unwrap();
        let id = waiting.list()[0].id;
        drop(elsewhere);
        assert_eq!(waiting.answer(id, true, "ada", |_| true, made).await, ApprovalOutcome::Gone);
        let of = |caller: usize| ApprovalSubject { caller: format!("token:{caller}"), ..subject("erase") };
        let hostile: Vec<_> = (0..2 * MOST).map_while(|_| waiting.begin(of(0))).collect();
        assert_eq!(hostile.len(), EACH);
        let others: Vec<_> = (1..).map_while(|caller| waiting.begin(of(caller))).collect();
        assert_eq!((others.len(), waiting.list().len()), (MOST - EACH, MOST));
        drop((hostile, others));
        assert!(waiting.list().is_empty());
    }

    #[tokio::test]
    async fn an_answer_of_the_client_at_the_same_moment_does_not_hide_one_that_was_given_here() {
        let waiting = WaitingApprovals::default();
        let elsewhere = waiting.begin(subject("erase")).unwrap();
        let id = waiting.list()[0].id;
        let mut answering = std::pin::pin!(waiting.answer(id, true, "ada", |_| true, made));
        assert!(futures_util::poll!(&mut answering).is_pending());
        assert_eq!(elsewhere.close().unwrap().by, "ada");
        assert_eq!(answering.await, ApprovalOutcome::Done);
        let elsewhere = waiting.begin(subject("erase")).unwrap();
        assert!(elsewhere.close().is_none());
        let late = waiting.begin(ApprovalSubject { until: SystemTime::UNIX_EPOCH, ..subject("erase") });
        assert_eq!(waiting.answer(waiting.list()[0].id, true, "ada", |_| true, made).await, ApprovalOutcome::Gone);
        drop(late);
    }
}
