//! Calls: their results, concurrency, and cancellation.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::support::{Folder, StdioServer, error_kind_and_text, hostile, result_text, sample};

#[test]
fn every_sample_plugin_returns_its_documented_results() {
    let folder = Folder::new();
    for name in ["calculator", "chart", "qr", "text", "time"] {
        folder.put(&format!("{name}.wasm"), sample(name));
    }
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&[
        "bar_chart",
        "calculate_statistics",
        "calculate_sum",
        "calculate_total",
        "convert_time",
        "count_words",
        "diff_texts",
        "evaluate",
        "group_values",
        "line_chart",
        "qr_png",
        "qr_svg",
        "slugify",
        "time_difference",
        "time_now",
    ]);
    let mut structured = |tool: &str, arguments: Value| {
        let result = server.call(tool, arguments);
        assert!(result.get("isError").is_none(), "{tool}: {result}");
        // For clients that read only text, the text repeats the structured content.
        if result["content"].as_array().unwrap().len() == 1 {
            assert_eq!(
                result_text(&result),
                result["structuredContent"].to_string(),
                "{tool}"
            );
        }
        result["structuredContent"].clone()
    };
    assert_eq!(
        structured("calculate_sum", json!({"a": 1, "b": 2.5}))["sum"],
        3.5
    );
    assert_eq!(
        structured("calculate_total", json!({"numbers": [1, 2.5]}))["total"],
        3.5
    );
    assert_eq!(
        structured("calculate_statistics", json!({"numbers": [1, 3]}))["mean"],
        2.0
    );
    assert_eq!(
        structured("evaluate", json!({"expression": "2 * (3 + sqrt(16)) ^ 2"}))["value"],
        98.0
    );
    assert_eq!(
        structured("count_words", json!({"text": "one two"}))["words"],
        2
    );
    assert_eq!(
        structured("diff_texts", json!({"old": "a\n", "new": "b\n"}))["added"],
        1
    );
    assert_eq!(structured("time_now", json!({}))["zone"], "UTC");
    let conversion = json!({"time": "2026-01-15 09:00", "from": "America/New_York", "to": "UTC"});
    assert_eq!(
        structured("convert_time", conversion)["to"]["time"],
        "2026-01-15T14:00:00+00:00"
    );
    assert_eq!(
        structured(
            "time_difference",
            json!({"start": "2026-01-01", "end": "2026-01-02"})
        )["seconds"],
        86400.0
    );
    assert_eq!(
        structured("bar_chart", json!({"labels": ["a", "b"], "values": [1, 2]}))["count"],
        2
    );
    assert_eq!(
        server.text("slugify", json!({"text": "Hello, World!"})),
        "hello-world"
    );
    assert!(
        server
            .text("qr_svg", json!({"text": "a"}))
            .starts_with("<svg ")
    );
    for (tool, arguments, width, height) in [
        ("qr_png", json!({"text": "a", "scale": 2}), 58, 58),
        (
            "line_chart",
            json!({"values": [1, 3, 2], "size": "small"}),
            480,
            300,
        ),
    ] {
        let result = server.call(tool, arguments);
        let blocks = result["content"].as_array().unwrap();
        let image = blocks
            .iter()
            .find(|block| block["type"] == "image")
            .unwrap();
        assert_eq!(image["mimeType"], "image/png");
        assert_eq!(
            png_size(image["data"].as_str().unwrap()),
            (width, height),
            "{tool}"
        );
    }
}

/// Decodes the whole image and returns its size.
fn png_size(base64: &str) -> (u32, u32) {
    let file = BASE64.decode(base64).unwrap();
    let header = minipng::decode_png_header(&file).unwrap();
    let mut pixels = vec![0; header.required_bytes()];
    let image = minipng::decode_png(&file, &mut pixels).unwrap();
    (image.width(), image.height())
}

