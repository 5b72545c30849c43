//! The state of a task as clients receive it.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use toolbay_model::Question;

use crate::protocol::jsonrpc::Error;
use crate::protocol::question_encoding;
use crate::protocol::revision::Revision;

/// Interval at which a client should poll, in milliseconds.
const POLL_INTERVAL_MS: u64 = 500;

/// Size of a task in addition to its questions and its result, in bytes: the value itself, its
/// entries in tables, its message. A task that has ended has no message. A short error takes its
/// place, so that there is always capacity for one.
pub(super) const TASK_OVERHEAD_BYTES: usize = 4 << 10;

/// Maximum size of the status message of a task, in bytes.
pub(super) const MAX_MESSAGE_BYTES: usize = 1 << 10;

/// A snapshot of a task.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// The id, which cannot be guessed.
    pub(crate) id: Arc<str>,
    /// The revision of the request that started the task. Its result is encoded for this revision.
    pub(crate) revision: Revision,
    created: SystemTime,
    updated: SystemTime,
    /// Time for which the task is stored after it was created.
    ttl: Duration,
    /// The status message, from the plugin's progress.
    message: Option<String>,
    pub(crate) state: TaskState,
}

/// The status of a task (MCP `TaskStatus`).
#[derive(Clone, Debug)]
pub(crate) enum TaskState {
    /// `working`.
    Working,
    /// `input_required`, with the questions that have no answer yet.
    InputRequired(Vec<Arc<TaskQuestion>>),
    /// `completed` or `failed`.
    Ended(Arc<TaskEnd>),
    /// `cancelled`.
    Cancelled,
}

/// A question of a task.
#[derive(Debug)]
pub(crate) struct TaskQuestion {
    /// The client-side key. A task never uses a key twice, although a plugin may.
    pub(crate) key: String,
    pub(crate) question: Question,
}

/// The final state of a task.
#[derive(Debug)]
pub(crate) struct TaskEnd {
    /// True if the result has `isError`.
    is_error: bool,
    pub(crate) outcome: TaskOutcome,
}

/// The response that the request would have received.
#[derive(Debug)]
pub(crate) enum TaskOutcome {
    /// A result, as text.
    Result(Box<RawValue>),
    /// An error of JSON-RPC.
    Error(Error),
}

impl TaskEnd {
    /// Creates the end of a task with this error.
    pub(crate) fn failed(error: Error) -> Self {
        Self {
            is_error: false,
            outcome: TaskOutcome::Error(error),
        }
    }

    /// Creates the end of a task with this result, for which capacity is reserved.
    ///
    /// # Errors
    ///
    /// The result cannot be serialized.
    pub(crate) fn from_result(result: &Map<String, Value>) -> serde_json::Result<Self> {
        let is_error = result.get("isError") == Some(&Value::Bool(true));
        Ok(Self {
            is_error,
            outcome: TaskOutcome::Result(to_raw_value(result)?),
        })
    }

    fn size(&self) -> usize {
        match &self.outcome {
            TaskOutcome::Result(text) => text.get().len(),
            TaskOutcome::Error(error) => error_size(error),
        }
    }
}

/// Returns the size of an error as the end of a task, in bytes beyond [`TASK_OVERHEAD_BYTES`].
pub(crate) fn error_size(error: &Error) -> usize {
    let data = error.data.as_ref().map_or(0, serialized_size);
    (error.message.len() + data).saturating_sub(MAX_MESSAGE_BYTES)
}

/// Returns the size of a value as JSON text, without storing the text.
pub(crate) fn serialized_size(value: &impl Serialize) -> usize {
    let mut writer = CountingWriter(0);
    // The code that serializes the value for a client reports the error.
    drop(serde_json::to_writer(&mut writer, value));
    writer.0
}

/// A writer that only counts bytes.
struct CountingWriter(usize);

impl io::Write for CountingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TaskQuestion {
    /// Returns the size of the question, in bytes.
    pub(super) fn size(&self) -> usize {
        self.key.len() + self.question.params.get().len()
    }
}

impl TaskState {
    /// Returns whether the state can no longer change.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Self::Ended(_) | Self::Cancelled)
    }
}

impl Task {
    pub(super) fn new(id: Arc<str>, revision: Revision, now: SystemTime, ttl: Duration) -> Self {
        Self {
            id,
            revision,
            created: now,
            updated: now,
            ttl,
            message: None,
            state: TaskState::Working,
        }
    }

    /// Returns the task in another state.
    pub(super) fn with_state(&self, state: TaskState) -> Self {
        // A task that has ended has no progress.
        let message = self.message.clone().filter(|_| !state.is_final());
        Self {
            state,
            message,
            updated: SystemTime::now(),
            ..self.clone()
        }
    }

