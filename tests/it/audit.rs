//! The audit log: every event has a line, and no line can be changed unnoticed.

mod followed;
mod full;
mod rejections;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::{
    Folder, HttpServer, StdioServer, TinyComponent, ToolbayCommand, hostile, web,
};

const CONFIG: &str = "[audit]\nfolder = \"log\"\nfile_size = \"1MiB\"\n";

fn sha256(bytes: impl AsRef<[u8]>) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Returns the files of the named part of the log, oldest first.
fn files_of(folder: &Folder, part: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.sibling_path("log"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let is_of = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with(&format!("{part}-"))
            && path
                .extension()
                .is_some_and(|extension| extension == "jsonl")
    };
    let mut files: Vec<_> = entries.filter(is_of).collect();
    files.sort();
    files
}

/// Returns the files of the main part.
fn files(folder: &Folder) -> Vec<PathBuf> {
    files_of(folder, "audit")
}

/// Returns the complete lines of one part.
fn lines_of(folder: &Folder, part: &str) -> Vec<Value> {
    let text: String = files_of(folder, part)
        .iter()
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// Returns the complete lines of both parts of the log, in order of time.
fn lines(folder: &Folder) -> Vec<Value> {
    let mut rejected = lines_of(folder, "rejected").into_iter().peekable();
    let mut all = Vec::new();
    for line in lines_of(folder, "audit") {
        let time = line["time"].as_str().unwrap();
        while let Some(earlier) = rejected.next_if(|other| other["time"].as_str().unwrap() < time) {
            all.push(earlier);
        }
        all.push(line);
    }
    all.extend(rejected);
    all
}

fn events(folder: &Folder, event: &str) -> Vec<Value> {
    lines(folder)
        .into_iter()
        .filter(|line| line["event"] == event)
        .collect()
}

/// Returns how many calls have each outcome: calls with lines, and calls that are only counted.
fn outcomes(folder: &Folder) -> BTreeMap<String, u64> {
    let mut outcomes = BTreeMap::new();
    for line in lines(folder) {
        let count = match line["event"].as_str().unwrap() {
            "call" => 1,
            "rejected" => line["count"].as_u64().unwrap(),
            _ => continue,
        };
        *outcomes
            .entry(line["outcome"].as_str().unwrap().to_owned())
            .or_insert(0) += count;
    }
    outcomes
}

/// Threads that keep all cores busy until this is dropped.
struct BusyCores(Vec<thread::JoinHandle<()>>, std::sync::Arc<AtomicBool>);

impl BusyCores {
    fn new() -> Self {
        let ends = std::sync::Arc::new(AtomicBool::new(false));
        let cores = thread::available_parallelism().unwrap().get();
        let spin = |_| {
            let ends = std::sync::Arc::clone(&ends);
            thread::spawn(move || {
                while !ends.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        Self((0..cores).map(spin).collect(), ends)
    }
}

impl Drop for BusyCores {
    fn drop(&mut self) {
        self.1.store(true, Ordering::Relaxed);
        self.0.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

/// Waits until the log has `count` lines about this event, and returns the last one.
fn wait_for_event(server: &mut StdioServer, folder: &Folder, event: &str, count: usize) -> Value {
    let mut found = Vec::new();
    server.wait_until(&format!("{count} lines about {event}"), |_| {
        found = events(folder, event);
        found.len() >= count
    });
    found.remove(count - 1)
}

/// Returns the report of `toolbay audit verify`. The exit code must match it.
fn verify(folder: &Folder) -> Value {
    let outcome = ToolbayCommand::new(folder)
        .args(["audit", "verify", "--json"])
        .run();
    let report: Value = serde_json::from_str(&outcome.raw_stdout)
        .unwrap_or_else(|error| panic!("{error}: {outcome}"));
    assert_eq!(outcome.code == 0, report["intact"] == true, "{outcome}");
    report
}

fn verify_intact(folder: &Folder) -> Value {
    let report = verify(folder);
    assert_eq!(report["findings"], json!([]), "{report}");
    report
}

/// Returns the lines that `toolbay audit show` prints with these options.
fn show(folder: &Folder, options: &[&str]) -> Vec<Value> {
    let outcome = ToolbayCommand::new(folder)
        .args(["audit", "show", "--json"].iter().chain(options))
        .run();
    assert_eq!(outcome.code, 0, "{outcome}");
    outcome
        .raw_stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn every_call_has_a_line_that_says_how_it_ended() {
    let component = hostile();
    let grant = "[limits]\nfuel = 100_000_000\n";
    let folder = Folder::with("hostile.wasm", &component);
    folder.put("hostile.toml", grant);
    let mut server = StdioServer::start_with_config(&folder, CONFIG);
    server.wait_for_tool("echo");
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let meta = json!({"traceparent": format!("00-{trace}-00f067aa0ba902b7-01")});
    server.result(
        "tools/call",
        json!({"name": "echo", "arguments": {"text": "x"}, "_meta": meta}),
    );
    server.request_and_wait("tools/call", json!({"name": "none", "arguments": {}}));
    server.request_and_wait(
        "tools/call",
        json!({"name": "echo", "arguments": {"text": 7}}),
    );
    for tool in ["fail", "panic", "recurse"] {
        server.call(tool, json!({}));
    }
    server.call("burn", json!({"n": 1_000_000_000}));
    let id = server.start_call_with_progress("sleep_hour", json!({}));
    server.notification("notifications/progress");
    server.notify("notifications/cancelled", json!({"requestId": id}));
    server.wait_until("the line of the cancelled call", |_| {
        events(&folder, "call").len() == 8
    });
    server.stop();
    let calls = events(&folder, "call");
    let ended: Vec<_> = calls
        .iter()
        .map(|call| (call["tool"].as_str(), call["outcome"].as_str()))
        .collect();
    let expected = [
        ("echo", "ok"),
        ("none", "unknown-tool"),
        ("echo", "invalid-arguments"),
        ("fail", "failed"),
        ("panic", "trap"),
        ("recurse", "stack"),
        ("burn", "fuel"),
        ("sleep_hour", "cancelled"),
    ];
    assert_eq!(
        ended,
        expected.map(|(tool, outcome)| (Some(tool), Some(outcome)))
    );
    let numbers: Vec<_> = calls
        .iter()
        .map(|call| call["call"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=8).collect::<Vec<_>>());
    let echo = &calls[0];
    assert_eq!(
        (&echo["caller"], &echo["plugin"], &echo["trace_id"]),
        (&json!("stdio"), &json!("hostile"), &json!(trace))
    );
    assert_eq!(echo["plugin_sha256"], sha256(&component));
    assert_eq!(echo["grant_sha256"], sha256(grant));
    assert_eq!(echo["arguments_sha256"], sha256("{\"text\":\"x\"}"));
    assert!(
        echo["usage"]["fuel"].as_u64() > Some(0) && echo.get("arguments").is_none(),
        "{echo}"
    );
    assert_eq!(calls[2]["arguments_sha256"], sha256("{\"text\":7}"));
    // Members whose values never became known are absent.
    assert!(
        calls[1].get("plugin").is_none() && calls[1].get("arguments_sha256").is_none(),
        "{}",
        calls[1]
    );
    assert!(calls[2].get("usage").is_none(), "{}", calls[2]);
    let limits = events(&folder, "limit");
    let reached: Vec<_> = limits
        .iter()
        .map(|line| (&line["call"], line["limit"].as_str().unwrap()))
        .collect();
    assert_eq!(
        reached,
        [(&json!(6), "server.stack_size"), (&json!(7), "limits.fuel")]
    );
    verify_intact(&folder);
    let last: Vec<_> = lines(&folder)
        .iter()
        .rev()
        .take(2)
        .map(|line| line["event"].clone())
        .collect();
    assert_eq!(last, ["checkpoint", "stop"]);
    // Each option finds these calls.
    for (options, count) in [
        (&["--tool", "echo"][..], 2),
        (&["--outcome", "stack"], 1),
        (&["--caller", "stdio", "--outcome", "ok"], 1),
        (&["--caller", "token:ci"], 0),
        (&["--plugin", "hostile", "--tool", "burn"], 2),
        (&["--since", "1h", "--tool", "none"], 1),
        (&["--since", "2999-01-01"], 0),
        (&["--until", "2999-01-01", "--tool", "echo"], 2),
        (&["--until", "2001-01-01"], 0),
        (&["--event", "limit"], 2),
    ] {
        assert_eq!(show(&folder, options).len(), count, "{options:?}");
    }
    let table = ToolbayCommand::new(&folder)
        .args(["audit", "show", "--outcome", "fuel"])
        .run();
    assert_eq!(table.stdout.lines().count(), 2, "{table}");
    let none = ToolbayCommand::new(&folder)
        .args(["audit", "show", "--tool", "other"])
        .run();
    assert!(
        none.code == 0 && none.stderr.contains("lines of the log matches"),
        "{none}"
    );
}

#[test]
fn every_load_and_every_change_of_a_grant_has_a_line() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["one"]).build());
    let mut server = StdioServer::start_with_config(&folder, CONFIG);
    server.wait_for_tool("one");
    let load = wait_for_event(&mut server, &folder, "load", 1);
    let digest = sha256(fs::read(folder.plugin_path("a.wasm")).unwrap());
    assert_eq!(
        (&load["plugin"], &load["plugin_sha256"], &load["tools"]),
        (&json!("a"), &json!(digest), &json!(1))
    );
    assert!(load.get("grant_sha256").is_none(), "{load}");
    for (count, (grant, before)) in [
        ("[limits]\nfuel = 7\n", None),
        (
            "# only a remark\n[limits]\nfuel = 7\n",
            Some("[limits]\nfuel = 7\n"),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        folder.put("a.toml", grant);
        let line = wait_for_event(&mut server, &folder, "grant", count + 1);
        assert_eq!(
            (&line["plugin_sha256"], &line["grant_sha256"]),
            (&json!(digest), &json!(sha256(grant)))
        );
        assert_eq!(
            line["previous"],
            before.map_or(Value::Null, |before| json!(sha256(before))),
            "{line}"
        );
    }
    folder.put("a.toml", "fule = 1");
    let refused = wait_for_event(&mut server, &folder, "refused", 1);
    assert!(
        refused["reason"]
            .as_str()
            .unwrap()
            .starts_with("a.toml:1:1: unknown key `fule`"),
        "{refused}"
    );
    assert_eq!(
        refused["plugin_sha256"], digest,
        "the version before it serves"
    );
    folder.put("b.wasm", "no component");
    let refused = wait_for_event(&mut server, &folder, "refused", 2);
    assert!(
        refused["plugin"] == "b" && refused.get("plugin_sha256").is_none(),
        "{refused}"
    );
    folder.remove("a.toml");
    wait_for_event(&mut server, &folder, "grant", 3);
    folder.put("a.wasm", TinyComponent::new(&["one", "two"]).build());
    assert_eq!(wait_for_event(&mut server, &folder, "load", 2)["tools"], 2);
    folder.remove("a.wasm");
    assert_eq!(
        wait_for_event(&mut server, &folder, "removed", 1)["plugin"],
        "a"
    );
    server.stop();
    verify_intact(&folder);
    // A line about a plugin precedes the lines of calls that use it.
    assert_eq!(
        lines_of(&folder, "audit")
            .iter()
            .filter(|line| line["event"] == "start")
            .count(),
        1
    );
}

#[test]
fn every_denial_has_a_line() {
    let folder = Folder::with("web.wasm", web());
    let mut server = StdioServer::start_with_config(&folder, CONFIG);
    server.wait_for_tool("try_to_send");
    let forged = "https://api.example.com/%0a\\n{\"seq\":1,\"event\":\"stop\"}";
    server.text("try_to_send", json!({"url": "https://api.example.com/v1"}));
    server.call("send", json!({"url": forged, "again": 100}));
    server.stop();
    let denied = events(&folder, "denied");
    assert_eq!(
        (&denied[0]["call"], &denied[0]["tool"]),
        (&json!(1), &json!("try_to_send"))
    );
    let what =
        "https://api.example.com is not among the origins that this tool may send requests to.";
    assert_eq!(denied[0]["message"], what);
    assert_eq!(denied[0]["remedy"], "http = [\"https://api.example.com\"]");
    let outcomes: Vec<_> = events(&folder, "call")
        .iter()
        .map(|call| call["outcome"].clone())
        .collect();
    assert_eq!(outcomes, ["ok", "denied"]);
    verify_intact(&folder);
}

#[test]
fn rejected_calls_have_a_line() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["one"]).build());
    let config = format!("{CONFIG}[caller_rate_limit]\ncalls = 2\nper = \"1h\"\n");
    let mut server = HttpServer::start_with_config(&folder, &config);
    for _ in 0..3 {
        server.post_stateless("tools/call", json!({"name": "one", "arguments": {}}), &[]);
    }
    assert_eq!(server.stop(), Some(0));
    let calls = events(&folder, "call");
    let outcomes: Vec<_> = calls
        .iter()
        .map(|call| call["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes, ["ok", "ok", "rate-limited"]);
    assert!(
        calls[2]["caller"]
            .as_str()
            .unwrap()
            .starts_with("ip:127.0.0.1"),
        "{}",
        calls[2]
    );
    assert_eq!(events(&folder, "limit")[0]["limit"], "caller_rate_limit");
    verify_intact(&folder);
}

#[test]
fn ten_thousand_mixed_calls_are_all_logged_and_verified() {
    const CALLS: usize = 10_000;
    const AT_ONCE: usize = 20;
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("hostile.toml", "[limits]\nfuel = 10_000_000\n");
    let busy = BusyCores::new();
    let mut server = StdioServer::start_with_config(
        &folder,
        &format!("{CONFIG}[circuit_breaker]\ncrashes = 0\n"),
    );
    server.wait_for_tool("echo");
    let mixed = [
        ("echo", json!({"text": "a\n{\"seq\":1}\n"})),
        ("none", json!({})),
        ("echo", json!({"text": 7})),
        ("fail", json!({})),
        ("panic", json!({})),
        ("burn", json!({"n": 1_000_000_000})),
        ("forge_stdout", json!({})),
        ("count", json!({})),
    ];
    for round in 0..CALLS / AT_ONCE {
        let calls = (0..AT_ONCE).map(|n| {
            let (tool, arguments) = &mixed[(round * AT_ONCE + n) % mixed.len()];
            server.start_call(tool, arguments.clone())
        });
        for id in calls.collect::<Vec<_>>() {
            server.wait_for_response(id);
        }
    }
    server.stop();
    let report = verify_intact(&folder);
    assert_eq!(report["lost"], 0, "{report}");
    assert!(report["files"].as_u64() > Some(3), "{report}");
    drop(busy);
    let each = (CALLS / mixed.len()) as u64;
    let expected = [
        ("failed", each),
        ("fuel", each),
        ("invalid-arguments", each),
        ("ok", 3 * each),
        ("trap", each),
        ("unknown-tool", each),
    ];
    assert_eq!(
        outcomes(&folder),
        expected
            .map(|(outcome, count)| (outcome.to_owned(), count))
            .into()
    );
    // Each admitted call has its own line.
    let mut numbers: Vec<_> = lines_of(&folder, "audit")
        .iter()
        .filter(|line| line["event"] == "call")
        .map(|line| line["call"].as_u64())
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len() as u64, 6 * each);
}

#[test]
fn the_oldest_files_are_deleted_beyond_the_configured_number() {
    const LINES: usize = 300;
    for (files_key, kept) in [("files = 2", 2), ("", 5)] {
        let folder = Folder::with("hostile.wasm", hostile());
        let config = format!("{CONFIG}arguments = \"full\"\n{files_key}");
        let mut server = StdioServer::start_with_config(&folder, &config);
        server.wait_for_tool("echo");
        for _ in 0..LINES {
            server.text("echo", json!({"text": "x".repeat(16 << 10)}));
        }
        server.stop();
        assert_eq!(files(&folder).len(), kept, "{files_key}");
        assert_eq!(events(&folder, "call").len() < LINES, kept == 2);
        verify_intact(&folder);
    }
}

#[test]
fn without_a_size_a_file_holds_more_than_the_smallest_size() {
    let folder = Folder::with("hostile.wasm", hostile());
    let mut server = StdioServer::start_with_config(
        &folder,
        "[audit]\nfolder = \"log\"\narguments = \"full\"\n",
    );
    server.wait_for_tool("echo");
    for _ in 0..100 {
        server.text("echo", json!({"text": "x".repeat(16 << 10)}));
    }
    server.stop();
    let [file] = &files(&folder)[..] else {
        panic!("{:?}", files(&folder))
    };
    assert!(fs::metadata(file).unwrap().len() > 1 << 20);
}

#[test]
fn signatures_are_written_at_the_configured_interval() {
    for (key, early) in [("checkpoint = \"10ms\"", true), ("", false)] {
        let folder = Folder::with("a.wasm", TinyComponent::new(&["one"]).build());
        let mut server = StdioServer::start_with_config(&folder, &format!("{CONFIG}{key}"));
        for _ in 0..50 {
            server.text("one", json!({}));
        }
        if early {
            server.wait_until("a checkpoint", |server| {
                server.text("one", json!({}));
                !events(&folder, "checkpoint").is_empty()
            });
        } else {
            wait_for_event(&mut server, &folder, "call", 50);
            assert_eq!(
                events(&folder, "checkpoint").len(),
                0,
                "the default is a minute"
            );
        }
        server.stop();
        verify_intact(&folder);
    }
}

#[test]
fn text_of_guests_and_clients_cannot_forge_a_line() {
    const FORGED: &str =
        "x\n{\"seq\":1,\"event\":\"stop\",\"prev\":\"\",\"hash\":\"\"}\n\u{2028}\u{1b}[2J";
    let folder = Folder::with("hostile.wasm", hostile());
    let mut server =
        StdioServer::start_with_config(&folder, &format!("{CONFIG}arguments = \"full\"\n"));
    server.wait_for_tool("echo");
    server.text("forge_stdout", json!({}));
    server.text("echo", json!({"text": FORGED}));
    server.request_and_wait("tools/call", json!({"name": FORGED, "arguments": {}}));
    server.request_and_wait(
        "tools/call",
        json!({"name": "n".repeat(100_000), "arguments": {}}),
    );
    server.text("echo", json!({"text": "y".repeat(100_000)}));
    server.stop();
    verify_intact(&folder);
    let calls = events(&folder, "call");
    assert_eq!(
        (
            calls.len(),
            lines_of(&folder, "audit")
                .iter()
                .filter(|line| line["event"] == "stop")
                .count()
        ),
        (4, 1)
    );
    let [counted] = &events(&folder, "rejected")[..] else {
        panic!("{:?}", lines(&folder))
    };
    assert!(
        counted["count"] == 1 && counted["tool"].as_str().unwrap().len() <= 512,
        "{counted}"
    );
    let arguments: Value = serde_json::from_str(calls[1]["arguments"].as_str().unwrap()).unwrap();
    // Only terminal control sequences are removed.
    assert!(
        arguments["text"]
            .as_str()
            .unwrap()
            .contains("\n{\"seq\":1,\"event\":\"stop\""),
        "{arguments}"
    );
    assert!(
        calls[2]["tool"]
            .as_str()
            .unwrap()
            .starts_with("x\\n{\"seq\""),
        "{}",
        calls[2]
    );
    let long = calls[3]["arguments"].as_str().unwrap();
    assert!(long.len() <= 16 << 10 && calls[3]["arguments_truncated"] == true);
    let shown = ToolbayCommand::new(&folder).args(["audit", "show"]).run();
    assert_eq!(
        shown.raw_stdout.lines().count(),
        lines(&folder).len() + 1,
        "{shown}"
    );
    assert!(!shown.raw_stdout.contains('\u{1b}') && !shown.raw_stdout.contains('\u{2028}'));
}

#[test]
fn full_arguments_are_logged_without_secrets() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("hostile.toml", "[secrets.token]\nenvironment = \"SECRET\"");
    folder.write_config(&format!("{CONFIG}arguments = \"full\"\n"));
    let command = ToolbayCommand::new(&folder)
        .env("SECRET", "hunter2-hunter2")
        .args(["serve"]);
    let mut server = StdioServer::run(command).with_handshake("2025-11-25");
    server.wait_for_tool("echo");
    for text in [
        "it is hunter2-hunter2".to_owned(),
        format!("{}hunter2-hunter2", "x".repeat((16 << 10) - 14)),
    ] {
        server.call("echo", json!({"text": text}));
    }
    server.stop();
    let calls = events(&folder, "call");
    assert_eq!(calls[0]["arguments"], "{\"text\":\"it is [secret:token]\"}");
    // A possible beginning of a secret is removed with the rest.
    assert!(
        calls[1]["arguments"].as_str().unwrap().ends_with("xx")
            && calls[1]["arguments_truncated"] == true
    );
    for file in files(&folder) {
        assert!(!fs::read_to_string(file).unwrap().contains("hunter2"));
    }
}

#[test]
fn the_log_of_a_killed_server_is_valid_and_the_next_server_continues_it() {
    let folder = Folder::with("hostile.wasm", hostile());
    for round in 0..3 {
        let mut server = StdioServer::start_with_config(&folder, CONFIG);
        server.wait_for_tool("echo");
        for _ in 0..50 {
            server.start_call("echo", json!({"text": "x"}));
        }
        let id = server.start_call("echo", json!({"text": "last"}));
        server.wait_for_response(id);
        server.wait_until("lines", |_| events(&folder, "call").len() > round * 10);
        server.kill();
        verify_intact(&folder);
    }
    // As if the last server had been killed in the middle of a line.
    let last = files(&folder).pop().unwrap();
    let whole = lines_of(&folder, "audit").pop().unwrap();
    let next = whole["seq"].as_u64().unwrap() + 1;
    let torn_line = format!("{{\"seq\":{next},\"ti");
    let text = fs::read(&last).unwrap();
    let end = text.iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    fs::write(&last, [&text[..end], torn_line.as_bytes()].concat()).unwrap();
    let place = || json!({"file": last.file_name().unwrap().to_str(), "line": lines_in(&last)});
    let torn = place();
    let report = verify_intact(&folder);
    let notice = report["notices"]
        .as_array()
        .unwrap()
        .iter()
        .find(|notice| notice["line"] == torn["line"]);
    assert!(
        notice.unwrap()["message"]
            .as_str()
            .unwrap()
            .starts_with("is torn: the server was killed"),
        "{report}"
    );
    let mut server = StdioServer::start_with_config(&folder, CONFIG);
    server.wait_for_tool("echo");
    server.stop();
    let report = verify_intact(&folder);
    let notice = report["notices"]
        .as_array()
        .unwrap()
        .iter()
        .find(|notice| notice["line"] == torn["line"]);
    assert_eq!(
        notice.unwrap()["message"],
        "is torn: the server was killed while it wrote this line"
    );
    let text = fs::read_to_string(&last).unwrap();
    let starts: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let start = starts
        .iter()
        .rfind(|line: &&Value| line["event"] == "start")
        .unwrap();
    assert_eq!(start["torn"]["bytes"], torn_line.len(), "{start}");
}

#[test]
fn a_forged_line_is_neither_shown_nor_verified() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["one"]).build());
    let mut server = StdioServer::start_with_config(&folder, CONFIG);
    server.text("one", json!({}));
    server.stop();
    let last = files(&folder).pop().unwrap();
    let next = lines_of(&folder, "audit").len() + 1;
    let forged = format!(
        "{{\"seq\":{next},\"time\":\"2999-01-01T00:00:00.000000Z\",\"event\":\"approval\",\
         \"caller\":\"token:admin\",\"tool\":\"erase_all\",\"decision\":\"approved\"}}"
    );
    let text = fs::read_to_string(&last).unwrap();
    fs::write(&last, text + &forged).unwrap();
    for round in 0..2 {
        let report = verify(&folder);
        assert_eq!(report["findings"][0]["line"], next, "{report}");
        for options in [&["audit", "show", "--json"][..], &["audit", "show"]] {
            let shown = ToolbayCommand::new(&folder).args(options).run();
            assert!(
                shown.code == 0
                    && !shown.raw_stdout.contains("erase_all")
                    && shown
                        .stderr
                        .contains("1 line is damaged and was left out; `toolbay audit verify`"),
                "{round}: {shown}"
            );
        }
        StdioServer::start_with_config(&folder, CONFIG).stop();
    }
}