#[test]
fn an_id_can_be_used_again_after_it_was_cancelled() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put(
        "hostile.toml",
        "[limits]\nconcurrency = 1\nfuel = 1_000_000_000_000\ntimeout = \"10m\"",
    );
    let mut server = StdioServer::start(&folder);
    let call = |name: &str, token: u64| {
        let params = json!({"name": name, "_meta": {"progressToken": token}});
        json!({"jsonrpc": "2.0", "id": "again", "method": "tools/call", "params": params})
            .to_string()
    };
    for round in 1..20 {
        server.send(call("loop_forever", round));
        // A call starts only when the previous one has ended.
        assert_eq!(
            server.notification("notifications/progress")["progressToken"],
            round
        );
        server.send(call("count", round));
        let refused = server.wait_for("the error", |message| message["id"] == "again");
        assert_eq!(
            refused["error"]["message"],
            "a request with this id is already in progress"
        );
        server.notify("notifications/cancelled", json!({"requestId": "again"}));
    }
    server.send(call("version", 0));
    let answer = server.wait_for("the answer", |message| message["id"] == "again");
    assert!(
        result_text(&answer["result"]).starts_with("build-marker"),
        "its own answer, and the first: {answer}"
    );
}

#[test]
fn a_result_reports_usage_unless_that_is_disabled() {
    let folder = Folder::with("hostile.wasm", hostile());
    let mut server = StdioServer::start(&folder);
    let usage = server.call("allocate", json!({"n": 8}))["_meta"]["dev.toolbay/usage"].clone();
    assert!(usage["fuel"].as_u64().unwrap() > 1000, "{usage}");
    assert!(usage["memory"].as_u64().unwrap() > 8 << 20, "{usage}");
    assert!(usage["wall_ms"].as_f64().unwrap() > 0.0, "{usage}");
    // A failed call reports usage as well.
    assert!(
        server.call("panic", json!({}))["_meta"]["dev.toolbay/usage"]["fuel"]
            .as_u64()
            .unwrap()
            > 100
    );
    drop(server);
    let mut server = StdioServer::start_with_config(&folder, "usage = false");
    assert!(server.call("count", json!({})).get("_meta").is_none());
    assert_eq!(
        server.call("panic", json!({}))["_meta"],
        json!({"dev.toolbay/error": "trap"})
    );
}

#[test]
fn fuel_is_the_same_for_the_same_work() {
    let mut server = StdioServer::start(&Folder::with("hostile.wasm", hostile()));
    let mut fuel =
        || server.call("burn", json!({"n": 10_000}))["_meta"]["dev.toolbay/usage"]["fuel"].clone();
    assert_eq!(fuel(), fuel());
}

/// The functions do almost nothing, so this measures the fuel that the SDK uses to read the
/// arguments, find the function and write the result. Each bound is a fifth above the value
/// measured when the test was written.
#[test]
fn the_rust_sdk_needs_little_fuel_around_a_function() {
    let folder = Folder::new();
    for name in ["calculator", "text"] {
        folder.put(&format!("{name}.wasm"), sample(name));
    }
    let mut server = StdioServer::start(&folder);
    for (tool, arguments, most, pages) in [
        ("calculate_sum", json!({"a": 1, "b": 2.5}), 7_250, 17),
        ("count_words", json!({"text": "hello"}), 8_400, 17),
        // The cost of reading each number, without tracking its position.
        (
            "calculate_total",
            json!({"numbers": vec![1; 1000]}),
            508_000,
            18,
        ),
    ] {
        server.wait_for_tool(tool);
        let usage = server.call(tool, arguments)["_meta"]["dev.toolbay/usage"].clone();
        assert!(usage["fuel"].as_u64().unwrap() <= most, "{tool}: {usage}");
        // The initial memory suffices: growing it would cost a call more than everything else.
        assert!(
            usage["memory"].as_u64().unwrap() < (pages + 1) << 16,
            "{tool}: {usage}"
        );
    }
}

#[test]
fn the_message_of_a_failure_reaches_the_model() {
    let mut server = StdioServer::start(&Folder::with("hostile.wasm", hostile()));
    assert_eq!(
        server.failure("fail", json!({})),
        ("none".into(), "the work could not be done".into())
    );
    assert_eq!(
        server.failure("refuse", json!({})),
        ("invalid-arguments".into(), "that makes no sense".into())
    );
    let (kind, text) = server.failure("exit", json!({}));
    assert_eq!(
        (kind.as_str(), text.as_str()),
        ("trap", "The tool crashed: exited with code 1.")
    );
    assert_eq!(
        server.failure("exit_with_words", json!({})),
        ("none".into(), "no such city".into())
    );
    let (kind, text) = server.failure("panic", json!({}));
    assert_eq!(kind, "trap");
    assert!(
        text.starts_with("The tool crashed: thread '<unnamed>' (1) panicked at "),
        "{text}"
    );
    assert!(
        text.ends_with(":\nas asked (wasm trap: wasm `unreachable` instruction executed)."),
        "{text}"
    );
    // The log has the same text and the number of crashes so far.
    let line = server.log.wait_for_count("crashed: ", 2);
    assert!(
        line.contains("\\nas asked (wasm trap: ") && line.contains(" traps=2"),
        "{line}"
    );
    server.log.wait_for("failed: no such city");
    let line = server.log.wait_for("failed: the work could not be done");
    let milliseconds = line
        .split("wall_ms=")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    assert!(
        milliseconds
            .split('.')
            .nth(1)
            .is_none_or(|digits| digits.len() <= 1),
        "{line}"
    );
    server
        .log
        .wait_for("failed: invalid arguments: that makes no sense");
    assert_eq!(server.text("count", json!({})), "1");
}

