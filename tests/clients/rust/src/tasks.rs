//! Tasks: this client knows the extension, and has none in sessions.

use anyhow::{Result, bail};
use rmcp::ServiceError;
use rmcp::model::{
    CallToolResponse, CancelTaskParams, DetailedTask, GetTaskParams, TaskPayload, TaskStatus,
    UpdateTaskParams,
};
use serde_json::{Value, json};

use crate::checks::Checks;
use crate::{Conversation, parameters, text};

impl Conversation {
    /// Begins a task, and returns its id.
    async fn begin(&self, name: &'static str, arguments: Value) -> Result<String> {
        match self
            .client
            .call_tool_once(parameters(name, arguments))
            .await?
        {
            CallToolResponse::Task(created) => Ok(created.task.task_id),
            other => bail!("{name} is no task: {other:?}"),
        }
    }

    /// Waits while the task works.
    async fn worked(&self, id: &str) -> Result<DetailedTask> {
        loop {
            let task = self.client.get_task(GetTaskParams::new(id)).await?.task;
            if task.status() != TaskStatus::Working {
                return Ok(task);
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
}

/// Calls tools that take long.
pub(crate) async fn converse(at: &Conversation, revision: &str, checks: &mut Checks) -> Result<()> {
    let work = || json!({"seconds": 1, "label": "it"});
    if revision < "2026-07-28" {
        let result = at.call("slow_compute", work()).await?;
        checks.check(
            "a call that takes long has its result",
            text(&result) == "it: computed for 1 s",
            &result,
        );
        let refused = at.call("failing_job", json!({})).await;
        let code = if let Err(ServiceError::McpError(error)) = &refused {
            error.code.0
        } else {
            0
        };
        checks.check(
            "a tool that runs only as a task is error -32601",
            code == -32601,
            &refused,
        );
        return Ok(());
    }
    let id = at.begin("slow_compute", work()).await?;
    let ended = at.worked(&id).await?;
    checks.check(
        "a task has its result",
        said(&ended) == "it: computed for 1 s",
        &ended,
    );
    let ended = at
        .worked(&at.begin("failing_job", json!({})).await?)
        .await?;
    checks.check(
        "a tool that fails in a task has failed",
        said(&ended).contains("The job failed."),
        &ended,
    );

    let id = at
        .begin("confirm_delete", json!({"filename": "a.txt"}))
        .await?;
    let asks = at.worked(&id).await?;
    let TaskPayload::InputRequired { input_requests } = &asks.payload else {
        bail!("it asks nothing: {asks:?}")
    };
    let yes = json!({"action": "accept", "content": {"confirm": true}});
    let answers: Value = input_requests
        .keys()
        .map(|key| (key.clone(), yes.clone()))
        .collect();
    at.client
        .update_task(UpdateTaskParams::new(&id, serde_json::from_value(answers)?))
        .await?;
    let ended = at.worked(&id).await?;
    checks.check(
        "a task asks in the middle",
        said(&ended) == "a.txt was deleted.",
        &ended,
    );

    let id = at.begin("slow_compute", json!({"seconds": 20})).await?;
    at.client.cancel_task(CancelTaskParams::new(&id)).await?;
    let ended = at.worked(&id).await?;
    checks.check(
        "a task is cancelled",
        ended.status() == TaskStatus::Cancelled,
        &ended,
    );
    Ok(())
}

/// The text of the result of a task.
fn said(task: &DetailedTask) -> &str {
    let TaskPayload::Completed { result } = &task.payload else {
        return "";
    };
    result
        .get("content")
        .and_then(|content| content[0]["text"].as_str())
        .unwrap_or_default()
}
