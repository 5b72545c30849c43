//! `/metrics`: the counts are right, in both formats, bounded, and only for operators.

mod access;
mod book;
mod exposition;
mod load;

use std::time::Instant;

use serde_json::{Value, json};

pub(crate) use self::book::current_table;
use self::exposition::Exposition;
use crate::hostile::nested_blocks;
use crate::support::{
    DEADLINE, Folder, HttpServer, TinyComponent, ToolbayCommand, error_kind_and_text, hostile,
    hostile_version, result_text, web,
};

/// Rate limits that no test reaches.
const RATES: &str = "[rate_limit]\ncalls = 100_000\nper = \"1m\"\n[caller_rate_limit]\ncalls = 100_000\nper = \"1m\"\n";

/// Returns the metrics of a server.
fn scrape(server: &HttpServer) -> Exposition {
    Exposition::parse(&scrape_text(server), false)
}

/// Returns the metrics of a server as text.
fn scrape_text(server: &HttpServer) -> String {
    let response = server.get("/metrics", &[]);
    assert_eq!(response.status, 200);
    assert_eq!(
        response.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    response.text()
}

fn call(server: &HttpServer, tool: &str, arguments: Value) -> Value {
    server
        .post_stateless(
            "tools/call",
            json!({"name": tool, "arguments": arguments}),
            &[],
        )
        .response_message()
}

fn call_count(metrics: &Exposition, tool: &str, outcome: &str) -> u64 {
    metrics.count(
        "toolbay_calls_total",
        &[("tool", tool), ("outcome", outcome)],
    )
}

/// Reads metrics until `wanted` accepts them.
fn wait_until(server: &HttpServer, what: &str, wanted: impl Fn(&Exposition) -> bool) -> Exposition {
    let begun = Instant::now();
    loop {
        let metrics = scrape(server);
        if wanted(&metrics) {
            return metrics;
        }
        assert!(begun.elapsed() < DEADLINE, "{what}: {metrics:#?}");
    }
}

/// Starts a server with the hostile plugin, with some fuel to compute, and the plugin that sends
/// requests.
fn start_server() -> HttpServer {
    let folder = Folder::with("hostile.wasm", hostile());
    let grant = "[tools.burn.limits]\nfuel = 1_000_000\n[tools.sleep_hour.limits]\ntimeout = \"20ms\"\n\
                 [tools.loop_forever.limits]\ntimeout = \"1m\"\nfuel = 1_000_000_000_000\n";
    folder.put("hostile.toml", grant);
    folder.put("web.wasm", web());
    HttpServer::start_with_config(&folder, RATES).wait_until_ready()
}

#[test]
fn every_call_is_counted_by_tool_and_outcome() {
    let server = start_server();
    let none = scrape(&server);
    assert_eq!(none.samples("toolbay_calls_total").count(), 0);
    for _ in 0..3 {
        assert_eq!(
            result_text(&call(&server, "echo", json!({"text": "hello"}))["result"]),
            "hello"
        );
    }
    let ended = [
        ("fail", json!({}), "failed"),
        ("refuse", json!({}), "invalid-arguments"),
        ("panic", json!({}), "trap"),
        ("burn", json!({"n": 100_000_000}), "fuel"),
        ("burn", json!({"n": "many"}), "invalid-arguments"),
        ("sleep_hour", json!({}), "deadline"),
        ("hoard", json!({}), "memory"),
    ];
    for (tool, arguments, kind) in &ended {
        let (said, _) = error_kind_and_text(&call(&server, tool, arguments.clone())["result"]);
        // An error that the plugin itself returns has no kind for clients.
        assert_eq!(
            said,
            if *kind == "failed" { "none" } else { kind },
            "{tool}"
        );
    }
    // Counting an unknown tool by its name would let clients choose labels.
    assert!(call(&server, "nobody_knows_it", json!({}))["error"].is_object());
    let denied = call(
        &server,
        "try_to_send",
        json!({"url": "https://evil.example/"}),
    );
    assert!(result_text(&denied["result"]).contains("denied"));
    let metrics = scrape(&server);
    assert_eq!(call_count(&metrics, "echo", "ok"), 3);
    for (tool, _, kind) in &ended {
        assert_eq!(call_count(&metrics, tool, kind), 1, "{tool} {kind}");
    }
    assert_eq!(call_count(&metrics, "(other)", "unknown-tool"), 1);
    assert_eq!(
        metrics.count("toolbay_denials_total", &[("kind", "http")]),
        1
    );
    for limit in ["limits.fuel", "limits.timeout", "limits.memory"] {
        assert_eq!(
            metrics.count("toolbay_limits_reached_total", &[("limit", limit)]),
            1,
            "{limit}"
        );
    }
    assert_eq!(
        metrics.count("toolbay_call_duration_seconds_count", &[("tool", "echo")]),
        3
    );
    assert!(
        metrics.value(
            "toolbay_call_duration_seconds_sum",
            &[("tool", "sleep_hour")]
        ) >= 0.02
    );
    assert!(metrics.value("toolbay_call_fuel_total", &[("tool", "burn")]) >= 1_000_000.0);
    assert!(metrics.value("toolbay_call_memory_peak_bytes", &[("tool", "hoard")]) > 1e6);
    let stage = |stage: &str| {
        metrics.count(
            "toolbay_call_stage_duration_seconds_count",
            &[("stage", stage)],
        )
    };
    // All calls but the one of the unknown tool passed the queue. One had invalid arguments and did
    // not enter its guest.
    assert_eq!(
        (stage("queue"), stage("guest"), stage("check")),
        (11, 10, 10)
    );
    assert_eq!(metrics.count("toolbay_call_memory_bytes_count", &[]), 10);
    assert_eq!(metrics.count("toolbay_calls_running", &[]), 0);
}

#[test]
fn cancelled_running_and_queued_calls_are_counted() {
    let folder = Folder::with("hostile.wasm", hostile());
    let limits = "[limits]\ntimeout = \"1m\"\nfuel = 1_000_000_000_000\n";
    folder.put(
        "hostile.toml",
        format!("{limits}concurrency = 1\n{}", folder.create_gate()),
    );
    let server =
        HttpServer::start_with_config(&folder, &format!("{RATES}\n[server]\nsuspended_calls = 0"))
            .wait_until_ready();
    let begin = || server.post_stateless("tools/call", call_with_progress("wait_for_gate"), &[]);
    let running = begin();
    wait_until(&server, "one runs", |metrics| {
        metrics.count("toolbay_calls_running", &[]) == 1
    });
    std::thread::scope(|threads| {
        let waiting = threads.spawn(begin);
        let metrics = wait_until(&server, "one waits", |metrics| {
            metrics.count("toolbay_calls_queued", &[]) == 1
        });
        assert!(metrics.value("toolbay_memory_reserved_bytes", &[]) > 0.0);
        // The HTTP metrics are read a moment before the call metrics.
        wait_until(&server, "both are open", |metrics| {
            metrics.count("toolbay_http_requests_in_flight", &[]) >= 2
        });
        running.close();
        let metrics = wait_until(&server, "one was cancelled", |metrics| {
            call_count(metrics, "wait_for_gate", "cancelled") == 1
        });
        assert_eq!(call_count(&metrics, "wait_for_gate", "ok"), 0);
        folder.open_gate();
        assert!(waiting.join().unwrap().response_message()["result"].is_object());
    });
    let metrics = scrape(&server);
    assert_eq!(call_count(&metrics, "wait_for_gate", "ok"), 1);
    assert_eq!(metrics.count("toolbay_calls_queued", &[]), 0);
    assert!(
        metrics.count(
            "toolbay_call_duration_seconds_count",
            &[("tool", "wait_for_gate")]
        ) == 2
    );
}

/// A call whose response is a stream as soon as the call runs.
fn call_with_progress(tool: &str) -> Value {
    json!({"name": tool, "arguments": {}, "_meta": {"progressToken": 1}})
}

#[test]
fn rejected_calls_are_counted_as_calls_of_their_tool() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let server = HttpServer::start_with_config(
        &folder,
        "[caller_rate_limit]\ncalls = 1\nper = \"1h\"\n[rate_limit]\ncalls = 9\nper = \"1h\"",
    );
    let server = server.wait_until_ready();
    call(&server, "a", json!({}));
    assert_eq!(
        error_kind_and_text(&call(&server, "a", json!({}))["result"]).0,
        "rate-limited"
    );
    let metrics = scrape(&server);
    assert_eq!(
        (
            call_count(&metrics, "a", "ok"),
            call_count(&metrics, "a", "rate-limited")
        ),
        (1, 1)
    );
    assert_eq!(
        metrics.count(
            "toolbay_limits_reached_total",
            &[("limit", "caller_rate_limit")]
        ),
        1
    );
}

