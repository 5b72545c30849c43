//! Compute slots: which caller gets a slot that becomes free, and which calls need none.

use std::net::TcpListener;

use serde_json::json;

use crate::rates::two_callers;
use crate::support::{
    Folder, HttpResponse, HttpServer, StdioServer, hostile, net, result_text, web,
};

/// Limits that are high enough for calls that wait, and for calls that compute until they are
/// cancelled.
const LONG: &str = "timeout = \"10m\"\nfuel = 1_000_000_000_000\n";

/// Enough memory for all calls of a test on any machine. The memory is only reserved.
const MEMORY: &str = "[server]\nmemory = \"64GiB\"\n";

/// Starts calls of `tool`, and waits until each of them runs.
fn start_running_calls(server: &mut StdioServer, tool: &str, calls: usize) -> Vec<u64> {
    let ids = (0..calls)
        .map(|_| server.start_call_with_progress(tool, json!({})))
        .collect();
    for _ in 0..calls {
        server.notification("notifications/progress");
    }
    ids
}

fn cancel(server: &mut StdioServer, ids: Vec<u64>) {
    for id in ids {
        server.notify("notifications/cancelled", json!({"requestId": id}));
    }
}

#[test]
fn calls_that_wait_for_a_clock_or_a_file_release_their_slots() {
    for tool in ["sleep_hour", "wait_for_gate"] {
        for concurrency in ["", "concurrency = 1\n"] {
            let folder = Folder::with("hostile.wasm", hostile());
            folder.put(
                "hostile.toml",
                format!("{}[limits]\n{LONG}{concurrency}", folder.create_gate()),
            );
            let mut server =
                StdioServer::start_with_config(&folder, &format!("{MEMORY}queue_timeout = \"1h\""));
            let ids = start_running_calls(&mut server, tool, 20);
            assert_eq!(server.text("count", json!({})), "1", "{tool}");
            // Further calls of the same tool do not wait for them either.
            let more = start_running_calls(&mut server, tool, 1);
            folder.open_gate();
            if tool == "wait_for_gate" {
                for id in ids.into_iter().chain(more) {
                    assert!(
                        result_text(&server.finish_call(id)).starts_with("build-marker"),
                        "each of them goes on"
                    );
                }
            } else {
                cancel(&mut server, ids);
                cancel(&mut server, more);
            }
        }
    }
}

#[test]
fn calls_that_wait_for_a_response_or_a_connection_release_their_slots() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let port = silent.local_addr().unwrap().port();
    let url = format!("http://{address}/");
    let cases = [
        (
            web(),
            "http",
            url.clone(),
            ("try_to_send", json!({"url": url})),
            ("get", json!({"url": "https://evil.example/"})),
        ),
        (
            net(),
            "tcp",
            address.to_string(),
            ("talk", json!({"host": "127.0.0.1", "port": port})),
            ("listen", json!({})),
        ),
    ];
    for (plugin, permission, to, (waits, arguments), (other, of_other)) in cases {
        let folder = Folder::with("waits.wasm", plugin);
        let to = to.trim_end_matches('/');
        let permissions =
            format!("[permissions]\n{permission} = [\"{to}\"]\nprivate_networks = [\"127.0.0.1\"]");
        folder.put(
            "waits.toml",
            format!("{permissions}\n[limits]\n{LONG}http_connections = 64\n"),
        );
        let mut server =
            StdioServer::start_with_config(&folder, &format!("{MEMORY}queue_timeout = \"1h\""));
        let ids: Vec<u64> = (0..20)
            .map(|_| server.start_call(waits, arguments.clone()))
            .collect();
        // More calls than there are slots have connected.
        let open: Vec<_> = (0..20).map(|_| silent.accept().unwrap()).collect();
        server.text(other, of_other);
        cancel(&mut server, ids);
        drop(open);
    }
}

#[test]
fn calls_can_wait_for_another_call_of_the_same_plugin() {
    let folder = Folder::with("hostile.wasm", hostile());
    let gate = folder.create_gate().replace("\"read\"", "\"read-write\"");
    folder.put(
        "hostile.toml",
        format!("{gate}[limits]\n{LONG}concurrency = 1\n"),
    );
    let mut server = StdioServer::start_with_config(
        &folder,
        &format!("{MEMORY}queue_timeout = \"1h\"\ncalls_per_caller = 1\ncalls = 1"),
    );
    let ids = start_running_calls(&mut server, "wait_for_gate", 20);
    assert_eq!(
        server.text("write_file", json!({"path": "/gate/open", "text": ""})),
        "written"
    );
    for id in ids {
        assert!(result_text(&server.finish_call(id)).starts_with("build-marker"));
    }
}

