//! A task whose call runs, or waits for answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolbay_model::{CallFailure, ProgressUpdate, Question};

use super::task::{MAX_MESSAGE_BYTES, Task, TaskQuestion, TaskState};
use crate::observer::PeerObserver;
use crate::quota::QuotaPortion;

/// Shortest time between two such messages: more would not be readable.
const MIN_PROGRESS_INTERVAL: Duration = Duration::from_millis(50);

/// A task whose call runs, or waits for answers.
pub(crate) struct LiveTask {
    /// The caller that began it.
    pub(super) owner: Arc<str>,
    /// When it is forgotten.
    pub(crate) until: Instant,
    /// Stops the call.
    pub(crate) cancel: CancellationToken,
    task: Mutex<Arc<Task>>,
    /// Counts what becomes of it. What that is, is asked for: nobody who waits keeps it beyond its time.
    changes: watch::Sender<u64>,
    /// The same without what it says that it is doing.
    states: watch::Sender<u64>,
    phase: Mutex<TaskPhase>,
    /// Who is told of progress and log messages beside those who ask for the task; `None` as soon as the request has its
    /// response.
    peer: Mutex<Option<PeerObserver>>,
    /// When progress was last told.
    told: Mutex<Option<Instant>>,
    interview: Mutex<TaskQuestions>,
    /// An answer came.
    answered: Notify,
    /// Held by the request that puts the questions to its client: two of them would ask the user twice.
    pub(crate) asking: tokio::sync::Mutex<()>,
}

/// Whose result it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskPhase {
    /// The request waits: the call may still end, or ask, before it becomes a task.
    Waited,
    /// The call is a task.
    Kept,
    /// The call never becomes a task: its end is the response to the request.
    Given,
}

/// The questions that the call has asked.
#[derive(Default)]
struct TaskQuestions {
    /// Keys that clients have seen.
    used: BTreeSet<String>,
    /// Those that have no answer.
    open: Vec<Arc<TaskQuestion>>,
    /// The answers, by the plugin's keys, and the bytes that they hold of those that requests may take.
    answers: BTreeMap<String, String>,
    held: Vec<QuotaPortion>,
    /// Why there will be no answers.
    refused: Option<CallFailure>,
}

/// Answers by the plugin's keys, and the bytes that they hold.
pub(crate) type TaskAnswers = (BTreeMap<String, String>, Vec<QuotaPortion>);

impl LiveTask {
    pub(super) fn new(owner: &str, task: Task, until: Instant, phase: TaskPhase) -> Self {
        Self {
            owner: owner.into(),
            until,
            cancel: CancellationToken::new(),
            task: Mutex::new(Arc::new(task)),
            changes: watch::Sender::default(),
            states: watch::Sender::default(),
            phase: Mutex::new(phase),
            peer: Mutex::default(),
            told: Mutex::default(),
            interview: Mutex::default(),
            answered: Notify::new(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// Cancelled when the task is cancelled, or when the client cancels the request that waits for it.
    pub(crate) fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Whose result it is.
    pub(crate) fn phase(&self) -> TaskPhase {
        *lock(&self.phase)
    }

    /// The task now.
    pub(crate) fn task(&self) -> Arc<Task> {
        Arc::clone(&lock(&self.task))
    }

    /// Says when something has become of the task, from now on; it is closed when the call has ended.
    pub(crate) fn subscribe_changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The same for those whom it does not concern what the task says that it is doing.
    pub(crate) fn subscribe_states(&self) -> watch::Receiver<u64> {
        self.states.subscribe()
    }

    /// Progress and log messages go to this client until the request has its response.
    pub(crate) fn attach_peer(&self, peer: PeerObserver) {
        *lock(&self.peer) = Some(peer);
    }

    /// Does something with the client that waits, if one does.
    pub(super) fn with_peer(&self, work: impl FnOnce(&PeerObserver)) {
        if let Some(peer) = &*lock(&self.peer) {
            work(peer);
        }
    }

    /// The request gets its response now: nothing more is sent on its stream.
    pub(crate) fn detach_peer(&self) {
        *lock(&self.peer) = None;
    }

    /// Moves from [`TaskPhase::Waited`] to `phase`, unless somebody else was faster. Returns the phase.
    pub(crate) fn decide_phase(&self, phase: TaskPhase) -> TaskPhase {
        let mut now = lock(&self.phase);
        if *now == TaskPhase::Waited {
            *now = phase;
        }
        *now
    }

    /// Tells what the task is doing.
    pub(super) fn report_progress(&self, progress: &ProgressUpdate) {
        let now = Instant::now();
        {
            let mut told = lock(&self.told);
            if told.is_some_and(|told| now.duration_since(told) < MIN_PROGRESS_INTERVAL) {
                return;
            }
            *told = Some(now);
        }
        let ProgressUpdate { progress, total, message: words } = progress;
        let mut message = match (total, words) {
            (Some(total), Some(words)) => format!("{progress} of {total}: {words}"),
            (Some(total), None) => format!("{progress} of {total}"),
            (None, Some(words)) => words.clone(),
            (None, None) => progress.to_string(),
        };
        message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES));
        if self.update(|task| task.with_message(message)) {
            self.changes.send_modify(|count| *count += 1);
        }
    }

    /// The task is in this state from now on; false if it has ended, which is final.
    pub(crate) fn set_state(&self, state: TaskState) -> bool {
        let changed = self.update(|task| task.with_state(state));
        if changed {
            self.states.send_modify(|count| *count += 1);
            self.changes.send_modify(|count| *count += 1);
        }
        changed
    }

    /// The questions with keys that clients have not seen.
    pub(super) fn assign_keys(&self, questions: Vec<Question>) -> Vec<Arc<TaskQuestion>> {
        let mut interview = lock(&self.interview);
        let asked = questions.into_iter().map(|question| {
            let mut key = question.key.clone();
            let mut number = 1;
            while !interview.used.insert(key.clone()) {
                number += 1;
                key = format!("{}-{number}", question.key);
            }
            Arc::new(TaskQuestion { key, question })
        });
        asked.collect()
    }

    /// Asks these questions, until what is returned is dropped.
    pub(super) fn ask(&self, questions: Vec<Arc<TaskQuestion>>) -> AskedQuestions<'_> {
        let mut interview = lock(&self.interview);
        interview.open.clone_from(&questions);
        self.set_state(TaskState::InputRequired(questions));
        AskedQuestions { live: self }
    }

