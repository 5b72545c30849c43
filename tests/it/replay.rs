//! Record and replay: a call that is replayed from its recording has the same result, without the
//! resources that it used then. A changed plugin shows the differences.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::requests::Site;
use crate::support::{
    CommandOutput, Folder, StdioServer, ToolbayCommand, hostile, hostile_version, keeper, net,
    result_text, sample, web,
};

const CONFIG: &str = "[record]\nfile = \"calls.jsonl\"\n[state]\nfolder = \"kept\"\n";

/// A server that records all calls.
fn start_recording(folder: &Folder) -> StdioServer {
    start_recording_with(folder, "")
}

fn start_recording_with(folder: &Folder, more: &str) -> StdioServer {
    StdioServer::start_with_config(folder, &format!("{CONFIG}{more}"))
}

fn recorded_calls(folder: &Folder) -> Vec<Value> {
    let text = fs::read_to_string(folder.sibling_path("calls.jsonl")).unwrap();
    text.lines()
        .filter_map(|line| {
            serde_json::from_str::<Value>(line)
                .unwrap()
                .get("call")
                .cloned()
        })
        .collect()
}

fn replay(folder: &Folder, options: &[&str]) -> CommandOutput {
    let file = folder.sibling_path("calls.jsonl");
    let args = ["replay", file.to_str().unwrap()]
        .into_iter()
        .chain(options.iter().copied());
    ToolbayCommand::new(folder).args(args).run()
}

