//! Calls that wait for an approval at their client. An operator can answer them in the console
//! instead.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::sync::oneshot;
use toolbay_console::{ApprovalOutcome, WaitingApproval};
use toolbay_mcp::{AnsweredElsewhere, OperatorAnswer};
use toolbay_model::Digest;

use super::{APPROVAL_KEY, answer_json};

/// Maximum number of calls in the table. Only their clients can answer further ones.
const MAX_WAITING: usize = 200;

/// Maximum number of calls of one caller, so that one caller cannot fill the table.
const MAX_WAITING_PER_CALLER: usize = MAX_WAITING / 4;

/// The waiting calls. Clones share the same table. The first answer counts, from either side.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitingApprovals(Arc<Mutex<ApprovalTable>>);

#[derive(Debug, Default)]
struct ApprovalTable {
    /// Number of calls so far.
    count: u64,
    waiting: BTreeMap<u64, WaitingQuestion>,
}

#[derive(Debug)]
struct WaitingQuestion {
    shown: WaitingApproval,
    /// Edition of the plugin and its grant at the time of the question.
    edition: Option<Digest>,
    sender: oneshot::Sender<AnsweredElsewhere>,
    /// Closed when the call leaves the table. By then, its question to the client is withdrawn.
    withdrawn: oneshot::Receiver<()>,
}

/// Description of a waiting call.
#[derive(Debug)]
pub(crate) struct ApprovalSubject {
    /// The name of the caller.
    pub(crate) caller: String,
    /// The plugin.
    pub(crate) plugin: String,
    /// The tool, under the name that clients use.
    pub(crate) tool: String,
    /// The question.
    pub(crate) question: String,
    /// The deadline for an answer.
    pub(crate) until: SystemTime,
    /// The edition of the plugin and its grant.
    pub(crate) edition: Option<Digest>,
}

/// Removes a waiting call from the table when it is dropped.
#[derive(Debug)]
struct ApprovalPlace {
    id: u64,
    all: WaitingApprovals,
    /// Closes the channel on drop.
    _left: oneshot::Sender<()>,
}

impl Drop for ApprovalPlace {
    fn drop(&mut self) {
        drop(self.all.lock().waiting.remove(&self.id));
    }
}

impl WaitingApprovals {
    /// Adds a call that can be answered here too. Returns `None` if too many calls wait, in total
    /// or of this caller.
    pub(crate) fn register(&self, subject: ApprovalSubject) -> Option<OperatorAnswer> {
        let mut all = self.lock();
        let own = all
            .waiting
            .values()
            .filter(|one| one.shown.caller == subject.caller)
            .count();
        if all.waiting.len() >= MAX_WAITING || own >= MAX_WAITING_PER_CALLER {
            return None;
        }
        all.count += 1;
        let id = all.count;
        let ApprovalSubject {
            caller,
            plugin,
            tool,
            question,
            until,
            edition,
        } = subject;
        let shown = WaitingApproval {
            id,
            asked_at: SystemTime::now(),
            expires_at: until,
            caller,
            plugin,
            tool,
            question,
        };
        let (sender, receiver) = oneshot::channel();
        let (left, withdrawn) = oneshot::channel();
        all.waiting.insert(
            id,
            WaitingQuestion {
                shown,
                edition,
                sender,
                withdrawn,
            },
        );
        drop(all);
        Some(OperatorAnswer::new(
            receiver,
            ApprovalPlace {
                id,
                all: self.clone(),
                _left: left,
            },
        ))
    }

    /// Returns the waiting calls, oldest first.
    pub(crate) fn list(&self) -> Vec<WaitingApproval> {
        self.lock()
            .waiting
            .values()
            .map(|one| one.shown.clone())
            .collect()
    }

    /// Answers a call on behalf of `operator`, if `is_permitted` returns true for the tool. Returns
    /// after the call has taken the answer and withdrawn its question, so that no client can change
    /// the decision. If `approved` is set, `outcome_if_approved` computes the outcome from the call
    /// and its edition.
    pub(crate) async fn answer(
        &self,
        id: u64,
        yes: bool,
        by: &str,
        may: impl FnOnce(&str) -> bool,
        allowed: impl FnOnce(&WaitingApproval, Option<Digest>) -> ApprovalOutcome,
    ) -> ApprovalOutcome {
        let WaitingQuestion {
            shown,
            edition,
            sender,
            withdrawn,
        } = match self.take(id, may) {
            Ok(one) => one,
            Err(none) => return none,
        };
        let given = AnsweredElsewhere {
            key: APPROVAL_KEY.to_owned(),
            answer: answer_json(yes),
            by: by.to_owned(),
        };
        if sender.send(given).is_err() || SystemTime::now() > shown.expires_at {
            return ApprovalOutcome::Gone;
        }
        // No value is ever sent: the channel closes when the entry is dropped.
        drop(withdrawn.await);
        if yes {
            allowed(&shown, edition)
        } else {
            ApprovalOutcome::Done
        }
    }

