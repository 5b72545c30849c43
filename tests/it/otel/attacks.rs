//! Collectors that do not do what they should, while calls go on.

use std::net::TcpListener;
use std::thread;
use std::time::Instant;

use serde_json::json;
use toolbay_testkit::{Collector, Manner};

use super::{RATES, call, otel};
use crate::support::{DEADLINE, Folder, HttpServer, Tiny, hostile, text};

fn number(server: &HttpServer, sample: &str) -> f64 {
    let page = server.get("/metrics", &[]).text();
    let value = page.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("{sample}: {page}")).parse().unwrap()
}

#[test]
fn no_call_waits_for_a_collector() {
    for manner in [
        Manner::Ignore,
        Manner::Close,
        Manner::Flood,
        Manner::Refuse(500, String::new()),
        Manner::Refuse(429, "Retry-After: 86400\r\n".to_owned()),
        Manner::Refuse(307, "Location: http://169.254.169.254/\r\n".to_owned()),
        Manner::Write(b"SSH-2.0-OpenSSH\r\n".to_vec()),
    ] {
        let (folder, collector) = (Folder::with("hostile.wasm", hostile()), Collector::with(manner.clone()));
        let server = HttpServer::configured(&folder, &otel(&collector, "logs = true\ntimeout = \"200ms\"")).ready();
        collector.until("it is asked", |received| !received.requests.is_empty());
        for _ in 0..20 {
            let said = call(&server, "echo", json!({"text": "a"}), json!({}));
            assert_eq!(text(&said["result"]), "a", "{manner:?}");
        }
        assert_eq!(server.get("/readyz", &[]).status, 200);
        // The log says it once for each signal.
        if !matches!(manner, Manner::Flood) {
            let begun = Instant::now();
            while !server.log.text().contains("cannot send metrics to http://127.0.0.1") {
                assert!(begun.elapsed() < DEADLINE, "{manner:?}:\n{}", server.log.text());
                thread::yield_now();
            }
            assert_eq!(server.log.text().matches("cannot send metrics").count(), 1, "{manner:?}");
        }
        // And the end does not wait for it either, which the kit checks.
        drop(server);
    }
}

#[test]
fn ten_thousand_calls_without_a_collector_take_no_memory_and_what_is_lost_is_told() {
    // Nobody listens there any more.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let folder = Folder::with("a.wasm", Tiny::new(&["a"]).build());
    let config = format!("[otel]\nendpoint = \"http://{address}\"\nmetrics = false\n{RATES}");
    let server = HttpServer::configured(&folder, &config).ready();
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
    let before = number(&server, "process_resident_memory_bytes");
    calls(5_000);
    let after = number(&server, "process_resident_memory_bytes");
    assert!(after - before < 16e6, "{before} {after}");
    let lost = number(&server, "toolbay_otel_lost_total{signal=\"traces\"}");
    assert!((10_000.0 - 4096.0 - 512.0..=10_000.0 - 4096.0).contains(&lost), "{lost}");
    let log = server.log.clone();
    drop(server);
    let log = log.text();
    assert_eq!(log.matches("cannot send traces to").count(), 1, "{log}");
    // A batch that was on its way is among them, or was given up before.
    let left = |spans: &str| log.contains(&format!("the server ends before all was sent (otel); lost: {spans} spans"));
    assert!(left("4,096") || left("3,584"), "{log}");
}

#[test]
fn a_collector_that_comes_back_gets_what_was_kept() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let folder = Folder::with("a.wasm", Tiny::new(&["a"]).build());
    let collector = Collector::on(listener, Manner::Refuse(503, String::new()));
    let config = format!("[otel]\nendpoint = \"http://{address}\"\nmetrics = false\n{RATES}");
    let server = HttpServer::configured(&folder, &config).ready();
    for _ in 0..10 {
        call(&server, "a", json!({}), json!({}));
    }
    collector.until("it was refused", |received| received.requests.len() > 1);
    collector.behave(Manner::Take);
    collector.until("all", |received| received.spans.len() == 10);
    let begun = Instant::now();
    while !server.log.text().contains("traces are sent to") {
        assert!(begun.elapsed() < DEADLINE, "{}", server.log.text());
        thread::yield_now();
    }
    server.log.wait_for("nothing was lost");
}