/// Returns the report of `toolbay replay --json`.
fn replay_report(folder: &Folder, options: &[&str]) -> Value {
    let outcome = replay(folder, &[&["--json"], options].concat());
    serde_json::from_str(&outcome.raw_stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"))
}

/// Returns how many calls were equal, different and not replayable.
fn outcome_counts(report: &Value) -> [u64; 3] {
    ["equal", "differ", "not_replayable"].map(|count| report[count].as_u64().unwrap())
}

/// Asserts that `count` calls have the same result, and that no other call was recorded. Returns
/// the report.
fn assert_all_equal(folder: &Folder, count: u64) -> Value {
    let report = replay_report(folder, &[]);
    assert_eq!(outcome_counts(&report), [count, 0, 0], "{report:#}");
    report
}

#[test]
fn clocks_and_random_numbers_are_replayed() {
    let folder = Folder::with("net.wasm", net());
    let mut server = start_recording(&folder);
    server.wait_for_tool("look");
    let said: Vec<String> = (0..5)
        .map(|n| server.text("look", json!({"label": n.to_string()})))
        .collect();
    assert!(
        said.windows(2).all(|pair| pair[0] != pair[1]),
        "recorded calls have live clocks and numbers: {said:?}"
    );
    server.stop();
    let mode = fs::metadata(folder.sibling_path("calls.jsonl"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let report = assert_all_equal(&folder, 5);
    let tool = &report["tools"]["look"];
    assert_eq!(tool["fuel"]["recorded"], tool["fuel"]["replayed"], "{tool}");
    assert_eq!(
        tool["peak_memory"]["recorded"], tool["peak_memory"]["replayed"],
        "{tool}"
    );
    assert_eq!(replay(&folder, &[]).code, 0);
}

/// Returns the tool and the arguments of a call in the long test, by its number.
fn mixed_call(n: u64, site: &Site) -> (&'static str, Value) {
    match n % 11 {
        0 => ("calculate_sum", json!({"a": n, "b": 1})),
        1 => ("echo", json!({"text": format!("text {n}")})),
        2 => ("look", json!({"label": n.to_string()})),
        3 => ("send", json!({"url": site.url(&format!("/echo/{n}"))})),
        4 => (
            "send",
            json!({"url": site.url("/hello"), "method": "POST", "body": n.to_string()}),
        ),
        5 => (
            "keep",
            json!({"steps": [{"set": ["a", n.to_string()]}, {"get": "a"}, {"increment": ["n", 1]}]}),
        ),
        6 => ("fail", json!({})),
        7 => ("panic", json!({})),
        8 => ("burn", json!({"n": 100_000_000_u64})),
        9 => ("try_to_send", json!({"url": "http://127.0.0.1:1/refused"})),
        _ => ("exit_with_words", json!({})),
    }
}

/// Creates a folder with plugins for [`mixed_call`].
fn mixed_folder(site: &Site) -> Folder {
    let folder = Folder::with("net.wasm", net());
    folder.put("calculator.wasm", sample("calculator"));
    folder.put("web.wasm", web());
    folder.put("web.toml", site.grant());
    folder.put("keeper.wasm", keeper());
    folder.put("keeper.toml", "[permissions.state]");
    folder.put("hostile.wasm", hostile());
    folder.put("hostile.toml", "[limits]\nfuel = 5_000_000\n");
    folder
}

#[test]
fn ten_thousand_calls_of_all_kinds_are_replayed_with_the_same_results() {
    const CALLS: u64 = 10_000;
    const AT_ONCE: u64 = 32;
    let site = Site::start();
    let folder = mixed_folder(&site);
    let mut server = start_recording_with(&folder, "[circuit_breaker]\ncrashes = 100_000\n");
    for tool in ["calculate_sum", "echo", "look", "send", "keep"] {
        server.wait_for_tool(tool);
    }
    let mut begun = std::collections::VecDeque::new();
    for n in 0..CALLS {
        let (tool, arguments) = mixed_call(n, &site);
        begun.push_back(server.start_call(tool, arguments));
        if n >= AT_ONCE
            && let Some(id) = begun.pop_front()
        {
            server.finish_call(id);
        }
    }
    for id in begun {
        server.finish_call(id);
    }
    server.stop();
    let lines = recorded_calls(&folder);
    assert_eq!(lines.len() as u64, CALLS);
    let errors = |kind: &str| {
        lines
            .iter()
            .filter(|call| call["result"]["value"]["error"] == kind)
            .count() as u64
    };
    assert!(
        ["failed", "trap", "fuel"]
            .into_iter()
            .all(|kind| errors(kind) >= CALLS / 12),
        "{:?}",
        lines.first()
    );
    // The replay sends no request, and the state does not exist any more.
    while site.requests.try_recv().is_ok() {}
    fs::remove_dir_all(folder.sibling_path("kept")).unwrap();
    let report = assert_all_equal(&folder, CALLS);
    // The number of times that a guest polls for a response depends on when the response arrives.
    let others = |(name, _): &(&String, &Value)| !name.contains("send");
    for (name, tool) in report["tools"].as_object().unwrap().iter().filter(others) {
        assert_eq!(
            tool["fuel"]["recorded"], tool["fuel"]["replayed"],
            "{name}: {tool}"
        );
    }
    assert!(!folder.sibling_path("kept").exists(), "nothing is kept");
    assert!(site.requests.try_recv().is_err(), "no request is sent");
}

#[test]
fn a_replay_sends_no_request_and_returns_the_recorded_response() {
    let site = Site::start();
    let folder = Folder::with("web.wasm", web());
    folder.put("web.toml", site.grant());
    let config = CONFIG.replace("[state]", "call_size = \"4MiB\"\n[state]");
    let mut server = StdioServer::start_with_config(&folder, &config);
    server.wait_for_tool("send");
    for path in ["/hello", "/echo/a", "/large", "/nothing", "/short"] {
        server.call("send", json!({"url": site.url(path)}));
        server.call("try_to_send", json!({"url": site.url(path)}));
    }
    server.call(
        "send",
        json!({"url": site.url("/hello"), "method": "POST", "body": "x", "again": 3}),
    );
    server.call("get", json!({"url": site.url("/hello")}));
    // A request that was denied is denied again, whatever the grant allows by then.
    server.call("try_to_send", json!({"url": "http://other.invalid/"}));
    server.call(
        "try_to_send",
        json!({"url": site.url("/hello"), "headers": {"Host": "other"}}),
    );
    server.call("trailers", json!({"url": site.url("/trailers")}));
    server.stop();
    while site.requests.try_recv().is_ok() {}
    folder.remove("web.toml");
    let report = replay_report(&folder, &[]);
    assert_eq!(outcome_counts(&report), [14, 0, 1], "{report:#}");
    assert!(
        report["calls"][0]["reasons"][0]
            .as_str()
            .unwrap()
            .contains("trailers"),
        "{report:#}"
    );
    assert!(site.requests.try_recv().is_err(), "a request was sent");
}

#[test]
fn a_replay_reports_the_differences_of_a_changed_plugin() {
    let folder = Folder::with("hostile.wasm", hostile());
    let mut server = start_recording(&folder);
    server.wait_for_tool("version");
    server.call("echo", json!({"text": "the same"}));
    server.call("version", json!({}));
    server.call("fail", json!({}));
    server.stop();
    folder.put("hostile.wasm", hostile_version(2));
    let outcome = replay(&folder, &[]);
    assert_eq!(outcome.code, 1, "{outcome}");
    let filters = [
        (r"(/[^ :]+)+/calls\.jsonl", "calls.jsonl"),
        (
            r"recorded from \S+ by toolbay \S+",
            "recorded from TIME by toolbay VERSION",
        ),
        (r"\d+\.\d ms( → \d+\.\d ms( \([^)]*\))?)?", "TIME"),
        (r"\d{1,3}(,\d{3})+", "NUMBER"),
        (r"\d+(\.\d+)? [KM]iB", "SIZE"),
        (r" {2,}", "  "),
    ];
    insta::with_settings!({filters => filters}, { insta::assert_snapshot!(outcome.stdout) });
    let mut report = replay_report(&folder, &[]);
    let times = ["fuel", "peak_memory", "wall_ms"];
    for place in ["/calls/0", "/tools/echo", "/tools/fail", "/tools/version"] {
        let figures = report
            .pointer_mut(place)
            .and_then(Value::as_object_mut)
            .unwrap();
        figures
            .iter_mut()
            .filter(|(name, _)| times.contains(&name.as_str()))
            .for_each(|(_, value)| {
                assert!(value["recorded"].is_number() && value["replayed"].is_number());
                *value = json!("FIGURE");
            });
    }
    for name in ["file", "recorded", "toolbay"] {
        report[name] = json!(name.to_uppercase());
    }
    insta::assert_json_snapshot!(report);
    // A file with the old plugin, under another name, is used instead.
    let old = folder.sibling_path("old.wasm");
    fs::write(&old, hostile()).unwrap();
    let as_hostile = format!("hostile={}", old.display());
    let outcome = replay(&folder, &["--plugin", &as_hostile]);
    assert_eq!(outcome.code, 0, "{outcome}");
    let outcome = replay(&folder, &["--plugin", old.to_str().unwrap()]);
    assert!(
        outcome.code == 1
            && outcome
                .stderr
                .contains("no calls of the plugin \"old\", but of \"hostile\""),
        "{outcome}"
    );
    let outcome = replay(&folder, &["--tool", "ech*"]);
    assert!(
        outcome.code == 0
            && outcome
                .stdout
                .contains("1 equal, 0 different, 0 not replayable, 2 skipped"),
        "{outcome}"
    );
    // A plugin that has no such tool any more, and a plugin that was deleted.
    folder.put("hostile.wasm", net());
    let report = replay_report(&folder, &["--tool", "echo"]);
    assert!(
        report["calls"][0]["changes"][0]["result"]
            .as_str()
            .unwrap()
            .contains("no tool \"echo\""),
        "{report:#}"
    );
    folder.remove("hostile.wasm");
    let outcome = replay(&folder, &[]);
    assert!(
        outcome.code == 1 && outcome.stdout.contains("does not exist"),
        "{outcome}"
    );
}

#[test]
fn a_replay_with_another_request_is_reported_as_different() {
    let site = Site::start();
    let folder = Folder::with("web.wasm", web());
    folder.put("web.toml", site.grant());
    let mut server = start_recording(&folder);
    server.wait_for_tool("get");
    server.call("get", json!({"url": site.url("/hello")}));
    server.stop();
    // Changes the recording as if the plugin had sent its request elsewhere.
    let path = folder.sibling_path("calls.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let (what, other) = (
        format!("\"what\":\"GET {}\"", site.url("/hello")),
        "\"what\":\"GET http://other/\"",
    );
    assert!(text.contains(&what));
    fs::write(&path, text.replace(&what, other)).unwrap();
    let report = replay_report(&folder, &[]);
    let changes = report["calls"][0]["changes"].as_array().unwrap();
    assert!(
        changes[0]["result"]
            .as_str()
            .unwrap()
            .contains("that the recording does not have: GET"),
        "{report:#}"
    );
    assert_eq!(
        changes[1..],
        [
            json!({"did": format!("GET {}", site.url("/hello"))}),
            json!({"did_not": "GET http://other/"})
        ]
    );
}

#[test]
fn a_recording_contains_no_secret() {
    const SECRET: &str = "hunter2-hunter2-hunter2";
    let site = Site::start();
    let folder = Folder::with("web.wasm", web());
    let grant = format!(
        "{}environment = [\"TOKEN\", \"PLACE\"]\n[secrets.key]\nenvironment = \"TOKEN\"\nheader = \"Authorization\"\norigins = [\"http://{}\"]\n\
         [config]\nhint = \"{SECRET}\"\n",
        site.grant(),
        site.address
    );
    folder.put("web.toml", grant);
    folder.write_config(CONFIG);
    let command = ToolbayCommand::new(&folder)
        .args(["serve"])
        .env("TOKEN", SECRET)
        .env("PLACE", "here");
    let mut server = StdioServer::run(command).with_handshake("2025-11-25");
    server.wait_for_tool("send");
    // The site echoes the request: the header, and the text of the arguments.
    let said = server.call(
        "send",
        json!({"url": site.url(&format!("/echo?q={SECRET}")), "body": SECRET}),
    );
    assert!(result_text(&said).contains("[secret:key]"), "{said}");
    server.call(
        "try_to_send",
        json!({"url": format!("http://denied.invalid/?{SECRET}")}),
    );
    server.stop();
    let written = fs::read_to_string(folder.sibling_path("calls.jsonl")).unwrap();
    assert!(!written.contains("hunter2"), "{written}");
    assert!(written.contains("[secret:key]"));
    assert_eq!(recorded_calls(&folder)[0]["config"]["hint"], "[secret:key]");
    // The replay does not need the secret, but it needs the other variable that the plugin could
    // read.
    let file = folder.sibling_path("calls.jsonl");
    let run = |place: &str| {
        let args = ["replay", file.to_str().unwrap(), "--json"];
        let outcome = ToolbayCommand::new(&folder)
            .args(args)
            .env("PLACE", place)
            .run();
        assert!(!outcome.raw_stdout.contains("hunter2"));
        serde_json::from_str::<Value>(&outcome.raw_stdout)
            .unwrap_or_else(|error| panic!("{error}: {outcome}"))
    };
    let report = run("here");
    assert_eq!(outcome_counts(&report), [1, 0, 1], "{report:#}");
    let why = report["calls"][0]["reasons"][0].as_str().unwrap();
    assert!(
        why.contains("what it got contains a secret"),
        "its length is another one: {why}"
    );
    let report = run("there");
    assert_eq!(outcome_counts(&report), [0, 0, 2], "{report:#}");
    let why = report["calls"][0]["reasons"][0].as_str().unwrap();
    assert!(
        why.contains("the environment variable PLACE has another value than in the recording"),
        "{why}"
    );
}

#[test]
fn a_call_that_cannot_be_replayed_is_reported_with_the_reason() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("hostile.toml", "[limits]\ntimeout = \"50ms\"\n");
    let mut server = start_recording(&folder);
    server.wait_for_tool("sleep_hour");
    server.call("sleep_hour", json!({}));
    server.stop();
    let outcome = replay(&folder, &[]);
    assert!(outcome.code == 1, "nothing could be run: {outcome}");
    assert!(
        outcome
            .stdout
            .contains("not replayable: it ran until its deadline, which depends on the machine"),
        "{outcome}"
    );
}

#[test]
fn only_a_digest_of_a_call_that_is_too_large_is_recorded() {
    let folder = Folder::with("hostile.wasm", hostile());
    let config = CONFIG.replace("[state]", "call_size = \"8KiB\"\n[state]");
    let mut server = StdioServer::start_with_config(&folder, &config);
    server.wait_for_tool("echo");
    server.call("echo", json!({"text": "x".repeat(10_000)}));
    server.call("echo", json!({"text": "short"}));
    server.stop();
    let calls = recorded_calls(&folder);
    assert!(
        calls[0].get("arguments").is_none() && calls[0]["result"]["sha256"].is_string(),
        "{}",
        calls[0]
    );
    let report = replay_report(&folder, &[]);
    assert_eq!(outcome_counts(&report), [1, 0, 1], "{report:#}");
    assert!(
        report["calls"][0]["reasons"][0]
            .as_str()
            .unwrap()
            .contains("too large"),
        "{report:#}"
    );
}

#[test]
fn only_calls_that_the_configuration_selects_are_recorded() {
    let folder = Folder::with("hostile.wasm", hostile());
    let config = CONFIG.replace(
        "[state]",
        "size = \"1MiB\"\ntools = [\"ver*\", \"echo\"]\n[state]",
    );
    let mut server = StdioServer::start_with_config(&folder, &config);
    server.wait_for_tool("echo");
    server.call("count", json!({}));
    server.call("version", json!({}));
    for _ in 0..20 {
        server.call("echo", json!({"text": "x".repeat(100_000)}));
    }
    server.log.wait_for("calls are no longer recorded: ");
    server.call("version", json!({}));
    server.stop();
    let tools: std::collections::BTreeMap<String, usize> = recorded_calls(&folder)
        .into_iter()
        .fold(std::collections::BTreeMap::new(), |mut tools, call| {
            *tools
                .entry(call["tool"].as_str().unwrap().to_owned())
                .or_default() += 1;
            tools
        });
    // An argument and its result take about 200 KB together.
    assert_eq!(
        tools.into_iter().collect::<Vec<_>>(),
        [("echo".to_owned(), 5), ("version".to_owned(), 1)]
    );
    assert!(
        fs::metadata(folder.sibling_path("calls.jsonl"))
            .unwrap()
            .len()
            <= 1 << 20
    );
    // Without a file, no call is recorded.
    let mut server = StdioServer::start_with_config(&folder, "[record]\ntools = [\"*\"]\n");
    server.wait_for_tool("echo");
    server.call("version", json!({}));
    server.stop();
    assert_eq!(recorded_calls(&folder).len(), 6);
}

#[test]
fn a_call_from_the_command_line_is_appended_to_the_recording() {
    let folder = Folder::with("calculator.wasm", sample("calculator"));
    let file = folder.sibling_path("calls.jsonl");
    for expected in [1, 2] {
        let args = [
            "call",
            "calculate_sum",
            "{\"a\": 2, \"b\": 3}",
            "--record",
            file.to_str().unwrap(),
        ];
        let outcome = ToolbayCommand::new(&folder).args(args).run();
        assert_eq!(outcome.code, 0, "{outcome}");
        assert_all_equal(&folder, expected);
    }
    // The file of the configuration belongs to the server.
    folder.write_config("[record]\nfile = \"other.jsonl\"\n");
    ToolbayCommand::new(&folder)
        .args(["call", "calculate_sum", "{\"a\": 2, \"b\": 3}"])
        .run();
    assert!(!folder.sibling_path("other.jsonl").exists());
}

#[test]
fn a_file_that_is_not_a_private_recording_is_refused_before_the_server_starts() {
    let folder = Folder::with("calculator.wasm", sample("calculator"));
    folder.write_config(CONFIG);
    let file = folder.sibling_path("calls.jsonl");
    fs::write(&file, "precious\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let outcome = ToolbayCommand::new(&folder).args(["serve"]).run();
    assert!(
        outcome.code == 1 && outcome.stderr.contains("it is not a recording of calls"),
        "{outcome}"
    );
    // The first error is that the file is not a recording, whatever its permissions.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let outcome = ToolbayCommand::new(&folder).args(["serve"]).run();
    assert!(
        outcome.code == 1 && outcome.stderr.contains("it is not a recording of calls"),
        "{outcome}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious\n");
    let outcome = replay(&folder, &[]);
    assert!(
        outcome.code == 1 && outcome.stderr.contains("it is not a recording of calls"),
        "{outcome}"
    );
    let begun =
        "{\"recording\":{\"version\":1,\"toolbay\":\"0\",\"started\":\"\",\"salt\":\"\"}}\n";
    fs::write(&file, begun).unwrap();
    let outcome = ToolbayCommand::new(&folder).args(["serve"]).run();
    assert!(
        outcome.code == 1 && outcome.stderr.contains("others can use it"),
        "{outcome}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), begun);
    let wrong = "{\"recording\":{\"version\":1,\"toolbay\":\"0\",\"started\":\"\",\"salt\":\"\"}}\n{\"call\":{}}\n";
    fs::write(&file, wrong).unwrap();
    let outcome = replay(&folder, &[]);
    assert!(
        outcome.code == 1
            && outcome
                .stderr
                .contains("calls.jsonl: line 2: missing field"),
        "{outcome}"
    );
}

#[test]
fn the_recording_of_a_killed_server_can_be_read_and_continued() {
    let folder = Folder::with("calculator.wasm", sample("calculator"));
    let mut server = start_recording(&folder);
    server.wait_for_tool("calculate_sum");
    server.call("calculate_sum", json!({"a": 1, "b": 2}));
    server.wait_until("the call is written", |_| {
        recorded_calls(&folder).len() == 1
    });
    server.kill();
    let file = folder.sibling_path("calls.jsonl");
    let mut text = fs::read_to_string(&file).unwrap();
    let beginning = text.lines().last().unwrap()[..100].to_owned();
    text.push_str(&beginning);
    fs::write(&file, text).unwrap();
    let outcome = replay(&folder, &[]);
    assert!(
        outcome.code == 0
            && outcome
                .stderr
                .contains("calls.jsonl:3: this line is only the beginning"),
        "{outcome}"
    );
    let mut server = start_recording(&folder);
    server.wait_for_tool("calculate_sum");
    server.call("calculate_sum", json!({"a": 1, "b": 2}));
    server.stop();
    assert_all_equal(&folder, 2);
}
