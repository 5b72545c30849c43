//! `[otel]`: the data for a collector is right, has no secrets, and delays nothing when the
//! collector is slow.

#![expect(
    deprecated,
    reason = "the names of MCP and GenAI have moved to a repository that has no crate yet; they stay the same"
)]

mod attacks;
mod settings;

use std::collections::{BTreeMap, BTreeSet};

use opentelemetry_semantic_conventions::attribute as names;
use serde_json::{Value, json};
use toolbay_testkit::{OtlpCollector, ReceivedTelemetry, attribute_map};

use crate::requests::Site;
use crate::support::{
    Folder, HttpServer, StdioServer, error_kind_and_text, hostile, result_text, web,
};

/// Rate limits that no test reaches.
const RATES: &str = "[rate_limit]\ncalls = 100_000\nper = \"1m\"\n[caller_rate_limit]\ncalls = 100_000\nper = \"1m\"\n";

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// Returns the configuration that sends to a collector.
fn otel(collector: &OtlpCollector, more: &str) -> String {
    format!(
        "[otel]\nendpoint = {:?}\nmetrics_interval = \"100ms\"\n{more}\n{RATES}",
        collector.url()
    )
}

fn call(server: &HttpServer, tool: &str, arguments: Value, meta: Value) -> Value {
    server
        .post_stateless(
            "tools/call",
            json!({"name": tool, "arguments": arguments, "_meta": meta}),
            &[],
        )
        .response_message()
}

fn hex(id: &[u8]) -> String {
    hex::encode(id)
}

/// Returns the attributes of the spans with this name.
fn span_attributes(received: &ReceivedTelemetry, name: &str) -> Vec<BTreeMap<String, String>> {
    received
        .spans
        .iter()
        .filter(|span| span.name == name)
        .map(|span| attribute_map(&span.attributes))
        .collect()
}

/// Returns every name of the semantic conventions that is used here.
fn conventions() -> BTreeSet<&'static str> {
    BTreeSet::from([
        names::MCP_METHOD_NAME,
        names::MCP_PROTOCOL_VERSION,
        names::MCP_RESOURCE_URI,
        names::MCP_SESSION_ID,
        names::GEN_AI_OPERATION_NAME,
        names::GEN_AI_PROMPT_NAME,
        names::GEN_AI_TOOL_NAME,
        names::JSONRPC_REQUEST_ID,
        names::RPC_RESPONSE_STATUS_CODE,
        names::NETWORK_TRANSPORT,
        names::NETWORK_PROTOCOL_NAME,
        names::ERROR_TYPE,
        names::ENDUSER_ID,
        names::HTTP_REQUEST_METHOD,
        names::HTTP_RESPONSE_STATUS_CODE,
        names::SERVER_ADDRESS,
        names::SERVER_PORT,
        names::URL_SCHEME,
    ])
}

/// Checks that every attribute belongs to the conventions or has Toolbay's prefix.
fn check_names(received: &ReceivedTelemetry) {
    let conventions = conventions();
    let all = received
        .spans
        .iter()
        .map(|span| &span.attributes)
        .chain(received.logs.iter().map(|log| &log.attributes));
    for pair in all.flatten() {
        let name = pair.key.as_str();
        assert!(
            conventions.contains(name) || name.starts_with("dev.toolbay."),
            "{name}"
        );
    }
}