#[test]
fn counters_only_grow_and_both_formats_have_the_same_values() {
    let server = start_server();
    call(&server, "echo", json!({"text": "a"}));
    let mut before = scrape(&server).monotonic_samples();
    for _ in 0..5 {
        call(&server, "echo", json!({"text": "a"}));
        call(&server, "fail", json!({}));
        let after = scrape(&server).monotonic_samples();
        for (sample, value) in &before {
            assert!(
                after.get(sample).is_some_and(|now| now >= value),
                "{sample:?}: {value} {after:?}"
            );
        }
        before = after;
    }
    let open = server.get(
        "/metrics",
        &[(
            "Accept",
            "application/openmetrics-text;version=1.0.0,text/plain;q=0.1",
        )],
    );
    assert_eq!(
        open.header("content-type"),
        Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
    );
    let open = Exposition::parse(&open.text(), true);
    let plain = scrape(&server);
    let about = |metrics: &Exposition| -> Vec<_> {
        let families = metrics.families.iter();
        families
            .map(|family| {
                (
                    family.name.clone(),
                    family.kind.clone(),
                    family.help.clone(),
                )
            })
            .collect()
    };
    assert_eq!(about(&open), about(&plain));
    let counts = |metrics: &Exposition| {
        let growing = metrics.monotonic_samples().into_iter();
        growing
            .filter(|((name, _), _)| name.starts_with("toolbay_call"))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        counts(&open),
        counts(&plain),
        "nothing was called in between"
    );
}

