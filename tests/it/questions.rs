//! Questions of plugins to their callers, in every revision: the requests that a client gets, the
//! answers that the plugin gets, and the effects on the call.

mod effects;
mod replayed;
mod states;
mod waiting;

use serde_json::{Value, json};

use crate::requests::Site;
use crate::support::{Folder, HttpServer, MODERN, StdioServer, asker, result_text};

/// The capabilities of a client that can answer every kind of question.
fn all_capabilities() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {"listChanged": true}})
}

/// Creates a folder with the plugin that asks questions.
fn folder(grant: &str) -> Folder {
    let folder = Folder::with("asker.wasm", asker());
    folder.put("asker.toml", grant);
    folder
}

/// Starts a server over HTTP, and waits until the plugin is loaded.
fn start_http(folder: &Folder) -> HttpServer {
    start_http_with_config(folder, "")
}

/// Like [`start_http`], with a configuration.
fn start_http_with_config(folder: &toolbay_testkit::TestFolder, config: &str) -> HttpServer {
    let server = HttpServer::start_with_config(folder, config);
    while !server.result("tools/list", json!({}))["tools"]
        .as_array()
        .unwrap()
        .iter()
        .any(|tool| tool["name"] == "ask")
    {
        std::thread::yield_now();
    }
    server
}

/// Starts a session with a client that has these capabilities.
fn session(folder: &Folder, revision: &str, capabilities: &Value) -> StdioServer {
    let mut server = StdioServer::spawn(folder);
    let client = json!({"name": "test", "version": "1"});
    let hello =
        json!({"protocolVersion": revision, "capabilities": capabilities, "clientInfo": client});
    server.result("initialize", hello);
    server.notify("notifications/initialized", json!({}));
    server.wait_for_tool("ask");
    server
}

/// Returns the arguments of a call with these steps.
fn steps(steps: Value) -> Value {
    json!({"name": "ask", "arguments": {"steps": steps}})
}

/// Returns a form question for a name, under a key.
fn form(key: &str) -> Value {
    let schema =
        json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    json!({"key": key, "kind": "form", "params": {"message": "Which name?", "requestedSchema": schema}})
}

fn accept_answer(name: &str) -> Value {
    json!({"action": "accept", "content": {"name": name}})
}

/// Returns the output of each step.
fn step_outputs(result: &Value) -> Vec<String> {
    let said = result["structuredContent"]["said"]
        .as_array()
        .unwrap_or_else(|| panic!("{result}"));
    said.iter()
        .map(|one| one.as_str().unwrap().to_owned())
        .collect()
}

/// Sends a stateless request from a client with these capabilities. Returns the response.
fn send_stateless(
    server: &HttpServer,
    method: &str,
    mut params: Value,
    capabilities: &Value,
) -> Value {
    params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": capabilities});
    server
        .post_stateless(method, params, &[])
        .response_message()
}

/// Returns the parameters of a retried request, with the answers to the questions in its result.
fn retry_params(
    params: &Value,
    result: &Value,
    answer: &mut dyn FnMut(&str, &Value) -> Value,
) -> Value {
    let mut params = params.clone();
    let asked = result["inputRequests"]
        .as_object()
        .unwrap_or_else(|| panic!("{result}"));
    let answers = asked
        .iter()
        .map(|(key, request)| (key.clone(), answer(key, request)));
    params["inputResponses"] = Value::Object(answers.collect());
    params["requestState"] = result["requestState"].clone();
    params
}

/// Sends a stateless request, and answers questions until there is a final result. Returns the
/// result and the number of rounds.
fn call_and_answer(
    server: &HttpServer,
    method: &str,
    params: &Value,
    answer: &mut dyn FnMut(&str, &Value) -> Value,
) -> (Value, usize) {
    let mut sent = params.clone();
    for rounds in 0.. {
        let mut response = send_stateless(server, method, sent, &all_capabilities());
        let result = response["result"].take();
        if result["resultType"] != "input_required" {
            assert!(!result.is_null(), "{response}");
            return (result, rounds);
        }
        sent = retry_params(params, &result, answer);
    }
    unreachable!()
}