#[test]
fn one_tool_never_takes_all_slots_of_its_plugin() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("hostile.toml", format!("[limits]\n{LONG}concurrency = 2\n"));
    let mut server =
        StdioServer::start_with_config(&folder, &format!("{MEMORY}queue_timeout = \"1h\""));
    let mut ids = start_running_calls(&mut server, "loop_forever", 1);
    // They wait for the slot of the first call.
    ids.extend((0..4).map(|_| server.start_call("loop_forever", json!({}))));
    assert_eq!(server.text("count", json!({})), "1");
    assert_eq!(server.text("version", json!({})), "build-marker-0001");
    cancel(&mut server, ids);
}

#[test]
fn a_call_of_a_tool_without_a_free_slot_fails_as_busy() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put(
        "hostile.toml",
        format!("{}[limits]\n{LONG}concurrency = 3\n", folder.create_gate()),
    );
    let mut server = StdioServer::start_with_config(
        &folder,
        &format!("{MEMORY}queue_timeout = \"100ms\"\nsuspended_calls = 0"),
    );
    let ids = start_running_calls(&mut server, "wait_for_gate", 2);
    let (kind, said) = server.failure("wait_for_gate", json!({}));
    assert_eq!(
        (kind.as_str(), said.as_str()),
        (
            "busy",
            "The server is already running 2 calls of this tool and keeps a slot free for other targets of its plugin (to allow more, \
             raise limits.concurrency). Retry after 100 ms."
        )
    );
    assert_eq!(server.text("count", json!({})), "1");
    folder.open_gate();
    for id in ids {
        assert!(result_text(&server.finish_call(id)).starts_with("build-marker"));
    }
}

#[test]
fn a_call_that_computes_keeps_its_slot() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("hostile.toml", format!("[limits]\n{LONG}concurrency = 3\n"));
    let mut server =
        StdioServer::start_with_config(&folder, &format!("{MEMORY}queue_timeout = \"100ms\""));
    let ids = start_running_calls(&mut server, "loop_forever", 2);
    assert_eq!(server.failure("loop_forever", json!({})).0, "busy");
    assert_eq!(server.text("count", json!({})), "1");
    cancel(&mut server, ids);
}

#[test]
fn calls_beyond_the_limit_of_suspended_calls_keep_their_slots() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put(
        "hostile.toml",
        format!("{}[limits]\n{LONG}concurrency = 2\n", folder.create_gate()),
    );
    let mut server = StdioServer::start_with_config(
        &folder,
        &format!("{MEMORY}queue_timeout = \"100ms\"\nsuspended_calls = 4"),
    );
    // The plugin may have half of the four suspended calls. The third call keeps the only slot of
    // its tool.
    let mut ids = start_running_calls(&mut server, "wait_for_gate", 3);
    assert_eq!(server.failure("wait_for_gate", json!({})).0, "busy");
    assert_eq!(
        server.text("count", json!({})),
        "1",
        "other tools have the other place"
    );
    folder.open_gate();
    for id in ids.drain(..) {
        assert!(
            result_text(&server.finish_call(id)).starts_with("build-marker"),
            "each of them goes on"
        );
    }
    assert!(
        server
            .text("wait_for_gate", json!({}))
            .starts_with("build-marker")
    );
}

#[test]
fn a_free_slot_goes_to_the_caller_with_the_fewest_slots() {
    let ([ada, bob], tokens) = two_callers();
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put(
        "hostile.toml",
        format!("{}[limits]\n{LONG}concurrency = 4\n", folder.create_gate()),
    );
    // The response to a waiting call begins after this time.
    let brisk = "[http]\nstream_keep_alive = \"100ms\"\n";
    let config = format!("{brisk}{tokens}{MEMORY}suspended_calls = 0\nqueue_timeout = \"1h\"");
    let server = HttpServer::start_with_config(&folder, &config).wait_until_ready();
    let call = |caller: &str, tool: &str| -> HttpResponse {
        let params = json!({"name": tool, "arguments": {}, "_meta": {"progressToken": 1}});
        server.post_stateless("tools/call", params, &[("Authorization", caller)])
    };
    // One client can have this many calls at once. Two of them have slots: of the other two slots,
    // one is for other tools, and one is for other callers.
    let hers: Vec<_> = (0..32).map(|_| call(&ada, "wait_for_gate")).collect();
    let mut his = call(&bob, "wait_for_gate");
    assert_eq!(
        his.next_message().unwrap()["method"],
        "notifications/progress",
        "it runs before what came before it"
    );
    for caller in [&bob, &ada] {
        assert_eq!(
            result_text(&call(caller, "count").response_message()["result"]),
            "1"
        );
    }
    folder.open_gate();
    for call in hers.into_iter().chain([his]) {
        assert!(
            result_text(&call.response_message()["result"]).starts_with("build-marker"),
            "nobody is refused"
        );
    }
}
