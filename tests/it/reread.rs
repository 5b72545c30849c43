//! The configuration is read again on SIGHUP: settings that change while the server runs, settings
//! that need a restart, and the effect of a mistake. Sessions continue.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};
use toolbay_testkit::message;

use crate::http::auth::{bearer, token};
use crate::support::{
    DEADLINE, Folder, HttpServer, StdioServer, TinyComponent, ToolbayCommand, hostile, result_text,
};

/// The log message after each reading.
const READ: &str = "the configuration was read again";

fn send_sighup(pid: u32) {
    assert!(
        Command::new("kill")
            .args(["-HUP", &pid.to_string()])
            .status()
            .unwrap()
            .success()
    );
}

/// Writes the configuration in the way of editors, by renaming another file to it, and has the
/// server read it.
fn change_config(folder: &Folder, pid: u32, config: &str) {
    let staged = folder.sibling_path("toolbay.toml.new");
    fs::write(&staged, config).unwrap();
    fs::rename(staged, folder.sibling_path("toolbay.toml")).unwrap();
    send_sighup(pid);
}

fn status(server: &HttpServer, token: &str) -> u16 {
    server
        .post_stateless(
            "tools/list",
            json!({}),
            &[("Authorization", &bearer(token))],
        )
        .status
}

#[test]
fn tokens_can_be_added_and_removed_and_streams_of_a_removed_token_end() {
    let folder = Folder::with(
        "tiny.wasm",
        TinyComponent::new(&["a", "b"]).with_echo().build(),
    );
    let [(ada, adas), (bob, bobs)] = [token("ada", ""), token("bob", "")];
    let all = "";
    let server = HttpServer::start_with_config(&folder, &(adas.clone() + all)).wait_until_ready();
    assert_eq!([&ada, &bob].map(|token| status(&server, token)), [200, 401]);
    // A stream of the caller whose token stays.
    let authorization = bearer(&ada);
    let headers = [("Authorization", authorization.as_str())];
    let mut stream = server.post_stateless(
        "subscriptions/listen",
        json!({"notifications": {}}),
        &headers,
    );
    assert_eq!(
        stream.next_message().unwrap()["method"],
        "notifications/subscriptions/acknowledged"
    );
    change_config(&folder, server.pid(), &(adas.clone() + &bobs));
    let line = server.log.wait_for(READ);
    assert!(line.ends_with("changed: http.tokens"), "{line}");
    assert_eq!([&ada, &bob].map(|token| status(&server, token)), [200, 200]);
    let theirs = bearer(&bob);
    let mut other = server.post_stateless(
        "subscriptions/listen",
        json!({"notifications": {}}),
        &[("Authorization", &theirs)],
    );
    assert_eq!(
        other.next_message().unwrap()["method"],
        "notifications/subscriptions/acknowledged"
    );
    // Ada's token has fewer rights now, and bob's token is removed.
    change_config(&folder, server.pid(), &(adas + "tools = [\"a\"]\n"));
    server.log.wait_for_count(READ, 2);
    assert_eq!([&ada, &bob].map(|token| status(&server, token)), [200, 401]);
    let listed = server
        .post_stateless("tools/list", json!({}), &headers)
        .response_message();
    let names: Vec<&str> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|t| t["name"].as_str())
        .collect();
    assert_eq!(names, ["a"]);
    // Both streams end: the token of one was removed, and the token of the other has fewer rights.
    while other.next_message().is_some() {}
    while stream.next_message().is_some() {}
}

/// Creates a folder with a tool that needs the approval of a person.
fn folder_with_approval() -> Folder {
    let folder = Folder::with(
        "tiny.wasm",
        TinyComponent::new(&["a", "b"]).with_echo().build(),
    );
    folder.put("tiny.toml", "[tools.b]\nrequire_approval = \"always\"\n");
    folder
}

