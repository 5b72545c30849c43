//! Connections that occupy the server without being served: they end, and others get their slots
//! meanwhile.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::neighbour;
use crate::support::{
    DEADLINE, Folder, HttpResponse, HttpServer, TinyComponent, TinyTool, hostile, result_text,
};

/// Opens a stream that stays open.
fn subscribe(server: &HttpServer) -> HttpResponse {
    let mut stream =
        server.post_stateless("subscriptions/listen", json!({"notifications": {}}), &[]);
    assert_eq!(
        stream.next_message().unwrap()["method"],
        "notifications/subscriptions/acknowledged"
    );
    stream
}

#[test]
fn a_client_that_reads_nothing_loses_its_connection() {
    let tool = TinyTool {
        description: Some("x".repeat(100_000)),
        ..TinyTool::new("a")
    };
    let folder = Folder::with("a.wasm", TinyComponent::with_tools(vec![tool]).build());
    let config = "[http]\nconnections = 1\nwrite_timeout = \"300ms\"";
    let server = HttpServer::start_with_config(&folder, config).wait_until_ready();
    let mut stream = neighbour::connect(&server, true);
    let list = neighbour::stateless("tools/list", json!({}));
    // The server stops reading when its responses are not read, and then closes the connection.
    let error = loop {
        if let Err(error) = stream.write_all(&list) {
            break error;
        }
    };
    assert!(
        matches!(
            error.kind(),
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
        ),
        "{error}"
    );
    assert_eq!(
        server.post_stateless("tools/list", json!({}), &[]).status,
        200,
        "its place is free"
    );
}

#[test]
fn a_call_whose_stream_nobody_reads_is_cancelled() {
    let folder = Folder::with("hostile.wasm", hostile());
    // The second call starts only when the first one has ended.
    folder.put(
        "hostile.toml",
        "[limits]\nconcurrency = 1\nfuel = 1_000_000_000_000\ntimeout = \"10m\"\nlog = \"1GiB\"",
    );
    let config = "log = \"error,toolbay_mcp::transport=info\"\n[ceilings]\nlog = \"1GiB\"\n[http]\nwrite_timeout = \"300ms\"";
    let server = HttpServer::start_with_config(&folder, config).wait_until_ready();
    let mut stream = neighbour::connect(&server, true);
    let level = json!({"io.modelcontextprotocol/logLevel": "debug"});
    let call = json!({"name": "log_flood", "arguments": {"n": 1_000_000_000}, "_meta": level});
    stream
        .write_all(&neighbour::stateless("tools/call", call))
        .unwrap();
    let mut begun = [0; 12];
    stream.read_exact(&mut begun).unwrap();
    assert_eq!(&begun, b"HTTP/1.1 200");
    assert_eq!(
        result_text(&server.result("tools/call", json!({"name": "count"}))),
        "1"
    );
}

#[test]
fn probes_are_answered_when_every_slot_is_taken() {
    let server =
        HttpServer::start_with_config(&Folder::new(), "[http]\nconnections = 2").wait_until_ready();
    let streams = [(); 2].map(|()| subscribe(&server));
    // Many connections that never send a request, and one that waits for a slot.
    let half_open: Vec<TcpStream> = (0..200)
        .map(|_| neighbour::connect(&server, true))
        .collect();
    for path in ["/healthz", "/readyz"] {
        assert_eq!(server.get(path, &[]).status, 200, "{path}");
        assert_eq!(
            neighbour::ask(
                &server,
                format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()
            )
            .status,
            200
        );
    }
    let refused = server.post_stateless("tools/list", json!({}), &[]);
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("5"))
    );
    drop((half_open, streams));
    while server.post_stateless("tools/list", json!({}), &[]).status != 200 {}
}

#[test]
fn one_address_leaves_slots_to_the_others() {
    let server = HttpServer::start_with_config(
        &Folder::new(),
        "[http]\nconnections = 16\nconnections_per_address = 8",
    );
    let streams = [(); 8].map(|()| subscribe(&server));
    let list = neighbour::stateless("tools/list", json!({}));
    assert_eq!(neighbour::ask(&server, &list).status, 200);
    assert_eq!(
        server.post_stateless("tools/list", json!({}), &[]).status,
        503
    );
    assert_eq!(neighbour::ask(&server, &list).status, 200);
    drop(streams);
}

