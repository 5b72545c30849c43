//! Approval by a person before a call (`require_approval`): who is asked in every revision, which
//! calls an approval covers, and what attackers try.

mod attacks;
mod console_only;
mod operator;
mod scope;

use serde_json::{Value, json};
use toolbay_testkit::message;

use crate::support::{
    Folder, HttpServer, HttpSession, MODERN, StdioServer, asker, error_kind_and_text,
};

/// The key of the host's approval question.
const KEY: &str = "dev.toolbay/approval";

/// State in which the plugin counts how often it was entered.
const CONFIG: &str = "[state]\nfolder = \"kept\"\n";

/// Returns the arguments of a call that increments the counter.
fn count() -> Value {
    steps(json!([{"count": "n"}]))
}

fn steps(steps: Value) -> Value {
    json!({"name": "ask", "arguments": {"steps": steps}})
}

/// Returns a folder with the plugin that counts and asks questions. The plugin may store state.
fn folder(grant: &str) -> Folder {
    let folder = Folder::with("asker.wasm", asker());
    folder.put("asker.toml", format!("{grant}\n[permissions.state]\n"));
    folder.write_config(CONFIG);
    folder
}

fn form_capabilities() -> Value {
    json!({"elicitation": {"form": {}}})
}

fn approval_content() -> Value {
    json!({"action": "accept", "content": {"approve": true}})
}

/// Returns the texts that the steps returned.
fn step_texts(result: &Value) -> Vec<String> {
    let said = result["structuredContent"]["said"]
        .as_array()
        .unwrap_or_else(|| panic!("{result}"));
    said.iter()
        .map(|one| one.as_str().unwrap().to_owned())
        .collect()
}

/// Starts a session over stdio.
fn session(folder: &Folder, revision: &str, capabilities: &Value) -> StdioServer {
    let mut server = StdioServer::spawn(folder);
    let client = json!({"name": "test", "version": "1"});
    server.result(
        "initialize",
        json!({"protocolVersion": revision, "capabilities": capabilities, "clientInfo": client}),
    );
    server.notify("notifications/initialized", json!({}));
    server.wait_for_tool("ask");
    server
}

/// Starts an HTTP server and waits until it has loaded the plugin.
fn start_http(folder: &Folder, config: &str) -> HttpServer {
    HttpServer::start_with_config(folder, &format!("{CONFIG}{config}")).wait_until_ready()
}

/// Sends a request without a session, from a client with these capabilities.
fn stateless(
    server: &HttpServer,
    params: &Value,
    capabilities: &Value,
    headers: &[(&str, &str)],
) -> Value {
    let mut params = params.clone();
    params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": capabilities});
    server
        .post_stateless("tools/call", params, headers)
        .response_message()
}

/// Returns the same request with this answer to the host's question in `result`.
fn with_answer(call: &Value, result: &Value, answer: Option<Value>) -> Value {
    let asked = result["inputRequests"]
        .as_object()
        .unwrap_or_else(|| panic!("{result}"));
    assert_eq!(asked.keys().collect::<Vec<_>>(), [KEY], "{result}");
    assert_eq!(asked[KEY]["method"], "elicitation/create");
    assert!(
        result["_meta"].get("dev.toolbay/usage").is_none(),
        "no guest was entered: {result}"
    );
    let mut params = call.clone();
    params["requestState"] = result["requestState"].clone();
    if let Some(answer) = answer {
        params["inputResponses"] = json!({KEY: answer});
    }
    params
}

/// Answers each question in a stdio session. Returns the response and the questions.
fn conversation(
    server: &mut StdioServer,
    params: Value,
    answer: &mut dyn FnMut(&Value) -> Value,
) -> (Value, Vec<Value>) {
    let id = server.request("tools/call", params);
    let mut asked = Vec::new();
    loop {
        let message = server.wait_for("a question or the response", |message| {
            message.get("method").is_some() == (message["id"] != id) && message.get("id").is_some()
        });
        if message.get("method").is_none() {
            return (message, asked);
        }
        let mut response = answer(&message);
        (response["jsonrpc"], response["id"]) = ("2.0".into(), message["id"].clone());
        asked.push(message);
        server.send(response.to_string());
    }
}

