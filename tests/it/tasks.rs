//! Calls that continue as tasks, with real plugins and connections.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::memory::resident;
use crate::support::{
    Folder, HttpServer, StdioServer, ToolbayCommand, asker, hostile, result_text,
};

/// Number of tasks at once.
const MANY: usize = 1_000;

/// The capabilities of a client that supports tasks and forms.
fn client_capabilities() -> Value {
    json!({"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
}

/// Sends a stateless request from a client that supports tasks.
fn ask(server: &HttpServer, method: &str, mut params: Value, token: &str) -> Value {
    params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": client_capabilities()});
    let authorization = format!("Bearer {token}");
    let headers: &[(&str, &str)] = if token.is_empty() {
        &[]
    } else {
        &[("Authorization", authorization.as_str())]
    };
    server
        .post_stateless(method, params, headers)
        .response_message()
}

/// Waits until the task has this status.
fn wait_for_status(server: &HttpServer, id: &str, status: &str, token: &str) -> Value {
    loop {
        let response = ask(server, "tasks/get", json!({"taskId": id}), token);
        let task = &response["result"];
        if task["status"] == status {
            return task.clone();
        }
        assert!(
            matches!(task["status"].as_str(), Some("working" | "input_required")),
            "{response}"
        );
        std::thread::yield_now();
    }
}

/// Creates a folder with a plugin whose tool `wait_for_gate` runs until the gate is open, and can
/// be a task.
fn folder_with_gate() -> Folder {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put(
        "hostile.toml",
        folder.create_gate() + "[tools.wait_for_gate]\ntask_support = \"optional\"",
    );
    folder
}

const RATES: &str = "[caller_rate_limit]\ncalls = 100000\nper = \"1m\"\n[rate_limit]\ncalls = 100000\nper = \"1m\"\n";

#[test]
fn a_thousand_tasks_complete_although_few_can_run_at_once() {
    let folder = folder_with_gate();
    let config =
        format!("{RATES}[tasks]\nafter = \"1ms\"\n[server]\nsuspended_calls = 0\nqueue = 2000\n");
    let server = HttpServer::start_with_config(&folder, &config).wait_until_ready();
    let call = || ask(&server, "tools/call", json!({"name": "wait_for_gate"}), "")["result"].take();
    let begin = || {
        let created = call();
        assert_eq!(created["resultType"], "task", "{created}");
        created["taskId"].as_str().unwrap().to_owned()
    };
    let mut ids: BTreeSet<String> = (0..100).map(|_| begin()).collect();
    let before = resident(server.pid());
    ids.extend((100..MANY).map(|_| begin()));
    let each = (resident(server.pid()).saturating_sub(before) << 10) / (MANY - 100) as u64;
    println!("{each} bytes for each task");
    assert!(each < 32 << 10, "{each} bytes for each task");
    assert_eq!(ids.len(), MANY);
    folder.open_gate();
    for id in &ids {
        let task = wait_for_status(&server, id, "completed", "");
        assert_eq!(task["result"]["resultType"], "complete", "{task}");
    }
}

#[test]
fn cancelling_a_task_frees_its_slot_at_once() {
    let folder = folder_with_gate();
    folder.put(
        "hostile.toml",
        folder.create_gate()
            + "[limits]\nconcurrency = 1\n[tools.wait_for_gate]\ntask_support = \"optional\"",
    );
    let mut server = StdioServer::start_with_config(
        &folder,
        "[server]\nsuspended_calls = 0\n[tasks]\nttl = \"1m\"\n",
    );
    let created = server.result(
        "tools/call",
        json!({"name": "wait_for_gate", "task": {"ttl": 30_000}}),
    );
    assert_eq!(
        (&created["task"]["status"], &created["task"]["ttl"]),
        (&json!("working"), &json!(30_000))
    );
    let id = &created["task"]["taskId"];
    let count = server.start_call("count", json!({}));
    let cancelled = server.result("tasks/cancel", json!({"taskId": id}));
    assert_eq!(cancelled["status"], "cancelled");
    // This call was waiting for the only slot.
    assert_eq!(result_text(&server.finish_call(count)), "1");
    let error = server.error("tasks/result", json!({"taskId": id}));
    assert_eq!(
        error["message"],
        "The task was cancelled: it has no result."
    );
}

#[test]
fn running_tasks_end_with_the_server_and_do_not_delay_its_shutdown() {
    let mut server = StdioServer::start(&folder_with_gate());
    let created = server.result("tools/call", json!({"name": "wait_for_gate", "task": {}}));
    let waiting = server.request("tasks/result", json!({"taskId": created["task"]["taskId"]}));
    let (last, code) = server.stop();
    assert_eq!(code, Some(0));
    let response = last.iter().find(|message| message["id"] == waiting);
    if let Some(response) = response {
        assert!(response.get("error").is_some(), "{response}");
    }
}

#[test]
fn a_task_asks_its_user_and_continues_on_another_connection() {
    let folder = Folder::with("asker.wasm", asker());
    folder.put("asker.toml", "[tools.ask]\ntask_support = \"required\"");
    let server =
        HttpServer::start_with_config(&folder, "[tasks]\nafter = \"1ms\"\n").wait_until_ready();
    let schema =
        json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let form = |key: &str| json!({"key": key, "kind": "form", "params": {"message": "Which name?", "requestedSchema": schema}});
    let steps = json!([{"ask": [form("first")]}, "random", {"ask": [form("second")]}]);
    let call = json!({"name": "ask", "arguments": {"steps": steps}});
    // In a stateless request, a fast plugin asks before the call becomes a task. In a session, the
    // client requests a task at once.
    let session = server.start_session_with_headers("2025-11-25", &[]);
    let created = session.result(
        "tools/call",
        json!({"name": "ask", "arguments": call["arguments"], "task": {}}),
    );
    let id = created["task"]["taskId"].as_str().unwrap().to_owned();
    loop {
        let task = session.result("tasks/get", json!({"taskId": id}));
        if task["status"] == "failed" {
            break;
        }
        assert_eq!(task["status"], "working", "{task}");
    }
    let error = session
        .request("tasks/result", json!({"taskId": id}))
        .response_message()["error"]
        .take();
    assert_eq!(
        error["data"]["requiredCapabilities"],
        json!({"elicitation": {"form": {}}})
    );
    let refused = server
        .post_stateless("tools/call", call.clone(), &[])
        .response_message();
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    for _ in 0..10 {
        let result = call_and_answer(&server, &call);
        let said: Vec<&str> = result["structuredContent"]["said"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one.as_str().unwrap())
            .collect();
        assert_eq!(
            (said[0], said[2]),
            (
                accept_answer("first").as_str(),
                accept_answer("second").as_str()
            ),
            "{result}"
        );
    }
}

fn accept_answer(key: &str) -> String {
    json!({"action": "accept", "content": {"name": key}}).to_string()
}

/// Returns the result of a call whose questions are answered with their keys. The call may become a
/// task before, between or after its questions, or never.
fn call_and_answer(server: &HttpServer, call: &Value) -> Value {
    let answers = |requests: &Value| -> Value {
        let keys = requests.as_object().unwrap().keys();
        keys.map(|key| {
            (
                key.clone(),
                serde_json::from_str::<Value>(&accept_answer(key)).unwrap(),
            )
        })
        .collect()
    };
    let mut params = call.clone();
    let id = loop {
        let result = ask(server, "tools/call", params, "")["result"].take();
        match result["resultType"].as_str() {
            Some("input_required") => {
                params = call.clone();
                params["inputResponses"] = answers(&result["inputRequests"]);
                params["requestState"] = result["requestState"].clone();
            }
            Some("task") => break result["taskId"].as_str().unwrap().to_owned(),
            _ => return result,
        }
    };
    loop {
        let mut task = ask(server, "tasks/get", json!({"taskId": id}), "")["result"].take();
        match task["status"].as_str() {
            Some("input_required") => {
                let params =
                    json!({"taskId": id, "inputResponses": answers(&task["inputRequests"])});
                let done = ask(server, "tasks/update", params, "");
                assert_eq!(done["result"]["resultType"], "complete", "{done}");
            }
            Some("working") => std::thread::yield_now(),
            _ => return task["result"].take(),
        }
    }
}

#[test]
fn a_question_of_a_task_in_a_session_arrives_on_the_stream_of_tasks_result() {
    let folder = Folder::with("asker.wasm", asker());
    folder.put("asker.toml", "[tools.ask]\ntask_support = \"optional\"");
    let server = HttpServer::start(&folder).wait_until_ready();
    let session = server.start_session_with_capabilities("2025-11-25", client_capabilities(), &[]);
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let form = json!({"key": "k", "kind": "form", "params": {"message": "Which name?", "requestedSchema": schema}});
    let call = json!({"name": "ask", "arguments": {"steps": [{"ask": [form]}]}, "task": {}});
    let id = session.result("tools/call", call)["task"]["taskId"].clone();
    let mut stream = session.request("tasks/result", json!({"taskId": id}));
    let question = stream.next_message().unwrap();
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(
        question["params"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"],
        id
    );
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}});
    assert_eq!(session.post(&answer).status, 202);
    let response = stream.next_message().unwrap();
    assert_eq!(
        response["result"]["structuredContent"]["said"],
        json!([r#"{"action":"decline"}"#]),
        "{response}"
    );
    assert_eq!(
        response["result"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"],
        id
    );
}

#[test]
fn a_call_from_the_command_line_can_be_a_task() {
    let folder = folder_with_gate();
    folder.open_gate();
    let called = ToolbayCommand::new(&folder)
        .args(["call", "--task", "wait_for_gate"])
        .run();
    assert_eq!(called.code, 0, "{}", called.stderr);
    folder.put(
        "hostile.toml",
        "[tools.loop_forever]\ntask_support = \"required\"\n[limits]\nfuel = 500_000_000",
    );
    let failed = ToolbayCommand::new(&folder)
        .args(["call", "--task", "--json", "loop_forever"])
        .run();
    assert_eq!(failed.code, 1);
    assert!(
        failed.stderr.contains("task: completed"),
        "{}",
        failed.stderr
    );
    assert_eq!(
        serde_json::from_str::<Value>(&failed.raw_stdout).unwrap()["isError"],
        true
    );
}
