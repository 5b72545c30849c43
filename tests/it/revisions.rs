//! Generates the page of the book about revisions. The real server produces each cell.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};

use crate::support::{
    Folder, HttpResponse, HttpServer, HttpSession, LIST_CHANGED, MODERN, TinyComponent, TinyTool,
    asker, conformance, initialize,
};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/revisions.md");

const INTRODUCTION: &str = "\
# Revisions

What a client of each MCP revision gets from the same server with the same plugins. A test obtains every cell of this table
from the real server, over HTTP. The same code serves standard input and output.

";

/// A client of one revision.
struct Peer<'a> {
    server: &'a HttpServer,
    revision: &'a str,
    session: Option<HttpSession<'a>>,
}

impl Peer<'_> {
    fn ask(&self, method: &str, params: Value) -> HttpResponse {
        match &self.session {
            Some(session) => session.request(method, params),
            None => self
                .server
                .post_stateless_in(self.revision, method, params, &[]),
        }
    }

    fn answer(&self, method: &str, params: Value) -> Value {
        self.ask(method, params).response_message()
    }

    /// Starts a session of a client that supports tasks and can answer everything; `None` if the
    /// revision has no sessions.
    fn session_for_tasks(&self) -> Option<HttpSession<'_>> {
        self.session.as_ref().map(|_| {
            self.server
                .start_session_with_capabilities(self.revision, for_tasks(), &[])
        })
    }

    /// Returns the response to a request of such a client.
    fn for_tasks(&self, method: &str, params: Value) -> Value {
        self.for_tasks_in(self.session_for_tasks().as_ref(), method, params)
    }

    /// Like [`Self::for_tasks`], in this session.
    fn for_tasks_in(
        &self,
        session: Option<&HttpSession<'_>>,
        method: &str,
        mut params: Value,
    ) -> Value {
        if let Some(session) = session {
            return session.request(method, params).response_message();
        }
        params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": for_tasks()});
        self.answer(method, params)
    }

    /// Calls a tool as such a client. Returns when the server creates a task, and the task's id, if
    /// the result is a task.
    fn task(&self, name: &str, arguments: Value) -> Option<(&'static str, String)> {
        let call = json!({"name": name, "arguments": arguments, "task": {}});
        let result = self.for_tasks("tools/call", call)["result"].take();
        let id = |task: &Value| task["taskId"].as_str().unwrap().to_owned();
        if let Some(task) = result.get("task") {
            return Some(("if the client wants one", id(task)));
        }
        (result["resultType"] == "task").then(|| ("if it takes long", id(&result)))
    }

    /// Waits until a task ends or needs input, and returns its status.
    fn wait_for_task(&self, id: &str) -> String {
        let session = self.session_for_tasks();
        loop {
            let task =
                self.for_tasks_in(session.as_ref(), "tasks/get", json!({"taskId": id}))["result"]
                    .take();
            let status = task["status"].as_str().unwrap();
            if status != "working" {
                return status.to_owned();
            }
            std::thread::yield_now();
        }
    }

    fn tool(&self, name: &str) -> Value {
        let listed = self.answer("tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        tools
            .iter()
            .find(|tool| tool["name"] == name)
            .unwrap()
            .clone()
    }

    fn call(&self, name: &str) -> Value {
        self.answer("tools/call", json!({"name": name}))["result"].take()
    }
}

/// A row: its name, and the behavior that a client observes.
type Row = (&'static str, fn(&Peer<'_>) -> String);

