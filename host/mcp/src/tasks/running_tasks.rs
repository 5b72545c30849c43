//! Tasks whose call runs or waits for answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolbay_background::QuotaPortion;
use toolbay_model::{CallFailure, ProgressUpdate, Question};

use super::task_state::{MAX_MESSAGE_BYTES, Task, TaskQuestion, TaskState};
use crate::exchange::observer::PeerObserver;

/// Minimum time between two progress messages. People could not read more.
const MIN_PROGRESS_INTERVAL: Duration = Duration::from_millis(50);

/// A task whose call runs or waits for answers.
pub(crate) struct LiveTask {
    /// The caller that started the task.
    pub(super) owner: Arc<str>,
    /// The time at which the task expires.
    pub(crate) expires_at: Instant,
    /// The token that stops the call.
    pub(crate) cancel: CancellationToken,
    task: Mutex<Arc<Task>>,
    /// Counts the changes of the task. The channel does not contain the task, so that a receiver
    /// does not keep it alive after it expires.
    changes: watch::Sender<u64>,
    /// Like `changes`, without progress messages.
    state_changes: watch::Sender<u64>,
    phase: Mutex<TaskPhase>,
    /// The peer that receives progress and log messages on the stream of the request that started
    /// the call; `None` as soon as this request has its response. Requests for the task also report
    /// the progress.
    peer: Mutex<Option<PeerObserver>>,
    /// The time of the last progress message.
    last_progress: Mutex<Option<Instant>>,
    question_state: Mutex<TaskQuestions>,
    /// Notified when the last open question is answered or the questions fail.
    answered: Notify,
    /// Held by the request that sends the questions to its client: two requests would ask the user
    /// twice.
    pub(crate) asking_lock: tokio::sync::Mutex<()>,
}

/// The request or task to which the result belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskPhase {
    /// The request waits: the call may still end, or ask a question, before it becomes a task.
    Undecided,
    /// The call is a task.
    Task,
    /// The call never becomes a task: its end is the response to the request.
    Request,
}

/// The questions of the call and their answers.
#[derive(Default)]
struct TaskQuestions {
    /// The keys that clients have received.
    used_keys: BTreeSet<String>,
    /// The questions without an answer.
    open: Vec<Arc<TaskQuestion>>,
    /// The answers, by the plugin's keys, and the bytes that they occupy in the quota of requests.
    answers: BTreeMap<String, String>,
    reservations: Vec<QuotaPortion>,
    /// The failure, if there will be no answers.
    failure: Option<CallFailure>,
}

/// Answers by the plugin's keys, and the reserved bytes that they occupy.
pub(crate) type TaskAnswers = (BTreeMap<String, String>, Vec<QuotaPortion>);

impl LiveTask {
    pub(super) fn new(owner: &str, task: Task, expires_at: Instant, phase: TaskPhase) -> Self {
        Self {
            owner: owner.into(),
            expires_at,
            cancel: CancellationToken::new(),
            task: Mutex::new(Arc::new(task)),
            changes: watch::Sender::default(),
            state_changes: watch::Sender::default(),
            phase: Mutex::new(phase),
            peer: Mutex::default(),
            last_progress: Mutex::default(),
            question_state: Mutex::default(),
            answered: Notify::new(),
            asking_lock: tokio::sync::Mutex::default(),
        }
    }

    /// Returns a token that is cancelled when the task is cancelled, or when the client cancels the
    /// request that waits for the task.
    pub(crate) fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Returns the request or task to which the result belongs.
    pub(crate) fn phase(&self) -> TaskPhase {
        *lock(&self.phase)
    }

    /// Returns the current state of the task.
    pub(crate) fn task(&self) -> Arc<Task> {
        Arc::clone(&lock(&self.task))
    }

    /// Returns a receiver that is notified of every later change. It is closed when the task is
    /// dropped, which is usually as soon as the call has ended.
    pub(crate) fn subscribe_changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Like [`subscribe_changes`](Self::subscribe_changes), without progress messages.
    pub(crate) fn subscribe_states(&self) -> watch::Receiver<u64> {
        self.state_changes.subscribe()
    }

    /// Sends progress and log messages to this client until the request has its response.
    pub(crate) fn attach_peer(&self, peer: PeerObserver) {
        *lock(&self.peer) = Some(peer);
    }

    /// Runs `work` with the waiting client, if there is one.
    pub(super) fn with_peer(&self, work: impl FnOnce(&PeerObserver)) {
        if let Some(peer) = &*lock(&self.peer) {
            work(peer);
        }
    }

    /// Detaches the client before its request gets its response: nothing more is sent on its
    /// stream.
    pub(crate) fn detach_peer(&self) {
        *lock(&self.peer) = None;
    }

    /// Moves from [`TaskPhase::Undecided`] to `phase`, unless the phase is decided already. Returns
    /// the phase.
    pub(crate) fn decide_phase(&self, phase: TaskPhase) -> TaskPhase {
        let mut current = lock(&self.phase);
        if *current == TaskPhase::Undecided {
            *current = phase;
        }
        *current
    }