#[test]
fn a_request_whose_token_changes_before_its_body_arrives_calls_no_tool() {
    let [(ada, adas), (bob, bobs)] = [token("ada", ""), token("bob", "")];
    let folder = folder_with_approval();
    let server =
        HttpServer::start_with_config(&folder, &format!("{adas}{bobs}")).wait_until_ready();
    let call =
        message::request(1, "tools/call", &json!({"name": "a", "arguments": {}})).to_string();
    let version = server.session_revisions_of(&bearer(&ada)).pop().unwrap();
    let session = |token: &str| {
        let session =
            server.start_session_with_headers(&version, &[("Authorization", &bearer(token))]);
        session
            .headers()
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect::<Vec<_>>()
            .concat()
    };
    let (before, last) = call.split_at(call.len() - 1);
    let held = [&ada, &bob].map(|token| {
        let mut stream = TcpStream::connect(server.address).unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\n{}Content-Type: application/json\r\nAccept: application/json, \
             text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            server.address,
            session(token),
            call.len()
        );
        stream.write_all(format!("{head}{before}").as_bytes()).unwrap();
        stream
    });
    // The response to this request shows that the server has started to read the requests above.
    assert_eq!([&ada, &bob].map(|token| status(&server, token)), [200, 200]);
    change_config(&folder, server.pid(), &format!("{adas}tools = [\"b\"]\n"));
    server.log.wait_for_count("tokens were removed", 1);
    let answers = held.map(|mut stream| {
        stream.write_all(last.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    let [adas, bobs] = answers;
    assert!(bobs.starts_with("HTTP/1.1 401 "), "{bobs}");
    assert!(
        !adas.contains("\"content\"") && adas.contains("Unknown tool"),
        "{adas}"
    );
}

#[test]
fn a_waiting_call_ends_when_its_token_is_removed() {
    let (ada, adas) = token("ada", "");
    let folder = folder_with_approval();
    let (_, bobs) = token("bob", "");
    let server =
        HttpServer::start_with_config(&folder, &format!("{adas}{bobs}")).wait_until_ready();
    let authorization = bearer(&ada);
    let headers = [("Authorization", authorization.as_str())];
    let version = server.session_revisions_of(&authorization).pop().unwrap();
    let capabilities = json!({"elicitation": {"form": {}}});
    let session = server.start_session_with_capabilities(&version, capabilities, &headers);
    let mut stream = session.request("tools/call", json!({"name": "b", "arguments": {}}));
    let question = stream.next_message().unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    change_config(&folder, server.pid(), &bobs);
    let mut rest = Vec::new();
    while let Some(message) = stream.next_message() {
        rest.push(message);
    }
    assert!(
        rest.iter().all(|message| message.get("result").is_none()),
        "{rest:?}"
    );
    server.log.wait_for(READ);
    assert_eq!(status(&server, &ada), 401);
}

#[test]
fn a_missing_or_invalid_configuration_file_changes_nothing() {
    let (ada, adas) = token("ada", "");
    let folder = folder_with_approval();
    let server =
        HttpServer::start_with_config(&folder, &format!("require_approval = \"always\"\n{adas}"))
            .wait_until_ready();
    let file = folder.sibling_path("toolbay.toml");
    let aside = folder.sibling_path("aside.toml");
    let call = || {
        let headers = [("Authorization", &*bearer(&ada))];
        server
            .post_stateless(
                "tools/call",
                json!({"name": "a", "arguments": {}}),
                &headers,
            )
            .response_message()
    };
    let refused = |answer: &Value| {
        answer["result"]
            .get("content")
            .is_none_or(|_| answer["result"]["isError"] == true)
    };
    assert!(refused(&call()));
    fs::rename(&file, &aside).unwrap();
    send_sighup(server.pid());
    let line = server.log.wait_for("the configuration stays as it was");
    assert!(
        line.ends_with(
            "toolbay.toml does not exist any more; to run without a configuration, restart the server"
        ),
        "{line}"
    );
    assert_eq!((status(&server, &ada), refused(&call())), (200, true));
    std::os::unix::fs::symlink("missing.toml", &file).unwrap();
    send_sighup(server.pid());
    let line = server
        .log
        .wait_for_count("the configuration stays as it was", 2);
    assert!(
        line.ends_with("toolbay.toml is a link to a file that does not exist"),
        "{line}"
    );
    fs::remove_file(&file).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(&file)
            .status()
            .unwrap()
            .success()
    );
    send_sighup(server.pid());
    let line = server
        .log
        .wait_for_count("the configuration stays as it was", 3);
    assert!(
        line.ends_with("toolbay.toml is not a regular file"),
        "{line}"
    );
    assert_eq!((status(&server, &ada), refused(&call())), (200, true));
    fs::rename(&aside, &file).unwrap();
    send_sighup(server.pid());
    server.log.wait_for(READ);
    assert_eq!((status(&server, &ada), refused(&call())), (200, true));
}

#[test]
fn a_session_continues_under_new_limits_and_the_log_names_the_changes() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.write_config("[limits]\nfuel = 1_000_000_000\n");
    let mut server = StdioServer::start(&folder);
    assert_eq!(server.text("count", json!({})), "1");
    change_config(
        &folder,
        server.pid(),
        "page_size = 7\n[limits]\nfuel = 1_000\n[server]\ninstructions = \"Be brief.\"\ncalls = 3\n[ceilings]\nhandles = 5\n",
    );
    let line = server.log.wait_for(READ);
    assert!(
        line.ends_with("changed: limits.fuel, server.instructions"),
        "{line}"
    );
    let line = server.log.wait_for("restart the server");
    assert!(
        line.ends_with("to change ceilings.handles, page_size, server.calls, restart the server"),
        "{line}"
    );
    // The new limits apply to the plugin, and the session continues.
    let begun = Instant::now();
    loop {
        let result = server.call("count", json!({}));
        if result["isError"] == Value::Bool(true) {
            assert_eq!(result["_meta"]["dev.toolbay/error"], "fuel", "{result}");
            break;
        }
        assert!(begun.elapsed() < DEADLINE, "{}", server.log.text());
    }
    change_config(&folder, server.pid(), "");
    server.log.wait_for_count(READ, 2);
    let begun = Instant::now();
    while server.call("count", json!({}))["isError"] == Value::Bool(true) {
        assert!(begun.elapsed() < DEADLINE, "{}", server.log.text());
    }
}