const ROWS: [Row; 43] = [
    ("sessions, with `initialize`", |peer| {
        let answer = peer
            .server
            .post(&[], initialize(peer.revision).to_string().as_bytes())
            .response_message();
        yes_or_no(answer["result"]["protocolVersion"] == peer.revision)
    }),
    ("`server/discover`", |peer| {
        has_member(
            &peer.answer("server/discover", json!({})),
            "/result/supportedVersions",
        )
    }),
    ("JSON-RPC batches", |peer| {
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        yes_or_no(
            peer.session
                .as_ref()
                .is_some_and(|session| session.post(&json!([ping])).response_message().is_array()),
        )
    }),
    ("`ping`", |peer| {
        has_member(&peer.answer("ping", json!({})), "/result")
    }),
    ("a tool's `annotations`", |peer| {
        has_member(&peer.tool("eloquent"), "/annotations")
    }),
    ("a tool's `title`", |peer| {
        has_member(&peer.tool("eloquent"), "/title")
    }),
    ("a tool's `icons`", |peer| {
        has_member(&peer.tool("eloquent"), "/icons")
    }),
    ("a tool's `_meta`", |peer| {
        has_member(&peer.tool("eloquent"), "/_meta")
    }),
    ("`outputSchema` of an object", |peer| {
        has_member(&peer.tool("eloquent"), "/outputSchema")
    }),
    ("`outputSchema` of any other type", |peer| {
        has_member(&peer.tool("list"), "/outputSchema")
    }),
    ("structured content that is an object", |peer| {
        has_member(&peer.call("eloquent"), "/structuredContent")
    }),
    ("structured content of any other type", |peer| {
        has_member(&peer.call("list"), "/structuredContent")
    }),
    ("an image", |peer| kind(&peer.call("test_image_content"))),
    ("audio", |peer| kind(&peer.call("test_audio_content"))),
    ("an embedded resource", |peer| {
        kind(&peer.call("test_embedded_resource"))
    }),
    ("arguments that do not match the schema", |peer| {
        let answer = peer.answer("tools/call", json!({"name": "strict"}));
        if answer["result"]["isError"] == true {
            "`isError`".into()
        } else {
            format!("`{}`", answer["error"]["code"])
        }
    }),
    ("prompts, resources and resource templates", |peer| {
        let lists = ["prompts/list", "resources/list", "resources/templates/list"];
        yes_or_no(
            lists
                .iter()
                .all(|list| peer.answer(list, json!({})).get("result").is_some()),
        )
    }),
    ("skills", |peer| {
        has_member(&peer.answer("skills/list", json!({})), "/result/skills")
    }),
    ("a resource that does not exist", |peer| {
        format!(
            "`{}`",
            peer.answer("resources/read", json!({"uri": "test://nothing"}))["error"]["code"]
        )
    }),
    (
        "`resources/subscribe` and `resources/unsubscribe`",
        |peer| {
            has_member(
                &peer.answer("resources/unsubscribe", json!({"uri": "test://nothing"})),
                "/result",
            )
        },
    ),
    ("a resource that changes", |peer| {
        let uri = "asker://names/0";
        let mut stream = if let Some(session) = &peer.session {
            drop(
                session
                    .request("resources/subscribe", json!({"uri": uri}))
                    .response_message(),
            );
            session.open_stream()
        } else {
            let wanted = json!({"notifications": {"resourceSubscriptions": [uri]}});
            peer.server
                .post_stateless_in(peer.revision, "subscriptions/listen", wanted, &[])
        };
        drop(peer.answer(
            "tools/call",
            json!({"name": "ask", "arguments": {"steps": [{"update": uri}]}}),
        ));
        loop {
            if stream.next_message().unwrap()["method"] == "notifications/resources/updated" {
                return if peer.session.is_some() {
                    "on the session's stream"
                } else {
                    "on a subscription"
                }
                .into();
            }
        }
    }),
    ("a form for the user", |peer| {
        tool_question_delivery(peer, form(json!({"type": "string"})))
    }),
    ("a form with several choices of one field", |peer| {
        tool_question_delivery(
            peer,
            form(json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}})),
        )
    }),
    ("a page for the user to visit", |peer| {
        tool_question_delivery(
            peer,
            json!({"kind": "url", "params": {"message": "Pay.", "url": "https://shop.example/"}}),
        )
    }),
    ("a text by the client's model", |peer| {
        tool_question_delivery(peer, sampling(None))
    }),
    ("a text by the client's model, with tools", |peer| {
        tool_question_delivery(
            peer,
            sampling(Some(
                json!([{"name": "look", "inputSchema": {"type": "object"}}]),
            )),
        )
    }),
    ("the folders of the user", |peer| {
        tool_question_delivery(peer, json!({"kind": "roots"}))
    }),
    ("a question of a prompt or a resource", |peer| {
        question_delivery(peer, "prompts/get", json!({"name": "about"}))
    }),
    ("completion of arguments", |peer| {
        let reference = json!({"type": "ref/prompt", "name": "nobody"});
        let argument = json!({"name": "a", "value": ""});
        let answer = peer.answer(
            "completion/complete",
            json!({"ref": reference, "argument": argument}),
        );
        yes_or_no(answer["error"]["code"] == -32602)
    }),
    ("the capability `completions`", |peer| {
        let answer = match &peer.session {
            Some(_) => peer
                .server
                .post(&[], initialize(peer.revision).to_string().as_bytes())
                .response_message(),
            None => peer.answer("server/discover", json!({})),
        };
        has_member(&answer, "/result/capabilities/completions")
    }),
    ("progress", |peer| {
        let call = json!({"name": "test_tool_with_progress", "_meta": {"progressToken": 1}});
        let messages = peer.ask("tools/call", call).messages();
        yes_or_no(
            messages
                .iter()
                .filter(|message| message["method"] == "notifications/progress")
                .count()
                == 3,
        )
    }),
    ("a call as a task", |peer| {
        let task = peer.task("slow_compute", json!({"seconds": 0.8}));
        task.map_or("–", |(how, _)| how).to_owned()
    }),
    (
        "a tool that runs only as a task, for a client that takes none",
        |peer| {
            format!(
                "`{}`",
                peer.answer("tools/call", json!({"name": "failing_job"}))["error"]["code"]
            )
        },
    ),
    ("the result of a task", |peer| {
        let Some((_, id)) = peer.task("slow_compute", json!({"seconds": 0.8})) else {
            return "–".into();
        };
        let answer = peer.for_tasks("tasks/result", json!({"taskId": id}));
        if answer.get("result").is_some() {
            return "`tasks/result`".into();
        }
        assert_eq!(peer.wait_for_task(&id), "completed");
        "`tasks/get`".into()
    }),
    ("a question of a task", |peer| {
        if peer.task("slow_compute", json!({"seconds": 0.8})).is_none() {
            return "–".into();
        }
        let Some((_, id)) = peer.task("confirm_delete", json!({"filename": "a"})) else {
            return "–".into();
        };
        assert_eq!(peer.wait_for_task(&id), "input_required");
        let Some(session) = peer.session_for_tasks() else {
            return "`tasks/get`".into();
        };
        let question = session
            .request("tasks/result", json!({"taskId": id}))
            .next_message()
            .unwrap();
        assert_eq!(question["method"], "elicitation/create");
        "on the stream of `tasks/result`".into()
    }),
    ("`tasks/list`, for callers that authenticate", |peer| {
        // Without a token, the error names the missing part.
        let error = peer.for_tasks("tasks/list", json!({}))["error"].take();
        yes_or_no(error["message"].as_str().unwrap().contains("authenticate"))
    }),
    ("`logging/setLevel`", |peer| {
        has_member(
            &peer.answer("logging/setLevel", json!({"level": "info"})),
            "/result",
        )
    }),
    ("log lines by default", |peer| {
        yes_or_no(logged(peer, json!({})))
    }),
    ("log lines requested in a request", |peer| {
        drop(peer.answer("logging/setLevel", json!({"level": "emergency"})));
        yes_or_no(logged(
            peer,
            json!({"io.modelcontextprotocol/logLevel": "info"}),
        ))
    }),
    ("`list_changed`", |peer| {
        let folder = peer.server.folder();
        let newcomer = format!("of-{}", peer.revision);
        let change = || {
            folder.put(
                &format!("{newcomer}.wasm"),
                TinyComponent::new(&[&newcomer]).build(),
            );
        };
        let wanted = json!({"notifications": {"toolsListChanged": true}});
        let mut stream = match &peer.session {
            Some(session) => session.open_stream(),
            None => {
                peer.server
                    .post_stateless_in(peer.revision, "subscriptions/listen", wanted, &[])
            }
        };
        change();
        loop {
            if stream.next_message().unwrap()["method"] == LIST_CHANGED {
                return if peer.session.is_some() {
                    "on the session's stream"
                } else {
                    "on a subscription"
                }
                .into();
            }
        }
    }),
    ("`resultType`, and `serverInfo` in `_meta`", |peer| {
        let result = peer.call("eloquent");
        let server = result
            .pointer("/_meta/io.modelcontextprotocol~1serverInfo")
            .is_some();
        yes_or_no(result.get("resultType").is_some() && server)
    }),
    ("`ttlMs` and `cacheScope`", |peer| {
        let listed = peer.answer("tools/list", json!({}));
        yes_or_no(
            listed["result"].get("ttlMs").is_some() && listed["result"].get("cacheScope").is_some(),
        )
    }),
    ("an unknown method", |peer| {
        let response = peer.ask("no/such", json!({}));
        let status = response.status;
        format!(
            "{status}, `{}`",
            response.response_message()["error"]["code"]
        )
    }),
];

