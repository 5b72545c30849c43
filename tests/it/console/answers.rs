//! Calls that wait for a person at a client and that an operator answers in the console.

use std::fs;

use serde_json::{Value, json};

use super::RATES;
use super::site::{Site, cookie, encode_form, enter, hidden_field, post};
use crate::http::auth::token;
use crate::support::{
    Folder, HttpResponse, HttpServer, MODERN, StdioServer, TinyComponent, error_kind_and_text,
    result_text,
};

/// The revisions in which a question is sent on the stream of the call.
const STREAM_REVISIONS: [&str; 2] = ["2025-06-18", "2025-11-25"];

/// Returns a folder with a tool that requires approval.
fn folder(approve: &str) -> Folder {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["echo"]).with_echo().build());
    folder.put("a.toml", format!("require_approval = {approve:?}\n"));
    folder
}

fn site(folder: &Folder) -> Site {
    Site::open(
        HttpServer::start_with_config(folder, &format!("{RATES}[audit]\nfolder = \"log\"\n"))
            .wait_until_ready(),
    )
}

fn forms() -> Value {
    json!({"elicitation": {"form": {}}})
}

fn echo(said: &str) -> Value {
    json!({"name": "echo", "arguments": {"said": said}})
}

/// Waits for a call that waits for approval and returns its number.
fn wait_for_pending_call(site: &Site) -> String {
    hidden_field(
        &site.until("/approvals", |page| page.contains("value=\"approve\"")),
        "id",
    )
}

fn answer(site: &Site, id: &str, answer: &str) -> HttpResponse {
    site.post("/approval", &[("id", id), ("answer", answer)])
}

/// Reads what follows the question on the stream, the withdrawal of this question and the response,
/// and returns the response.
fn read_response(mut stream: HttpResponse, question: &Value) -> Value {
    let withdrawn = stream.next_message().unwrap();
    assert_eq!(
        withdrawn["method"], "notifications/cancelled",
        "{withdrawn}"
    );
    assert_eq!(withdrawn["params"]["requestId"], *question, "{withdrawn}");
    stream.next_message().expect("a response")
}

