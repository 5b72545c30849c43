//! Components for WASI 0.3.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::{Value, json};

use crate::requests::Site;
use crate::support::{
    Folder, StdioServer, ToolbayCommand, error_kind_and_text, own_server, result_text,
};

/// Starts a server with the guest that uses WASI 0.3.
fn start_server(grant: &str) -> StdioServer {
    let folder = Folder::with("wasi3.wasm", own_server("wasi3"));
    folder.put("wasi3.toml", grant);
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("look");
    server
}

/// Starts a TCP server that runs `answer` for each connection.
fn start_tcp_server(answer: fn(TcpStream) -> std::io::Result<()>) -> (SocketAddr, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, ended) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let sender = sender.clone();
            thread::spawn(move || {
                drop(answer(stream.unwrap()));
                let _heard = sender.send(());
            });
        }
    });
    (address, ended)
}

/// Returns a grant for this address.
fn tcp_grant(address: SocketAddr) -> String {
    format!("[permissions]\ntcp = [\"{address}\"]\nprivate_networks = [\"127.0.0.1\"]\n")
}

fn echo(mut stream: TcpStream) -> std::io::Result<()> {
    let mut text = Vec::new();
    stream.read_to_end(&mut text)?;
    stream.write_all(&text)
}

/// Reads nothing, and never returns.
fn read_nothing(_stream: TcpStream) -> std::io::Result<()> {
    loop {
        thread::park();
    }
}

fn with_address(address: SocketAddr, mut more: Value) -> Value {
    more["address"] = json!(address.ip().to_string());
    more["port"] = json!(address.port());
    more
}

#[test]
fn environment_clocks_random_numbers_and_streams_are_available() {
    let mut server = start_server("");
    let look = server.text("look", json!({}));
    let parts: Vec<&str> = look.split(' ').collect();
    assert_eq!(
        (parts[0], parts[4], parts[5]),
        ("[]", "false", "0"),
        "{look}"
    );
    assert!(parts[2].parse::<i64>().unwrap() > 1_700_000_000, "{look}");
    assert_ne!(server.text("look", json!({})), look);
    let waited = server.call("wait", json!({"nanoseconds": 3_000_000}));
    assert!(
        waited["structuredContent"]["result"].as_u64().unwrap() >= 3_000_000,
        "{waited}"
    );
    assert_eq!(
        server.text("print", json!({"text": "seen", "times": 2, "error": true})),
        r#"{"result":2}"#
    );
    assert_eq!(server.text("hear", json!({})), "");
}