#[test]
fn a_call_is_a_span_with_the_names_of_the_conventions() {
    let folder = Folder::with("hostile.wasm", hostile());
    let collector = OtlpCollector::start();
    let server = HttpServer::start_with_config(&folder, &otel(&collector, "")).wait_until_ready();
    let said = call(
        &server,
        "echo",
        json!({"text": "an argument"}),
        json!({"traceparent": PARENT}),
    );
    assert_eq!(result_text(&said["result"]), "an argument");
    assert_eq!(
        error_kind_and_text(&call(&server, "panic", json!({}), json!({}))["result"]).0,
        "trap"
    );
    assert!(call(&server, "nobody_knows_it", json!({}), json!({}))["error"].is_object());
    let unsampled = PARENT.replace("-01", "-00");
    call(
        &server,
        "echo",
        json!({"text": "b"}),
        json!({"traceparent": unsampled}),
    );
    call(&server, "fail", json!({}), json!({}));
    let received = collector.wait_until("all spans", |received| {
        span_attributes(received, "tools/call fail").len() == 1
    });
    check_names(&received);
    assert_eq!(
        received.spans.len(),
        4,
        "the caller of one does not record it"
    );

    let span = received
        .spans
        .iter()
        .find(|span| span.name == "tools/call echo")
        .unwrap();
    assert_eq!(
        (hex(&span.trace_id), hex(&span.parent_span_id)),
        (TRACE.to_owned(), "00f067aa0ba902b7".to_owned())
    );
    assert_eq!((span.kind, span.flags, &span.status), (2, 0x301, &None));
    let known = attribute_map(&span.attributes);
    for (name, value) in [
        (names::MCP_METHOD_NAME, "tools/call"),
        (names::GEN_AI_OPERATION_NAME, "execute_tool"),
        (names::GEN_AI_TOOL_NAME, "echo"),
        (names::MCP_PROTOCOL_VERSION, "2026-07-28"),
        (names::NETWORK_TRANSPORT, "tcp"),
        (names::NETWORK_PROTOCOL_NAME, "http"),
        ("dev.toolbay.plugin", "hostile"),
        ("dev.toolbay.outcome", "ok"),
    ] {
        assert_eq!(
            known.get(name).map(String::as_str),
            Some(value),
            "{name}: {known:?}"
        );
    }
    assert!(
        !known[names::JSONRPC_REQUEST_ID].is_empty() && !known.contains_key(names::ENDUSER_ID),
        "{known:?}"
    );
    assert!(
        known["dev.toolbay.fuel"].parse::<u64>().unwrap() > 0
            && known.contains_key("dev.toolbay.memory.peak")
    );
    let events: Vec<&str> = span
        .events
        .iter()
        .map(|event| event.name.as_str())
        .collect();
    let stages = ["queue", "prepare", "guest", "check"];
    assert_eq!(
        events,
        stages.map(|stage| format!("dev.toolbay.stage.{stage}"))
    );
    let walls = stages.map(|stage| {
        known[&format!("dev.toolbay.stage.{stage}.duration")]
            .parse::<f64>()
            .unwrap()
    });
    #[expect(clippy::cast_precision_loss, reason = "seconds of a test")]
    let whole = (span.end_time_unix_nano - span.start_time_unix_nano) as f64 / 1e9;
    assert!(
        walls.iter().all(|wall| *wall >= 0.0) && walls.iter().sum::<f64>() <= whole,
        "{walls:?} of {whole}"
    );

    let failed = &span_attributes(&received, "tools/call panic")[0];
    assert_eq!(
        (
            failed[names::ERROR_TYPE].as_str(),
            failed["dev.toolbay.outcome"].as_str()
        ),
        ("tool_error", "trap")
    );
    let root = received
        .spans
        .iter()
        .find(|span| span.name == "tools/call panic")
        .unwrap();
    assert!(
        root.parent_span_id.is_empty()
            && root.status.as_ref().is_some_and(|status| status.code == 2)
    );
    // The name that the client made up occurs nowhere.
    let unknown = &span_attributes(&received, "tools/call")[0];
    assert_eq!(
        (
            unknown[names::ERROR_TYPE].as_str(),
            unknown[names::RPC_RESPONSE_STATUS_CODE].as_str()
        ),
        ("-32602", "-32602")
    );
    let all = format!("{received:?}");
    assert!(
        !all.contains("nobody_knows_it") && !all.contains("an argument"),
        "{all}"
    );
    assert_eq!(received.resource["service.name"], "toolbay");
    assert_eq!(received.resource["service.instance.id"].len(), 36);
}