#[test]
fn prompts_and_resources_count_under_names_that_no_tool_has() {
    let folder = Folder::with("library.wasm", crate::support::library());
    for (of, name) in [
        ("beside.prompts", "greet.md"),
        ("beside.resources", "note.txt"),
    ] {
        std::fs::create_dir_all(folder.plugin_path(of)).unwrap();
        std::fs::write(folder.plugin_path(of).join(name), "Hello.").unwrap();
    }
    let server = HttpServer::start_with_config(&folder, RATES).wait_until_ready();
    let resources = server.result("resources/list", json!({}));
    let uri = resources["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["uri"].as_str().unwrap());
    let uri = uri
        .into_iter()
        .find(|uri| uri.ends_with("note.txt"))
        .unwrap()
        .to_owned();
    server.result("resources/read", json!({"uri": uri}));
    server.result("prompts/get", json!({"name": "greet"}));
    let text = scrape_text(&server);
    assert!(
        !text.contains("note.txt") && !text.contains("greet"),
        "{text}"
    );
    let metrics = Exposition::parse(&text, false);
    assert_eq!(
        (
            call_count(&metrics, "(resource)", "ok"),
            call_count(&metrics, "(prompt)", "ok")
        ),
        (1, 1)
    );
    assert!(metrics.count("toolbay_catalog_items", &[("kind", "prompt")]) >= 1);
}

#[test]
fn metrics_of_the_catalog_follow_its_changes() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a", "b"]).build());
    folder.put("bad.wasm", b"\0asm no component");
    let server = HttpServer::start_with_config(&folder, "[compile]\ncache_folder = \"store\"")
        .wait_until_ready();
    let begun = wait_until(&server, "the bad one is refused", |metrics| {
        metrics.count("toolbay_plugins", &[("status", "refused")]) == 1
    });
    let of = |metrics: &Exposition, name: &str, label: &str, value: &str| {
        metrics.count(name, &[(label, value)])
    };
    assert_eq!(of(&begun, "toolbay_plugins", "status", "ready"), 1);
    assert_eq!(of(&begun, "toolbay_catalog_items", "kind", "tool"), 2);
    assert_eq!(
        of(&begun, "toolbay_plugin_changes_total", "change", "load"),
        1
    );
    assert_eq!(
        of(&begun, "toolbay_plugin_changes_total", "change", "refused"),
        1
    );
    assert_eq!(of(&begun, "toolbay_compiles_total", "result", "ok"), 1);
    assert!(
        of(
            &begun,
            "toolbay_compile_cache_lookups_total",
            "result",
            "miss"
        ) >= 1
    );
    assert!(begun.value("toolbay_compile_seconds_total", &[]) > 0.0);
    let reloads = begun.count("toolbay_catalog_updates_total", &[]);
    assert!(reloads >= 1);
    call(&server, "a", json!({}));
    call(&server, "b", json!({}));
    // A new version without one of the tools removes the counts of that tool. The counts of the
    // other one continue.
    folder.put(
        "a.wasm",
        TinyComponent::new(&["a"]).with_text("other").build(),
    );
    let after = wait_until(&server, "b is gone", |metrics| {
        of(metrics, "toolbay_catalog_items", "kind", "tool") == 1
    });
    assert_eq!(
        (call_count(&after, "a", "ok"), call_count(&after, "b", "ok")),
        (1, 0)
    );
    assert_eq!(after.samples("toolbay_calls_total").count(), 1);
    assert!(after.count("toolbay_catalog_updates_total", &[]) > reloads);
    call(&server, "a", json!({}));
    assert_eq!(call_count(&scrape(&server), "a", "ok"), 2);
    folder.remove("a.wasm");
    let gone = wait_until(&server, "a is gone", |metrics| {
        of(metrics, "toolbay_catalog_items", "kind", "tool") == 0
    });
    assert_eq!(
        of(&gone, "toolbay_plugin_changes_total", "change", "removed"),
        1
    );
    assert!(gone.samples("toolbay_calls_total").next().is_none());
    // The compile cache still has the code of this file.
    folder.put(
        "a.wasm",
        TinyComponent::new(&["a"]).with_text("other").build(),
    );
    let back = wait_until(&server, "a is back", |metrics| {
        of(metrics, "toolbay_catalog_items", "kind", "tool") == 1
    });
    assert!(
        of(
            &back,
            "toolbay_compile_cache_lookups_total",
            "result",
            "hit"
        ) >= 1
    );
    assert_eq!(back.count("toolbay_compiles_total", &[("result", "ok")]), 2);
}