#[test]
fn a_mistake_is_reported_with_its_position_and_changes_nothing() {
    let folder = Folder::with("tiny.wasm", TinyComponent::new(&["a"]).with_echo().build());
    let server =
        HttpServer::start_with_config(&folder, "[caller_rate_limit]\ncalls = 1\nper = \"1h\"")
            .wait_until_ready();
    let call = || server.result("tools/call", json!({"name": "a"}));
    assert_ne!(call()["isError"], true);
    for (wrong, words) in [
        (
            "log = \"inof\"",
            "toolbay.toml:1:7: log: \"inof\" is not a level; did you mean \"info\"?",
        ),
        ("[caller_rate_limit\ncalls = 100", "toolbay.toml:1:"),
        ("[http]\ntokens = 7", "toolbay.toml:2:10: http.tokens: "),
        (
            "[limits]\nfuel = 1\n[server]\nscratch = \"\"",
            "server.scratch: expected the path of a folder, not an empty string",
        ),
    ] {
        change_config(&folder, server.pid(), wrong);
        let line = server.log.wait_for(words);
        assert!(
            line.contains("the configuration stays as it was: "),
            "{line}"
        );
        assert_eq!(
            call()["_meta"]["dev.toolbay/error"],
            "rate-limited",
            "{wrong}"
        );
    }
    // With an empty file, the defaults apply.
    change_config(&folder, server.pid(), "");
    let line = server.log.wait_for(READ);
    assert!(
        line.ends_with("changed: caller_rate_limit.calls, caller_rate_limit.per"),
        "{line}"
    );
    for _ in 0..5 {
        assert_ne!(call()["isError"], true);
    }
}