/// Connections of another account of this machine. They end with the process that has them.
struct StrangersConnections(Child);

impl StrangersConnections {
    /// An account without rights.
    const ACCOUNT: u32 = 65534;

    /// Opens this many connections.
    fn open(server: &HttpServer, count: usize) -> Self {
        let script = "for ((n = 0; n < $2; n++)); do exec {held}<>\"/dev/tcp/127.0.0.1/$1\" || exit; done\n\
                      echo open\nread -r";
        let mut command = Command::new("bash");
        command.args([
            "-c",
            script,
            "bash",
            &server.address.port().to_string(),
            &count.to_string(),
        ]);
        command
            .uid(Self::ACCOUNT)
            .gid(Self::ACCOUNT)
            .current_dir("/");
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = [0; 5];
        process
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut said)
            .unwrap();
        assert_eq!(&said, b"open\n");
        Self(process)
    }
}

impl Drop for StrangersConnections {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn one_account_leaves_slots_to_the_others() {
    // Only the superuser can act as two accounts.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let server = HttpServer::start_with_config(
        &Folder::new(),
        "[http]\nconnections = 16\nconnections_per_address = 8",
    );
    let strangers = StrangersConnections::open(&server, 60);
    // The other account has 8 connections; for two of them, the server does not look up the
    // account.
    let streams = [(); 6].map(|()| subscribe(&server));
    assert_eq!(
        server.post_stateless("tools/list", json!({}), &[]).status,
        503
    );
    drop(streams);
    while server.post_stateless("tools/list", json!({}), &[]).status != 200 {}
    drop(strangers);
}

#[test]
fn one_caller_leaves_requests_to_the_others() {
    let (ada, first) = super::auth::token("ada", "");
    let (bob, second) = super::auth::token("bob", "");
    let config = format!("[http]\nrequests_per_caller = 2\n{first}{second}");
    let server = HttpServer::start_with_config(&Folder::new(), &config);
    let [ada, bob] = [ada, bob].map(|token| super::auth::bearer(&token));
    let listen = || {
        let of_ada = [("Authorization", ada.as_str())];
        server.post_stateless(
            "subscriptions/listen",
            json!({"notifications": {}}),
            &of_ada,
        )
    };
    let mut streams = [(); 2].map(|()| listen());
    for stream in &mut streams {
        stream.next_message().unwrap();
    }
    let refused = listen();
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("5"))
    );
    let said = refused.json()["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(said.contains("raise http.requests_per_caller"), "{said}");
    assert_eq!(
        server
            .post_stateless("tools/list", json!({}), &[("Authorization", &bob)])
            .status,
        200
    );
    // A stream that has ended frees its slot.
    let [first, _second] = streams;
    first.close();
    while listen().status != 200 {}
}

#[test]
fn a_client_that_closed_its_write_side_gets_its_response() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("hostile.toml", folder.create_gate());
    let server = HttpServer::start(&folder).wait_until_ready();
    let send = |method: &str, params: Value| {
        let mut stream = neighbour::connect(&server, true);
        stream
            .write_all(&neighbour::stateless(method, params))
            .unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        HttpResponse::read(stream)
    };
    let listed = send("tools/list", json!({}));
    assert_eq!(listed.status, 200);
    assert!(listed.response_message()["result"]["tools"].is_array());
    let waiting = send("tools/call", json!({"name": "wait_for_gate"}));
    assert_eq!(waiting.status, 200);
    folder.open_gate();
    assert!(result_text(&waiting.response_message()["result"]).starts_with("build-marker"));
}