    /// Returns the task with another status message.
    pub(super) fn with_message(&self, message: String) -> Self {
        Self {
            message: Some(message),
            updated: SystemTime::now(),
            ..self.clone()
        }
    }

    /// Returns whether clients of `revision` support tasks of this form. For them, tasks of the
    /// other form do not exist.
    pub(crate) fn is_visible_to(&self, revision: Revision) -> bool {
        self.revision.features().tasks_extension == revision.features().tasks_extension
    }

    /// Returns the size of the task, in bytes.
    pub(super) fn size(&self) -> usize {
        let state = match &self.state {
            TaskState::Working | TaskState::Cancelled => 0,
            TaskState::InputRequired(questions) => questions.iter().map(|asked| asked.size()).sum(),
            TaskState::Ended(ended) => ended.size(),
        };
        TASK_OVERHEAD_BYTES + state
    }

    /// Returns `status`. If a tool fails, its task has failed in 2025-11-25, but has completed in
    /// the extension.
    fn status(&self) -> &'static str {
        let tool_errors_fail = !self.revision.features().tasks_extension;
        match &self.state {
            TaskState::Working => "working",
            TaskState::InputRequired(_) => "input_required",
            TaskState::Cancelled => "cancelled",
            TaskState::Ended(ended) => match ended.outcome {
                TaskOutcome::Error(_) => "failed",
                TaskOutcome::Result(_) if ended.is_error && tool_errors_fail => "failed",
                TaskOutcome::Result(_) => "completed",
            },
        }
    }

    /// Returns the task without its questions and its result: the result of `tasks/get` in
    /// 2025-11-25, and the result that creates a task in the extension.
    pub(crate) fn summary(&self) -> Map<String, Value> {
        let is_extension = self.revision.features().tasks_extension;
        let [ttl_key, poll_key] = if is_extension {
            ["ttlMs", "pollIntervalMs"]
        } else {
            ["ttl", "pollInterval"]
        };
        let format_time = |time| humantime::format_rfc3339_millis(time).to_string();
        let mut members = Map::new();
        members.insert("taskId".into(), self.id.as_ref().into());
        members.insert("status".into(), self.status().into());
        if let Some(message) = &self.message {
            members.insert("statusMessage".into(), message.as_str().into());
        }
        members.insert("createdAt".into(), format_time(self.created).into());
        members.insert("lastUpdatedAt".into(), format_time(self.updated).into());
        members.insert(
            ttl_key.into(),
            u64::try_from(self.ttl.as_millis())
                .unwrap_or(u64::MAX)
                .into(),
        );
        members.insert(poll_key.into(), POLL_INTERVAL_MS.into());
        members
    }

    /// Returns the full task, as in `tasks/get` and `notifications/tasks` of the extension.
    ///
    /// # Errors
    ///
    /// A question cannot be encoded. The error is a message for the log.
    pub(crate) fn detailed(&self) -> Result<DetailedTask<'_>, String> {
        let summary = self.summary();
        let mut detailed = DetailedTask {
            summary,
            meta: None,
            input_requests: None,
            result: None,
            error: None,
        };
        match &self.state {
            TaskState::Working | TaskState::Cancelled => {}
            TaskState::InputRequired(questions) => {
                let requests = questions.iter().map(|asked| {
                    Ok((
                        asked.key.clone(),
                        question_encoding::input_request(&asked.question, self.revision)?,
                    ))
                });
                detailed.input_requests = Some(requests.collect::<Result<_, String>>()?);
            }
            TaskState::Ended(ended) => match &ended.outcome {
                TaskOutcome::Result(text) => detailed.result = Some(text),
                TaskOutcome::Error(error) => detailed.error = Some(TaskError::new(error)),
            },
        }
        Ok(detailed)
    }
}

/// A task with its questions or its result. The result stays text, because it may be long.
#[derive(Serialize)]
pub(crate) struct DetailedTask<'a> {
    #[serde(flatten)]
    pub(crate) summary: Map<String, Value>,
    /// `_meta`, if it is not in the summary.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub(crate) meta: Option<&'a RawValue>,
    #[serde(rename = "inputRequests", skip_serializing_if = "Option::is_none")]
    input_requests: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<TaskError<'a>>,
}

/// An error of JSON-RPC as a member of a task.
#[derive(Serialize)]
struct TaskError<'a> {
    code: i32,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Value>,
}

impl<'a> TaskError<'a> {
    fn new(error: &'a Error) -> Self {
        Self {
            code: error.code,
            message: &error.message,
            data: error.data.as_deref(),
        }
    }
}