#[test]
fn the_log_level_and_the_allowed_hosts_can_change() {
    let folder = Folder::with("tiny.wasm", TinyComponent::new(&["a"]).with_echo().build());
    let server =
        HttpServer::start_with_config(&folder, "[http]\nanonymous = true").wait_until_ready();
    let from = |host: &str| server.get("/mcp", &[("Host", host)]).status;
    assert_eq!(from("tools.example"), 403);
    change_config(
        &folder,
        server.pid(),
        "log = \"debug\"\n[http]\nanonymous = true\nallowed_hosts = [\"tools.example\"]",
    );
    server.log.wait_for(READ);
    assert_ne!(from("tools.example"), 403);
    folder.put("other.wasm", TinyComponent::new(&["b"]).with_echo().build());
    server.log.wait_for("DEBUG");
    change_config(&folder, server.pid(), "log = \"error\"");
    // At this level, the log does not report the reading either.
    let begun = Instant::now();
    while from("tools.example") != 403 {
        assert!(begun.elapsed() < DEADLINE, "{}", server.log.text());
    }
    send_sighup(server.pid());
    assert_eq!(
        result_text(&server.result("tools/call", json!({"name": "a", "arguments": {}}))),
        "{}"
    );
    assert_eq!(
        server.log.text().matches(READ).count(),
        1,
        "{}",
        server.log.text()
    );
}

#[test]
fn callers_without_a_token_are_rejected_once_a_token_is_configured() {
    let folder = Folder::with("tiny.wasm", TinyComponent::new(&["a"]).with_echo().build());
    let server = HttpServer::start_with_config(&folder, "").wait_until_ready();
    let mut stream =
        server.post_stateless("subscriptions/listen", json!({"notifications": {}}), &[]);
    assert_eq!(
        stream.next_message().unwrap()["method"],
        "notifications/subscriptions/acknowledged"
    );
    let (ada, adas) = token("ada", "");
    change_config(&folder, server.pid(), &adas);
    server.log.wait_for(READ);
    assert_eq!(
        server.post_stateless("tools/list", json!({}), &[]).status,
        401
    );
    assert_eq!(status(&server, &ada), 200);
    while stream.next_message().is_some() {}
    // After a token existed, callers without a token are refused until a restart.
    change_config(&folder, server.pid(), "");
    server.log.wait_for_count(READ, 2);
    assert_eq!(
        server.post_stateless("tools/list", json!({}), &[]).status,
        401
    );
    assert_eq!(status(&server, &ada), 401);
}

#[test]
fn after_the_last_token_is_removed_every_request_is_rejected() {
    let folder = Folder::with("tiny.wasm", TinyComponent::new(&["a"]).with_echo().build());
    let (ada, adas) = token("ada", "");
    let server = HttpServer::start_with_config(
        &folder,
        &format!("[http]\nallowed_hosts = [\"tools.example.com\"]\n{adas}"),
    )
    .wait_until_ready();
    assert_eq!(status(&server, &ada), 200);
    change_config(
        &folder,
        server.pid(),
        "[http]\nallowed_hosts = [\"tools.example.com\"]\n",
    );
    server.log.wait_for("every caller is rejected");
    for headers in [
        vec![],
        vec![("Host", "tools.example.com")],
        vec![("Authorization", "Bearer x")],
    ] {
        assert_eq!(
            server
                .post_stateless("tools/list", json!({}), &headers)
                .status,
            401,
            "{headers:?}"
        );
    }
    assert_eq!(status(&server, &ada), 401);
    assert_eq!(server.get("/metrics", &[]).status, 401);
    // `allowed_hosts` without tokens is refused, and the removal of the token applies nevertheless.
    server.log.wait_for("the configuration stays as it was: ");
    // `anonymous = true` does not admit callers without a token while the server runs. A new token
    // does.
    change_config(&folder, server.pid(), "[http]\nanonymous = true\n");
    server.log.wait_for(READ);
    assert_eq!(
        server.post_stateless("tools/list", json!({}), &[]).status,
        401
    );
    change_config(&folder, server.pid(), &adas);
    server.log.wait_for_count(READ, 2);
    assert_eq!(status(&server, &ada), 200);
}