/// Like [`conversation`], but over HTTP, where the answer is a separate request.
fn conversation_over_http(
    session: &HttpSession<'_>,
    params: Value,
    answer: &Value,
) -> (Value, Vec<Value>) {
    let mut stream = session.request("tools/call", params);
    if !stream.is_stream() {
        return (stream.response_message(), Vec::new());
    }
    let mut asked = Vec::new();
    loop {
        let message = stream.next_message().expect("a response");
        if message.get("method").is_none() {
            return (message, asked);
        }
        let mut response = answer.clone();
        (response["jsonrpc"], response["id"]) = ("2.0".into(), message["id"].clone());
        asked.push(message);
        assert_eq!(session.post(&response).status, 202);
    }
}

/// Returns every answer with the resulting error kind. Without a kind, the call is made.
fn answers() -> [(Value, Option<&'static str>); 5] {
    [
        (json!({"result": approval_content()}), None),
        (
            json!({"result": {"action": "accept", "content": {"approve": false}}}),
            Some("said no"),
        ),
        (json!({"result": {"action": "decline"}}), Some("said no")),
        (
            json!({"result": {"action": "cancel"}}),
            Some("without an answer"),
        ),
        (
            json!({"error": {"code": -1, "message": "no"}}),
            Some("said no"),
        ),
    ]
}

/// Checks the response to an answer. `made` counts the calls made so far.
fn check_response(response: &Value, refused: Option<&str>, made: &mut u32) {
    let result = &response["result"];
    let Some(words) = refused else {
        *made += 1;
        assert!(result["isError"].is_null(), "{response}");
        assert!(
            message::result_text(result).contains(&format!("\"{made}\"")),
            "it was made once: {result}"
        );
        return;
    };
    let (kind, text) = error_kind_and_text(result);
    assert_eq!(kind, "not-approved", "{response}");
    assert!(
        text.contains(words)
            && text.contains("was not called")
            && text.contains("Do not retry the call"),
        "{text}"
    );
    assert!(
        result["_meta"].get("dev.toolbay/usage").is_none(),
        "no guest was entered: {result}"
    );
}

#[test]
fn every_revision_with_forms_asks_a_person_before_the_plugin_is_entered() {
    let folder = folder("require_approval = \"always\"");
    let mut made = 0;
    for revision in ["2025-06-18", "2025-11-25"] {
        let mut server = session(&folder, revision, &json!({"elicitation": {}}));
        for (answer, refused) in answers() {
            let (response, asked) = conversation(&mut server, count(), &mut |_| answer.clone());
            check_response(&response, refused, &mut made);
            let [question] = &*asked else {
                panic!("{asked:?}")
            };
            let method = &question["method"];
            let params = &question["params"];
            assert_eq!(method, "elicitation/create");
            let message = params["message"].as_str().unwrap();
            assert!(
                message.contains("    tool    ask\n    plugin  asker\n"),
                "{message}"
            );
            // The arguments come first in the message.
            let (arguments, opens) = message
                .split_once("\n\nDuring the call, the plugin can:\n\n")
                .unwrap();
            assert!(
                arguments.ends_with("    | {\"steps\":[{\"count\":\"n\"}]}"),
                "{message}"
            );
            assert!(
                opens.starts_with("    + keep data for later calls"),
                "{message}"
            );
            assert_eq!(
                params["requestedSchema"]["properties"]["approve"]["type"],
                "boolean"
            );
            assert_eq!(params["requestedSchema"]["required"], json!(["approve"]));
        }
        drop(server);
        let server = start_http(&folder, "");
        let session =
            server.start_session_with_capabilities(revision, json!({"elicitation": {}}), &[]);
        for (answer, refused) in answers() {
            let (response, asked) = conversation_over_http(&session, count(), &answer);
            assert_eq!(asked.len(), 1);
            check_response(&response, refused, &mut made);
        }
    }
    let server = start_http(&folder, "");
    for (answer, refused) in answers()
        .into_iter()
        .filter(|(answer, _)| answer.get("result").is_some())
    {
        let asked = stateless(&server, &count(), &form_capabilities(), &[]);
        let params = with_answer(&count(), &asked["result"], Some(answer["result"].clone()));
        check_response(
            &stateless(&server, &params, &form_capabilities(), &[]),
            refused,
            &mut made,
        );
    }
    drop(server);
    // Over stdio without a session.
    let mut server = StdioServer::spawn(&folder);
    let mut ask = |id: u64, mut params: Value| {
        params["_meta"] =
            json!({"io.modelcontextprotocol/clientCapabilities": form_capabilities()});
        server.send(message::stateless_request(MODERN, id, "tools/call", params).to_string());
        server.wait_for("the response", |message| message["id"] == id)
    };
    let asked = ask(1, count());
    check_response(
        &ask(
            2,
            with_answer(&count(), &asked["result"], Some(approval_content())),
        ),
        None,
        &mut made,
    );
    assert_eq!(made, 6);
}

#[test]
fn a_client_without_forms_is_refused_with_advice_before_the_plugin_is_entered() {
    let folder = folder("[tools.ask]\nrequire_approval = \"always\"");
    let refused = |result: &Value| {
        let (kind, text) = error_kind_and_text(result);
        assert_eq!(kind, "not-approved", "{result}");
        for words in [
            "cannot ask its user",
            "Do not retry",
            "elicitation",
            "tools.ask.require_approval in asker.toml",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    };
    let all = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}});
    let lacking = json!({"elicitation": {"url": {}}, "sampling": {}, "roots": {}});
    // The first two revisions have no forms, whatever the client declares.
    let clients = [
        ("2024-11-05", &all),
        ("2025-03-26", &all),
        ("2025-06-18", &json!({"sampling": {}})),
        ("2025-11-25", &lacking),
        ("2025-11-25", &json!({})),
    ];
    for (revision, capabilities) in clients {
        refused(&session(&folder, revision, capabilities).result("tools/call", count()));
        let server = start_http(&folder, "");
        let session = server.start_session_with_capabilities(revision, capabilities.clone(), &[]);
        refused(&session.result("tools/call", count()));
    }
    let server = start_http(&folder, "");
    for capabilities in [json!({}), lacking] {
        refused(&stateless(&server, &count(), &capabilities, &[])["result"]);
    }
    drop(server);
    folder.put("asker.toml", "[permissions.state]");
    assert_eq!(
        step_texts(&session(&folder, "2025-11-25", &json!({})).result("tools/call", count())),
        ["1"]
    );
}