#[test]
fn over_standard_input_each_session_has_an_id() {
    let folder = Folder::with("hostile.wasm", hostile());
    let collector = OtlpCollector::start();
    let mut server = StdioServer::start_with_revision_and_config(
        "2025-11-25",
        &folder,
        &otel(&collector, "include_caller = true"),
    );
    server.wait_for_tool("echo");
    server.call("echo", json!({"text": "a"}));
    server.call("echo", json!({"text": "b"}));
    // The rest is sent at shutdown, and so is the last report.
    server.close_input();
    let received = collector.wait_until("both", |received| {
        received.spans.len() == 2 && received.metric_reports > 0
    });
    check_names(&received);
    let [one, two] = &span_attributes(&received, "tools/call echo")[..] else {
        panic!("{received:?}")
    };
    assert_eq!(
        (
            one[names::NETWORK_TRANSPORT].as_str(),
            one[names::ENDUSER_ID].as_str()
        ),
        ("pipe", "stdio")
    );
    assert_eq!(one[names::MCP_SESSION_ID], two[names::MCP_SESSION_ID]);
    assert_ne!(
        one[names::JSONRPC_REQUEST_ID],
        two[names::JSONRPC_REQUEST_ID]
    );
    assert_ne!(received.spans[0].trace_id, received.spans[1].trace_id);
    let names: Vec<&str> = received
        .metrics
        .iter()
        .map(|metric| metric.name.as_str())
        .collect();
    assert!(
        names.contains(&"toolbay.calls") && !names.contains(&"toolbay.http.connections"),
        "{names:?}"
    );
}

#[test]
fn a_request_of_a_plugin_is_a_span_that_the_request_carries() {
    let site = Site::start();
    let collector = OtlpCollector::start();
    let folder = Folder::with("web.wasm", web());
    folder.put("web.toml", site.grant());
    let server = HttpServer::start_with_config(&folder, &otel(&collector, "")).wait_until_ready();
    for (method, path) in [
        ("GET", "/hello"),
        ("GET", "/nowhere?q=an-argument"),
        ("BREW", "/hello"),
    ] {
        let arguments = json!({"method": method, "url": site.url(path), "headers": {}, "body": ""});
        call(&server, "send", arguments, json!({"traceparent": PARENT}));
    }
    let received = collector.wait_until("all", |received| received.spans.len() == 6);
    check_names(&received);
    let calls: Vec<String> = named_spans(&received, "tools/call send")
        .map(|span| hex(&span.span_id))
        .collect();
    for request in received.spans.iter().filter(|span| span.kind == 3) {
        assert!(
            calls.contains(&hex(&request.parent_span_id)),
            "it is a part of a call"
        );
        assert_eq!(hex(&request.trace_id), TRACE);
    }
    let carried: BTreeSet<String> = site
        .requests
        .try_iter()
        .filter_map(|request| traceparent_span_id(&request))
        .collect();
    let sent = received
        .spans
        .iter()
        .filter(|span| span.kind == 3)
        .map(|span| hex(&span.span_id));
    assert_eq!(carried, sent.collect());
    let found = span_attributes(&received, "GET");
    assert_eq!(found.len(), 2);
    let ok = found
        .iter()
        .find(|known| known[names::HTTP_RESPONSE_STATUS_CODE] == "200")
        .unwrap();
    assert_eq!(
        (
            ok[names::SERVER_ADDRESS].as_str(),
            ok[names::URL_SCHEME].as_str()
        ),
        ("127.0.0.1", "http")
    );
    assert_eq!(ok[names::SERVER_PORT], site.address.port().to_string());
    let not_found = found
        .iter()
        .find(|known| known[names::HTTP_RESPONSE_STATUS_CODE] == "404")
        .unwrap();
    assert_eq!(not_found[names::ERROR_TYPE], "404");
    assert_eq!(
        span_attributes(&received, "HTTP")[0][names::HTTP_REQUEST_METHOD],
        "_OTHER"
    );
    assert!(!format!("{received:?}").contains("an-argument"));
}

fn named_spans<'a>(
    received: &'a ReceivedTelemetry,
    name: &'a str,
) -> impl Iterator<Item = &'a toolbay_testkit::SpanMessage> {
    received.spans.iter().filter(move |span| span.name == name)
}

/// Returns the span id in the `traceparent` header of a request.
fn traceparent_span_id(request: &str) -> Option<String> {
    let line = request
        .lines()
        .find(|line| line.to_ascii_lowercase().starts_with("traceparent:"))?;
    line.split('-').nth(2).map(str::to_owned)
}

