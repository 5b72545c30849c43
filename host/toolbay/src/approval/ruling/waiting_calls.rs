//! Calls that wait for an approval at their client. An operator can answer them in the console
//! instead.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;
use toolbay_console::{ApprovalOutcome, WaitingApproval};
use toolbay_mcp::{OperatorAnswer, OperatorReply};
use toolbay_model::Digest;

use super::{APPROVAL_KEY, answer_json};
use crate::approval::notifier::ApprovalNotifier;

/// Maximum number of calls in the table. Only their clients can answer further ones.
const MAX_WAITING: usize = 200;

/// Smallest and largest number of the first call of a server. The numbers of two servers overlap with
/// a negligible probability, so an answer that was meant for a call of an ended server does not
/// reach another call.
const FIRST_IDS: RangeInclusive<u32> = 10_000_000..=990_000_000;

/// Maximum number of calls of one caller, so that one caller cannot fill the table.
const MAX_WAITING_PER_CALLER: usize = MAX_WAITING / 4;

/// The waiting calls. Clones share the same table. The first answer counts, from either side.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitingApprovals {
    table: Arc<Mutex<ApprovalTable>>,
    /// Notifies operators of new calls, if the configuration requests it.
    notifier: Arc<OnceLock<ApprovalNotifier>>,
}

#[derive(Debug, Default)]
struct ApprovalTable {
    /// Number of the last call; 0 before the first.
    last_id: u64,
    waiting: BTreeMap<u64, WaitingQuestion>,
}

#[derive(Debug)]
struct WaitingQuestion {
    summary: WaitingApproval,
    /// Edition of the plugin and its grant at the time of the question.
    edition: Option<Digest>,
    sender: oneshot::Sender<OperatorReply>,
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
    /// The calls that an approval covers.
    pub(crate) covered_calls: &'static str,
    /// True if the client is not asked.
    pub(crate) is_for_operator: bool,
    /// The deadline for an answer.
    pub(crate) until: SystemTime,
    /// The edition of the plugin and its grant.
    pub(crate) edition: Option<Digest>,
}

/// Removes a waiting call from the table when it is dropped.
#[derive(Debug)]
struct WaitingCallGuard {
    id: u64,
    table: WaitingApprovals,
    /// Closes the channel on drop.
    _withdrawal: oneshot::Sender<()>,
}

impl Drop for WaitingCallGuard {
    fn drop(&mut self) {
        drop(self.table.lock().waiting.remove(&self.id));
        if let Some(notifier) = self.table.notifier.get() {
            notifier.withdraw(self.id);
        }
    }
}

impl WaitingApprovals {
    /// Adds a call that can be answered here too. Returns `None` if too many calls wait, in total
    /// or of this caller, or if the system provides no random bytes for its number.
    pub(crate) fn register(&self, subject: ApprovalSubject) -> Option<OperatorAnswer> {
        let mut table = self.lock();
        let caller_count = table
            .waiting
            .values()
            .filter(|one| one.summary.caller == subject.caller)
            .count();
        // A caller gets at most half of what the others leave, so that a few callers together do not
        // fill the table either.
        let left = MAX_WAITING.saturating_sub(table.waiting.len() - caller_count);
        let share = (left / 2).clamp(1, MAX_WAITING_PER_CALLER);
        if table.waiting.len() >= MAX_WAITING || caller_count >= share {
            return None;
        }
        if table.last_id == 0 {
            table.last_id = random_first_id()?;
        }
        table.last_id += 1;
        let id = table.last_id;
        let ApprovalSubject {
            caller,
            plugin,
            tool,
            question,
            covered_calls,
            is_for_operator,
            until,
            edition,
        } = subject;
        let summary = WaitingApproval {
            id,
            asked_at: SystemTime::now(),
            expires_at: until,
            caller,
            plugin,
            tool,
            question,
            covered_calls,
            is_for_operator,
        };
        if let Some(notifier) = self.notifier.get() {
            notifier.notify(&summary);
        }
        let (sender, receiver) = oneshot::channel();
        let (withdrawal, withdrawn) = oneshot::channel();
        table.waiting.insert(
            id,
            WaitingQuestion {
                summary,
                edition,
                sender,
                withdrawn,
            },
        );
        drop(table);
        Some(OperatorAnswer::new(
            receiver,
            WaitingCallGuard {
                id,
                table: self.clone(),
                _withdrawal: withdrawal,
            },
        ))
    }

    /// Notifies operators of calls that are added from now on. Only the first notifier counts.
    pub(crate) fn set_notifier(&self, notifier: ApprovalNotifier) {
        drop(self.notifier.set(notifier));
    }

    /// Returns the waiting calls, oldest first.
    pub(crate) fn list(&self) -> Vec<WaitingApproval> {
        self.lock()
            .waiting
            .values()
            .map(|one| one.summary.clone())
            .collect()
    }