fn lines_in(file: &std::path::Path) -> usize {
    fs::read_to_string(file).unwrap().lines().count()
}

#[test]
fn verify_names_a_changed_line() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["one"]).build());
    let mut server = StdioServer::start_with_config(&folder, CONFIG);
    for _ in 0..5 {
        server.text("one", json!({}));
    }
    server.stop();
    let report = verify_intact(&folder);
    let newest = report["newest"].as_str().unwrap();
    let key = report["key"].as_str().unwrap();
    let noted = ToolbayCommand::new(&folder)
        .args(["audit", "verify", "--key", key, "--expect", newest])
        .run();
    assert!(
        noted.code == 0 && noted.stdout.starts_with("intact: "),
        "{noted}"
    );
    let file = &files(&folder)[0];
    let text = fs::read_to_string(file).unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    fs::write(file, text.replacen("\"call\":2", "\"call\":9", 1)).unwrap();
    let at = 1 + text
        .lines()
        .position(|line| line.contains("\"call\":2"))
        .unwrap();
    let outcome = ToolbayCommand::new(&folder)
        .args(["audit", "verify", "--folder", "log"])
        .run();
    let said = format!(
        "! {name}:{at}: was changed: its contents do not match its recorded hash\nchanged: "
    );
    assert!(
        outcome.code == 1 && outcome.raw_stdout.starts_with(&said),
        "{outcome}"
    );
    // Cut off the last lines.
    let kept: Vec<&str> = text.lines().take(4).collect();
    fs::write(file, kept.join("\n") + "\n").unwrap();
    let report = verify(&folder);
    let what = report["findings"][0]["message"].as_str().unwrap();
    assert!(
        what.starts_with("lines 5 to ") && what.ends_with(" are missing at the end of the log"),
        "{report}"
    );
    // A server that continues the log does not repair it.
    StdioServer::start_with_config(&folder, CONFIG).stop();
    let report = verify(&folder);
    let what = report["findings"][0]["message"].as_str().unwrap();
    assert!(
        what.ends_with(" were signed, and were missing when the server started"),
        "{report}"
    );
    // Nor does a server that begins a new log with the key of the old one.
    for entry in fs::read_dir(folder.sibling_path("log")).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name() != "key" && entry.file_name() != "public-key" {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    StdioServer::start_with_config(&folder, CONFIG).stop();
    let report = verify(&folder);
    let what = report["findings"][0]["message"].as_str().unwrap();
    assert!(
        what.ends_with("its files and its head are missing, but its key exists"),
        "{report}"
    );
}