#[test]
fn exported_metrics_equal_the_served_metrics() {
    let folder = Folder::with("hostile.wasm", hostile());
    let collector = OtlpCollector::start();
    let server = HttpServer::start_with_config(&folder, &otel(&collector, "")).wait_until_ready();
    for _ in 0..5 {
        call(&server, "echo", json!({"text": "a"}), json!({}));
    }
    call(&server, "fail", json!({}), json!({}));
    // The calls are counted by now, and their counts do not change any more.
    let before = collector.received().metric_reports;
    let received = collector.wait_until("a report since then", |received| {
        received.metric_reports > before + 1
    });
    let page = server.get("/metrics", &[]).text();
    let mut compared = 0;
    for (name, labels, value) in received.metric_samples() {
        // These change from one moment to the next.
        if name.starts_with("process_") || name.contains("http_") {
            continue;
        }
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}={value:?}"))
            .collect();
        let labels = if labels.is_empty() {
            String::new()
        } else {
            format!("{{{}}}", labels.join(","))
        };
        let line = format!("{name}{labels} {value}");
        assert!(page.lines().any(|served| served == line), "{line}\n{page}");
        compared += 1;
    }
    assert!(compared >= 35, "{compared}");
    assert!(
        page.contains("toolbay_calls_total{tool=\"echo\",outcome=\"ok\"} 5"),
        "{page}"
    );
}

#[test]
fn log_records_have_the_trace_of_their_call_and_no_secrets() {
    let folder = Folder::with("hostile.wasm", hostile());
    let collector = OtlpCollector::start();
    let config = format!(
        "log = \"debug\"\n{}",
        otel(&collector, "logs = true\nheaders = \"x-key=s3cret-key\"")
    );
    let server = HttpServer::start_with_config(&folder, &config).wait_until_ready();
    call(&server, "panic", json!({}), json!({"traceparent": PARENT}));
    let of_call = |received: &ReceivedTelemetry| {
        received
            .logs
            .iter()
            .any(|log| format!("{:?}", log.body).contains("call crashed"))
    };
    let received = collector.wait_until("the line", of_call);
    check_names(&received);
    let line = received
        .logs
        .iter()
        .find(|log| format!("{:?}", log.body).contains("call crashed"))
        .unwrap();
    assert_eq!(
        (hex(&line.trace_id), line.severity_text.as_str()),
        (TRACE.to_owned(), "WARN")
    );
    let known = attribute_map(&line.attributes);
    assert_eq!(
        (
            known["dev.toolbay.plugin"].as_str(),
            known[names::GEN_AI_TOOL_NAME].as_str()
        ),
        ("hostile", "panic")
    );
    let received = collector.wait_until("the span", |received| !received.spans.is_empty());
    assert_eq!(hex(&line.span_id), hex(&received.spans[0].span_id));
    let (heads, bodies): (Vec<String>, Vec<Vec<u8>>) = received.requests.into_iter().unzip();
    assert!(
        heads
            .iter()
            .all(|head| head.contains("x-key: s3cret-key\r\n"))
    );
    assert!(
        !bodies
            .iter()
            .any(|body| body.windows(6).any(|part| part == b"s3cret")),
        "it is in no body"
    );
    assert!(!server.log.text().contains("s3cret"));
}

#[test]
fn without_an_endpoint_nothing_is_sent_and_no_request_gets_a_trace() {
    let site = Site::start();
    let folder = Folder::with("web.wasm", web());
    folder.put("web.toml", site.grant());
    let collector = OtlpCollector::start();
    folder.write_config(&format!("[otel]\nlogs = true\n{RATES}"));
    let command =
        crate::support::ToolbayCommand::new(&folder).args(["serve", "--http", "127.0.0.1:0"]);
    let server = HttpServer::run(command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url()))
        .wait_until_ready();
    call(
        &server,
        "send",
        json!({"method": "GET", "url": site.url("/hello"), "headers": {}, "body": ""}),
        json!({}),
    );
    assert!(
        !site
            .requests
            .recv()
            .unwrap()
            .to_ascii_lowercase()
            .contains("traceparent")
    );
    assert!(
        !server
            .get("/metrics", &[])
            .text()
            .contains("toolbay_otel_lost_total{")
    );
    drop(server);
    assert!(collector.received().requests.is_empty());
}
