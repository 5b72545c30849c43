//! The decision whether a call becomes a task. It depends on the request, the declared capabilities
//! and the tool's support.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Number, json};
use toolbay_model::{CallRequest, TaskSupport, Tool};

use crate::host::caller::Caller;
use crate::host::list_source::LoadedPart;
use crate::protocol::capabilities::TASKS_EXTENSION;
use crate::protocol::jsonrpc::{Error, INVALID_PARAMS, METHOD_NOT_FOUND};
use crate::protocol::message_context::RequestContext;
use crate::response::call_response::MISSING_CAPABILITY;
use crate::session::client_session::Session;

/// Whether, and at whose request, a call becomes a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskMode {
    /// The call does not become a task.
    None,
    /// The client accepts a task, and the server decides.
    Offered,
    /// The client requests a task.
    Task {
        /// Requested lifetime of the task.
        ttl: Option<Duration>,
    },
    /// The plugin of the tool may still be loading, so the tool's support for tasks is not known
    /// yet.
    Open(RequestedTask),
}

/// The task that a client requests (`params.task` of 2025-11-25).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestedTask {
    /// No task.
    Nothing,
    /// A task.
    Task {
        /// Requested lifetime of the task.
        ttl: Option<Duration>,
    },
    /// A task, with malformed parameters.
    Malformed,
}

impl RequestedTask {
    fn parse(task: Option<&RawValue>, rules: &RequestContext) -> Self {
        #[derive(Deserialize)]
        struct TaskModeParams {
            ttl: Option<Number>,
        }
        let Some(task) = task.filter(|_| rules.revision.features().tasks) else {
            return Self::Nothing;
        };
        match serde_json::from_str(task.get()) {
            Ok(TaskModeParams { ttl: None }) => Self::Task { ttl: None },
            Ok(TaskModeParams { ttl: Some(ttl) }) => parse_milliseconds(&ttl)
                .map_or(Self::Malformed, |ttl| Self::Task { ttl: Some(ttl) }),
            Err(_) => Self::Malformed,
        }
    }
}

/// Parses a number of milliseconds. `60000.0` is an integer too, as in JSON Schema. A number that
/// is too large means no limit.
fn parse_milliseconds(number: &Number) -> Option<Duration> {
    if let Some(whole) = number.as_u64() {
        return Some(Duration::from_millis(whole));
    }
    let number = number
        .as_f64()
        .filter(|number| *number >= 0.0 && number.fract() == 0.0)?;
    Some(Duration::try_from_secs_f64(number / 1_000.0).unwrap_or(Duration::MAX))
}

impl TaskMode {
    /// Decides for this request whether its call becomes a task.
    ///
    /// # Errors
    ///
    /// The tool can be called only as a task, or never as one.
    pub(crate) fn from_request(
        session: &Session,
        caller: &Caller,
        request: &CallRequest,
        task: Option<&RawValue>,
        rules: &RequestContext,
    ) -> Result<Self, Error> {
        let CallRequest::Tool { name, .. } = request else {
            return Ok(Self::None);
        };
        if !caller.may_use(name) {
            return Ok(Self::None);
        }
        // Checked first, so that a plugin that is loaded between the two checks is not missed.
        let complete = session.server.loading().is_complete();
        match session.server.lists().tool(name) {
            Some(tool) => RequestedTask::parse(task, rules).resolve_for(&tool, rules),
            None if complete => Ok(Self::None),
            None => Ok(Self::Open(RequestedTask::parse(task, rules))),
        }
    }

    /// Waits until the support of the tool with this name is known, and decides.
    ///
    /// # Errors
    ///
    /// As for [`TaskMode::from_request`].
    pub(crate) async fn resolve(
        self,
        session: &Session,
        name: &str,
        rules: &RequestContext,
    ) -> Result<Self, Error> {
        let Self::Open(wanted) = self else {
            return Ok(self);
        };
        session
            .server
            .loading()
            .wait_for(LoadedPart::Tool(name))
            .await;
        session
            .server
            .lists()
            .tool(name)
            .map_or(Ok(Self::None), |tool| wanted.resolve_for(&tool, rules))
    }
}

impl RequestedTask {
    /// Decides for a call of this tool.
    fn resolve_for(self, tool: &Tool, rules: &RequestContext) -> Result<TaskMode, Error> {
        let name = &tool.name;
        let features = rules.revision.features();
        match (tool.task_support, self) {
            (TaskSupport::Forbidden, Self::Task { .. } | Self::Malformed) => Err(Error::new(
                METHOD_NOT_FOUND,
                format!("The tool {name} cannot be called as a task: call it without `task`."),
            )),
            (TaskSupport::Optional | TaskSupport::Required, Self::Task { ttl }) => {
                Ok(TaskMode::Task { ttl })
            }
            (TaskSupport::Optional | TaskSupport::Required, Self::Malformed) => Err(Error::new(
                INVALID_PARAMS,
                "Invalid params: task must be an object whose ttl is a number of milliseconds",
            )),
            (TaskSupport::Optional | TaskSupport::Required, Self::Nothing)
                if features.tasks_extension && rules.capabilities.supports_tasks() =>
            {
                Ok(TaskMode::Offered)
            }
            (TaskSupport::Required, Self::Nothing) if features.tasks_extension => Err(
                missing_extension(&format!("The tool {name} runs only as a task")),
            ),
            (TaskSupport::Required, Self::Nothing) => {
                let how = if features.tasks {
                    "call it with `task`"
                } else {
                    "use a client of 2025-11-25 or later"
                };
                Err(Error::new(
                    METHOD_NOT_FOUND,
                    format!("The tool {name} runs only as a task: {how}."),
                ))
            }
            (TaskSupport::Forbidden | TaskSupport::Optional, Self::Nothing) => Ok(TaskMode::None),
        }
    }
}

/// Returns the error for a client that did not declare the extension.
pub(crate) fn missing_extension(what: &str) -> Error {
    let data = Some(Box::new(
        json!({"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}),
    ));
    let message = format!("{what}: the client must declare the extension {TASKS_EXTENSION}.");
    Error {
        data,
        ..Error::new(MISSING_CAPABILITY, message)
    }
}
