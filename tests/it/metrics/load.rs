//! Many concurrent scrapes of metrics during calls: neither disturbs the other.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::{RATES, call, call_count, scrape};
use crate::metrics::exposition::Exposition;
use crate::support::{
    DEADLINE, Folder, HttpResponse, HttpServer, TinyComponent, hostile, result_text,
};

/// Number of concurrent scrapes.
const SCRAPES: usize = 1_000;

/// Number of calls for a median duration.
const CALLS: usize = 50;

fn median_call_duration(server: &HttpServer) -> Duration {
    let mut took: Vec<Duration> = (0..CALLS)
        .map(|_| {
            let begun = Instant::now();
            assert_eq!(
                result_text(&call(server, "echo", json!({"text": "hello"}))["result"]),
                "hello"
            );
            begun.elapsed()
        })
        .collect();
    took.sort_unstable();
    took[took.len() / 2]
}

/// Sends a request for metrics, and leaves the response unread.
fn request_metrics(server: &HttpServer) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream
        .write_all(format!("GET /metrics HTTP/1.1\r\nHost: {}\r\n\r\n", server.address).as_bytes())
        .unwrap();
    stream
}

#[test]
fn a_thousand_concurrent_scrapes_do_not_delay_calls() {
    let names: Vec<String> = (0..200).map(|n| format!("tool-{n:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("many.wasm", TinyComponent::new(&names).build());
    let connections = "[http]\nconnections = 4096\nconnections_per_address = 4096\n";
    let server =
        HttpServer::start_with_config(&folder, &format!("{RATES}{connections}")).wait_until_ready();
    for name in names {
        call(&server, name, json!({}));
    }
    let alone = median_call_duration(&server);
    let all: Vec<TcpStream> = (0..SCRAPES).map(|_| request_metrics(&server)).collect();
    let crowded = median_call_duration(&server);
    for (n, stream) in all.into_iter().enumerate() {
        let response = HttpResponse::read(stream);
        assert_eq!(response.status, 200);
        let page = response.text();
        // Parsing all of them this strictly would take a minute.
        if n % 100 == 0 {
            assert_eq!(
                Exposition::parse(&page, false)
                    .samples("toolbay_calls_total")
                    .count(),
                201
            );
        }
    }
    assert!(
        crowded < 5 * alone + Duration::from_millis(50),
        "a call took {crowded:?}, and {alone:?} without scrapes"
    );
    // Clients that disconnect before their response leave nothing behind.
    for _ in 0..SCRAPES {
        drop(request_metrics(&server));
    }
    assert!(median_call_duration(&server) < 5 * alone + Duration::from_millis(50));
}

#[test]
fn metrics_that_are_read_during_calls_are_consistent() {
    let folder = Folder::with("hostile.wasm", hostile());
    let server = HttpServer::start_with_config(&folder, RATES).wait_until_ready();
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let callers: Vec<_> = (0..4)
            .map(|_| {
                threads.spawn(|| {
                    for _ in 0..50 {
                        call(&server, "echo", json!({"text": "a"}));
                    }
                })
            })
            .collect();
        let reader = threads.spawn(|| {
            let mut before = 0;
            while !done.load(Ordering::Relaxed) {
                let metrics = scrape(&server);
                let now = call_count(&metrics, "echo", "ok");
                assert!(now >= before && metrics.count("toolbay_calls_running", &[]) <= 4);
                before = now;
            }
        });
        for caller in callers {
            caller.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    let metrics = scrape(&server);
    assert_eq!(call_count(&metrics, "echo", "ok"), 200);
    assert_eq!(
        metrics.count("toolbay_call_duration_seconds_count", &[("tool", "echo")]),
        200
    );
}
