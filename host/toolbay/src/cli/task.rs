//! `toolbay call --task`: calls a tool as a client that supports tasks, and prints the status of
//! the task to standard error.

use std::pin::pin;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use serde_json::{Map, Value, json};
use tokio::io::split;
use tokio_util::sync::CancellationToken;
use toolbay_mcp::{LocalClient, LocalMessage};

use super::output::{complain, note, print_json};
use super::result;
use crate::serve::server::Server;

/// Capacity of the in-process pipe between client and server, in bytes.
const PIPE_CAPACITY: usize = 64 << 10;

/// Calls the tool of this server, and prints its result.
pub(super) async fn run(
    server: &Server,
    tool: &str,
    arguments: Map<String, Value>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let (client, host) = tokio::io::duplex(PIPE_CAPACITY);
    let (reader, writer) = split(host);
    let stop = CancellationToken::new();
    let serving = server.serve_stdio(Box::pin(reader), Box::pin(writer), stop.clone());
    let client_run = async {
        let ended = call(&mut LocalClient::new(client), tool, arguments, json).await;
        stop.cancel();
        ended
    };
    let (outcome, code) = tokio::join!(serving, client_run);
    outcome.context("failed to serve the call")?;
    code
}

async fn call(
    client: &mut LocalClient,
    tool: &str,
    arguments: Map<String, Value>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    client
        .send(
            "tools/call",
            into_object(json!({"name": tool, "arguments": arguments})),
        )
        .await?;
    let mut interrupted = pin!(tokio::signal::ctrl_c());
    let mut result = receive(client).await?;
    if result.get("resultType").is_none_or(|kind| kind != "task") {
        note("the call ended before it became a task");
        return print_result(&result, json);
    }
    let id = result
        .get_mut("taskId")
        .map(Value::take)
        .unwrap_or_default();
    note(&format!(
        "task {}: working",
        id.as_str().unwrap_or_default()
    ));
    client
        .send(
            "subscriptions/listen",
            into_object(json!({"notifications": {"taskIds": [id]}})),
        )
        .await?;
    // The task may have ended before the subscription.
    client
        .send("tasks/get", into_object(json!({"taskId": id})))
        .await?;
    let mut last_note = String::new();
    loop {
        let mut task = tokio::select! {
            task = receive(client) => task?,
            _ = &mut interrupted => {
                client.send("tasks/cancel", into_object(json!({"taskId": id}))).await?;
                bail!("cancelled");
            }
        };
        let status = task
            .get("status")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let words = task
            .get("statusMessage")
            .and_then(Value::as_str)
            .map(|words| format!(": {words}"));
        let now = format!("task: {status}{}", words.unwrap_or_default());
        if !status.is_empty() && now != last_note {
            note(&now);
            last_note = now;
        }
        match status.as_str() {
            "completed" => {
                return print_result(
                    &task.get_mut("result").map(Value::take).unwrap_or_default(),
                    json,
                );
            }
            "failed" => {
                let why = task.pointer("/error/message").and_then(Value::as_str);
                bail!("{}", why.unwrap_or("the call failed"));
            }
            "cancelled" => bail!("the task was cancelled"),
            "input_required" => {
                client
                    .send("tasks/cancel", into_object(json!({"taskId": id})))
                    .await?;
                bail!(
                    "the tool asks its user a question, which --task cannot answer: call it without --task, or from a client"
                );
            }
            _ => {}
        }
    }
}

/// Returns the next result, or the next update of the task.
async fn receive(client: &mut LocalClient) -> anyhow::Result<Value> {
    match client.receive().await?.context("the server ended")? {
        LocalMessage::Result(value) | LocalMessage::Task(value) => Ok(value),
        LocalMessage::Error(why) => bail!("{why}"),
    }
}

fn into_object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// Prints a result.
fn print_result(result: &Value, json: bool) -> anyhow::Result<ExitCode> {
    let failed = result.get("isError").is_some_and(|failed| failed == true);
    if json {
        print_json(result)?;
    } else {
        result::print_result_text(result);
    }
    if failed {
        complain("the tool failed");
    }
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