#[test]
fn a_target_with_a_host_is_checked_like_the_header() {
    let server = HttpServer::start(&Folder::new());
    let request = String::from_utf8(neighbour::stateless("tools/list", json!({}))).unwrap();
    for (target, status) in [
        ("http://localhost/mcp", 200),
        ("http://127.0.0.1:1/mcp", 200),
        ("http://evil.example/mcp", 403),
        ("https://evil.example/mcp", 403),
        ("http://localhost@evil.example/mcp", 403),
        ("http://localhost.evil.example/mcp", 403),
    ] {
        let response = server.send_raw(request.replace("POST /mcp ", &format!("POST {target} ")));
        assert_eq!(response.status, status, "{target}");
    }
}

#[test]
fn a_long_request_head_is_rejected() {
    let server = HttpServer::start(&Folder::new());
    let mut stream = neighbour::connect(&server, true);
    let begun = format!(
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: {}",
        "x".repeat(100_000)
    );
    drop(stream.write_all(begun.as_bytes()));
    assert_eq!(HttpResponse::read(stream).status, 431);
    assert_eq!(server.get("/healthz", &[]).status, 200);
}

#[test]
fn the_limits_of_a_request_head_are_as_documented() {
    let server = HttpServer::start(&Folder::new());
    let head = |length: usize| {
        let begun = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: ";
        format!("{begun}{}\r\n\r\n", "x".repeat(length - begun.len() - 4))
    };
    assert_eq!(server.send_raw(head(64 << 10)).status, 200);
    for length in [(64 << 10) + 1, 66_000, 80_000, 100_000, 130_000, 1_000_000] {
        let refused = server.send_raw(head(length));
        assert_eq!(refused.status, 431, "{length}");
        // There is no text if not all of the head was read.
        let text = refused.text();
        assert!(
            text.is_empty() || text == "the request line and the headers are longer than 64 KiB\n",
            "{text}"
        );
    }
    let headers = |count: usize| {
        let others: Vec<String> = (1..count).map(|n| format!("X-{n}: a\r\n")).collect();
        format!(
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
            others.concat()
        )
    };
    assert_eq!(server.send_raw(headers(100)).status, 200);
    assert_eq!(server.send_raw(headers(101)).status, 431);
}

#[test]
fn bodies_that_never_end_use_only_the_memory_of_their_address() {
    // 16 MiB for one address, and four times that in total.
    let config = "[server]\nrequest_memory = \"64MiB\"\n[http]\nidle_timeout = \"6s\"";
    let server = HttpServer::start_with_config(
        &Folder::with("a.wasm", TinyComponent::new(&["a"]).build()),
        config,
    )
    .wait_until_ready();
    let before = resident(&server);
    let long = json!({"x": "x".repeat(3 << 20)});
    let body = neighbour::stateless("tools/list", long);
    let unfinished = &body[..body.len() - 1];
    let mut streams: Vec<TcpStream> = (0..40).map(|_| neighbour::connect(&server, true)).collect();
    for stream in &mut streams {
        // A refused request is read to its end, so that its client receives the response.
        stream.write_all(unfinished).unwrap();
    }
    assert_eq!(
        neighbour::ask(&server, &body).status,
        200,
        "another address has its own room"
    );
    let statuses: Vec<u16> = streams.into_iter().map(status).collect();
    let refused = count(&statuses, 503);
    let late = count(&statuses, 408);
    assert!(
        refused >= 20 && late >= 2 && refused + late == statuses.len(),
        "{statuses:?}"
    );
    let peak = peak(&server);
    assert!(peak < before + (64 << 10), "from {before} to {peak} KiB");
    assert_eq!(server.send_raw(&body).status, 200);
}

fn count(statuses: &[u16], status: u16) -> usize {
    statuses.iter().filter(|found| **found == status).count()
}

/// Returns the status of the response.
fn status(mut stream: TcpStream) -> u16 {
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    String::from_utf8_lossy(&head[9..]).parse().unwrap()
}

/// Returns the server's resident memory, in KiB.
pub(super) fn resident(server: &HttpServer) -> u64 {
    value(server, "VmRSS:")
}

/// Returns the server's peak memory, in KiB.
pub(super) fn peak(server: &HttpServer) -> u64 {
    value(server, "VmHWM:")
}

fn value(server: &HttpServer, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
