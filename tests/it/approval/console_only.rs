//! Calls that only an operator may allow (`approve_by = "console"`), notifications about waiting
//! calls, and answers in a terminal.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;

use super::*;
use crate::console::site::{Site, hidden_field};
use crate::support::{CommandOutput, HttpResponse, TinyComponent, ToolbayCommand};

const RATES: &str = "caller_rate_limit = { calls = 100000, per = \"1m\" }\nrate_limit = { calls = 100000, per = \"1m\" }\n";

/// Returns a folder with a tool whose calls only an operator may allow.
fn operator_folder(grant: &str) -> Folder {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["echo"]).with_echo().build());
    folder.put("a.toml", grant);
    folder
}

const ALWAYS: &str = "require_approval = \"always\"\napprove_by = \"console\"\n";

fn open(folder: &Folder) -> Site {
    Site::open(HttpServer::start_with_config(folder, RATES).wait_until_ready())
}

fn echo() -> Value {
    json!({"name": "echo", "arguments": {"said": "hello"}})
}

/// Starts a session of the newest revision that has sessions, and waits for the tool.
fn echo_session(folder: &Folder, capabilities: &Value) -> StdioServer {
    let mut server = StdioServer::spawn(folder);
    let client = json!({"name": "test", "version": "1"});
    server.result(
        "initialize",
        json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client}),
    );
    server.notify("notifications/initialized", json!({}));
    server.wait_for_tool("echo");
    server
}

fn waiting_id(site: &Site) -> String {
    hidden_field(
        &site.until("/approvals", |page| page.contains("value=\"approve\"")),
        "id",
    )
}

fn answer(site: &Site, id: &str, answer: &str) -> u16 {
    site.post("/approval", &[("id", id), ("answer", answer)])
        .status
}

/// Sends a call without a session from another thread. The response arrives when the call ends.
fn stateless_call<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    server: &'scope HttpServer,
    params: Value,
) -> thread::ScopedJoinHandle<'scope, Value> {
    scope.spawn(move || stateless(server, &params, &form_capabilities(), &[]))
}

#[test]
fn every_revision_waits_for_the_operator_whatever_the_client_can_do() {
    let folder = operator_folder(ALWAYS);
    let site = open(&folder);
    let all = json!({"elicitation": {"form": {}}});
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        for capabilities in [json!({}), all.clone()] {
            for (said, made) in [("approve", true), ("decline", false)] {
                thread::scope(|scope| {
                    let call = scope.spawn(|| {
                        let capabilities = capabilities.clone();
                        site.server
                            .start_session_with_capabilities(revision, capabilities, &[])
                            .result("tools/call", echo())
                    });
                    let id = waiting_id(&site);
                    assert!(site.page("/approvals").contains("Its client is not asked."));
                    assert_eq!(answer(&site, &id, said), 303);
                    let result = call.join().unwrap();
                    if made {
                        assert!(message::result_text(&result).contains("hello"), "{result}");
                    } else {
                        assert_eq!(error_kind_and_text(&result).0, "not-approved");
                    }
                    assert_eq!(answer(&site, &id, "approve"), 409, "an answer counts once");
                });
            }
        }
    }
    // A client without a session gets no question either: its response waits.
    thread::scope(|scope| {
        let call = stateless_call(scope, &site.server, echo());
        assert_eq!(answer(&site, &waiting_id(&site), "approve"), 303);
        let response = call.join().unwrap();
        let result = &response["result"];
        assert!(message::result_text(result).contains("hello"), "{response}");
    });
}

#[test]
fn no_answer_of_a_client_allows_a_call_that_only_an_operator_may_allow() {
    let folder = operator_folder(ALWAYS);
    let site = open(&folder);
    // A client that was asked before the grant required an operator, and answers afterwards.
    folder.put("a.toml", "require_approval = \"always\"\n");
    let asked = loop {
        let asked = thread::scope(|scope| {
            let call = stateless_call(scope, &site.server, echo());
            while !call.is_finished() {
                if let Some(id) = site
                    .page("/approvals")
                    .contains("value=\"approve\"")
                    .then(|| hidden_field(&site.page("/approvals"), "id"))
                {
                    answer(&site, &id, "decline");
                }
            }
            call.join().unwrap()
        });
        if asked["result"]["requestState"].is_string() {
            break asked;
        }
    };
    folder.put(
        "a.toml",
        format!("{ALWAYS}[limits]\nask_timeout = \"77s\"\n"),
    );
    site.until("/plugin?id=a", |page| page.contains("77s"));
    let forged = [
        with_answer(&echo(), &asked["result"], Some(approval_content())),
        {
            let mut params = echo();
            params["inputResponses"] = json!({KEY: approval_content()});
            params
        },
    ];
    let folder_is_console_only = || {
        let listed = ToolbayCommand::new(&folder).args(["list"]).run();
        listed.stdout.contains("in the console")
    };
    assert!(folder_is_console_only());
    for params in forged {
        thread::scope(|scope| {
            let call = stateless_call(scope, &site.server, params);
            // It either ends without a call, or waits for the operator.
            let response = loop {
                if call.is_finished() {
                    break call.join().unwrap();
                }
                let page = site.page("/approvals");
                if page.contains("value=\"approve\"") {
                    answer(&site, &hidden_field(&page, "id"), "decline");
                }
            };
            let text = response.to_string();
            assert!(
                !text.contains("hello") || text.contains("not-approved"),
                "{text}"
            );
            // A state that was made under another grant is an error of the protocol.
            assert!(
                response["error"].is_object() || response["result"]["isError"] == true,
                "{text}"
            );
        });
    }
}