/// Starts a new server with its own compile cache and this configuration, in which `refused`
/// plugins are refused. Also returns how many compilations succeeded and failed until all plugins
/// were tried.
fn start_and_count_compilations(
    folder: &Folder,
    config: &str,
    refused: u64,
) -> (HttpServer, [u64; 2]) {
    // With so much memory, the slow component reaches the limit of processor time first.
    let config = format!(
        "{config}\n[compile]\ncache_folder = \"store\"\ncpu_time = \"2s\"\nmemory = \"8GiB\"\n"
    );
    let server = HttpServer::start_with_config(folder, &config).wait_until_ready();
    let metrics = wait_until(&server, "some are refused", |metrics| {
        metrics.count("toolbay_plugins", &[("status", "refused")]) == refused
    });
    let compiled = ["ok", "failed"]
        .map(|result| metrics.count("toolbay_compiles_total", &[("result", result)]));
    (server, compiled)
}

#[test]
fn a_refused_plugin_is_compiled_once_and_not_at_every_start() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    // The first is refused while its tools are listed. The second, an empty component, is refused
    // while it is linked.
    folder.put(
        "asked.wasm",
        TinyComponent::new(&["b"])
            .before_list("unreachable")
            .build(),
    );
    folder.put("empty.wasm", b"\0asm\x0d\0\x01\0");
    let numbers =
        |config: &str, refused: u64| start_and_count_compilations(&folder, config, refused).1;
    assert_eq!(numbers("", 2), [2, 1]);
    assert_eq!(numbers("", 2), [0, 0], "they are known");
    // With more fuel, the first might answer.
    let more = "[describe]\nfuel = 123_456_789";
    assert_eq!(numbers(more, 2), [1, 1], "another limit");
    assert_eq!(numbers(more, 2), [0, 0]);
    folder.put("empty.wit", "package a:b;");
    assert_eq!(
        numbers(more, 2),
        [0, 1],
        "the text beside it is another one"
    );
    folder.put("asked.wasm", TinyComponent::new(&["b"]).build());
    assert_eq!(numbers(more, 1), [1, 0], "another file with the same name");
    assert_eq!(numbers(more, 1), [0, 0]);
}

#[test]
fn a_plugin_that_the_compile_command_refused_is_not_compiled_by_the_server() {
    let folder = Folder::with("empty.wasm", b"\0asm\x0d\0\x01\0");
    folder.write_config(
        "[compile]\ncache_folder = \"store\"\ncpu_time = \"2s\"\nmemory = \"8GiB\"\n",
    );
    let [first, second] = [(); 2].map(|()| ToolbayCommand::new(&folder).args(["compile"]).run());
    assert_eq!(first.code, 1, "{first}");
    assert_eq!(
        second.to_string(),
        first.to_string(),
        "the reason is known as well"
    );
    assert_eq!(start_and_count_compilations(&folder, "", 1).1, [0, 0]);
}

#[test]
fn a_start_does_not_wait_for_a_plugin_whose_last_compilation_timed_out() {
    let folder = Folder::with("bomb.wasm", nested_blocks(5000));
    assert_eq!(start_and_count_compilations(&folder, "", 1).1, [0, 1]);
    let (server, compiled) = start_and_count_compilations(&folder, "", 1);
    assert_eq!(compiled, [0, 0]);
    assert!(
        server
            .log
            .text()
            .contains("to allow more, raise compile.cpu_time); the load is retried automatically")
    );
    let failed =
        |metrics: &Exposition| metrics.count("toolbay_compiles_total", &[("result", "failed")]);
    wait_until(&server, "it is tried again", |metrics| failed(metrics) == 1);
}