/// Returns all lines of the audit log.
fn audit(folder: &Folder) -> Vec<Value> {
    let files = fs::read_dir(folder.root().join("log")).unwrap();
    let texts = files.filter_map(|file| fs::read_to_string(file.unwrap().path()).ok());
    let lines: Vec<String> = texts
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    lines
        .iter()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

#[test]
fn an_operator_decides_a_call_whose_client_never_answers() {
    let folder = folder("always");
    let site = site(&folder);
    for revision in STREAM_REVISIONS {
        let session = site
            .server
            .start_session_with_capabilities(revision, forms(), &[]);
        for (said, word) in [("approve", "approved"), ("decline", "declined")] {
            let mut stream = session.request("tools/call", echo("<b>hello</b>"));
            let question = stream.next_message().unwrap();
            assert_eq!(question["method"], "elicitation/create", "{question}");
            let id = wait_for_pending_call(&site);
            let page = site.page("/approvals");
            assert!(
                page.contains("&lt;b&gt;hello") && !page.contains("<b>hello"),
                "{page}"
            );
            assert!(
                page.contains("1 call waits") && !page.contains("Only the client can answer"),
                "{page}"
            );
            let told = answer(&site, &id, said);
            assert_eq!(
                told.header("location").unwrap(),
                format!("/console/approvals?done={word}")
            );
            let response = read_response(stream, &question["id"]);
            if said == "approve" {
                assert!(
                    result_text(&response["result"]).contains("hello"),
                    "{response}"
                );
            } else {
                let (kind, why) = error_kind_and_text(&response["result"]);
                assert_eq!(
                    (kind.as_str(), why.contains("said no")),
                    ("not-approved", true),
                    "{why}"
                );
            }
            let page = site.page("/approvals");
            assert!(
                page.contains("by console") && page.contains("No call waits"),
                "{page}"
            );
            // Answer the same call again, and calls that never existed.
            for id in [id.as_str(), "4711", "-1", "x"] {
                let over = answer(&site, id, "approve");
                assert_eq!(over.status, 409, "{id}");
                assert!(
                    over.text().contains("No call waits for this answer"),
                    "{id}"
                );
            }
        }
    }
    site.server
        .log
        .wait_for_count("approval: declined plugin=\"a\" tool=\"echo\"", 2);
    let answered = || -> Vec<(Value, Value)> {
        audit(&folder)
            .into_iter()
            .filter(|line| line["event"] == "approval" && line["decision"] != "requested")
            .map(|line| (line["decision"].clone(), line["answered_by"].clone()))
            .collect()
    };
    // A line of the audit log is written a moment later.
    while answered().len() < 4 {
        std::thread::yield_now();
    }
    let both = [
        (json!("approved"), json!("console")),
        (json!("declined"), json!("console")),
    ];
    assert_eq!(answered(), [both.clone(), both].concat());
}

#[test]
fn a_question_without_an_answer_rejects_the_call() {
    let folder = folder("always");
    let config = format!("{RATES}[audit]\nfolder = \"log\"\n[limits]\nask_timeout = \"300ms\"\n");
    let site = Site::open(HttpServer::start_with_config(&folder, &config).wait_until_ready());
    for revision in STREAM_REVISIONS {
        let session = site
            .server
            .start_session_with_capabilities(revision, forms(), &[]);
        let mut stream = session.request("tools/call", echo("hello"));
        let question = stream.next_message().unwrap();
        let response = read_response(stream, &question["id"]);
        let (kind, why) = error_kind_and_text(&response["result"]);
        assert_eq!(kind, "not-approved");
        let told = "The user was asked whether to allow this call and did not answer within 300ms. The tool was not called. Do \
                    not call it again unless the user asks for it. The operator of the server can allow more time \
                    (limits.ask_timeout).";
        assert_eq!(why, told);
    }
    site.server
        .log
        .wait_for_count("approval: timed-out plugin=\"a\" tool=\"echo\"", 2);
    // A line of the audit log is written a moment later.
    let late = || {
        audit(&folder)
            .iter()
            .filter(|line| line["decision"] == "timed-out")
            .count()
    };
    while late() < 2 {
        std::thread::yield_now();
    }
    assert_eq!(late(), 2);
    let page = site.until("/approvals", |page| page.matches("timed-out").count() > 1);
    assert!(page.contains("No call waits"), "{page}");
}

#[test]
fn an_answer_of_the_operator_after_that_of_the_client_is_too_late() {
    let folder = folder("always");
    let site = site(&folder);
    let session = site
        .server
        .start_session_with_capabilities(STREAM_REVISIONS[1], forms(), &[]);
    let mut stream = session.request("tools/call", echo("one"));
    let question = stream.next_message().unwrap();
    let id = wait_for_pending_call(&site);
    let yes = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"approve": true}}});
    assert_eq!(session.post(&yes).status, 202);
    assert!(result_text(&stream.next_message().unwrap()["result"]).contains("one"));
    assert_eq!(answer(&site, &id, "decline").status, 409);
    // An answer does not count either when the client has cancelled the call.
    let stream = session.request("tools/call", echo("two"));
    let id = wait_for_pending_call(&site);
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
    assert_eq!(session.post(&cancelled).status, 202);
    site.until("/approvals", |page| !page.contains("value=\"approve\""));
    assert_eq!(answer(&site, &id, "approve").status, 409);
    drop(stream);
    let answered = audit(&folder);
    assert!(
        answered
            .iter()
            .all(|line| line.get("answered_by").is_none()),
        "{answered:?}"
    );
}

