//! Misbehaving collectors during calls.

use std::net::TcpListener;
use std::thread;
use std::time::Instant;

use serde_json::json;
use toolbay_testkit::{CollectorBehavior, OtlpCollector};

use super::{RATES, call, otel};
use crate::support::{DEADLINE, Folder, HttpServer, TinyComponent, hostile, result_text};

fn metric_value(server: &HttpServer, sample: &str) -> f64 {
    let page = server.get("/metrics", &[]).text();
    let value = page
        .lines()
        .find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    value
        .unwrap_or_else(|| panic!("{sample}: {page}"))
        .parse()
        .unwrap()
}

#[test]
fn no_call_waits_for_a_collector() {
    for manner in [
        CollectorBehavior::Ignore,
        CollectorBehavior::Close,
        CollectorBehavior::EndlessBody,
        CollectorBehavior::Reject(500, String::new()),
        CollectorBehavior::Reject(429, "Retry-After: 86400\r\n".to_owned()),
        CollectorBehavior::Reject(307, "Location: http://169.254.169.254/\r\n".to_owned()),
        CollectorBehavior::WriteRaw(b"SSH-2.0-OpenSSH\r\n".to_vec()),
    ] {
        let folder = Folder::with("hostile.wasm", hostile());
        let collector = OtlpCollector::with_behavior(manner.clone());
        let server = HttpServer::start_with_config(
            &folder,
            &otel(&collector, "logs = true\ntimeout = \"200ms\""),
        )
        .wait_until_ready();
        collector.wait_until("it is asked", |received| !received.requests.is_empty());
        for _ in 0..20 {
            let said = call(&server, "echo", json!({"text": "a"}), json!({}));
            assert_eq!(result_text(&said["result"]), "a", "{manner:?}");
        }
        assert_eq!(server.get("/readyz", &[]).status, 200);
        // The log has one line for each signal.
        if !matches!(manner, CollectorBehavior::EndlessBody) {
            let begun = Instant::now();
            while !server
                .log
                .text()
                .contains("cannot send metrics to http://127.0.0.1")
            {
                assert!(
                    begun.elapsed() < DEADLINE,
                    "{manner:?}:\n{}",
                    server.log.text()
                );
                thread::yield_now();
            }
            assert_eq!(
                server.log.text().matches("cannot send metrics").count(),
                1,
                "{manner:?}"
            );
        }
        // Shutdown does not wait for the collector either, which the test kit checks.
        drop(server);
    }
}

#[test]
fn without_a_collector_ten_thousand_calls_use_bounded_memory_and_lost_spans_are_reported() {
    // No server listens at this address any more.
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let config = format!("[otel]\nendpoint = \"http://{address}\"\nmetrics = false\n{RATES}");
    let server = HttpServer::start_with_config(&folder, &config).wait_until_ready();
    let calls = |count: usize| {
        thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    for _ in 0..count / 4 {
                        assert!(call(&server, "a", json!({}), json!({}))["result"].is_object());
                    }
                });
            }
        });
    };
    calls(5_000);
    let before = metric_value(&server, "process_resident_memory_bytes");
    calls(5_000);
    let after = metric_value(&server, "process_resident_memory_bytes");
    assert!(after - before < 16e6, "{before} {after}");
    let lost = metric_value(&server, "toolbay_otel_lost_total{signal=\"traces\"}");
    assert!(
        (10_000.0 - 4096.0 - 512.0..=10_000.0 - 4096.0).contains(&lost),
        "{lost}"
    );
    let log = server.log.clone();
    drop(server);
    let log = log.text();
    assert_eq!(log.matches("cannot send traces to").count(), 1, "{log}");
    // A batch in flight is among them, or was dropped before.
    let left = |spans: &str| {
        log.contains(&format!(
            "the server ends before all data was sent (otel); lost: {spans} spans"
        ))
    };
    assert!(left("4,096") || left("3,584"), "{log}");
}

#[test]
fn a_collector_that_recovers_receives_the_queued_spans() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let collector =
        OtlpCollector::with_listener(listener, CollectorBehavior::Reject(503, String::new()));
    let config = format!("[otel]\nendpoint = \"http://{address}\"\nmetrics = false\n{RATES}");
    let server = HttpServer::start_with_config(&folder, &config).wait_until_ready();
    for _ in 0..10 {
        call(&server, "a", json!({}), json!({}));
    }
    collector.wait_until("it was refused", |received| received.requests.len() > 1);
    collector.set_behavior(CollectorBehavior::Accept);
    collector.wait_until("all", |received| received.spans.len() == 10);
    let begun = Instant::now();
    while !server.log.text().contains("traces are sent to") {
        assert!(begun.elapsed() < DEADLINE, "{}", server.log.text());
        thread::yield_now();
    }
    server.log.wait_for("nothing was lost");
}