#[test]
fn metrics_include_the_server_and_its_process() {
    let folder = Folder::with("hostile.wasm", hostile_version(3));
    let config = "[audit]\nfolder = \"log\"\n[state]\nfolder = \"kept\"\n";
    let server =
        HttpServer::start_with_config(&folder, &format!("{RATES}{config}")).wait_until_ready();
    let _sessions =
        ["2025-11-25", "2025-06-18"].map(|revision| server.start_session(revision).id.clone());
    let metrics = scrape(&server);
    assert_eq!(metrics.count("toolbay_sessions", &[]), 2);
    assert!(metrics.count("toolbay_http_connections", &[]) >= 1);
    assert_eq!(metrics.count("toolbay_audit_lost_lines_total", &[]), 0);
    assert_eq!(metrics.samples("toolbay_audit_lost_lines_total").count(), 1);
    assert_eq!(
        metrics.count(
            "toolbay_build_info",
            &[("version", env!("CARGO_PKG_VERSION"))]
        ),
        1
    );
    assert!(metrics.value("process_resident_memory_bytes", &[]) > 1e6);
    assert!(
        metrics.value("process_open_fds", &[]) > 3.0 && metrics.value("process_threads", &[]) > 1.0
    );
    assert!(metrics.value("process_start_time_seconds", &[]) > 1.7e9);
    assert_eq!(
        metrics.samples("toolbay_state_bytes").count(),
        0,
        "nobody keeps anything yet"
    );
}

#[test]
fn the_series_of_a_plugin_with_thousands_of_tools_are_limited_to_a_thousand() {
    let names: Vec<String> = (0..2_000).map(|n| format!("tool-{n:04}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let folder = Folder::with("many.wasm", TinyComponent::new(&names).build());
    let server = HttpServer::start_with_config(&folder, RATES).wait_until_ready();
    assert_eq!(
        scrape(&server).samples("toolbay_calls_total").count(),
        0,
        "only what was called has samples"
    );
    let some = &names[..1_100];
    std::thread::scope(|threads| {
        for part in some.chunks(some.len() / 4) {
            let server = &server;
            threads.spawn(move || {
                for name in part {
                    call(server, name, json!({}));
                }
            });
        }
    });
    let page = scrape_text(&server);
    assert!(page.len() < 4 << 20, "{} bytes", page.len());
    let metrics = Exposition::parse(&page, false);
    assert_eq!(metrics.samples("toolbay_calls_total").count(), 1_001);
    assert_eq!(call_count(&metrics, "(other)", "ok"), 100);
    let called: f64 = metrics
        .samples("toolbay_calls_total")
        .map(|sample| sample.value)
        .sum();
    assert_eq!(called.to_string(), "1100");
    // Removed tools leave room for others.
    folder.put("few.wasm", TinyComponent::new(&["few"]).build());
    folder.remove("many.wasm");
    wait_until(&server, "the tools are gone", |metrics| {
        metrics.samples("toolbay_calls_total").count() == 1
    });
    call(&server, "few", json!({}));
    assert_eq!(call_count(&scrape(&server), "few", "ok"), 1);
}

#[test]
fn metrics_contain_no_text_of_callers() {
    let (token, config) = crate::http::auth::token("a-callers-name", "admin = true");
    let folder = Folder::with("hostile.wasm", hostile());
    let server =
        HttpServer::start_with_config(&folder, &format!("{RATES}{config}")).wait_until_ready();
    let bearer = format!("Bearer {token}");
    let authorized = [("Authorization", bearer.as_str())];
    let params = |text: &str| json!({"name": "echo", "arguments": {"text": text}});
    server
        .post_stateless("tools/call", params("an-argument"), &authorized)
        .response_message();
    let session = server.start_session_with_headers("2025-11-25", &authorized);
    let evil = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "evil\"} 1\nfake 2"}});
    let headers = [("Mcp-Session-Id", session.id.as_str()), authorized[0]];
    server
        .post(&headers, evil.to_string().as_bytes())
        .response_message();
    let page = server.get("/metrics", &authorized).text();
    let metrics = Exposition::parse(&page, false);
    assert_eq!(
        (
            call_count(&metrics, "echo", "ok"),
            call_count(&metrics, "(other)", "unknown-tool")
        ),
        (1, 1)
    );
    for said in [
        "a-callers-name",
        "an-argument",
        "evil",
        "fake",
        token.as_str(),
        "token:",
    ] {
        assert!(!page.contains(said), "{said}");
    }
}