/// The capabilities of a client that supports tasks and can answer everything.
fn for_tasks() -> Value {
    let mut all = all_capabilities();
    all["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
    all
}

fn all_capabilities() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}})
}

fn yes_or_no(yes: bool) -> String {
    if yes { "yes" } else { "–" }.to_owned()
}

fn has_member(value: &Value, pointer: &str) -> String {
    yes_or_no(value.pointer(pointer).is_some())
}

fn kind(result: &Value) -> String {
    format!("`{}`", result["content"][0]["type"].as_str().unwrap())
}

/// Returns a question with a form of one field.
fn form(field: Value) -> Value {
    let schema = json!({"type": "object", "properties": {"a": field}});
    json!({"kind": "form", "params": {"message": "Which?", "requestedSchema": schema}})
}

fn sampling(tools: Option<Value>) -> Value {
    let message = json!({"role": "user", "content": {"type": "text", "text": "A haiku."}});
    let mut params = json!({"messages": [message], "maxTokens": 50});
    if let Some(tools) = tools {
        params["tools"] = tools;
    }
    json!({"kind": "sampling", "params": params})
}

/// Returns how a client that can answer everything receives a question of a tool.
fn tool_question_delivery(peer: &Peer<'_>, mut question: Value) -> String {
    question["key"] = "key".into();
    question_delivery(
        peer,
        "tools/call",
        json!({"name": "ask", "arguments": {"steps": [{"ask": [question]}]}}),
    )
}

