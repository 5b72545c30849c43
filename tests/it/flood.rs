//! A client that sends many requests at once: each gets its response, and memory stays bounded.

use std::io::{BufWriter, Write as _};

use serde_json::{Value, json};

use crate::support::{Folder, StdioServer, hostile, modern};

/// The number of requests that are sent before any response is read.
const REQUESTS: u64 = 100_000;

/// The id of the first request.
const FIRST_ID: u64 = 1_000_000;

/// How much more memory than before the server may use, in bytes.
const MAX_GROWTH: u64 = 64 << 20;

/// Returns the resident memory of a process, in bytes.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn a_hundred_thousand_requests_at_once_are_answered_within_bounds() {
    let mut server = StdioServer::start(&Folder::with("hostile.wasm", hostile()));
    server.text("echo", json!({"text": "warm"}));
    let before = resident(server.pid());
    let request = |id: u64| {
        let call = json!({"name": "echo", "arguments": {"text": "x"}});
        match id % 3 {
            0 => json!({"jsonrpc": "2.0", "id": id, "method": "ping"}),
            1 => modern(json!(id), "server/discover", json!({})),
            _ => json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call}),
        }
    };
    // On a separate thread, because the server stops reading when its queues are full.
    let input = server.take_input();
    let sending = std::thread::spawn(move || {
        let mut input = BufWriter::new(input);
        for id in FIRST_ID..FIRST_ID + REQUESTS {
            writeln!(input, "{}", request(id)).unwrap();
        }
        input.into_inner().unwrap()
    });
    let mut seen = vec![false; usize::try_from(REQUESTS).unwrap()];
    let mut most = before;
    for answered in 0..REQUESTS {
        let mut message: Value = server.receive("an answer");
        // Notifications about plugins that are loaded later may arrive between responses.
        while message.get("id").is_none() {
            message = server.receive("an answer");
        }
        let id = message["id"]
            .as_u64()
            .unwrap_or_else(|| panic!("{message}"));
        let seen = &mut seen[usize::try_from(id - FIRST_ID).unwrap()];
        assert!(!std::mem::replace(seen, true), "answered twice: {message}");
        let fine = message.get("result").is_some();
        assert!(fine, "{message}");
        if answered % 1000 == 0 {
            most = most.max(resident(server.pid()));
        }
    }
    server.restore_input(sending.join().unwrap());
    assert!(most < before + MAX_GROWTH, "from {before} to {most} bytes");
    server.result("ping", json!({}));
}