    /// Waits until all questions have their answers.
    async fn wait_for_answers(&self) -> Result<TaskAnswers, CallFailure> {
        loop {
            // Created first: it also notices what comes meanwhile.
            let answered = self.answered.notified();
            {
                let mut interview = lock(&self.interview);
                if let Some(failure) = interview.refused.take() {
                    return Err(failure);
                }
                if interview.open.is_empty() {
                    return Ok((std::mem::take(&mut interview.answers), std::mem::take(&mut interview.held)));
                }
            }
            answered.await;
        }
    }

    /// Takes the answer to the question that clients call `key`, if it is open. `hold` takes its bytes.
    ///
    /// # Errors
    ///
    /// There is no room for it.
    pub(crate) fn answer<E>(
        &self,
        key: &str,
        answer: String,
        hold: impl FnOnce(usize) -> Result<QuotaPortion, E>,
    ) -> Result<(), E> {
        let mut interview = lock(&self.interview);
        let Some(place) = interview.open.iter().position(|asked| asked.key == key) else { return Ok(()) };
        let portion = hold(answer.len())?;
        let asked = interview.open.remove(place);
        interview.answers.insert(asked.question.key.clone(), answer);
        interview.held.push(portion);
        let state = if interview.open.is_empty() {
            self.answered.notify_one();
            TaskState::Working
        } else {
            TaskState::InputRequired(interview.open.clone())
        };
        self.set_state(state);
        Ok(())
    }

    /// Fails the call, because its questions have no answers.
    pub(crate) fn fail_questions(&self, failure: CallFailure) {
        let mut interview = lock(&self.interview);
        if !interview.open.is_empty() {
            interview.refused = Some(failure);
            self.answered.notify_one();
        }
    }

    /// The questions that have no answer.
    pub(crate) fn unanswered(&self) -> Vec<Arc<TaskQuestion>> {
        lock(&self.interview).open.clone()
    }

    /// Changes the task unless it has ended; false if it has.
    fn update(&self, change: impl FnOnce(&Task) -> Task) -> bool {
        let mut task = lock(&self.task);
        let changes = !task.state.is_final();
        if changes {
            *task = Arc::new(change(&task));
        }
        changes
    }
}

/// Questions that were asked. When it is dropped, nobody can answer them any more.
pub(crate) struct AskedQuestions<'a> {
    live: &'a LiveTask,
}

impl AskedQuestions<'_> {
    /// Waits until all questions have their answers.
    ///
    /// # Errors
    ///
    /// There will be none.
    pub(crate) async fn wait_for_answers(&self) -> Result<TaskAnswers, CallFailure> {
        self.live.wait_for_answers().await
    }
}

impl Drop for AskedQuestions<'_> {
    fn drop(&mut self) {
        let mut interview = lock(&self.live.interview);
        let TaskQuestions { open, answers, held, refused, .. } = &mut *interview;
        (*answers, *held, *refused) = (BTreeMap::new(), Vec::new(), None);
        if !std::mem::take(open).is_empty() {
            // Whoever puts them to a client withdraws them.
            self.live.set_state(TaskState::Working);
        }
    }
}

// Held for a few instructions and never across an await. That of the interview comes before that of the task.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