#[test]
fn a_log_is_written_by_one_server_and_readable_only_by_its_user() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["one"]).build());
    let mut server = StdioServer::start_with_config(&folder, CONFIG);
    server.wait_for_tool("one");
    let second = ToolbayCommand::new(&folder).args(["serve"]).run();
    assert!(
        second.code == 1
            && second
                .stderr
                .contains("another server writes to the audit log in "),
        "{second}"
    );
    // Commands of the operator write nothing to the log and do not need one.
    let called = ToolbayCommand::new(&folder).args(["call", "one"]).run();
    assert_eq!(called.code, 0, "{called}");
    server.stop();
    assert_eq!(events(&folder, "call").len(), 0);
    let mode = |name: &str| {
        fs::metadata(folder.sibling_path("log").join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!((mode(""), mode("key"), mode("head")), (0o700, 0o600, 0o600));
    fs::remove_file(folder.sibling_path("log/key")).unwrap();
    let outcome = ToolbayCommand::new(&folder).args(["serve"]).run();
    assert!(
        outcome.code == 1 && outcome.stderr.contains("key is missing"),
        "{outcome}"
    );
    // Without a log, there is nothing to read.
    folder.write_config("");
    let outcome = ToolbayCommand::new(&folder).args(["audit", "verify"]).run();
    assert!(
        outcome.code == 1
            && outcome
                .stderr
                .contains("has no audit log: set audit.folder"),
        "{outcome}"
    );
    let outcome = ToolbayCommand::new(&folder)
        .args(["audit", "show", "--folder", "nowhere"])
        .run();
    assert!(
        outcome.code == 1 && outcome.stderr.contains("no audit log in nowhere"),
        "{outcome}"
    );
}

#[test]
fn without_a_folder_nothing_is_written() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["one"]).build());
    let mut server = StdioServer::start_with_config(&folder, "[audit]\narguments = \"full\"\n");
    server.text("one", json!({}));
    server.stop();
    let mut there: Vec<_> = fs::read_dir(folder.root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    there.sort();
    assert_eq!(there, ["plugins", "toolbay.toml"]);
}
