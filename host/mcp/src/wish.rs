//! Whether a call is to be a task: what the client wants, what it declared, and what the tool supports.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use toolbay_model::{Request, TaskSupport};

use crate::caller::Caller;
use crate::capabilities::TASKS;
use crate::jsonrpc::{Error, INVALID_PARAMS, METHOD_NOT_FOUND};
use crate::outcome::MISSING_CAPABILITY;
use crate::rules::Rules;
use crate::session::Session;

/// Whether a call is to be a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// It is none.
    None,
    /// The client can take a task, and the server decides.
    Offered,
    /// The client wants a task, and perhaps for how long it is kept.
    Task {
        /// For how long.
        ttl: Option<Duration>,
    },
}

/// `params.task` of 2025-11-25.
#[derive(Deserialize)]
struct Wanted {
    ttl: Option<u64>,
}

impl Wish {
    /// What follows from this request.
    ///
    /// # Errors
    ///
    /// The tool can be called only as a task, or never.
    pub(crate) fn of(
        session: &Session,
        caller: &Caller,
        request: &Request,
        task: Option<&RawValue>,
        rules: &Rules,
    ) -> Result<Self, Error> {
        let Request::Tool { name, .. } = request else { return Ok(Self::None) };
        let features = rules.revision.features();
        let tool = if caller.may_use(name) { session.host.tool(name) } else { None };
        let Some(tool) = tool else { return Ok(Self::None) };
        let wanted = task.filter(|_| features.tasks);
        match tool.task_support {
            TaskSupport::Forbidden if wanted.is_some() => Err(Error::new(
                METHOD_NOT_FOUND,
                format!("The tool {name} cannot be called as a task: call it without `task`."),
            )),
            TaskSupport::Optional | TaskSupport::Required if let Some(wanted) = wanted => {
                let Wanted { ttl } = serde_json::from_str(wanted.get()).map_err(|_| {
                    Error::new(
                        INVALID_PARAMS,
                        "Invalid params: task must be an object whose ttl is a number of milliseconds",
                    )
                })?;
                Ok(Self::Task { ttl: ttl.map(Duration::from_millis) })
            }
            TaskSupport::Optional | TaskSupport::Required
                if features.tasks_extension && rules.capabilities.has_tasks() =>
            {
                Ok(Self::Offered)
            }
            TaskSupport::Required if features.tasks_extension => {
                Err(undeclared(&format!("The tool {name} runs only as a task")))
            }
            TaskSupport::Required => {
                let how = if features.tasks { "call it with `task`" } else { "use a client of 2025-11-25 or later" };
                Err(Error::new(METHOD_NOT_FOUND, format!("The tool {name} runs only as a task: {how}.")))
            }
            TaskSupport::Forbidden | TaskSupport::Optional => Ok(Self::None),
        }
    }
}

/// The error for a client that did not declare the extension.
pub(crate) fn undeclared(what: &str) -> Error {
    let data = Some(Box::new(json!({"requiredCapabilities": {"extensions": {TASKS: {}}}})));
    let message = format!("{what}: the client must declare the extension {TASKS}.");
    Error { data, ..Error::new(MISSING_CAPABILITY, message) }
}