#[test]
fn a_removed_token_is_rejected_even_if_the_file_has_a_mistake() {
    let folder = Folder::with(
        "tiny.wasm",
        TinyComponent::new(&["a", "b"]).with_echo().build(),
    );
    let [(ada, adas), (bob, bobs), (_, evas)] =
        [token("ada", ""), token("bob", ""), token("eva", "")];
    let server =
        HttpServer::start_with_config(&folder, &format!("{adas}{bobs}")).wait_until_ready();
    assert_eq!([&ada, &bob].map(|token| status(&server, token)), [200, 200]);
    change_config(
        &folder,
        server.pid(),
        &format!("page_sise = 7\n{adas}tools = [\"a\"]\n{evas}"),
    );
    server.log.wait_for("the configuration stays as it was: ");
    assert_eq!([&ada, &bob].map(|token| status(&server, token)), [200, 401]);
    let listed = server
        .post_stateless("tools/list", json!({}), &[("Authorization", &bearer(&ada))])
        .response_message();
    assert_eq!(
        listed["result"]["tools"].as_array().unwrap().len(),
        1,
        "{listed}"
    );
    let line = server.log.text();
    let added = "eva";
    assert!(
        line.contains("tokens were removed or have fewer rights: ada, bob")
            && !line.contains(added),
        "{line}"
    );
}

#[test]
fn allowed_hosts_need_tokens_or_anonymous_access() {
    let folder = Folder::new();
    let serve = |config: &str| {
        folder.write_config(config);
        ToolbayCommand::new(&folder)
            .args(["serve", "--http", "127.0.0.1:0"])
            .run()
    };
    let outcome = serve("[http]\nallowed_hosts = [\"tools.example.com\"]\n");
    assert_eq!(outcome.code, 64, "{outcome}");
    assert!(
        outcome
            .stderr
            .contains("http.allowed_hosts names the hosts by which others reach this server"),
        "{outcome}"
    );
    let (_, adas) = token("ada", "");
    for good in ["anonymous = true\n", adas.as_str()] {
        folder.write_config(&format!(
            "[http]\nallowed_hosts = [\"tools.example.com\"]\n{good}"
        ));
        HttpServer::run(ToolbayCommand::new(&folder).args(["serve", "--http", "127.0.0.1:0"]));
    }
}

#[test]
fn the_log_names_what_a_configuration_no_longer_sets() {
    let folder = Folder::with("tiny.wasm", TinyComponent::new(&["a"]).build());
    let server = StdioServer::start_with_config(
        &folder,
        "require_approval = \"never\"\n[limits]\nfuel = 7_000_000\ntimeout = \"9s\"\n",
    );
    change_config(&folder, server.pid(), "[limits]\ntimeout = \"9s\"\n");
    let line = server.log.wait_for("no longer sets");
    assert!(
        line.contains(
            "toolbay.toml no longer sets limits.fuel, require_approval, so the defaults apply"
        ),
        "{line}"
    );
}

#[test]
fn a_rotated_token_without_tools_keeps_its_tools() {
    let folder = Folder::with(
        "tiny.wasm",
        TinyComponent::new(&["a", "b"]).with_echo().build(),
    );
    let [(old, olds), (new, news), (_, others)] = ["ci", "ci", "ada"].map(|name| token(name, ""));
    let server =
        HttpServer::start_with_config(&folder, &format!("{others}{olds}tools = [\"a\"]\n"))
            .wait_until_ready();
    let names = |token: &str| {
        let headers = [("Authorization", &*bearer(token))];
        let listed = server
            .post_stateless("tools/list", json!({}), &headers)
            .response_message();
        listed["result"]["tools"].as_array().unwrap().len()
    };
    assert_eq!(names(&old), 1);
    change_config(&folder, server.pid(), &format!("{others}{news}"));
    server.log.wait_for(READ);
    assert_eq!((status(&server, &old), names(&new)), (401, 1));
    // It is removed, and added again.
    change_config(&folder, server.pid(), &others);
    server.log.wait_for_count(READ, 2);
    assert_eq!(status(&server, &new), 401);
    change_config(&folder, server.pid(), &format!("{others}{news}"));
    server.log.wait_for_count(READ, 3);
    assert_eq!(names(&new), 1);
    change_config(
        &folder,
        server.pid(),
        &format!("{others}{news}tools = [\"*\"]\n"),
    );
    server.log.wait_for_count(READ, 4);
    assert_eq!(names(&new), 2);
}