    /// Sets the progress message of the task. Messages that follow too fast are dropped.
    pub(super) fn report_progress(&self, progress: &ProgressUpdate) {
        let now = Instant::now();
        {
            let mut last_progress = lock(&self.last_progress);
            if last_progress.is_some_and(|told| now.duration_since(told) < MIN_PROGRESS_INTERVAL) {
                return;
            }
            *last_progress = Some(now);
        }
        let ProgressUpdate {
            progress,
            total,
            message: words,
        } = progress;
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

    /// Sets the state of the task. Returns false if it has ended, which is final.
    pub(crate) fn set_state(&self, state: TaskState) -> bool {
        let changed = self.update(|task| task.with_state(state));
        if changed {
            self.state_changes.send_modify(|count| *count += 1);
            self.changes.send_modify(|count| *count += 1);
        }
        changed
    }

    /// Assigns each question a key that clients have not received before.
    pub(super) fn assign_keys(&self, questions: Vec<Question>) -> Vec<Arc<TaskQuestion>> {
        let mut question_state = lock(&self.question_state);
        let task_questions = questions.into_iter().map(|question| {
            let mut key = question.key.clone();
            let mut number = 1;
            while !question_state.used_keys.insert(key.clone()) {
                number += 1;
                key = format!("{}-{number}", question.key);
            }
            Arc::new(TaskQuestion { key, question })
        });
        task_questions.collect()
    }

    /// Asks these questions, until the returned guard is dropped.
    pub(super) fn ask(&self, questions: Vec<Arc<TaskQuestion>>) -> AskedQuestions<'_> {
        let mut question_state = lock(&self.question_state);
        question_state.open.clone_from(&questions);
        self.set_state(TaskState::InputRequired(questions));
        AskedQuestions { live: self }
    }

    /// Waits until all questions are answered.
    async fn wait_for_answers(&self) -> Result<TaskAnswers, CallFailure> {
        loop {
            // Created before the check, so that an answer in between also wakes this future.
            let answered = self.answered.notified();
            {
                let mut question_state = lock(&self.question_state);
                if let Some(failure) = question_state.failure.take() {
                    return Err(failure);
                }
                if question_state.open.is_empty() {
                    return Ok((
                        std::mem::take(&mut question_state.answers),
                        std::mem::take(&mut question_state.reservations),
                    ));
                }
            }
            answered.await;
        }
    }

    /// Accepts the answer to the question with the client-side key `key`, if the question is open.
    /// `reserve` reserves the bytes of the answer.
    ///
    /// # Errors
    ///
    /// `reserve` has failed.
    pub(crate) fn answer<E>(
        &self,
        key: &str,
        answer: String,
        reserve: impl FnOnce(usize) -> Result<QuotaPortion, E>,
    ) -> Result<(), E> {
        let mut question_state = lock(&self.question_state);
        let Some(index) = question_state
            .open
            .iter()
            .position(|question| question.key == key)
        else {
            return Ok(());
        };
        let portion = reserve(answer.len())?;
        let answered_question = question_state.open.remove(index);
        question_state
            .answers
            .insert(answered_question.question.key.clone(), answer);
        question_state.reservations.push(portion);
        let state = if question_state.open.is_empty() {
            self.answered.notify_one();
            TaskState::Working
        } else {
            TaskState::InputRequired(question_state.open.clone())
        };
        self.set_state(state);
        Ok(())
    }

    /// Fails the call, because its questions cannot be answered.
    pub(crate) fn fail_questions(&self, failure: CallFailure) {
        let mut question_state = lock(&self.question_state);
        if !question_state.open.is_empty() {
            question_state.failure = Some(failure);
            self.answered.notify_one();
        }
    }

    /// Returns the questions without an answer.
    pub(crate) fn unanswered(&self) -> Vec<Arc<TaskQuestion>> {
        lock(&self.question_state).open.clone()
    }

    /// Changes the task unless it has ended. Returns false if it has.
    fn update(&self, change: impl FnOnce(&Task) -> Task) -> bool {
        let mut task = lock(&self.task);
        let is_unfinished = !task.state.is_final();
        if is_unfinished {
            *task = Arc::new(change(&task));
        }
        is_unfinished
    }
}

/// A guard of asked questions. When it is dropped, the questions can no longer be answered.
pub(crate) struct AskedQuestions<'a> {
    live: &'a LiveTask,
}

impl AskedQuestions<'_> {
    /// Waits until all questions are answered.
    ///
    /// # Errors
    ///
    /// The questions have failed.
    pub(crate) async fn wait_for_answers(&self) -> Result<TaskAnswers, CallFailure> {
        self.live.wait_for_answers().await
    }
}

impl Drop for AskedQuestions<'_> {
    fn drop(&mut self) {
        let mut question_state = lock(&self.live.question_state);
        let TaskQuestions {
            open,
            answers,
            reservations,
            failure,
            ..
        } = &mut *question_state;
        (*answers, *reservations, *failure) = (BTreeMap::new(), Vec::new(), None);
        if !std::mem::take(open).is_empty() {
            // The state change makes the request that sent them to a client withdraw them.
            self.live.set_state(TaskState::Working);
        }
    }
}

// Held for a few instructions and never across an await. Lock order: the questions before the task.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