#[test]
fn invalid_arguments_are_rejected_without_asking_a_person() {
    let folder = folder("require_approval = \"always\"");
    let mut server = session(&folder, "2025-11-25", &form_capabilities());
    for wrong in [
        json!({}),
        json!({"steps": 7}),
        json!({"steps": [], "more": 1}),
    ] {
        let (response, asked) = conversation(
            &mut server,
            json!({"name": "ask", "arguments": wrong}),
            &mut |_| json!({"result": approval_content()}),
        );
        assert_eq!(
            (
                error_kind_and_text(&response["result"]).0.as_str(),
                asked.len()
            ),
            ("invalid-arguments", 0),
            "{response}"
        );
    }
    let (response, asked) = conversation(
        &mut server,
        json!({"name": "none"}),
        &mut |_| json!({"result": approval_content()}),
    );
    assert_eq!(
        (&response["error"]["code"], asked.len()),
        (&json!(-32_602), 0)
    );
}

#[test]
fn a_pending_approval_holds_no_slot_and_resources_and_prompts_need_none() {
    let folder = folder("require_approval = \"always\"\n[limits]\nconcurrency = 1");
    let mut server = session(&folder, "2025-11-25", &form_capabilities());
    let ids: Vec<u64> = (0..20)
        .map(|_| server.request("tools/call", count()))
        .collect();
    let questions: Vec<Value> = ids
        .iter()
        .map(|_| {
            server.wait_for("a question", |message| {
                message["method"] == "elicitation/create"
            })
        })
        .collect();
    // The plugin has only one slot, and waiting questions do not occupy it.
    let read = server.result("resources/read", json!({"uri": "asker://names/0"}));
    assert_eq!(read["contents"][0]["text"], "");
    let id = server.request("prompts/get", json!({"name": "about"}));
    let question = server.wait_for("a question", |message| {
        message["method"] == "elicitation/create"
    });
    assert_eq!(
        question["params"]["requestedSchema"]["properties"]["name"]["type"], "string",
        "the plugin's own"
    );
    server.notify("notifications/cancelled", json!({"requestId": id}));
    // A late approval does not start a call that was cancelled.
    server.notify("notifications/cancelled", json!({"requestId": ids[0]}));
    for question in questions {
        server.send(
            json!({"jsonrpc": "2.0", "id": question["id"], "result": approval_content()})
                .to_string(),
        );
    }
    let mut numbers: Vec<u32> = ids[1..]
        .iter()
        .map(|id| step_texts(&server.finish_call(*id))[0].parse().unwrap())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..20).collect::<Vec<_>>());
}

