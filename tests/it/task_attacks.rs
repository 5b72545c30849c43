//! A thousand tasks at once, in both forms: cancelled tasks, forgotten tasks, requests of other
//! callers, questions during a task, and a shutdown of the server.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::auth::token;
use crate::memory::resident;
use crate::support::{Folder, HttpResponse, HttpServer, HttpSession, asker, hostile};

const CORE: &str = "2025-11-25";
const EXTENSION: &str = "2026-07-28";

/// Time for which tasks are retained, in seconds.
const TTL: u64 = 30;

/// Tolerance for a busy machine.
const SLACK: Duration = Duration::from_secs(20);

const CONFIG: &str = "[caller_rate_limit]\ncalls = 1000000\nper = \"1m\"\n[rate_limit]\ncalls = 1000000\nper = \"1m\"\n\
                      [tasks]\nafter = \"1ms\"\nttl = \"30s\"\n[server]\nsuspended_calls = 0\nqueue = 2000\n";

/// The capabilities of a client that supports tasks and forms.
fn client_capabilities() -> Value {
    json!({"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
}

/// An authenticated caller.
struct Caller<'a> {
    server: &'a HttpServer,
    session: Option<HttpSession<'a>>,
    authorization: String,
}

impl<'a> Caller<'a> {
    fn new(server: &'a HttpServer, revision: &str, token: &str) -> Self {
        let authorization = format!("Bearer {token}");
        let headers = [("Authorization", authorization.as_str())];
        let session = (revision == CORE).then(|| {
            server.start_session_with_capabilities(revision, client_capabilities(), &headers)
        });
        Self {
            server,
            session,
            authorization,
        }
    }

    fn send(&self, method: &str, mut params: Value) -> HttpResponse {
        if let Some(session) = &self.session {
            return session.request(method, params);
        }
        params["_meta"] =
            json!({"io.modelcontextprotocol/clientCapabilities": client_capabilities()});
        self.server
            .post_stateless(method, params, &[("Authorization", &self.authorization)])
    }

    fn ask(&self, method: &str, params: Value) -> Value {
        self.send(method, params).response_message()
    }

    /// Creates a task; in the core form, it is retained for `ttl` milliseconds.
    fn begin(&self, name: &str, arguments: &Value, ttl: Option<u64>) -> String {
        let mut answer = self.ask(
            "tools/call",
            json!({"name": name, "arguments": arguments, "task": {"ttl": ttl}}),
        );
        let result = answer["result"].take();
        let task = result.get("task").unwrap_or(&result);
        task["taskId"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer} {result}"))
            .to_owned()
    }

    /// Returns the task; `None` if it does not exist.
    fn get(&self, id: &str) -> Option<Value> {
        let mut answer = self.ask("tasks/get", json!({"taskId": id}));
        if answer.get("error").is_some() {
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
            return None;
        }
        Some(answer["result"].take())
    }

    /// Waits until the task has this status.
    fn wait_for_status(&self, id: &str, status: &str) -> Value {
        loop {
            let task = self.get(id).unwrap_or_else(|| panic!("{id} is forgotten"));
            if task["status"] == status {
                return task;
            }
            assert!(
                matches!(task["status"].as_str(), Some("working" | "input_required")),
                "{task}"
            );
            std::thread::yield_now();
        }
    }

    /// Cancels a task whose call still runs.
    fn cancel(&self, id: &str) {
        let answer = self.ask("tasks/cancel", json!({"taskId": id}));
        assert!(answer.get("result").is_some(), "{answer}");
        assert_eq!(self.get(id).unwrap()["status"], "cancelled");
    }

    /// Returns the stream on which a task of the core form asks a question, and the question.
    fn open_question(&self, id: &str) -> (HttpResponse, Value) {
        let mut stream = self.send("tasks/result", json!({"taskId": id}));
        assert!(
            stream.status == 200 && stream.is_stream(),
            "{}",
            stream.response_message()
        );
        let question = stream.next_message().unwrap();
        assert_eq!(question["method"], "elicitation/create", "{question}");
        (stream, question)
    }

    /// Answers the question of a task, and returns the result of its tool.
    fn answer_question(&self, id: &str) -> Value {
        let answer = json!({"action": "accept", "content": {"name": id}});
        let Some(session) = &self.session else {
            let task = self.wait_for_status(id, "input_required");
            assert_eq!(
                task["inputRequests"]["who"]["method"], "elicitation/create",
                "{task}"
            );
            self.ask(
                "tasks/update",
                json!({"taskId": id, "inputResponses": {"who": answer}}),
            );
            return self.wait_for_status(id, "completed")["result"].take();
        };
        let (mut stream, question) = self.open_question(id);
        assert_eq!(
            session
                .post(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}))
                .status,
            202
        );
        stream.next_message().unwrap()["result"].take()
    }
}