#[test]
fn a_call_that_waits_for_the_operator_ends_with_its_client_and_with_its_time() {
    let folder = operator_folder(&format!("{ALWAYS}[limits]\nask_timeout = \"300ms\"\n"));
    let mut server = echo_session(&folder, &json!({}));
    let id = server.request("tools/call", echo());
    let (kind, text) = error_kind_and_text(&server.finish_call(id));
    assert_eq!(kind, "not-approved");
    assert!(text.contains("did not answer within 300ms"), "{text}");
    drop(server);
    let folder = operator_folder(ALWAYS);
    let site = open(&folder);
    let session = site
        .server
        .start_session_with_capabilities("2025-11-25", json!({}), &[]);
    let stream: HttpResponse = session.request("tools/call", echo());
    let id = waiting_id(&site);
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(session.post(&cancelled).status, 202);
    let page = site.until("/approvals", |page| !page.contains("value=\"approve\""));
    assert!(page.contains("cancelled"), "{page}");
    assert_eq!(answer(&site, &id, "approve"), 409);
    drop(stream);
    site.server.log.wait_for("call cancelled");
    let page = site.until("", |page| page.contains("1 cancelled"));
    assert!(page.contains("none failed"), "{page}");
}

#[test]
fn without_a_console_the_call_is_refused_and_the_server_says_so() {
    let folder = operator_folder(ALWAYS);
    folder.write_config("[console]\nenabled = false\n");
    let mut server = echo_session(&folder, &form_capabilities());
    let (kind, text) = error_kind_and_text(&server.result("tools/call", echo()));
    assert_eq!(kind, "not-approved");
    assert!(text.contains("the server has no console"), "{text}");
    for (config, key) in [
        ("approve_by = \"console\"\n", "approve_by = \"console\""),
        (
            "approve = { notify = { command = [\"true\"] } }\n",
            "approve.notify",
        ),
    ] {
        folder.write_config(&format!("{config}[console]\nenabled = false\n"));
        let outcome = run(&folder, &["serve"]);
        assert_eq!(outcome.code, 64, "{outcome}");
        assert!(
            outcome.stderr.contains(&format!("{key} needs a console")),
            "{outcome}"
        );
    }
}

fn run(folder: &Folder, args: &[&str]) -> CommandOutput {
    ToolbayCommand::new(folder).args(args).run()
}

#[test]
fn approve_by_of_a_tool_overrides_the_grant_which_overrides_the_server() {
    let folder = operator_folder("require_approval = \"always\"\n");
    let listed = |folder: &Folder| run(folder, &["list"]).stdout;
    assert!(listed(&folder).contains("echo (before each call)\n"));
    folder.write_config("approve_by = \"console\"\n");
    assert!(listed(&folder).contains("echo (before each call, in the console)\n"));
    folder.put(
        "a.toml",
        "require_approval = \"always\"\napprove_by = \"client\"\n",
    );
    assert!(listed(&folder).contains("echo (before each call)\n"));
    folder.put(
        "a.toml",
        "require_approval = \"always\"\n[tools.echo]\napprove_by = \"console\"\n",
    );
    assert!(listed(&folder).contains("echo (before each call, in the console)\n"));
    folder.put("a.toml", "approve_by = \"consol\"\n");
    let said = listed(&folder);
    assert!(
        said.contains(
            "expected \"client\" or \"console\", not \"consol\"; did you mean \"console\"?"
        ),
        "{said}"
    );
}

