//! Many at once: nothing is lost, nobody holds up others, memory is bounded.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Folder, HttpServer, LIST_CHANGED, Tiny, hostile, text};

/// Subscribers in the storm: each is a connection.
const SUBSCRIBERS: usize = 500;

#[test]
fn five_hundred_subscribers_are_told_and_delay_no_reload() {
    let folder = Folder::with("a.wasm", Tiny::new(&["a"]).build());
    let server = HttpServer::start(&folder).ready();
    let sessions: Vec<_> = (0..SUBSCRIBERS / 2).map(|_| server.session("2025-11-25")).collect();
    let params = || json!({"notifications": {"toolsListChanged": true}});
    let mut streams: Vec<_> = sessions.iter().map(crate::support::HttpSession::stream).collect();
    streams.extend((0..SUBSCRIBERS / 2).map(|_| {
        let mut stream = server.modern("subscriptions/listen", params(), &[]);
        assert_eq!(stream.next().unwrap()["method"], "notifications/subscriptions/acknowledged");
        stream
    }));
    // Nobody reads while the storm goes on: a reload waits for none of them.
    let mut slowest = Duration::ZERO;
    for round in 0..20 {
        let name = format!("tool-{round}");
        let begun = Instant::now();
        folder.put("storm.wasm", Tiny::new(&[&name]).build());
        while !listed(&server).contains(&name) {}
        slowest = slowest.max(begun.elapsed());
    }
    // A folder is looked at every two seconds in any case: this is as if nobody subscribed.
    assert!(slowest < Duration::from_secs(5), "a reload took {slowest:?}");
    folder.put("last.wasm", Tiny::new(&["last"]).build());
    while !listed(&server).contains(&"last".to_owned()) {}
    for (n, stream) in streams.iter_mut().enumerate() {
        assert_eq!(stream.next().unwrap_or_else(|| panic!("stream {n} ended"))["method"], LIST_CHANGED);
    }
}

fn listed(server: &HttpServer) -> Vec<String> {
    let listed = server.result("tools/list", json!({}));
    listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn many_callers_are_all_answered_once() {
    let server = HttpServer::start(&Folder::with("hostile.wasm", hostile())).ready();
    let answered = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        for caller in 0..64 {
            let (server, answered) = (&server, &answered);
            threads.spawn(move || {
                let session = (caller % 2 == 0).then(|| server.session("2025-11-25"));
                for n in 0..20 {
                    let said = format!("{caller} {n}");
                    let call = json!({"name": "echo", "arguments": {"text": said}});
                    let result: Value = match &session {
                        Some(session) => session.result("tools/call", call),
                        None => server.result("tools/call", call),
                    };
                    assert_eq!(text(&result), said);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(answered.into_inner(), 64 * 20);
}

#[test]
fn connections_beyond_the_limit_wait_for_their_turn() {
    let server = HttpServer::configured(&Folder::new(), "[http]\nconnections = 2\nkeep_alive = \"100ms\"");
    let params = json!({"notifications": {}});
    let first = server.modern("subscriptions/listen", params.clone(), &[]);
    let second = server.modern("subscriptions/listen", params, &[]);
    std::thread::scope(|threads| {
        let third = threads.spawn(|| server.modern("tools/list", json!({}), &[]).status);
        first.hang_up();
        assert_eq!(third.join().unwrap(), 200);
    });
    second.hang_up();
}