#[test]
fn progress_increases_and_ends_before_the_result() {
    let mut server = StdioServer::start(&Folder::with("hostile.wasm", hostile()));
    let id = server.start_call_with_progress("progress", json!({"n": 50}));
    assert_eq!(result_text(&server.finish_call(id)), "50 steps");
    let reports = server.take_notifications("notifications/progress");
    let steps: Vec<f64> = reports
        .iter()
        .map(|report| report["progress"].as_f64().unwrap())
        .collect();
    assert_eq!(steps, (1..=50).map(f64::from).collect::<Vec<_>>());
    assert_eq!(
        reports[6],
        json!({"progressToken": id, "progress": 7.0, "total": 50.0, "message": "step 7"})
    );

    let id = server.start_call_with_progress("progress_zigzag", json!({}));
    server.finish_call(id);
    let reports = server.take_notifications("notifications/progress");
    let steps: Vec<f64> = reports
        .iter()
        .map(|report| report["progress"].as_f64().unwrap())
        .collect();
    assert_eq!(steps, [1.0, 3.0, 4.0], "what does not grow is dropped");

    let id = server.start_call("progress", json!({"n": 50}));
    server.finish_call(id);
    // Late progress would arrive before the response to this ping.
    server.result("ping", json!({}));
    assert!(
        server
            .take_notifications("notifications/progress")
            .is_empty(),
        "nobody asked for progress"
    );
}

#[test]
fn progress_is_rate_limited_and_its_token_can_be_a_string() {
    let mut server = StdioServer::start(&Folder::with("hostile.wasm", hostile()));
    let call =
        json!({"name": "progress", "arguments": {"n": 100_000}, "_meta": {"progressToken": "tea"}});
    server.result("tools/call", call);
    let reports = server.take_notifications("notifications/progress");
    assert!(
        (1..1000).contains(&reports.len()),
        "{} reports",
        reports.len()
    );
    assert!(
        reports
            .iter()
            .all(|report| report["progressToken"] == "tea")
    );
}

#[test]
fn a_cancelled_call_gets_no_response_and_frees_its_slot_at_once() {
    let folder = Folder::with("hostile.wasm", hostile());
    // The second call starts only when the first one has ended.
    folder.put(
        "hostile.toml",
        "[limits]\nconcurrency = 1\nfuel = 1_000_000_000_000\ntimeout = \"10m\"",
    );
    let mut server = StdioServer::start(&folder);
    for tool in ["loop_forever", "sleep_hour"] {
        let id = server.start_call_with_progress(tool, json!({}));
        server.notification("notifications/progress");
        server.notify(
            "notifications/cancelled",
            json!({"requestId": id, "reason": "changed my mind"}),
        );
        assert_eq!(server.text("count", json!({})), "1", "after {tool}");
    }
    let (said, _) = server.stop();
    assert!(
        said.iter().all(|message| message.get("id").is_none()),
        "a cancelled call was answered: {said:?}"
    );
}

#[test]
fn a_queued_call_can_be_cancelled() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put(
        "hostile.toml",
        folder.create_gate() + "[limits]\nconcurrency = 1",
    );
    // Otherwise a waiting call would let other calls run.
    folder.write_config("[server]\nsuspended_calls = 0");
    let mut server = StdioServer::start(&folder);
    let first = server.start_call_with_progress("wait_for_gate", json!({}));
    server.notification("notifications/progress");
    let second = server.start_call("count", json!({}));
    server.notify("notifications/cancelled", json!({"requestId": second}));
    folder.open_gate();
    server.finish_call(first);
    assert_eq!(server.text("count", json!({})), "1");
    let (said, _) = server.stop();
    assert!(
        said.iter().all(|message| message.get("id").is_none()),
        "a cancelled call was answered: {said:?}"
    );
}