#[test]
fn an_approval_of_the_operator_is_valid_for_one_call_unless_the_grant_remembers_it() {
    for (approve, remembers) in [("always", false), ("first", true)] {
        let site = site(&folder(approve));
        let session =
            site.server
                .start_session_with_capabilities(STREAM_REVISIONS[1], forms(), &[]);
        let mut stream = session.request("tools/call", echo("one"));
        let question = stream.next_message().unwrap();
        assert_eq!(
            answer(&site, &wait_for_pending_call(&site), "approve").status,
            303
        );
        assert!(result_text(&read_response(stream, &question["id"])["result"]).contains("one"));
        let mut again = session.request("tools/call", echo("two"));
        if again.is_stream() {
            assert!(!remembers, "{approve}: asked again");
            assert_eq!(
                again.next_message().unwrap()["method"],
                "elicitation/create"
            );
        } else {
            assert!(
                remembers && result_text(&again.response_message()["result"]).contains("two"),
                "{approve}"
            );
        }
    }
}

#[test]
fn only_a_page_of_an_operator_session_can_answer() {
    let (watcher, watchers) = token("watcher", "tools = [\"time.*\"]\nadmin = true");
    let (operator, operators) = token("operator", "admin = true");
    let (model, models) = token("model", "");
    let server = HttpServer::start_with_config(
        &folder("always"),
        &format!("{RATES}{watchers}{operators}{models}"),
    )
    .wait_until_ready();
    let bearer = format!("Bearer {model}");
    let restricted = cookie(&enter(&server, &watcher)).unwrap();
    let site = Site::enter(server, &operator);
    let session = site.server.start_session_with_capabilities(
        STREAM_REVISIONS[1],
        forms(),
        &[("Authorization", &bearer)],
    );
    let mut stream = session.request("tools/call", echo("one"));
    let question = stream.next_message().unwrap();
    let id = wait_for_pending_call(&site);
    let form = |csrf: &str| encode_form(&[("csrf", csrf), ("id", &id), ("answer", "approve")]);
    let send = |headers: &[(&str, &str)], csrf: &str| {
        post(&site.server, "/console/approval", headers, &form(csrf)).status
    };
    let own = ("Cookie", site.cookie.as_str());
    // No credentials, a model with its own token, a wrong form token, another page, and a viewer
    // without the right.
    assert_eq!(send(&[], &site.csrf), 401);
    assert_eq!(send(&[("Authorization", &bearer)], &site.csrf), 401);
    assert_eq!(
        send(
            &[("Authorization", &format!("Bearer {operator}"))],
            &site.csrf
        ),
        401
    );
    assert_eq!(send(&[own], "wrong"), 403);
    assert_eq!(
        send(&[own, ("Origin", "http://evil.example")], &site.csrf),
        403
    );
    assert_eq!(
        send(&[own, ("Sec-Fetch-Site", "cross-site")], &site.csrf),
        403
    );
    let page = site
        .server
        .get("/console/approvals", &[("Cookie", &restricted)])
        .text();
    assert!(
        page.contains("may not call this tool")
            && !page.contains("operator of this server requires"),
        "{page}"
    );
    assert_eq!(
        send(&[("Cookie", &restricted)], &hidden_field(&page, "csrf")),
        403
    );
    assert_eq!(
        site.server
            .get(&format!("/console/approval?{}", form(&site.csrf)), &[own])
            .status,
        405
    );
    // The call still waits, and the operator declines it.
    assert_eq!(wait_for_pending_call(&site), id);
    assert_eq!(answer(&site, &id, "decline").status, 303);
    assert_eq!(
        error_kind_and_text(&read_response(stream, &question["id"])["result"]).0,
        "not-approved"
    );
}

#[test]
fn a_question_that_only_the_client_has_is_shown_without_an_answer() {
    let site = site(&folder("always"));
    let mut params = echo("one");
    params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": forms()});
    let asked = site
        .server
        .post_stateless_in(MODERN, "tools/call", params, &[])
        .response_message();
    assert!(asked["result"]["requestState"].is_string(), "{asked}");
    let page = site.page("/approvals");
    assert!(
        page.contains("1 call waits") && page.contains("Only the client can answer"),
        "{page}"
    );
    assert!(!page.contains("value=\"approve\""), "{page}");
    // A client cannot claim that an operator has answered.
    for id in ["1", "0"] {
        assert_eq!(answer(&site, id, "approve").status, 409);
    }
}

