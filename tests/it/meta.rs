//! Members of `_meta` that are reserved for the protocol and the server: no plugin sets one, in any
//! place that allows a `_meta`. The guest `server` tries it in every place.

use serde_json::{Map, Value, json};

use crate::support::{Folder, HttpServer, HttpSession, MODERN, own_server};

/// A client of one revision that can fill in forms.
struct Client<'a> {
    server: &'a HttpServer,
    session: Option<HttpSession<'a>>,
}

impl<'a> Client<'a> {
    fn new(server: &'a HttpServer, revision: &str) -> Self {
        let session = (revision != MODERN)
            .then(|| server.start_session_with_capabilities(revision, capabilities(), &[]));
        Self { server, session }
    }

    /// Returns the first message that answers a request.
    fn first_message(&self, method: &str, mut params: Value) -> Value {
        let mut response = if let Some(session) = &self.session {
            session.request(method, params)
        } else {
            params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": capabilities()});
            self.server.post_stateless_in(MODERN, method, params, &[])
        };
        if response.is_stream() {
            response.next_message().unwrap()
        } else {
            response.response_message()
        }
    }

    fn result(&self, method: &str, params: Value) -> Value {
        let mut answer = self.first_message(method, params);
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].take()
    }
}

fn capabilities() -> Value {
    json!({"elicitation": {"form": {}}})
}

/// Returns every `_meta` in a value.
fn collect_metas(value: &Value) -> Vec<&Map<String, Value>> {
    match value {
        Value::Array(items) => items.iter().flat_map(collect_metas).collect(),
        Value::Object(members) => {
            let own = members.get("_meta").map(|meta| meta.as_object().unwrap());
            own.into_iter()
                .chain(members.values().flat_map(collect_metas))
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Asserts that each `_meta` has only members that the plugin may set or that the server sets.
fn assert_no_reserved_members(result: &Value) {
    for meta in collect_metas(result) {
        for (key, value) in meta {
            let fine = match key.as_str() {
                "own" => value == &json!(true),
                "square" => value.is_number(),
                "dev.toolbay/usage" => value["fuel"].is_number(),
                "io.modelcontextprotocol/serverInfo" => value["name"] == "toolbay",
                "io.modelcontextprotocol/related-task" => value["taskId"].is_string(),
                _ => false,
            };
            assert!(fine, "{key}: {value} in {result}");
        }
    }
}

fn start_server() -> HttpServer {
    let folder = Folder::with("server.wasm", own_server("server"));
    folder.put("server.toml", "[tools.add]\ntask_support = \"optional\"\n");
    HttpServer::start(&folder).wait_until_ready()
}

#[test]
fn no_plugin_sets_a_reserved_member_in_any_revision() {
    let server = start_server();
    let mut revisions = server.session_revisions();
    revisions.push(MODERN.to_owned());
    for revision in &revisions {
        let client = Client::new(&server, revision);
        let sum = client.result(
            "tools/call",
            json!({"name": "add", "arguments": {"a": 1, "b": 2}}),
        );
        assert_eq!(sum["_meta"]["own"], true, "{revision}");
        let greeting = client.result(
            "prompts/get",
            json!({"name": "greet", "arguments": {"who": "Ada"}}),
        );
        assert_eq!(greeting["_meta"]["own"], true, "{revision}");
        let read = client.result("resources/read", json!({"uri": "demo://motto"}));
        let tools = client.result("tools/list", json!({}));
        let prompts = client.result("prompts/list", json!({}));
        let resources = client.result("resources/list", json!({}));
        let templates = client.result("resources/templates/list", json!({}));
        let blocks = client.result("tools/call", json!({"name": "blocks"}));
        for result in [
            &sum, &greeting, &read, &tools, &prompts, &resources, &templates, &blocks,
        ] {
            assert_no_reserved_members(result);
        }
        // Revisions with a `_meta` in this place get its other members.
        if revision.as_str() >= "2025-06-18" {
            let add = tools["tools"]
                .as_array()
                .unwrap()
                .iter()
                .find(|tool| tool["name"] == "add")
                .unwrap();
            for item in [
                add,
                &prompts["prompts"][0],
                &resources["resources"][0],
                &templates["resourceTemplates"][0],
                &read["contents"][0],
            ] {
                assert_eq!(item["_meta"], json!({"own": true}), "{revision}");
            }
        }
    }
}

#[test]
fn a_question_of_a_plugin_has_no_reserved_member_and_requests_no_task() {
    let server = start_server();
    let revisions = server
        .session_revisions()
        .into_iter()
        .filter(|revision| revision.as_str() >= "2025-06-18");
    for revision in revisions.chain([MODERN.to_owned()]) {
        let first =
            Client::new(&server, &revision).first_message("tools/call", json!({"name": "ask"}));
        let params = match first.get("method") {
            Some(method) => {
                assert_eq!(method, "elicitation/create", "{revision}");
                &first["params"]
            }
            None => &first["result"]["inputRequests"]["answer"]["params"],
        };
        assert_eq!(params["message"], "Which name?", "{revision}: {first}");
        assert_eq!(params["_meta"], json!({"own": true}), "{revision}");
        assert_eq!(params.get("task"), None, "{revision}");
    }
}

#[test]
fn a_task_belongs_to_the_server() {
    let server = start_server();
    let session = server.start_session("2025-11-25");
    let call = json!({"name": "add", "arguments": {"a": 1, "b": 2}, "task": {}});
    let created = session.result("tools/call", call);
    let id = &created["task"]["taskId"];
    let result = session.result("tasks/result", json!({"taskId": id}));
    assert_no_reserved_members(&result);
    assert_eq!(
        result["_meta"]["io.modelcontextprotocol/related-task"],
        json!({"taskId": id})
    );
    assert_eq!(result["_meta"]["own"], true);
}