#[test]
fn fifty_concurrent_calls_each_get_their_own_result() {
    let mut server = StdioServer::start(&Folder::with("hostile.wasm", hostile()));
    let ids: Vec<u64> = (0..50)
        .map(|n| server.start_call("echo", json!({"text": format!("text {n}")})))
        .collect();
    for (n, id) in ids.into_iter().enumerate() {
        assert_eq!(result_text(&server.finish_call(id)), format!("text {n}"));
    }
}

#[test]
fn a_busy_loop_does_not_delay_other_calls() {
    let mut server = StdioServer::start(&Folder::with("hostile.wasm", hostile()));
    let burning: Vec<u64> = (0..4)
        .map(|_| server.start_call_with_progress("loop_forever", json!({})))
        .collect();
    for _ in &burning {
        server.notification("notifications/progress");
    }
    for n in 0..20 {
        server.result("ping", json!({}));
        assert_eq!(
            server.text("echo", json!({"text": n.to_string()})),
            n.to_string()
        );
    }
    for id in burning {
        server.notify("notifications/cancelled", json!({"requestId": id}));
    }
}

/// Plain functions: a short one, and others that behave differently from what the server has
/// learned to expect.
const SUDDEN: &str = r#"(component
  (core module $m
    (memory 1)
    (func (export "short"))
    (func (export "spin") (loop $again (br $again)))
    (func $deeper (export "recurse") (call $deeper))
    (func (export "trap") (unreachable))
    (func (export "reach") (drop (i32.load (i32.const 0x7fff0000)))))
  (core instance $i (instantiate $m))
  (func (export "short") (canon lift (core func $i "short")))
  (func (export "spin") (canon lift (core func $i "spin")))
  (func (export "recurse") (canon lift (core func $i "recurse")))
  (func (export "trap") (canon lift (core func $i "trap")))
  (func (export "reach") (canon lift (core func $i "reach"))))"#;

#[test]
fn a_call_that_suddenly_runs_long_or_crashes_does_not_affect_other_calls() {
    let folder = Folder::with("sudden.wasm", wat::parse_str(SUDDEN).unwrap());
    folder.put(
        "sudden.toml",
        "[limits]\nfuel = 1_000_000_000_000\ntimeout = \"10m\"",
    );
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("short");
    for (sudden, kind) in [
        ("trap", "trap"),
        ("recurse", "stack"),
        ("reach", "trap"),
        ("spin", "cancelled"),
    ] {
        // By now, calls of this plugin start on the thread that serves all clients.
        for _ in 0..100 {
            assert!(server.call("short", json!({})).get("isError").is_none());
        }
        if sudden == "spin" {
            let spinning = server.start_call("spin", json!({}));
            for _ in 0..5 {
                server.result("ping", json!({}));
                server.call("short", json!({}));
            }
            server.notify("notifications/cancelled", json!({"requestId": spinning}));
        } else {
            assert_eq!(
                error_kind_and_text(&server.call(sudden, json!({}))).0,
                kind,
                "{sudden}"
            );
        }
    }
    assert!(server.call("short", json!({})).get("isError").is_none());
}

#[test]
fn output_that_does_not_match_the_output_schema_is_a_failure() {
    let mut server = StdioServer::start(&Folder::with("hostile.wasm", hostile()));
    let result = server.call("mismatch", json!({}));
    let said = "The tool returned invalid output: /n: \"seven\" is not of type \"integer\".";
    assert_eq!(
        error_kind_and_text(&result),
        ("invalid-output".into(), said.into())
    );
    assert!(result.get("structuredContent").is_none());
}

#[test]
fn the_last_line_of_the_log_counts_all_calls() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("hostile.toml", "[limits]\nfuel = 10_000_000");
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("count");
    for tool in ["count", "count", "fail", "panic", "loop_forever", "panic"] {
        server.call(tool, json!({}));
    }
    server.error("tools/call", json!({"name": "nothing"}));
    server.call("echo", json!({"text": 7}));
    server.stop();
    let line = server.log.wait_for(" shut down ");
    let (_, counts) = line.split_once(" shut down ").unwrap();
    assert_eq!(
        counts.trim_end(),
        "calls=8 succeeded=2 failed=6 kinds=\"unknown-tool 1, invalid-arguments 1, failed 1, fuel 1, trap 2\" cancelled=0 \
         internal_errors=0"
    );
}