#[test]
fn the_operator_cannot_answer_a_question_of_the_plugin() {
    let folder = Folder::with("asker.wasm", crate::support::asker());
    let site = site(&folder);
    let session = site
        .server
        .start_session_with_capabilities(STREAM_REVISIONS[1], forms(), &[]);
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let form = json!({"key": "who", "kind": "form", "params": {"message": "Who?", "requestedSchema": schema}});
    let mut stream = session.request(
        "tools/call",
        json!({"name": "ask", "arguments": {"steps": [{"ask": [form]}]}}),
    );
    let first = stream.next_message().unwrap();
    assert_eq!(first["method"], "elicitation/create", "{first}");
    assert!(
        !site.page("/approvals").contains("value=\"approve\""),
        "{first}"
    );
}

#[test]
fn many_calls_that_wait_are_answered_one_by_one() {
    let site = site(&folder("always"));
    let session = site
        .server
        .start_session_with_capabilities(STREAM_REVISIONS[1], forms(), &[]);
    let mut streams: Vec<HttpResponse> = (0..20)
        .map(|n| session.request("tools/call", echo(&format!("call {n}."))))
        .collect();
    let questions: Vec<Value> = streams
        .iter_mut()
        .map(|stream| stream.next_message().unwrap()["id"].clone())
        .collect();
    site.until("/approvals", |page| page.contains("20 calls wait"));
    let page = site.page("/approvals");
    let mut sections: Vec<&str> = page.split("<section class=\"question\"").skip(1).collect();
    assert_eq!(sections.len(), 20);
    // In reverse order: each answer applies to the call of its section.
    sections.reverse();
    for section in sections {
        let even = (0..20)
            .find(|n| section.contains(&format!("call {n}.")))
            .unwrap()
            % 2
            == 0;
        assert_eq!(
            answer(
                &site,
                &hidden_field(section, "id"),
                if even { "approve" } else { "decline" }
            )
            .status,
            303
        );
    }
    for (n, (stream, question)) in streams.into_iter().zip(questions).enumerate() {
        let result = read_response(stream, &question)["result"].clone();
        assert_eq!(result["isError"] == true, n % 2 == 1, "{n}: {result}");
    }
}

#[test]
fn a_task_that_waits_is_answered_as_well() {
    let folder = folder("always");
    folder.put(
        "a.toml",
        "require_approval = \"always\"\n[tools.echo]\ntask_support = \"optional\"\n",
    );
    let site = site(&folder);
    let session = site
        .server
        .start_session_with_capabilities(STREAM_REVISIONS[1], forms(), &[]);
    let mut params = echo("one");
    params["task"] = json!({"ttl": 60_000});
    let created = session.request("tools/call", params).response_message();
    let task = created["result"]["task"]["taskId"]
        .as_str()
        .unwrap_or_else(|| panic!("{created}"))
        .to_owned();
    assert_eq!(
        answer(&site, &wait_for_pending_call(&site), "approve").status,
        303
    );
    let mut results = session.request("tasks/result", json!({"taskId": task}));
    let result = if results.is_stream() {
        results.next_message().unwrap()
    } else {
        results.response_message()
    };
    assert!(result_text(&result["result"]).contains("one"), "{result}");
}

#[test]
fn over_stdio_with_the_console_disabled_the_client_can_approve() {
    let folder = folder("always");
    folder.write_config("[console]\nenabled = false\n");
    let mut server = StdioServer::spawn(&folder);
    let hello = json!({"protocolVersion": STREAM_REVISIONS[1], "capabilities": forms(), "clientInfo": {"name": "t", "version": "1"}});
    server.result("initialize", hello);
    server.notify("notifications/initialized", json!({}));
    server.wait_for_tool("echo");
    let id = server.request("tools/call", echo("one"));
    let question = server.wait_for("the question", |message| {
        message["method"] == "elicitation/create"
    });
    let yes = json!({"action": "accept", "content": {"approve": true}});
    server.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": yes}).to_string());
    assert!(result_text(&server.wait_for_response(id)["result"]).contains("one"));
}