/// Creates a folder with tools that wait for the gate. One of them asks a question afterwards.
fn folder_with_gate() -> Folder {
    let folder = Folder::with("hostile.wasm", hostile());
    let grant = |tool: &str| {
        format!(
            "{}[limits]\ntimeout = \"10m\"\n[tools.{tool}]\ntask_support = \"optional\"\n",
            folder.create_gate()
        )
    };
    folder.put("hostile.toml", grant("wait_for_gate"));
    folder.put("asker.toml", grant("ask"));
    folder.put("asker.wasm", asker());
    folder
}

/// Returns the arguments with which the tool waits for a file and then asks a question.
fn ask_after_file(file: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let form = json!({"key": "who", "kind": "form", "params": {"message": "Who?", "requestedSchema": schema}});
    json!({"steps": [{"wait": file}, {"ask": [form]}]})
}

fn ask_after_gate() -> Value {
    ask_after_file("/gate/open")
}

/// A task's id and its start time.
type Task = (String, Instant);

/// Creates `count` tasks, and returns their start times.
fn create_tasks(
    caller: &Caller<'_>,
    count: usize,
    name: &str,
    arguments: &Value,
    ttl: Option<u64>,
) -> Vec<Task> {
    (0..count)
        .map(|_| {
            let now = Instant::now();
            (caller.begin(name, arguments, ttl), now)
        })
        .collect()
}

/// Checks that another caller can neither get nor change the tasks.
fn assert_no_access(eve: &Caller<'_>, tasks: &[Task]) {
    for (id, _) in tasks.iter().step_by(10) {
        let last = if eve.session.is_some() {
            "tasks/result"
        } else {
            "tasks/update"
        };
        for method in ["tasks/get", "tasks/cancel", last] {
            let answer = eve.ask(
                method,
                json!({"taskId": id, "inputResponses": {"who": {"action": "decline"}}}),
            );
            let message = answer["error"]["message"]
                .as_str()
                .unwrap_or_else(|| panic!("{method}: {answer}"));
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
            assert!(message.starts_with("Unknown task: "), "{message}");
        }
    }
    if eve.session.is_some() {
        assert_eq!(
            eve.ask("tasks/list", json!({}))["result"]["tasks"],
            json!([])
        );
    } else {
        let ids: Vec<_> = tasks.iter().take(200).map(|(id, _)| id).collect();
        let mut stream = eve.send(
            "subscriptions/listen",
            json!({"notifications": {"taskIds": ids}}),
        );
        assert_eq!(
            stream.next_message().unwrap()["params"]["notifications"],
            json!({})
        );
    }
}

/// Waits until a task is forgotten. Checks that this happens after its time to live, and soon after
/// it.
fn wait_until_forgotten(caller: &Caller<'_>, (id, begun): &Task, ttl: Duration) {
    while caller.get(id).is_some() {
        assert!(
            begun.elapsed() < ttl + SLACK,
            "{id} is still known after {:?}",
            begun.elapsed()
        );
        std::thread::yield_now();
    }
    assert!(
        begun.elapsed() >= ttl,
        "{id} was forgotten after {:?}",
        begun.elapsed()
    );
}