    /// Removes a call, so that it cannot be answered here again.
    fn take(
        &self,
        id: u64,
        may: impl FnOnce(&str) -> bool,
    ) -> Result<WaitingQuestion, ApprovalOutcome> {
        let mut all = self.lock();
        let one = all.waiting.get(&id).ok_or(ApprovalOutcome::Gone)?;
        if !may(&one.shown.tool) {
            return Err(ApprovalOutcome::Forbidden);
        }
        all.waiting.remove(&id).ok_or(ApprovalOutcome::Gone)
    }

    // Held for a few comparisons and never across an await.
    fn lock(&self) -> MutexGuard<'_, ApprovalTable> {
        self.0.lock()
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

    /// Outcome of an approved call.
    fn made(_: &WaitingApproval, _: Option<Digest>) -> ApprovalOutcome {
        ApprovalOutcome::Done
    }

    /// Answers a call while it waits for the answer.
    async fn answered(
        waiting: &WaitingApprovals,
        elsewhere: OperatorAnswer,
        yes: bool,
        by: &str,
    ) -> (ApprovalOutcome, AnsweredElsewhere) {
        let id = waiting.list()[0].id;
        let taking = async {
            let mut elsewhere = Some(elsewhere);
            OperatorAnswer::wait_for_answer(&mut elsewhere).await
        };
        tokio::join!(
            waiting.answer(id, yes, by, |tool| tool == "erase", made),
            taking
        )
    }

    #[tokio::test]
    async fn the_first_answer_counts_and_the_next_one_comes_too_late() {
        let waiting = WaitingApprovals::default();
        let elsewhere = waiting.register(subject("erase")).unwrap();
        let id = waiting.list()[0].id;
        assert_eq!(
            waiting.answer(id, true, "ada", |_| false, made).await,
            ApprovalOutcome::Forbidden
        );
        assert_eq!(
            waiting.answer(id + 1, true, "ada", |_| true, made).await,
            ApprovalOutcome::Gone,
            "the id was never used"
        );
        let (said, given) = answered(&waiting, elsewhere, false, "ada").await;
        assert_eq!(said, ApprovalOutcome::Done);
        assert_eq!(
            waiting.answer(id, true, "bob", |_| true, made).await,
            ApprovalOutcome::Gone
        );
        assert_eq!(
            (given.key.as_str(), given.answer, given.by.as_str()),
            (APPROVAL_KEY, answer_json(false), "ada")
        );
    }

    #[tokio::test]
    async fn an_answer_is_confirmed_when_the_call_has_withdrawn_its_question() {
        let waiting = WaitingApprovals::default();
        let mut elsewhere = waiting.register(subject("erase"));
        let id = waiting.list()[0].id;
        let mut answering = std::pin::pin!(waiting.answer(id, true, "ada", |_| true, made));
        assert!(
            futures_util::poll!(&mut answering).is_pending(),
            "no call has taken the answer"
        );
        OperatorAnswer::wait_for_answer(&mut elsewhere).await;
        assert!(
            futures_util::poll!(&mut answering).is_pending(),
            "the question is not withdrawn"
        );
        drop(elsewhere);
        assert_eq!(answering.await, ApprovalOutcome::Done);
    }

    #[tokio::test]
    async fn an_ended_call_leaves_the_table_and_no_caller_fills_it() {
        let waiting = WaitingApprovals::default();
        let elsewhere = waiting.register(subject("erase")).unwrap();
        let id = waiting.list()[0].id;
        drop(elsewhere);
        assert_eq!(
            waiting.answer(id, true, "ada", |_| true, made).await,
            ApprovalOutcome::Gone
        );
        let of = |caller: usize| ApprovalSubject {
            caller: format!("token:{caller}"),
            ..subject("erase")
        };
        let hostile: Vec<_> = (0..2 * MAX_WAITING)
            .map_while(|_| waiting.register(of(0)))
            .collect();
        assert_eq!(hostile.len(), MAX_WAITING_PER_CALLER);
        let others: Vec<_> = (1..)
            .map_while(|caller| waiting.register(of(caller)))
            .collect();
        assert_eq!(
            (others.len(), waiting.list().len()),
            (MAX_WAITING - MAX_WAITING_PER_CALLER, MAX_WAITING)
        );
        drop((hostile, others));
        assert!(waiting.list().is_empty());
    }

    #[tokio::test]
    async fn a_simultaneous_answer_of_the_client_does_not_hide_the_operators() {
        let waiting = WaitingApprovals::default();
        let elsewhere = waiting.register(subject("erase")).unwrap();
        let id = waiting.list()[0].id;
        let mut answering = std::pin::pin!(waiting.answer(id, true, "ada", |_| true, made));
        assert!(futures_util::poll!(&mut answering).is_pending());
        assert_eq!(elsewhere.close().unwrap().by, "ada");
        assert_eq!(answering.await, ApprovalOutcome::Done);
        let elsewhere = waiting.register(subject("erase")).unwrap();
        assert!(elsewhere.close().is_none());
        let late = waiting.register(ApprovalSubject {
            until: SystemTime::UNIX_EPOCH,
            ..subject("erase")
        });
        assert_eq!(
            waiting
                .answer(waiting.list()[0].id, true, "ada", |_| true, made)
                .await,
            ApprovalOutcome::Gone
        );
        drop(late);
    }
}
