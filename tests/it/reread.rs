//! The configuration is read again on SIGHUP: what changes while the server runs, what needs a
//! restart, and what a mistake does. No session is lost by it.

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

/// What each reading ends with.
const READ: &str = "the configuration was read again";

fn hang_up(pid: u32) {
    assert!(
        Command::new("kill")
            .args(["-HUP", &pid.to_string()])
            .status()
            .unwrap()
            .success()
    );
}

/// Writes the file as editors do, and has it read: another file takes its place.
fn change(folder: &Folder, pid: u32, config: &str) {
    let staged = folder.sibling_path("toolbay.toml.new");
    fs::write(&staged, config).unwrap();
    fs::rename(staged, folder.sibling_path("toolbay.toml")).unwrap();
    hang_up(pid);
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
fn tokens_come_and_go_and_what_one_opened_ends_with_it() {
    let folder = Folder::with(
        "tiny.wasm",
        TinyComponent::new(&["a", "b"]).with_echo().build(),
    );
    let ([(ada, adas), (bob, bobs)], all) = ([token("ada", ""), token("bob", "")], "");
    let server = HttpServer::start_with_config(&folder, &(adas.clone() + all)).wait_until_ready();
    assert_eq!([&ada, &bob].map(|token| status(&server, token)), [200, 401]);
    // A session and a stream of the one that stays.
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
    change(&folder, server.pid(), &(adas.clone() + &bobs));
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
    // What ada's token may do changes, and bob's is no longer there.
    change(&folder, server.pid(), &(adas + "tools = [\"a\"]\n"));
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
    // Both streams end: one had no token any more, the other one that allowed more.
    while other.next_message().is_some() {}
    while stream.next_message().is_some() {}
}

/// A folder with a tool that a person must allow.
fn guarded() -> Folder {
    let folder = Folder::with(
        "tiny.wasm",
        TinyComponent::new(&["a", "b"]).with_echo().build(),
    );
    folder.put("tiny.toml", "[tools.b]\nrequire_approval = \"always\"\n");
    folder
}

#[test]
fn a_body_that_arrives_when_its_token_has_changed_calls_nothing_more() {
    let ([(ada, adas), (bob, bobs)], folder) = ([token("ada", ""), token("bob", "")], guarded());
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
    // A request that is answered after those above have begun.
    assert_eq!([&ada, &bob].map(|token| status(&server, token)), [200, 200]);
    change(&folder, server.pid(), &format!("{adas}tools = [\"b\"]\n"));
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
fn a_call_that_waits_ends_with_its_token() {
    let ((ada, adas), folder) = (token("ada", ""), guarded());
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
    change(&folder, server.pid(), &bobs);
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
fn a_file_that_is_gone_or_no_file_changes_nothing() {
    let ((ada, adas), folder) = (token("ada", ""), guarded());
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
    hang_up(server.pid());
    let line = server.log.wait_for("the configuration stays as it was");
    assert!(
        line.ends_with(
            "toolbay.toml does not exist any more; for a server without configuration, restart it"
        ),
        "{line}"
    );
    assert_eq!((status(&server, &ada), refused(&call())), (200, true));
    std::os::unix::fs::symlink("missing.toml", &file).unwrap();
    hang_up(server.pid());
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
    hang_up(server.pid());
    let line = server
        .log
        .wait_for_count("the configuration stays as it was", 3);
    assert!(
        line.ends_with("toolbay.toml is not a regular file"),
        "{line}"
    );
    assert_eq!((status(&server, &ada), refused(&call())), (200, true));
    fs::rename(&aside, &file).unwrap();
    hang_up(server.pid());
    server.log.wait_for(READ);
    assert_eq!((status(&server, &ada), refused(&call())), (200, true));
}

#[test]
fn a_session_goes_on_under_new_limits_and_the_log_says_what_changed() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.write_config("[limits]\nfuel = 1_000_000_000\n");
    let mut server = StdioServer::start(&folder);
    assert_eq!(server.text("count", json!({})), "1");
    change(
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
    // The plugin gets them while the session goes on.
    let begun = Instant::now();
    loop {
        let result = server.call("count", json!({}));
        if result["isError"] == Value::Bool(true) {
            assert_eq!(result["_meta"]["dev.toolbay/error"], "fuel", "{result}");
            break;
        }
        assert!(begun.elapsed() < DEADLINE, "{}", server.log.text());
    }
    change(&folder, server.pid(), "");
    server.log.wait_for_count(READ, 2);
    let begun = Instant::now();
    while server.call("count", json!({}))["isError"] == Value::Bool(true) {
        assert!(begun.elapsed() < DEADLINE, "{}", server.log.text());
    }
}

#[test]
fn a_mistake_is_named_with_its_place_and_changes_nothing() {
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
        change(&folder, server.pid(), wrong);
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
    change(&folder, server.pid(), "");
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
fn what_is_logged_and_who_is_let_in_by_name_change() {
    let folder = Folder::with("tiny.wasm", TinyComponent::new(&["a"]).with_echo().build());
    let server =
        HttpServer::start_with_config(&folder, "[http]\nanonymous = true").wait_until_ready();
    let from = |host: &str| server.get("/mcp", &[("Host", host)]).status;
    assert_eq!(from("tools.example"), 403);
    change(
        &folder,
        server.pid(),
        "log = \"debug\"\n[http]\nanonymous = true\nallowed_hosts = [\"tools.example\"]",
    );
    server.log.wait_for(READ);
    assert_ne!(from("tools.example"), 403);
    folder.put("other.wasm", TinyComponent::new(&["b"]).with_echo().build());
    server.log.wait_for("DEBUG");
    change(&folder, server.pid(), "log = \"error\"");
    // It is quiet now, also about that.
    let begun = Instant::now();
    while from("tools.example") != 403 {
        assert!(begun.elapsed() < DEADLINE, "{}", server.log.text());
    }
    hang_up(server.pid());
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
fn who_needed_no_token_needs_one_when_there_is_one() {
    let folder = Folder::with("tiny.wasm", TinyComponent::new(&["a"]).with_echo().build());
    let server = HttpServer::start_with_config(&folder, "").wait_until_ready();
    let mut stream =
        server.post_stateless("subscriptions/listen", json!({"notifications": {}}), &[]);
    assert_eq!(
        stream.next_message().unwrap()["method"],
        "notifications/subscriptions/acknowledged"
    );
    let (ada, adas) = token("ada", "");
    change(&folder, server.pid(), &adas);
    server.log.wait_for(READ);
    assert_eq!(
        server.post_stateless("tools/list", json!({}), &[]).status,
        401
    );
    assert_eq!(status(&server, &ada), 200);
    while stream.next_message().is_some() {}
    // Whoever needed none before needs one from now on, until a restart.
    change(&folder, server.pid(), "");
    server.log.wait_for_count(READ, 2);
    assert_eq!(
        server.post_stateless("tools/list", json!({}), &[]).status,
        401
    );
    assert_eq!(status(&server, &ada), 401);
}

#[test]
fn when_the_last_token_is_removed_nobody_is_let_in() {
    let folder = Folder::with("tiny.wasm", TinyComponent::new(&["a"]).with_echo().build());
    let (ada, adas) = token("ada", "");
    let server = HttpServer::start_with_config(
        &folder,
        &format!("[http]\nallowed_hosts = [\"tools.example.com\"]\n{adas}"),
    )
    .wait_until_ready();
    assert_eq!(status(&server, &ada), 200);
    change(
        &folder,
        server.pid(),
        "[http]\nallowed_hosts = [\"tools.example.com\"]\n",
    );
    server.log.wait_for("no one is let in");
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
    // Names for others without tokens are refused, and the removal counts all the same.
    server.log.wait_for("the configuration stays as it was: ");
    // Saying that nobody needs one does not open it while it runs either, and a token does.
    change(&folder, server.pid(), "[http]\nanonymous = true\n");
    server.log.wait_for(READ);
    assert_eq!(
        server.post_stateless("tools/list", json!({}), &[]).status,
        401
    );
    change(&folder, server.pid(), &adas);
    server.log.wait_for_count(READ, 2);
    assert_eq!(status(&server, &ada), 200);
}

#[test]
fn a_removal_counts_although_the_file_has_a_mistake_elsewhere() {
    let folder = Folder::with(
        "tiny.wasm",
        TinyComponent::new(&["a", "b"]).with_echo().build(),
    );
    let [(ada, adas), (bob, bobs), (_, evas)] =
        [token("ada", ""), token("bob", ""), token("eva", "")];
    let server =
        HttpServer::start_with_config(&folder, &format!("{adas}{bobs}")).wait_until_ready();
    assert_eq!([&ada, &bob].map(|token| status(&server, token)), [200, 200]);
    change(
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
    let (line, added) = (server.log.text(), "eva");
    assert!(
        line.contains("tokens were removed or have fewer rights: ada, bob")
            && !line.contains(added),
        "{line}"
    );
}

#[test]
fn names_for_others_need_tokens_or_a_word_that_nobody_needs_one() {
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
    change(&folder, server.pid(), "[limits]\ntimeout = \"9s\"\n");
    let line = server.log.wait_for("no longer sets");
    assert!(
        line.contains(
            "toolbay.toml no longer sets limits.fuel, require_approval, so the defaults apply"
        ),
        "{line}"
    );
}