#[test]
fn an_approval_that_times_out_rejects_the_call() {
    let folder = folder("require_approval = \"always\"\n[limits]\nask_timeout = \"1s\"");
    let mut server = session(&folder, "2025-11-25", &form_capabilities());
    let id = server.request("tools/call", count());
    let question = server.wait_for("the question", |message| {
        message["method"] == "elicitation/create"
    });
    let (kind, text) = error_kind_and_text(&server.finish_call(id));
    assert_eq!(kind, "not-approved");
    assert!(
        text.contains("did not answer within 1s") && text.contains("limits.ask_timeout"),
        "{text}"
    );
    server.send(
        json!({"jsonrpc": "2.0", "id": question["id"], "result": approval_content()}).to_string(),
    );
    let (response, _) = conversation(
        &mut server,
        count(),
        &mut |_| json!({"result": approval_content()}),
    );
    assert_eq!(
        step_texts(&response["result"]),
        ["1"],
        "the late yes made no call"
    );
}

#[test]
fn later_questions_of_the_plugin_do_not_repeat_the_approval() {
    let folder = folder("require_approval = \"always\"");
    let schema =
        json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    // The plugin may use any key, including the name of the host's form field, but not the key of
    // the host's question.
    let form = |key: &str| json!({"key": key, "kind": "form", "params": {"message": "Who?", "requestedSchema": schema}});
    let call = steps(
        json!([{"count": "n"}, {"ask": [form("approve")]}, {"ask": [form("dev.toolbay-approval")]}, {"count": "n"}]),
    );
    let ada = json!({"action": "accept", "content": {"name": "Ada"}});
    let expected = [
        "1".to_owned(),
        ada.to_string(),
        ada.to_string(),
        "2".to_owned(),
    ];
    let mut server = session(&folder, "2025-11-25", &form_capabilities());
    let mut answers = [approval_content(), ada.clone(), ada.clone()].into_iter();
    let (response, asked) = conversation(
        &mut server,
        call.clone(),
        &mut |_| json!({"result": answers.next().unwrap()}),
    );
    assert_eq!(
        (step_texts(&response["result"]), asked.len()),
        (expected.to_vec(), 3)
    );
    drop(server);
    let server = start_http(&folder, "");
    let asked = stateless(&server, &call, &form_capabilities(), &[]);
    let mut response = stateless(
        &server,
        &with_answer(&call, &asked["result"], Some(approval_content())),
        &form_capabilities(),
        &[],
    );
    for key in ["approve", "dev.toolbay-approval"] {
        let asked = response["result"]["inputRequests"].as_object().unwrap();
        assert_eq!(asked.keys().collect::<Vec<_>>(), [key]);
        let mut params = call.clone();
        params["requestState"] = response["result"]["requestState"].clone();
        params["inputResponses"] = json!({key: ada});
        response = stateless(&server, &params, &form_capabilities(), &[]);
    }
    assert_eq!(step_texts(&response["result"])[1..3], expected[1..3]);
    // A plugin cannot use the host's key.
    let forged = steps(json!([{"ask": [form(KEY)]}]));
    let asked = stateless(&server, &forged, &form_capabilities(), &[]);
    let response = stateless(
        &server,
        &with_answer(&forged, &asked["result"], Some(approval_content())),
        &form_capabilities(),
        &[],
    );
    assert!(
        error_kind_and_text(&response["result"])
            .1
            .contains("a key has 1 to 64 characters"),
        "{response}"
    );
}