#[test]
fn the_label_says_what_an_approval_covers() {
    for (grant, label, title) in [
        (
            ALWAYS.replace("console", "client"),
            "Approve this call",
            "Allow this call",
        ),
        (
            "require_approval = \"first\"\n".to_owned(),
            "Approve all calls in this session",
            "Allow all calls of this tool in this session",
        ),
    ] {
        let folder = operator_folder(&grant);
        let site = open(&folder);
        let session =
            site.server
                .start_session_with_capabilities("2025-11-25", form_capabilities(), &[]);
        let mut stream = session.request("tools/call", echo());
        let question = stream.next_message().unwrap();
        let field = &question["params"]["requestedSchema"]["properties"]["approve"];
        assert_eq!(field["title"], title);
        let page = site.until("/approvals", |page| page.contains("value=\"approve\""));
        assert!(page.contains(&format!(">{label}</button>")), "{page}");
        // The count of waiting calls is on every page, and a script reads it.
        for path in ["/approvals", "/plugins", "/tool?name=echo"] {
            let page = site.page(path);
            assert!(page.contains("<title>(1) "), "{path}: {page}");
            assert!(
                page.contains("aria-label=\"1 call waits\""),
                "{path}: {page}"
            );
        }
        let counted: Value = serde_json::from_str(&site.page("/waiting")).unwrap();
        let id = waiting_id(&site);
        assert_eq!(
            (&counted["count"], counted["newest"].to_string()),
            (&json!(1), id.clone())
        );
        assert_eq!(answer(&site, &id, "decline"), 303);
        assert!(site.page("/plugins").contains("<title>Plugins"));
    }
}

#[test]
fn a_program_is_notified_of_a_waiting_call_and_reads_no_arguments() {
    for confine in ["", "[server]\nconfine = false\n"] {
        let folder = operator_folder(ALWAYS);
        let file = folder.root().join("notices").display().to_string();
        let config = format!(
            "{RATES}approve = {{ notify = {{ command = [\"tee\", \"--append\", {file:?}] }} }}\n{confine}"
        );
        let site = Site::open(HttpServer::start_with_config(&folder, &config).wait_until_ready());
        thread::scope(|scope| {
            let call = stateless_call(scope, &site.server, echo());
            let id = waiting_id(&site);
            let text = loop {
                let text = std::fs::read_to_string(&file).unwrap_or_default();
                if text.ends_with('\n') {
                    break text;
                }
                thread::yield_now();
            };
            let notice: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(notice["id"].to_string(), id);
            assert_eq!(
                (&notice["event"], &notice["tool"], &notice["plugin"]),
                (&json!("approval-waiting"), &json!("echo"), &json!("a"))
            );
            assert!(!text.contains("hello"), "{text}");
            assert_eq!(answer(&site, &id, "approve"), 303);
            call.join().unwrap();
        });
    }
}

#[test]
fn a_notification_that_fails_is_logged_and_changes_nothing() {
    let folder = operator_folder(ALWAYS);
    let config = format!("{RATES}approve = {{ notify = {{ command = [\"false\"] }} }}\n");
    let site = Site::open(HttpServer::start_with_config(&folder, &config).wait_until_ready());
    thread::scope(|scope| {
        let call = stateless_call(scope, &site.server, echo());
        let failed =
            "approval: a notification of a waiting call failed (approve.notify): false failed";
        site.server.log.wait_for(failed);
        assert_eq!(answer(&site, &waiting_id(&site), "approve"), 303);
        let response = call.join().unwrap();
        assert!(
            message::result_text(&response["result"]).contains("hello"),
            "{response}"
        );
    });
}

#[test]
fn a_webhook_is_notified_once_and_its_redirect_is_not_followed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, received) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            let mut part = [0; 4096];
            // The body, possibly in chunks, is one object.
            while !request.contains(&b'}') {
                let length = stream.read(&mut part).unwrap();
                assert_ne!(length, 0, "a request without an object");
                request.extend_from_slice(&part[..length]);
            }
            let moved = format!(
                "HTTP/1.1 307 Moved\r\nLocation: http://{address}/again\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            stream.write_all(moved.as_bytes()).unwrap();
            sender.send(String::from_utf8(request).unwrap()).unwrap();
        }
    });
    let folder = operator_folder(ALWAYS);
    let config = format!(
        "{RATES}approve = {{ notify = {{ webhook = \"http://{address}/hooks/s3cret\" }} }}\n"
    );
    let site = Site::open(HttpServer::start_with_config(&folder, &config).wait_until_ready());
    thread::scope(|scope| {
        let call = stateless_call(scope, &site.server, echo());
        let request = received.recv().unwrap();
        assert!(
            request.starts_with("POST /hooks/s3cret HTTP/1.1\r\n"),
            "{request}"
        );
        assert!(
            request
                .to_lowercase()
                .contains("content-type: application/json"),
            "{request}"
        );
        assert!(
            request.contains("approval-waiting") && !request.contains("hello"),
            "{request}"
        );
        let line = site.server.log.wait_for("redirects are not followed");
        assert!(!line.contains("s3cret"), "{line}");
        assert_eq!(answer(&site, &waiting_id(&site), "decline"), 303);
        call.join().unwrap();
    });
    assert!(received.try_recv().is_err(), "one request");
}
