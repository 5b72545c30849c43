//! `toolbay ps`: lists the running calls of servers on this machine, and stops one.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use futures_util::future::join_all;
use humantime::format_duration;
use serde_json::{Value, json};
use toolbay_console::{describe_server, list_running_calls, stop_running_call};
use toolbay_model::text::clean_line;

use super::common::block_on;
use super::output::{complain, note, print, print_json};
use crate::config::ConfigError;
use crate::serve::console_socket::{ServerSocket, find_servers};

/// Maximum length of a printed name, in bytes.
const MAX_NAME_BYTES: usize = 300;

/// Advice if no server is found.
const NO_SERVER_ADVICE: &str = "no server of this user answers: `toolbay ps` finds a server while a client that started it with \
                      `toolbay serve` is running, unless console.stdio = false";

/// A server with its running calls.
struct ServerCalls {
    pid: u32,
    folder: String,
    /// The response of the server: `calls` and `total`.
    calls: Value,
}

pub(super) fn run(pid: Option<u32>, stop: Option<u64>, as_json: bool) -> anyhow::Result<ExitCode> {
    block_on(async {
        let mut sockets = find_servers();
        if let Some(pid) = pid {
            sockets.retain(|socket| socket.pid == pid);
        }
        if let Some(id) = stop {
            return stop_call(sockets, id).await;
        }
        let requests = sockets.iter().map(async |socket| {
            let folder = describe_server(&socket.path).await.ok()?;
            Some((socket.pid, folder, list_running_calls(&socket.path).await))
        });
        let answers: Vec<_> = join_all(requests).await.into_iter().flatten().collect();
        if answers.is_empty() {
            bail!("{NO_SERVER_ADVICE}");
        }
        let mut servers = Vec::new();
        let mut code = ExitCode::SUCCESS;
        for (pid, folder, answer) in answers {
            let calls = answer.map_err(anyhow::Error::from).and_then(|text| {
                serde_json::from_str(&text).context("its answer is not valid JSON")
            });
            match calls {
                Ok(calls) => servers.push(ServerCalls {
                    pid,
                    folder: clean_line(&folder, MAX_NAME_BYTES),
                    calls,
                }),
                Err(error) => {
                    complain(&format!(
                        "the server {pid} does not list its calls ({error:#}); it may be of an earlier version"
                    ));
                    code = ExitCode::FAILURE;
                }
            }
        }
        if as_json {
            let servers: Vec<Value> = servers
                .iter()
                .map(|server| {
                    json!({"pid": server.pid, "folder": server.folder, "calls": server.calls.get("calls"), "total": server.calls.get("total")})
                })
                .collect();
            print_json(&json!({ "servers": servers }))?;
        } else {
            servers.iter().for_each(print_calls);
        }
        Ok(code)
    })
}

/// Stops a call of the only server.
async fn stop_call(sockets: Vec<ServerSocket>, id: u64) -> anyhow::Result<ExitCode> {
    let requests = sockets.into_iter().map(async |socket| {
        let answers = describe_server(&socket.path).await.is_ok();
        answers.then_some(socket)
    });
    let mut answering: Vec<_> = join_all(requests).await.into_iter().flatten().collect();
    let Some(socket) = answering.pop() else {
        bail!("{NO_SERVER_ADVICE}");
    };
    if !answering.is_empty() {
        // The numbers of calls are those of their server.
        return Err(ConfigError::new(
            "several servers are running: name the one with --pid; `toolbay ps` lists them"
                .to_owned(),
        )
        .into());
    }
    let is_stopped = stop_running_call(&socket.path, id)
        .await
        .with_context(|| format!("the server {} did not answer", socket.pid))?;
    if !is_stopped {
        bail!(
            "no call {id} is running in the server {}: it may have ended; `toolbay ps` lists the running calls",
            socket.pid
        );
    }
    print(&format!("stopped call {id} of the server {}\n", socket.pid));
    Ok(ExitCode::SUCCESS)
}

/// Prints the calls of a server in columns.
fn print_calls(server: &ServerCalls) {
    let none = Vec::new();
    let calls = server
        .calls
        .get("calls")
        .and_then(Value::as_array)
        .unwrap_or(&none);
    let total = server
        .calls
        .get("total")
        .and_then(Value::as_u64)
        .unwrap_or_default();
    note(&format!(
        "server {} ({}): {}",
        server.pid,
        server.folder,
        match total {
            0 => "no running calls".to_owned(),
            1 => "1 running call".to_owned(),
            total => format!("{total} running calls"),
        }
    ));
    if calls.is_empty() {
        return;
    }
    let row = |cells: [&str; 6]| {
        let [call, age, caller, plugin, tool, progress] = cells;
        let line =
            format!("{call:<6}  {age:<10}  {caller:<16}  {plugin:<16}  {tool:<24}  {progress}");
        print(&format!("{}\n", line.trim_end()));
    };
    row(["CALL", "AGE", "CALLER", "PLUGIN", "TOOL", "PROGRESS"]);
    for call in calls {
        let text = |key: &str| clean_line(call[key].as_str().unwrap_or_default(), MAX_NAME_BYTES);
        let age = Duration::from_millis(call["age_ms"].as_u64().unwrap_or_default());
        // Below a minute with tenths of a second, above without.
        let age = if age < Duration::from_mins(1) {
            format!("{:.1}s", age.as_secs_f64())
        } else {
            format_duration(Duration::from_secs(age.as_secs())).to_string()
        };
        row([
            &call["call"].to_string(),
            &age,
            &text("caller"),
            &text("plugin"),
            &text("tool"),
            &text("progress"),
        ]);
    }
    let hidden = total.saturating_sub(calls.len() as u64);
    if hidden > 0 {
        note(&format!("and {hidden} more"));
    }
}