/// Returns the values of one member in the lines about an event.
fn member_values(folder: &Folder, event: &str, member: &str) -> Vec<String> {
    let lines = audit(folder)
        .into_iter()
        .filter(|line| line["event"] == event);
    lines
        .map(|line| line[member].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn a_waiting_call_that_its_client_cancels_ends_everywhere() {
    let folder = folder("always");
    let mut site = site(&folder);
    for revision in STREAM_REVISIONS {
        let session = site
            .server
            .start_session_with_capabilities(revision, forms(), &[]);
        let mut stream = session.request("tools/call", echo("one"));
        assert_eq!(
            stream.next_message().unwrap()["method"],
            "elicitation/create"
        );
        wait_for_pending_call(&site);
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
        assert_eq!(session.post(&cancelled).status, 202);
        let page = site.until("/approvals", |page| !page.contains("value=\"approve\""));
        assert!(
            page.contains("No call waits") && page.contains("cancelled"),
            "{page}"
        );
        assert!(!page.contains("Only the client can answer"), "{page}");
    }
    site.server
        .log
        .wait_for_count("approval: cancelled plugin=\"a\" tool=\"echo\"", 2);
    let calls = site.page("/calls");
    assert!(calls.contains("cancelled"), "{calls}");
    site.server.stop();
    let last = site.server.log.wait_for("shut down");
    assert!(
        last.contains("calls=4 succeeded=2 failed=0") && last.contains("cancelled=2"),
        "{last}"
    );
    assert_eq!(
        member_values(&folder, "approval", "decision"),
        ["requested", "cancelled", "requested", "cancelled"]
    );
    assert_eq!(
        member_values(&folder, "call", "outcome"),
        ["input-required", "cancelled", "input-required", "cancelled"]
    );
    let digests = member_values(&folder, "call", "arguments_sha256");
    assert!(
        digests
            .iter()
            .all(|digest| *digest == digests[0] && !digest.is_empty()),
        "{digests:?}"
    );
}

#[test]
fn approving_a_call_of_a_changed_or_disabled_plugin_reports_that_it_is_not_made() {
    let folder = folder("always");
    let site = site(&folder);
    let session = site
        .server
        .start_session_with_capabilities(STREAM_REVISIONS[1], forms(), &[]);
    let mut stream = session.request("tools/call", echo("one"));
    let question = stream.next_message().unwrap();
    let id = wait_for_pending_call(&site);
    folder.put(
        "a.toml",
        "require_approval = \"always\"\n[limits]\nfuel = 123456789\n",
    );
    site.until("/plugin?id=a", |page| {
        page.contains("123,456,789") || page.contains("123456789")
    });
    let told = answer(&site, &id, "approve");
    assert_eq!(
        told.header("location").unwrap(),
        "/console/approvals?done=outdated"
    );
    assert!(
        site.page("/approvals?done=outdated")
            .contains("has changed since it was asked for")
    );
    let response = read_response(stream, &question["id"]);
    assert_eq!(
        error_kind_and_text(&response["result"]).0,
        "outdated",
        "{response}"
    );
    let mut stream = session.request("tools/call", echo("two"));
    let question = stream.next_message().unwrap();
    let id = wait_for_pending_call(&site);
    assert_eq!(
        site.post("/plugin", &[("id", "a"), ("disabled", "yes")])
            .status,
        303
    );
    let told = answer(&site, &id, "approve");
    assert_eq!(
        told.header("location").unwrap(),
        "/console/approvals?done=plugin-disabled"
    );
    assert!(
        site.page("/approvals?done=plugin-disabled")
            .contains("its plugin is disabled")
    );
    let response = read_response(stream, &question["id"]);
    assert_eq!(
        error_kind_and_text(&response["result"]).0,
        "disabled",
        "{response}"
    );
}