#[test]
fn a_token_that_is_added_again_has_no_tasks_results_and_sessions_of_the_removed_one() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("hostile.toml", "[tools.lines]\ntask_support = \"optional\"");
    let (_, others) = token("ada", "");
    let [(old, olds), (new, news), (newest, newests)] = ["ci"; 3].map(|name| token(name, ""));
    let results = "[results]\nshown = \"4KiB\"\n";
    let config = |tokens: &str| format!("{results}{others}{tokens}");
    let server = HttpServer::start_with_config(&folder, &config(&olds)).wait_until_ready();
    let authorization = bearer(&old);
    let headers = [("Authorization", authorization.as_str())];
    let session = server.start_session_with_headers("2025-11-25", &headers);
    let lines = |more: &str| {
        let mut call = json!({"name": "lines", "arguments": {"n": 100_000}});
        if !more.is_empty() {
            call[more] = json!({});
        }
        call
    };
    let id = session.result("tools/call", lines("task"))["task"]["taskId"].take();
    let result = session.result("tools/call", lines(""));
    let uri = result["content"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|part| part["uri"].as_str())
        .unwrap()
        .to_owned();
    session.result("tasks/result", json!({"taskId": id}));
    // Whether the bearer of a token can continue the session, read the result and the task.
    let access = |token: &str| {
        let authorization = bearer(token);
        let headers = [
            ("Mcp-Session-Id", session.id.as_str()),
            ("Authorization", authorization.as_str()),
        ];
        let ping = message::request(1, "ping", &json!({})).to_string();
        let continued = server.post(&headers, ping.as_bytes()).status == 200;
        let own = server.start_session_with_headers("2025-11-25", &headers[1..]);
        let answers = |method: &str, params: Value| {
            let message = own.request(method, params).response_message();
            message.get("result").is_some()
        };
        [
            continued,
            answers("resources/read", json!({"uri": uri})),
            answers("tasks/get", json!({"taskId": id})),
        ]
    };
    assert_eq!(access(&old), [true; 3]);
    // A rotated token has everything.
    change_config(&folder, server.pid(), &config(&news));
    server.log.wait_for(READ);
    assert_eq!(access(&new), [true; 3]);
    change_config(&folder, server.pid(), &config(""));
    server.log.wait_for_count(READ, 2);
    change_config(&folder, server.pid(), &config(&newests));
    server.log.wait_for_count(READ, 3);
    assert_eq!(access(&newest), [false; 3]);
}

#[test]
fn a_removed_token_is_rejected_while_the_file_keeps_changing() {
    let folder = Folder::with("tiny.wasm", TinyComponent::new(&["a"]).build());
    let [(ada, adas), (bob, bobs)] = [token("ada", ""), token("bob", "")];
    let server =
        HttpServer::start_with_config(&folder, &format!("{adas}{bobs}")).wait_until_ready();
    assert_eq!([&ada, &bob].map(|token| status(&server, token)), [200, 200]);
    let path = folder.sibling_path("toolbay.toml");
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let touched = scope.spawn(|| {
            // Until the test has seen the effect, the file is never unchanged for a second.
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let file = fs::File::options().append(true).open(&path).unwrap();
                file.set_modified(std::time::SystemTime::now()).unwrap();
                std::thread::yield_now();
            }
        });
        send_sighup(server.pid());
        // The server waits until the file settles. This change removes a token.
        change_config(&folder, server.pid(), &adas);
        server
            .log
            .wait_for("tokens were removed or have fewer rights: bob");
        assert_eq!([&ada, &bob].map(|token| status(&server, token)), [200, 401]);
        assert!(!server.log.text().contains(READ), "{}", server.log.text());
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        touched.join().unwrap();
    });
    server.log.wait_for(READ);
}