/// Returns how a client that can answer everything receives the question of a request.
fn question_delivery(peer: &Peer<'_>, method: &str, mut params: Value) -> String {
    let all = all_capabilities();
    if peer.session.is_none() {
        params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": all});
        let answer = peer.answer(method, params);
        return if answer["result"]["resultType"] == "input_required" {
            "in the result"
        } else {
            "–"
        }
        .into();
    }
    let session = peer
        .server
        .start_session_with_capabilities(peer.revision, all, &[]);
    let mut response = session.request(method, params);
    if !response.is_stream() {
        return "–".into();
    }
    // Closing the stream cancels the request.
    let first = response.next_message().unwrap();
    if first.get("method").is_some() && first.get("id").is_some() {
        "as a request"
    } else {
        "–"
    }
    .into()
}

fn logged(peer: &Peer<'_>, meta: Value) -> bool {
    let messages = peer
        .ask(
            "tools/call",
            json!({"name": "test_logging_tool", "_meta": meta}),
        )
        .messages();
    messages
        .iter()
        .any(|message| message["method"] == "notifications/message")
}

fn plugins() -> Folder {
    let eloquent = TinyTool {
        title: Some("All of it".into()),
        output: Some(r#"{"type":"object"}"#.into()),
        read_only: Some(true),
        icon: Some("data:image/png;base64,AAAA".into()),
        meta: Some(r#"{"example.com/since":3}"#.into()),
        ..TinyTool::new("eloquent")
    };
    let strict = TinyTool {
        input: r#"{"type":"object","required":["n"]}"#.into(),
        ..TinyTool::new("strict")
    };
    let list = TinyTool {
        output: Some(r#"{"type":"array"}"#.into()),
        ..TinyTool::new("list")
    };
    let folder = Folder::with("conformance.wasm", conformance());
    folder.put(
        "object.wasm",
        TinyComponent::with_tools(vec![eloquent, strict])
            .with_structured(r#"{"n":1}"#)
            .build(),
    );
    folder.put("asker.wasm", asker());
    folder.put(
        "list.wasm",
        TinyComponent::with_tools(vec![list])
            .with_structured("[1]")
            .build(),
    );
    folder
}

#[test]
fn the_book_matches_what_every_revision_gets() {
    let server = HttpServer::start(&plugins()).wait_until_ready();
    let discovered = server.result("server/discover", json!({}));
    let newest_first = discovered["supportedVersions"].as_array().unwrap();
    let revisions: Vec<&str> = newest_first
        .iter()
        .rev()
        .map(|revision| revision.as_str().unwrap())
        .collect();
    let peer = |&revision| {
        let session = (revision < MODERN).then(|| server.start_session(revision));
        Peer {
            server: &server,
            revision,
            session,
        }
    };
    let peers: Vec<Peer<'_>> = revisions.iter().map(peer).collect();
    let mut page = INTRODUCTION.to_owned();
    let _ = writeln!(
        page,
        "| | {} |\n| --- |{}",
        revisions.join(" | "),
        " --- |".repeat(revisions.len())
    );
    for (what, find) in ROWS {
        let cells: Vec<String> = peers.iter().map(find).collect();
        let _ = writeln!(page, "| {what} | {} |", cells.join(" | "));
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(PAGE, page).unwrap();
        return;
    }
    let found = fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        found == page,
        "docs/src/revisions.md is stale: UPDATE_DOCS=1 cargo test -p toolbay --test it revisions\n{page}"
    );
}
