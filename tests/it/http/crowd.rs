//! Many clients at once: no notification is lost, no client delays the others, and memory is
//! bounded.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Folder, HttpServer, LIST_CHANGED, TinyComponent, hostile, result_text};

/// The number of subscribers. Each is a connection.
const SUBSCRIBERS: usize = 500;

/// The number of reloads.
const RELOADS: u32 = 20;

/// The interval of comments on a quiet stream.
const KEEP_ALIVE: Duration = Duration::from_secs(1);

#[test]
fn five_hundred_subscribers_are_notified_and_delay_no_reload() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let server = HttpServer::start_with_config(
        &folder,
        "[http]\nstream_keep_alive = \"1s\"\nrequests_per_caller = 1000",
    )
    .wait_until_ready();
    let alone = median_reload(&server, "alone");
    let sessions: Vec<_> = (0..SUBSCRIBERS / 2)
        .map(|_| server.start_session("2025-11-25"))
        .collect();
    let params = || json!({"notifications": {"toolsListChanged": true}});
    let opened = Instant::now();
    let mut streams: Vec<_> = sessions
        .iter()
        .map(crate::support::HttpSession::open_stream)
        .collect();
    streams.extend((0..SUBSCRIBERS / 2).map(|_| {
        let mut stream = server.post_stateless("subscriptions/listen", params(), &[]);
        assert_eq!(
            stream.next_message().unwrap()["method"],
            "notifications/subscriptions/acknowledged"
        );
        stream
    }));
    // The streams are not read while the plugins are reloaded: a reload waits for no subscriber.
    let crowded = median_reload(&server, "crowded");
    assert!(
        crowded < 3 * alone + Duration::from_millis(200),
        "a reload took {crowded:?}, and {alone:?} without them"
    );
    // The notifications that were sent in time, and one more after the last reload, which covers
    // all of them.
    let comments = opened.elapsed().as_secs() / KEEP_ALIVE.as_secs() + 1;
    for (n, stream) in streams.iter_mut().enumerate() {
        let mut told = 0;
        let mut quiet = 0;
        while quiet <= comments {
            let (kind, _) = stream
                .next_event()
                .unwrap_or_else(|| panic!("stream {n} ended"));
            *if kind.is_empty() {
                &mut quiet
            } else {
                &mut told
            } += 1;
        }
        assert!(
            (1..=u64::from(RELOADS)).contains(&told),
            "stream {n} was told {told} times"
        );
    }
    reload(&server, "last");
    for (n, stream) in streams.iter_mut().enumerate() {
        assert_eq!(
            stream
                .next_message()
                .unwrap_or_else(|| panic!("stream {n} ended"))["method"],
            LIST_CHANGED
        );
    }
}

/// Changes a plugin repeatedly and returns the median duration of a reload.
fn median_reload(server: &HttpServer, name: &str) -> Duration {
    let mut took: Vec<Duration> = (0..RELOADS)
        .map(|round| reload(server, &format!("{name}-{round}")))
        .collect();
    took.sort_unstable();
    took[took.len() / 2]
}

/// Adds a plugin whose only tool is `name`, and returns how long it took until it was listed.
fn reload(server: &HttpServer, name: &str) -> Duration {
    let begun = Instant::now();
    server
        .folder()
        .put("storm.wasm", TinyComponent::new(&[name]).build());
    while !listed(server).iter().any(|listed| listed == name) {}
    begun.elapsed()
}

fn listed(server: &HttpServer) -> Vec<String> {
    let listed = server.result("tools/list", json!({}));
    listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn many_callers_are_all_answered_once() {
    let rates = "[rate_limit]\ncalls = 10_000\nper = \"1m\"\n[caller_rate_limit]\ncalls = 10_000\nper = \"1m\"";
    let server = HttpServer::start_with_config(&Folder::with("hostile.wasm", hostile()), rates)
        .wait_until_ready();
    let answered = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        for caller in 0..64 {
            let server = &server;
            let answered = &answered;
            threads.spawn(move || {
                let session = (caller % 2 == 0).then(|| server.start_session("2025-11-25"));
                for n in 0..20 {
                    let said = format!("{caller} {n}");
                    let call = json!({"name": "echo", "arguments": {"text": said}});
                    let result: Value = match &session {
                        Some(session) => session.result("tools/call", call),
                        None => server.result("tools/call", call),
                    };
                    assert_eq!(result_text(&result), said);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(answered.into_inner(), 64 * 20);
}

#[test]
fn connections_beyond_the_limit_wait_for_their_turn() {
    let server = HttpServer::start_with_config(
        &Folder::new(),
        "[http]\nconnections = 2\nstream_keep_alive = \"100ms\"",
    );
    let params = json!({"notifications": {}});
    let first = server.post_stateless("subscriptions/listen", params.clone(), &[]);
    let second = server.post_stateless("subscriptions/listen", params, &[]);
    std::thread::scope(|threads| {
        let third = threads.spawn(|| server.post_stateless("tools/list", json!({}), &[]).status);
        first.close();
        assert_eq!(third.join().unwrap(), 200);
    });
    second.close();
}