/// Creates a thousand tasks, and applies every operation to them. Returns the maximum memory of the
/// server, and a task of each kind with the time for which it is retained.
fn run_thousand_tasks(
    folder: &Folder,
    server: &HttpServer,
    ada: &Caller<'_>,
    eve: &Caller<'_>,
) -> (u64, [(Task, Duration); 4]) {
    drop(std::fs::remove_file(folder.sibling_path("gate/open")));
    let none = json!({});
    let short = create_tasks(ada, 100, "wait_for_gate", &none, Some(10_000));
    let before = resident(server.pid());
    let kept = create_tasks(ada, 300, "wait_for_gate", &none, None);
    let cancelled = create_tasks(ada, 300, "wait_for_gate", &none, None);
    let asking = create_tasks(ada, 300, "ask", &ask_after_gate(), None);
    let most = resident(server.pid());
    let each = (most.saturating_sub(before) << 10) / 900;
    assert!(each < 32 << 10, "{each} bytes for each task");
    assert_no_access(eve, &kept);
    assert_no_access(eve, &asking);
    for (id, _) in &cancelled {
        ada.cancel(id);
    }
    folder.open_gate();
    let (withdrawn, asking) = asking.split_at(20);
    for (id, _) in withdrawn {
        if ada.session.is_none() {
            ada.wait_for_status(id, "input_required");
            ada.cancel(id);
            continue;
        }
        let (mut stream, question) = ada.open_question(id);
        ada.cancel(id);
        let messages: Vec<Value> = std::iter::from_fn(|| stream.next_message()).collect();
        let [withdrawal, answer] = &*messages else {
            panic!("{messages:?}")
        };
        assert_eq!(
            withdrawal["params"]["requestId"], question["id"],
            "{withdrawal}"
        );
        assert_eq!(
            answer["error"]["message"],
            "The task was cancelled: it has no result."
        );
    }
    for (id, _) in asking {
        let result = ada.answer_question(id);
        let said = result["structuredContent"]["said"][1]
            .as_str()
            .unwrap_or_else(|| panic!("{result}"));
        assert_eq!(
            serde_json::from_str::<Value>(said).unwrap()["content"]["name"],
            **id
        );
    }
    for (id, _) in &kept {
        ada.wait_for_status(id, "completed");
    }
    for (id, _) in withdrawn.iter().chain(&cancelled) {
        assert_eq!(ada.get(id).unwrap()["status"], "cancelled", "for ever");
    }
    let most = most.max(resident(server.pid()));
    let ttl = Duration::from_secs(TTL);
    let least = if ada.session.is_some() {
        Duration::from_secs(10)
    } else {
        ttl
    };
    let [short, kept, cancelled, asked] =
        [&short[0], &kept[0], &cancelled[299], &asking[279]].map(Clone::clone);
    (
        most,
        [(short, least), (kept, ttl), (cancelled, ttl), (asked, ttl)],
    )
}

/// Stops the server while tasks run and ask, and while clients wait for them.
fn stop_during_tasks(folder: &Folder, mut server: HttpServer, revision: &str, token: &str) {
    std::fs::remove_file(folder.sibling_path("gate/open")).unwrap();
    let mut streams = Vec::new();
    {
        let ada = Caller::new(&server, revision, token);
        // This task asks before the others reach the limit of running calls of a client.
        let asking = ada.begin("ask", &ask_after_gate(), None);
        folder.open_gate();
        ada.wait_for_status(&asking, "input_required");
        let running: Vec<_> = (0..50)
            .map(|_| ada.begin("ask", &ask_after_file("/gate/never"), None))
            .collect();
        if revision == CORE {
            streams.push(ada.open_question(&asking).0);
        } else {
            let mut stream = ada.send(
                "subscriptions/listen",
                json!({"notifications": {"taskIds": running}}),
            );
            let acknowledged = stream.next_message().unwrap();
            assert_eq!(
                acknowledged["params"]["notifications"]["taskIds"]
                    .as_array()
                    .unwrap()
                    .len(),
                50
            );
            streams.push(stream);
        }
    }
    let begun = Instant::now();
    assert_eq!(server.stop(), Some(0), "{}", server.log.text());
    assert!(begun.elapsed() < SLACK, "it took {:?}", begun.elapsed());
    for mut stream in streams {
        let messages: Vec<Value> = std::iter::from_fn(|| stream.next_message()).collect();
        let (last, before) = messages.split_last().expect("a response");
        if revision == CORE {
            assert_eq!(
                last["error"]["message"], "The server is shutting down.",
                "{messages:?}"
            );
        } else {
            let id = &last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
            assert_eq!(*id, 1, "{messages:?}");
        }
        let allowed = ["notifications/tasks", "notifications/cancelled"];
        assert!(
            before
                .iter()
                .all(|message| allowed.contains(&message["method"].as_str().unwrap())),
            "{messages:?}"
        );
    }
}

fn attack(revision: &str) {
    let folder = folder_with_gate();
    let [(ada, first), (eve, second)] = [token("ada", ""), token("eve", "")];
    let server = HttpServer::start_with_config(&folder, &format!("{CONFIG}{first}{second}"))
        .wait_until_ready();
    {
        let [ada, eve] = [&ada, &eve].map(|token| Caller::new(&server, revision, token));
        let (most, tasks) = run_thousand_tasks(&folder, &server, &ada, &eve);
        for (task, ttl) in &tasks {
            wait_until_forgotten(&ada, task, *ttl);
        }
        // Finished tasks leave nothing behind.
        let (again, _) = run_thousand_tasks(&folder, &server, &ada, &eve);
        assert!(again < most + (8 << 10), "{most} KiB, and then {again} KiB");
    }
    stop_during_tasks(&folder, server, revision, &ada);
}

#[test]
fn a_thousand_tasks_that_clients_ask_for() {
    attack(CORE);
}

#[test]
fn a_thousand_tasks_of_the_extension() {
    attack(EXTENSION);
}