    /// Answers a call on behalf of `operator`, if `is_permitted` returns true for the tool. Returns
    /// after the call has taken the answer and withdrawn its question, so that no client can change
    /// the decision. If `approved` is set, `outcome_if_approved` computes the outcome from the call
    /// and its edition.
    pub(crate) async fn answer(
        &self,
        id: u64,
        approved: bool,
        operator: &str,
        is_permitted: impl FnOnce(&str) -> bool,
        outcome_if_approved: impl FnOnce(&WaitingApproval, Option<Digest>) -> ApprovalOutcome,
    ) -> ApprovalOutcome {
        let WaitingQuestion {
            summary,
            edition,
            sender,
            withdrawn,
        } = match self.take(id, is_permitted) {
            Ok(one) => one,
            Err(outcome) => return outcome,
        };
        let answer = OperatorReply {
            key: APPROVAL_KEY.to_owned(),
            answer: answer_json(approved),
            operator: operator.to_owned(),
        };
        if sender.send(answer).is_err() || SystemTime::now() > summary.expires_at {
            return ApprovalOutcome::Gone;
        }
        // No value is ever sent: the channel closes when the entry is dropped.
        drop(withdrawn.await);
        if approved {
            outcome_if_approved(&summary, edition)
        } else {
            ApprovalOutcome::Done
        }
    }

    /// Removes a call, so that it cannot be answered here again.
    fn take(
        &self,
        id: u64,
        is_permitted: impl FnOnce(&str) -> bool,
    ) -> Result<WaitingQuestion, ApprovalOutcome> {
        let mut table = self.lock();
        let question = table.waiting.get(&id).ok_or(ApprovalOutcome::Gone)?;
        if !is_permitted(&question.summary.tool) {
            return Err(ApprovalOutcome::Forbidden);
        }
        table.waiting.remove(&id).ok_or(ApprovalOutcome::Gone)
    }

    // Held for a few comparisons and never across an await.
    fn lock(&self) -> MutexGuard<'_, ApprovalTable> {
        self.table.lock()
    }
}

/// Returns a random number in [`FIRST_IDS`], or `None` if the system provides no random bytes.
fn random_first_id() -> Option<u64> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).ok()?;
    let count = FIRST_IDS.end() - FIRST_IDS.start();
    Some(u64::from(
        FIRST_IDS.start() + u32::from_le_bytes(bytes) % count,
    ))
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
            covered_calls: "this call",
            is_for_operator: false,
            until: SystemTime::now() + Duration::from_mins(1),
            edition: None,
        }
    }

    /// Outcome of an approved call.
    fn made(_: &WaitingApproval, _: Option<Digest>) -> ApprovalOutcome {
        ApprovalOutcome::Done
    }

    /// Answers a call while it waits for the answer.
    async fn answer_first(
        waiting: &WaitingApprovals,
        elsewhere: OperatorAnswer,
        yes: bool,
        by: &str,
    ) -> (ApprovalOutcome, OperatorReply) {
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
        let (outcome, given) = answer_first(&waiting, elsewhere, false, "ada").await;
        assert_eq!(outcome, ApprovalOutcome::Done);
        assert_eq!(
            waiting.answer(id, true, "bob", |_| true, made).await,
            ApprovalOutcome::Gone
        );
        assert_eq!(
            (given.key.as_str(), given.answer, given.operator.as_str()),
            (APPROVAL_KEY, answer_json(false), "ada")
        );
    }

    #[tokio::test]
    async fn an_answer_for_an_ended_server_reaches_no_call_of_the_next_one() {
        let [ended, next] = [(); 2].map(|()| WaitingApprovals::default());
        let shown = ended.register(subject("harmless")).unwrap();
        let id = ended.list()[0].id;
        assert!(id >= u64::from(*FIRST_IDS.start()));
        drop((ended, shown));
        let _waiting: Vec<_> = (0..MAX_WAITING_PER_CALLER)
            .map(|_| next.register(subject("erase")).unwrap())
            .collect();
        assert_eq!(
            next.answer(id, true, "ada", |_| true, made).await,
            ApprovalOutcome::Gone
        );
        let ids: Vec<_> = next.list().iter().map(|one| one.id).collect();
        assert!(ids.is_sorted(), "oldest first");
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
        let subject_of = |caller: usize| ApprovalSubject {
            caller: format!("token:{caller}"),
            ..subject("erase")
        };
        let hostile: Vec<_> = (0..2 * MAX_WAITING)
            .map_while(|_| waiting.register(subject_of(0)))
            .collect();
        assert_eq!(hostile.len(), MAX_WAITING_PER_CALLER);
        let others: Vec<_> = (1..)
            .map_while(|caller| waiting.register(subject_of(caller)))
            .collect();
        assert_eq!(
            (others.len(), waiting.list().len()),
            (MAX_WAITING - MAX_WAITING_PER_CALLER, MAX_WAITING)
        );
        drop((hostile, others));
        assert!(waiting.list().is_empty());
        let hostile: Vec<_> = (0..6)
            .flat_map(|caller| (0..MAX_WAITING).map(move |_| caller))
            .filter_map(|caller| waiting.register(subject_of(caller)))
            .collect();
        assert!(hostile.len() < MAX_WAITING, "{}", hostile.len());
        assert!(waiting.register(subject_of(7)).is_some());
    }

    #[tokio::test]
    async fn a_simultaneous_answer_of_the_client_does_not_hide_the_operators() {
        let waiting = WaitingApprovals::default();
        let elsewhere = waiting.register(subject("erase")).unwrap();
        let id = waiting.list()[0].id;
        let mut answering = std::pin::pin!(waiting.answer(id, true, "ada", |_| true, made));
        assert!(futures_util::poll!(&mut answering).is_pending());
        assert_eq!(elsewhere.close().unwrap().operator, "ada");
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