/// Answers the questions of a call in a session until the call has a response.
fn answer_in_session(
    server: &mut StdioServer,
    id: u64,
    answer: &mut dyn FnMut(&Value) -> Value,
) -> Value {
    loop {
        let message = server.wait_for("a question or the response", |message| {
            message["id"] == id && message.get("method").is_none()
                || message.get("method").is_some() && message.get("id").is_some()
        });
        if message.get("method").is_none() {
            return message;
        }
        let mut response = answer(&message);
        response["jsonrpc"] = "2.0".into();
        response["id"] = message["id"].clone();
        server.send(response.to_string());
    }
}

#[test]
fn a_form_is_accepted_declined_cancelled_and_rejected_in_every_revision_that_has_forms() {
    let folder = folder("");
    for revision in ["2025-06-18", "2025-11-25"] {
        let mut server = session(&folder, revision, &json!({"elicitation": {}}));
        for (response, expected) in [
            (
                json!({"result": accept_answer("Ada")}),
                r#"{"action":"accept","content":{"name":"Ada"}}"#,
            ),
            (
                json!({"result": {"action": "decline"}}),
                r#"{"action":"decline"}"#,
            ),
            (
                json!({"result": {"action": "cancel"}}),
                r#"{"action":"cancel"}"#,
            ),
            (
                json!({"error": {"code": -1, "message": "no"}}),
                r#"{"action":"decline"}"#,
            ),
        ] {
            let id = server.request("tools/call", steps(json!([{"ask": [form("who")]}])));
            let mut asked = Vec::new();
            let answer = answer_in_session(&mut server, id, &mut |question| {
                asked.push(question.clone());
                response.clone()
            });
            assert_eq!(step_outputs(&answer["result"]), [expected], "{revision}");
            let [question] = &*asked else {
                panic!("{asked:?}")
            };
            assert_eq!(question["method"], "elicitation/create");
            let params = &question["params"];
            assert_eq!(params["message"], "Which name?");
            assert_eq!(params["requestedSchema"]["required"], json!(["name"]));
            assert_eq!(
                params.get("mode").is_some(),
                revision == "2025-11-25",
                "{params}"
            );
        }
    }
    let server = start_http(&folder);
    for (answer, expected) in [
        (
            accept_answer("Ada"),
            r#"{"action":"accept","content":{"name":"Ada"}}"#,
        ),
        (json!({"action": "decline"}), r#"{"action":"decline"}"#),
        (json!({"action": "cancel"}), r#"{"action":"cancel"}"#),
    ] {
        let mut asked = Vec::new();
        let call = steps(json!([{"ask": [form("who")]}]));
        let (result, rounds) =
            call_and_answer(&server, "tools/call", &call, &mut |key, request| {
                asked.push((key.to_owned(), request.clone()));
                answer.clone()
            });
        assert_eq!(
            (step_outputs(&result), rounds),
            (vec![expected.to_owned()], 1)
        );
        let [(key, request)] = &*asked else {
            panic!("{asked:?}")
        };
        assert_eq!(
            (key.as_str(), &request["method"]),
            ("who", &json!("elicitation/create"))
        );
        assert_eq!(request["params"]["mode"], "form");
    }
}

#[test]
fn sampling_and_roots_are_available_in_every_revision() {
    let folder = folder("");
    let params = json!({"messages": [{"role": "user", "content": {"type": "text", "text": "A haiku."}}], "maxTokens": 50});
    let sampled =
        json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Drip."}});
    let roots = json!({"roots": [{"uri": "file:///home/ada", "name": "home"}]});
    let call = steps(json!([
        {"ask": [{"key": "poem", "kind": "sampling", "params": params}]},
        {"ask": [{"key": "folders", "kind": "roots"}]},
    ]));
    let expected = [sampled.to_string(), roots.to_string()];
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut server = session(&folder, revision, &json!({"sampling": {}, "roots": {}}));
        let id = server.request("tools/call", call.clone());
        let mut methods = Vec::new();
        let answer = answer_in_session(&mut server, id, &mut |question| {
            methods.push(question["method"].as_str().unwrap().to_owned());
            let is_sampling = question["method"] == "sampling/createMessage";
            assert_eq!(question.get("params").is_some(), is_sampling, "{question}");
            json!({"result": if is_sampling { &sampled } else { &roots }})
        });
        assert_eq!(
            methods,
            ["sampling/createMessage", "roots/list"],
            "{revision}"
        );
        let words: Value = serde_json::from_str(&result_text(&answer["result"])).unwrap();
        assert_eq!(words["said"], json!(expected), "{revision}");
    }
    let server = start_http(&folder);
    let (result, rounds) = call_and_answer(&server, "tools/call", &call, &mut |key, request| {
        let method = if key == "poem" {
            "sampling/createMessage"
        } else {
            "roots/list"
        };
        assert_eq!(request["method"], method);
        if key == "poem" {
            sampled.clone()
        } else {
            roots.clone()
        }
    });
    assert_eq!((step_outputs(&result), rounds), (expected.to_vec(), 2));
}

#[test]
fn a_plugin_can_ask_the_user_to_visit_a_url() {
    let folder = folder("");
    let visit = |url: &str| json!([{"ask": [{"key": "pay", "kind": "url", "params": {"message": "Pay.", "url": url}}]}]);
    let mut server = session(&folder, "2025-11-25", &all_capabilities());
    let id = server.request("tools/call", steps(visit("https://shop.example/pay")));
    let answer = answer_in_session(&mut server, id, &mut |question| {
        let params = &question["params"];
        assert_eq!(
            (&params["mode"], &params["url"]),
            (&json!("url"), &json!("https://shop.example/pay"))
        );
        assert!(
            params["elicitationId"]
                .as_str()
                .is_some_and(|id| id.len() >= 16),
            "{params}"
        );
        json!({"result": {"action": "accept"}})
    });
    assert_eq!(step_outputs(&answer["result"]), [r#"{"action":"accept"}"#]);
    let server = start_http(&folder);
    let (result, _) = call_and_answer(
        &server,
        "tools/call",
        &steps(visit("https://shop.example/pay")),
        &mut |_, request| {
            assert_eq!(request["params"]["url"], "https://shop.example/pay");
            json!({"action": "decline"})
        },
    );
    assert_eq!(step_outputs(&result), [r#"{"action":"decline"}"#]);
    let refused = send_stateless(
        &server,
        "tools/call",
        steps(visit("http://shop.example/")),
        &all_capabilities(),
    );
    assert!(
        result_text(&refused["result"]).contains("`url` must begin with https://"),
        "{refused}"
    );
}

#[test]
fn an_error_names_the_capability_that_a_required_question_needs() {
    let folder = folder("");
    let required = steps(json!([{"ask": [form("who")]}]));
    let mut optional = form("who");
    optional["optional"] = true.into();
    let optional = steps(json!([{"ask": [optional]}]));
    let server = start_http(&folder);
    for lacking in [
        json!({}),
        json!({"sampling": {}}),
        json!({"elicitation": {"url": {}}}),
    ] {
        let response = send_stateless(&server, "tools/call", required.clone(), &lacking);
        assert_eq!(response["error"]["code"], -32_021, "{response}");
        assert_eq!(
            response["error"]["data"]["requiredCapabilities"],
            json!({"elicitation": {"form": {}}})
        );
        let response = send_stateless(&server, "tools/call", optional.clone(), &lacking);
        assert_eq!(
            step_outputs(&response["result"]),
            ["unsupported: the client does not support elicitation/create"]
        );
    }
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut server = session(&folder, revision, &json!({"roots": {}}));
        let error = server.error("tools/call", required.clone());
        assert_eq!(
            error["data"]["requiredCapabilities"],
            json!({"elicitation": {"form": {}}}),
            "{error}"
        );
        let result = server.result("tools/call", optional.clone());
        assert!(result_text(&result).contains("unsupported"), "{result}");
    }
    // These revisions have no forms, so the client's capability has no effect.
    for revision in ["2024-11-05", "2025-03-26"] {
        let mut server = session(&folder, revision, &all_capabilities());
        server.error("tools/call", required.clone());
    }
}

#[test]
fn several_questions_are_sent_at_once_and_an_invalid_answer_is_requested_again() {
    let server = start_http(&folder(""));
    let call = steps(json!([{"ask": [form("one"), form("two")]}]));
    let mut asked = Vec::new();
    let (result, rounds) = call_and_answer(&server, "tools/call", &call, &mut |key, _| {
        asked.push(key.to_owned());
        let again = asked.iter().filter(|asked| *asked == key).count() > 1;
        if key == "two" && !again {
            json!({"action": "accept", "content": {"name": 7}})
        } else {
            accept_answer(key)
        }
    });
    assert_eq!(asked, ["one", "two", "two"]);
    assert_eq!(
        (step_outputs(&result), rounds),
        (
            vec![format!("{} {}", accept_answer("one"), accept_answer("two"))],
            2
        )
    );
}

#[test]
fn prompts_and_resources_can_ask_questions() {
    let folder = folder("");
    let server = start_http(&folder);
    let (result, _) = call_and_answer(
        &server,
        "prompts/get",
        &json!({"name": "about"}),
        &mut |_, _| accept_answer("rain"),
    );
    let prompt = format!("Write about {}.", accept_answer("rain"));
    assert_eq!(result["messages"][0]["content"]["text"], prompt);
    let read = json!({"uri": "asker://names/3"});
    let (result, rounds) = call_and_answer(&server, "resources/read", &read, &mut |key, _| {
        accept_answer(key)
    });
    let names = ["round-0", "round-1", "round-2"]
        .map(|key| accept_answer(key).to_string())
        .join(" ");
    assert_eq!((&result["contents"][0]["text"], rounds), (&json!(names), 3));
    let mut server = session(&folder, "2025-06-18", &all_capabilities());
    let id = server.request("prompts/get", json!({"name": "about"}));
    let answer = answer_in_session(
        &mut server,
        id,
        &mut |_| json!({"result": accept_answer("rain")}),
    );
    assert_eq!(answer["result"]["messages"][0]["content"]["text"], prompt);
    let id = server.request("resources/read", read);
    let answer = answer_in_session(&mut server, id, &mut |question| {
        let message = question["params"]["message"].as_str().unwrap();
        json!({"result": accept_answer(message.trim_start_matches("What is the ").trim_end_matches('?'))})
    });
    assert_eq!(answer["result"]["contents"][0]["text"], names);
}

#[test]
fn the_limits_of_questions_end_the_call_with_an_error_for_the_model() {
    let server = start_http(&folder(""));
    let ask = |steps_of: Value| {
        let call = steps(steps_of);
        let mut answered = 0;
        let mut sent = call.clone();
        loop {
            let mut response = send_stateless(&server, "tools/call", sent, &all_capabilities());
            let result = response["result"].take();
            if result["resultType"] != "input_required" {
                return (result, response, answered);
            }
            answered += 1;
            sent = retry_params(&call, &result, &mut |key, _| accept_answer(key));
        }
    };
    let rounds = json!([{"rounds": 3}]);
    // The result of the same call shows when the new grant applies.
    let until = |grant: &str, steps_of: &Value, wanted: &str| {
        server.folder().put("asker.toml", grant);
        let deadline = std::time::Instant::now() + crate::support::DEADLINE;
        loop {
            let (result, response, answered) = ask(steps_of.clone());
            // A call that started before may have a state of the old grant.
            if result.is_object() && result_text(&result).contains(wanted) {
                return (result, answered);
            }
            assert!(
                std::time::Instant::now() < deadline,
                "never {wanted:?}: {response} {result}"
            );
        }
    };
    let (result, answered) = until(
        "[limits]\nask_rounds = 2",
        &rounds,
        "asked more than 2 times",
    );
    assert!(
        result_text(&result).contains("limits.ask_rounds"),
        "{result}"
    );
    assert_eq!(
        (&result["_meta"]["dev.toolbay/error"], answered),
        (&json!("limit"), 2)
    );
    let (result, _) = until(
        "[limits]\nask_timeout = \"1ms\"",
        &rounds,
        "were not answered within 1ms",
    );
    assert!(
        result_text(&result).contains("limits.ask_timeout"),
        "{result}"
    );
    // The three rounds exceed the former limit of two, which the new grant lifts.
    let (result, _) = until("[limits]\njournal = \"100B\"", &rounds, "limits.journal");
    assert_eq!(result["isError"], true, "{result}");
    let (result, answered) = until("", &rounds, "round-2");
    assert_eq!(
        (result["isError"].is_null(), answered),
        (true, 3),
        "{result}"
    );
    // No question is allowed at all.
    let (result, answered) = until(
        "[limits]\nask_rounds = 0",
        &rounds,
        "asked more than 0 times",
    );
    assert_eq!((&result["isError"], answered), (&json!(true), 0));
}

#[test]
fn a_call_fails_if_its_client_does_not_answer_in_time() {
    let folder = folder("[limits]\nask_timeout = \"1s\"");
    let mut server = session(&folder, "2025-11-25", &all_capabilities());
    let id = server.request("tools/call", steps(json!([{"ask": [form("who")]}])));
    let question = server.wait_for("the question", |message| {
        message["method"] == "elicitation/create"
    });
    let answer = server.wait_for("the response", |message| {
        message["id"] == id && message.get("method").is_none()
    });
    assert!(
        result_text(&answer["result"]).contains("not answered within 1s"),
        "{answer}"
    );
    assert_eq!(answer["result"]["_meta"]["dev.toolbay/error"], "limit");
    let withdrawn = server.notification("notifications/cancelled");
    assert_eq!(withdrawn["requestId"], question["id"]);
}

#[test]
fn subscribers_are_notified_that_a_resource_changed() {
    let folder = folder("");
    let uri = "asker://names/0";
    let update = steps(
        json!([{"update": uri}, {"update": "asker://names/1"}, {"update": "other://names/0"}]),
    );
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut server = session(&folder, revision, &json!({}));
        server.result("resources/subscribe", json!({"uri": uri}));
        server.result("tools/call", update.clone());
        assert_eq!(
            server.notification("notifications/resources/updated"),
            json!({"uri": uri}),
            "{revision}"
        );
        server.result("resources/unsubscribe", json!({"uri": uri}));
        server.result("tools/call", update.clone());
        server.result("ping", json!({}));
        assert_eq!(
            server.take_notifications("notifications/resources/updated"),
            Vec::<Value>::new()
        );
    }
    let server = start_http(&folder);
    let filter = json!({"notifications": {"resourceSubscriptions": [uri]}});
    let mut stream = server.post_stateless("subscriptions/listen", filter, &[]);
    let acknowledged = stream.next_message().unwrap();
    assert_eq!(
        acknowledged["method"], "notifications/subscriptions/acknowledged",
        "{acknowledged}"
    );
    server.result("tools/call", update);
    let updated = stream.next_message().unwrap();
    assert_eq!(
        (&updated["method"], &updated["params"]["uri"]),
        (&json!("notifications/resources/updated"), &json!(uri))
    );
    stream.close();
    assert_eq!(MODERN, "2026-07-28");
}

/// A client that disconnected gets the question again if it reconnects in time. Otherwise its call
/// ends, and so does its session.
#[test]
fn a_question_waits_for_a_client_that_has_lost_its_connection() {
    let folder = folder("");
    let config = "[http]\nresume = \"1s\"\nsession_idle_timeout = \"300ms\"";
    let server = start_http_with_config(&folder, config);
    let session = server.start_session_with_capabilities("2025-11-25", all_capabilities(), &[]);
    // The session is in use until this stream is closed.
    let stream = session.open_stream();
    let mut call = session.request("tools/call", steps(json!([{"ask": [form("name")]}])));
    drop(call.next_event());
    let opened = call.last_event_id.clone().unwrap();
    let question = call.next_message().unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    call.close();
    let again = [
        ("Accept", "text/event-stream"),
        ("Last-Event-ID", opened.as_str()),
    ];
    let mut resumed = server.get("/mcp", &[session.headers(), again.to_vec()].concat());
    assert_eq!(resumed.next_message(), Some(question.clone()));
    session.post(&json!({"jsonrpc": "2.0", "id": question["id"], "result": accept_answer("Ada")}));
    assert_eq!(
        step_outputs(&resumed.next_message().unwrap()["result"]),
        [accept_answer("Ada").to_string()]
    );
    // The client does not reconnect.
    let mut call = session.request("tools/call", steps(json!([{"ask": [form("name")]}])));
    assert_eq!(call.next_message().unwrap()["method"], "elicitation/create");
    call.close();
    stream.close();
    let sessions = || {
        let metrics = server.get("/metrics", &[]).text();
        metrics
            .lines()
            .find_map(|line| line.strip_prefix("toolbay_sessions "))
            .map(str::to_owned)
            .unwrap()
    };
    while sessions() != "0" {
        std::thread::yield_now();
    }
}

/// MCP allows no questions during a completion: a required question fails, whatever the client can
/// answer.
#[test]
fn a_question_during_a_completion_fails() {
    let server = start_http(&folder(""));
    let reference = json!({"type": "ref/resource", "uri": "asker://names/{rounds}"});
    let params = json!({"ref": reference, "argument": {"name": "rounds", "value": "1"}});
    let response = send_stateless(&server, "completion/complete", params, &all_capabilities());
    assert_eq!(
        response["error"]["message"], "a completion cannot ask its caller anything",
        "{response}"
    );
}