#[test]
fn variables_of_the_grant_and_the_trace_are_in_the_environment() {
    let folder = Folder::with("wasi3.wasm", own_server("wasi3"));
    folder.put("wasi3.toml", "[permissions]\nenvironment = [\"TEST_WORD\"]");
    let call = ToolbayCommand::new(&folder)
        .args(["call", "look"])
        .env("TEST_WORD", "apricot")
        .run();
    assert!(
        call.stdout.starts_with(r#"[("TEST_WORD", "apricot")] "#),
        "{call}"
    );
}

#[test]
fn a_deterministic_call_has_the_same_clocks_and_random_numbers_each_time() {
    let mut server = start_server("[permissions]\ndeterministic = true");
    let look = server.text("look", json!({}));
    assert_eq!(server.text("look", json!({})), look);
    assert!(look.contains(" 1577836800 "), "{look}");
    // The clock advances by the time of each wait, and by each reading of the clock.
    let waited = |server: &mut StdioServer| {
        server.call("wait", json!({"nanoseconds": 40_000_000}))["structuredContent"].clone()
    };
    let first = waited(&mut server);
    assert_eq!(waited(&mut server), first);
    assert!(
        (40_000_000..50_000_000).contains(&first["result"].as_u64().unwrap()),
        "{first}"
    );
}

#[test]
fn requests_follow_the_grant_and_are_counted() {
    let site = Site::start();
    let mut server = start_server(&site.grant());
    let get = |path: &str| json!({"method": "GET", "address": site.url(path), "headers": [["x-own", "1"]], "body": ""});
    let result = server.call("request", get("/hello"));
    assert_eq!(result_text(&result), "200 hello");
    let usage = &result["_meta"]["dev.toolbay/usage"];
    assert_eq!(usage["http_requests"], json!(1), "{usage}");
    let seen = site.requests.recv().unwrap();
    assert!(
        seen.contains(&format!("host: {}", site.address)) && seen.contains("x-own: 1"),
        "{seen}"
    );
    let large = server.text("request", get("/large"));
    // All but the end of the response fits into a result.
    assert!(
        large.len() > 1_000_000 && large.starts_with("200 xxx"),
        "{}",
        large.len()
    );
    assert!(site.requests.recv().unwrap().contains("/large"));
    let posted = json!({"method": "POST", "address": site.url("/hello"), "headers": [["content-length", "4"]], "body": "body"});
    assert_eq!(server.text("request", posted), "200 hello");
    assert!(site.requests.recv().unwrap().ends_with("\r\nbody"));
    // The host detects the wrong length.
    let posted = json!({"method": "POST", "address": site.url("/hello"), "headers": [["content-length", "9"]], "body": "body"});
    assert!(
        error_kind_and_text(&server.call("request", posted))
            .1
            .contains("HttpRequestBodySize")
    );
    let other =
        json!({"method": "GET", "address": "http://127.0.0.1:1/", "headers": [], "body": ""});
    let (kind, _) = server.failure("request", other);
    assert_eq!(kind, "denied");
}

#[test]
fn requests_have_limits() {
    let site = Site::start();
    let mut server =
        start_server(&(site.grant() + "[limits]\nhttp_requests = 5\nhttp_bytes = \"100KiB\""));
    let nibble = |count: u32| json!({"address": site.url("/hello"), "count": count});
    assert_eq!(server.text("nibble", nibble(5)), r#"{"result":5}"#);
    let (kind, said) = server.failure("nibble", nibble(6));
    assert_eq!(
        (kind.as_str(), said.contains("more than 5 HTTP requests")),
        ("limit", true),
        "{said}"
    );
    let large = json!({"method": "GET", "address": site.url("/large"), "headers": [], "body": ""});
    assert_eq!(server.failure("request", large).0, "limit");
}

#[test]
fn a_response_that_is_dropped_before_its_end_releases_its_connection() {
    let site = Site::start();
    let mut server = start_server(&site.grant());
    // More connections than a plugin can have at once.
    for _ in 0..3 {
        assert_eq!(
            server.text(
                "nibble",
                json!({"address": site.url("/large"), "count": 20})
            ),
            r#"{"result":20}"#
        );
    }
}

#[test]
fn a_body_that_the_peer_never_reads_uses_little_memory_and_ends_with_the_call() {
    let (address, _ended) = start_tcp_server(read_nothing);
    let grant = format!(
        "[permissions]\nhttp = [\"http://{address}\"]\ntcp = [\"{address}\"]\nprivate_networks = [\"127.0.0.1\"]\n[limits]\n\
         timeout = \"500ms\""
    );
    let mut server = start_server(&grant);
    let result = server.call(
        "upload",
        json!({"address": format!("http://{address}/"), "kibibytes": 4_000_000}),
    );
    assert_eq!(error_kind_and_text(&result).0, "deadline");
    assert!(
        result["_meta"]["dev.toolbay/usage"]["memory"]
            .as_u64()
            .unwrap()
            < 8 << 20,
        "{result}"
    );
    let result = server.call("pour", with_address(address, json!({})));
    assert_eq!(error_kind_and_text(&result).0, "deadline");
    assert!(
        result["_meta"]["dev.toolbay/usage"]["memory"]
            .as_u64()
            .unwrap()
            < 8 << 20,
        "{result}"
    );
}

#[test]
fn connections_follow_the_grant_and_are_counted() {
    let (address, _ended) = start_tcp_server(echo);
    let mut server = start_server(&(tcp_grant(address) + "[limits]\ntcp_connections = 20"));
    let said = "hello ".repeat(100_000);
    let result = server.call("talk", with_address(address, json!({"text": said})));
    assert_eq!(result_text(&result), said);
    let usage = &result["_meta"]["dev.toolbay/usage"];
    assert_eq!(
        (&usage["tcp_connections"], &usage["tcp_bytes"]),
        (&json!(1), &json!(1_200_000)),
        "{usage}"
    );
    // One connection after the other, however much of each was read.
    assert_eq!(
        server.text("dial", with_address(address, json!({"count": 20}))),
        r#"{"result":20}"#
    );
    assert_eq!(
        server
            .failure("dial", with_address(address, json!({"count": 21})))
            .0,
        "limit"
    );
    // Several connections at once, even if only a stream of each remains.
    let (_, said) = server.failure("keep", with_address(address, json!({"count": 20})));
    assert!(said.starts_with("16: "), "{said}");
    let port = address.port() ^ 1;
    let (kind, said) = server.failure(
        "talk",
        json!({"address": "127.0.0.1", "port": port, "text": ""}),
    );
    assert_eq!(kind, "denied", "{said}");
    let resolved = server.call("resolve", json!({"name": "127.0.0.1"}));
    assert_eq!(
        resolved["structuredContent"]["result"],
        json!(["IpAddress::Ipv4((127, 0, 0, 1))"])
    );
}

#[test]
fn bytes_of_connections_have_a_limit() {
    let (address, _ended) =
        start_tcp_server(|mut stream| std::io::copy(&mut stream, &mut std::io::sink()).map(drop));
    let mut server = start_server(&(tcp_grant(address) + "[limits]\ntcp_bytes = \"1MiB\""));
    assert_eq!(
        server.failure("pour", with_address(address, json!({}))).0,
        "limit"
    );
}

/// Sends data without end.
fn send_forever(mut stream: TcpStream) -> std::io::Result<()> {
    let piece = vec![0; 64 << 10];
    loop {
        stream.write_all(&piece)?;
    }
}

#[test]
fn a_relay_in_the_host_yields_to_other_calls_and_ends_with_its_call() {
    let (source, _ended) = start_tcp_server(send_forever);
    let (target, ended) =
        start_tcp_server(|mut stream| std::io::copy(&mut stream, &mut std::io::sink()).map(drop));
    let folder = Folder::with("wasi3.wasm", own_server("wasi3"));
    let tcp = format!("tcp = [\"{source}\", \"{target}\"]");
    folder.put(
        "wasi3.toml",
        format!(
            "[permissions]\n{tcp}\nprivate_networks = [\"127.0.0.1\"]\n[limits]\ntimeout = \"1s\"\ntcp_bytes = \"1TiB\""
        ),
    );
    folder.write_config("[ceilings]\ntcp_bytes = \"1TiB\"");
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("relay");
    let each = thread::available_parallelism().unwrap().get() + 1;
    let begun: Vec<u64> = (0..each)
        .map(|_| {
            server.start_call(
                "relay",
                with_address(source, json!({"target": target.port()})),
            )
        })
        .collect();
    assert_eq!(
        server.text("hear", json!({})),
        "",
        "another call runs meanwhile"
    );
    for id in begun {
        assert_eq!(error_kind_and_text(&server.finish_call(id)).0, "deadline");
        ended.recv().unwrap();
    }
}

#[test]
fn a_body_goes_from_one_server_to_another_through_the_host() {
    let site = Site::start();
    let mut server = start_server(&site.grant());
    assert_eq!(
        server.text(
            "forward",
            json!({"source": site.url("/large"), "target": site.url("/hello")})
        ),
        "hello"
    );
}

#[test]
fn options_of_sockets_are_those_that_were_set() {
    let mut server = start_server("");
    assert_eq!(
        server.text("options", json!({})),
        "true 7000000000 1000000000 3 9 65536 8192 IpAddressFamily::Ipv6 false Err(ErrorCode::InvalidArgument) \
         Err(ErrorCode::InvalidState) Err(ErrorCode::InvalidState)"
    );
}

#[test]
fn a_grant_with_folders_says_that_the_plugin_does_not_find_them() {
    let folder = Folder::with("wasi3.wasm", own_server("wasi3"));
    fs::create_dir(folder.sibling_path("data")).unwrap();
    folder.put(
        "wasi3.toml",
        "[[permissions.mounts]]\nhost = \"../data\"\nguest = \"/data\"\naccess = \"read\"",
    );
    let why = "looks for files through WASI 0.3, where it gets none";
    for command in [vec!["check", "plugins/wasi3.wasm"], vec!["list"]] {
        let run = ToolbayCommand::new(&folder).args(command).run();
        assert!(
            format!("{}{}", run.stdout, run.stderr).contains(why),
            "{run}"
        );
    }
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("look");
    server.log.wait_for(why);
    assert!(server.text("look", json!({})).ends_with(" 0"));
}

#[test]
fn a_cancelled_wait_frees_its_slot_at_once() {
    let folder = Folder::with("wasi3.wasm", own_server("wasi3"));
    folder.put("wasi3.toml", "[limits]\ntimeout = \"10m\"");
    folder.write_config("[server]\ncalls = 1");
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("wait");
    for _ in 0..10 {
        let id = server.start_call("wait", json!({"nanoseconds": 3_600_000_000_000_u64}));
        server.notify("notifications/cancelled", json!({"requestId": id}));
        assert_eq!(server.text("hear", json!({})), "");
    }
}

#[test]
fn a_command_is_a_tool() {
    let folder = Folder::with("echo.wasm", own_server("command3"));
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("echo");
    let result = server.call("echo", json!({"a": [1, 2]}));
    assert_eq!(
        (result_text(&result).as_str(), &result["structuredContent"]),
        (r#"{"a":[1,2]}"#, &json!({"a": [1, 2]}))
    );
    let (kind, said) = server.failure("echo", json!({"a": "bad"}));
    assert_eq!((kind.as_str(), said.as_str()), ("none", r#"{"a":"bad"}"#));
}

#[test]
fn a_command_that_speaks_mcp_is_a_server() {
    let folder = Folder::with("talker3.wasm", own_server("talker3"));
    folder.put("talker3.toml", "[limits]\ntimeout = \"1s\"");
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["flood", "shout", "silent"]);
    for _ in 0..3 {
        assert_eq!(server.text("shout", json!({"text": "hello"})), "HELLO");
    }
    assert_eq!(server.failure("flood", json!({})).0, "output");
    assert_eq!(server.failure("silent", json!({})).0, "deadline");
}

#[test]
fn an_http_handler_that_speaks_mcp_is_a_server() {
    let folder = Folder::with("server3.wasm", own_server("server3"));
    folder.put(
        "server3.toml",
        "[limits]\ntimeout = \"1s\"\ntransfer = \"8MiB\"",
    );
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("add");
    for n in 0..3 {
        assert_eq!(
            server.text("add", json!({"a": 1.5, "b": n})),
            (1.5 + f64::from(n)).to_string()
        );
    }
    let kinds = [
        ("hang", "deadline"),
        ("unfinished", "deadline"),
        ("trap", "trap"),
        ("trap-after-head", "trap"),
        ("break-a-rule", "trap"),
        ("stream-for-ever", "output"),
        ("large", "output"),
    ];
    for (tool, kind) in kinds {
        let (found, said) = server.failure(tool, json!({}));
        assert_eq!(found, kind, "{tool}: {said}");
        // The error tells whose mistake it is.
        assert_eq!(
            said.contains("not in the server"),
            tool == "break-a-rule",
            "{tool}: {said}"
        );
    }
    for tool in ["fail", "elsewhere"] {
        let (_, said) = server.failure(tool, json!({}));
        assert!(said.contains("its HTTP handler failed"), "{tool}: {said}");
    }
    assert_eq!(server.text("add", json!({"a": 1, "b": 1})), "2");
}

#[test]
fn check_and_the_compile_cache_report_wasi_0_3() {
    let expected = [
        (
            "wasi3",
            "it exports plain functions; each is a tool; it is for WASI 0.3",
        ),
        (
            "command3",
            "it is a command: one tool, named after the file; it is for WASI 0.3",
        ),
        (
            "talker3",
            "it is an MCP server on standard input and output (MCP 2025-11-25); it is for WASI 0.3",
        ),
        (
            "server3",
            "it is an MCP server over HTTP, at /mcp (MCP 2026-07-28); it is for WASI 0.3",
        ),
    ];
    for (name, expected) in expected {
        let folder = Folder::with(&format!("{name}.wasm"), own_server(name));
        for _ in 0..2 {
            let checked = ToolbayCommand::new(&folder)
                .args(["check", &format!("plugins/{name}.wasm")])
                .run();
            assert!(checked.stdout.contains(expected), "{checked}");
        }
    }
}
