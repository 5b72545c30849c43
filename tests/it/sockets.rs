//! TCP connections of plugins: a plugin can connect only to what its grant allows, by name or by
//! address.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::json;

use crate::support::{Folder, StdioServer, ToolbayCommand, error_kind_and_text, net};

/// A server that answers each connection with the data that it received, once the client stops
/// sending.
struct EchoServer {
    address: SocketAddr,
    /// Receives one message for each connection.
    came: Receiver<()>,
}

impl EchoServer {
    fn start() -> Self {
        Self::with_handler(|mut stream| {
            let mut text = Vec::new();
            stream.read_to_end(&mut text)?;
            stream.write_all(&text)
        })
    }

    fn with_handler(answer: fn(TcpStream) -> std::io::Result<()>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, came) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let _heard = sender.send(());
                thread::spawn(move || drop(answer(stream.unwrap())));
            }
        });
        Self { address, came }
    }

    fn port(&self) -> u16 {
        self.address.port()
    }
}

fn start_server(grant: &str) -> StdioServer {
    let folder = Folder::with("net.wasm", net());
    folder.put("net.toml", grant);
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("talk");
    server
}

const DENIED: &str = "Permission denied (os error 2)";

#[test]
fn a_granted_host_can_be_connected_to_by_name_and_by_address() {
    let echo = EchoServer::start();
    let port = echo.port();
    for host in ["localhost", "127.0.0.1"] {
        let grant = format!(
            "[permissions]\ntcp = [\"{host}:{port}\"]\nprivate_networks = [\"127.0.0.1\", \"::1\"]"
        );
        let mut server = start_server(&grant);
        let text = "hello ".repeat(50_000);
        assert_eq!(
            server.text("talk", json!({"host": host, "port": port, "text": text})),
            text
        );
        echo.came.recv().unwrap();
    }
}

#[test]
fn without_a_grant_no_connection_is_made_and_the_log_names_the_missing_permission() {
    let echo = EchoServer::start();
    let port = echo.port();
    let mut server = start_server("");
    let (kind, said) =
        error_kind_and_text(&server.call("talk", json!({"host": "127.0.0.1", "port": port})));
    assert_eq!(kind, "denied");
    assert!(
        said.ends_with("This tool may connect to an IP address only if its grant lists it."),
        "{said}"
    );
    let remedy = format!(
        "in net.toml: tcp = [\"127.0.0.1:{port}\"] and private_networks = [\"127.0.0.1\"] plugin=\"net\""
    );
    server.log.wait_for(&remedy);
    let (kind, said) =
        error_kind_and_text(&server.call("talk", json!({"host": "db.internal", "port": 5432})));
    assert_eq!(kind, "denied");
    assert!(
        said.ends_with("db.internal is not among the hosts that this tool may connect to."),
        "{said}"
    );
    server
        .log
        .wait_for("in net.toml: tcp = [\"db.internal:PORT\"] plugin=\"net\"");
    assert!(echo.came.try_recv().is_err());
}

#[test]
fn connections_to_another_port_or_host_are_denied() {
    let echo = EchoServer::start();
    let other = EchoServer::start();
    let grant = format!(
        "[permissions]\ntcp = [\"localhost:{}\"]\nprivate_networks = [\"127.0.0.1\", \"::1\"]",
        echo.port()
    );
    let mut server = start_server(&grant);
    let said = server.text(
        "try_to_connect",
        json!({"host": "localhost", "port": other.port()}),
    );
    assert_eq!(said, DENIED);
    let closed = format!(
        "denied: This tool may connect to localhost at another port, and not at {}.",
        other.port()
    );
    server.log.wait_for(&closed);
    // The name is allowed, but its address is not.
    let said = server.text(
        "try_to_connect",
        json!({"host": "127.0.0.1", "port": echo.port()}),
    );
    assert_eq!(said, DENIED);
    for host in [
        "127.0.0.2",
        "::1",
        "::ffff:127.0.0.1",
        "0.0.0.0",
        "169.254.169.254",
        "255.255.255.255",
    ] {
        let said = server.text("try_to_connect", json!({"host": host, "port": echo.port()}));
        assert!(!said.starts_with("connected"), "{host}: {said}");
    }
    assert!(echo.came.try_recv().is_err() && other.came.try_recv().is_err());
}

#[test]
fn a_resolved_address_is_allowed_only_in_the_call_that_resolved_its_name() {
    let echo = EchoServer::start();
    let address = format!("127.0.0.1:{}", echo.port());
    let grant = format!(
        "[permissions]\ntcp = [\"localhost:{}\"]\nprivate_networks = [\"127.0.0.1\", \"::1\"]",
        echo.port()
    );
    let mut server = start_server(&grant);
    let asked = |name: &str| json!({"name": name, "addresses": [address]});
    assert_eq!(
        server.text("resolve_and_connect", asked("localhost")),
        "connected"
    );
    echo.came.recv().unwrap();
    assert_eq!(
        server.text("resolve_and_connect", asked("db.internal")),
        DENIED
    );
    assert!(echo.came.try_recv().is_err());
}

#[test]
fn a_granted_host_that_is_not_global_needs_private_networks() {
    let echo = EchoServer::start();
    let port = echo.port();
    let mut server = start_server(&format!(
        "[permissions]\ntcp = [\"localhost:{port}\", \"127.0.0.1:{port}\"]"
    ));
    for host in ["localhost", "127.0.0.1"] {
        assert_eq!(
            server.text("try_to_connect", json!({"host": host, "port": port})),
            DENIED,
            "{host}"
        );
        assert!(
            !server
                .text("resolve", json!({"host": "localhost", "port": port}))
                .contains("127.0.0.1")
        );
    }
    server
        .log
        .wait_for("To allow it, add to [permissions] in net.toml: private_networks = [");
    assert!(echo.came.try_recv().is_err());
}

#[test]
fn only_names_that_the_grant_lists_are_resolved() {
    let mut server = start_server(
        "[permissions]\ntcp = [\"localhost:1\"]\nprivate_networks = [\"127.0.0.1\", \"::1\"]",
    );
    assert!(
        server
            .text("resolve", json!({"host": "localhost", "port": 7}))
            .contains("127.0.0.1:7")
    );
    for name in [
        "ip6-localhost",
        "a.localhost",
        "example.com",
        "secret.evil.example",
        "localhost.localdomain",
    ] {
        assert_eq!(
            server.text("resolve", json!({"host": name, "port": 7})),
            DENIED,
            "{name}"
        );
    }
    for name in [
        "local%68ost",
        "a b",
        "localhost:1",
        "\u{0}",
        "a..b",
        &"x".repeat(70_000),
    ] {
        let said = server.text("resolve", json!({"host": name, "port": 7}));
        assert!(
            !said.contains("127.0.0.1") && !said.contains("::1"),
            "{name}: {said}"
        );
    }
}

#[test]
fn listening_and_udp_are_denied() {
    let mut server =
        start_server("[permissions]\ntcp = [\"127.0.0.1:1\"]\nprivate_networks = [\"127.0.0.1\"]");
    let said = server.text("listen", json!({}));
    assert_eq!(said, format!("{DENIED}; {DENIED}; {DENIED}"));
    server
        .log
        .wait_for("denied: No tool may accept connections.");
    server
        .log
        .wait_for("denied: No tool may send or receive UDP datagrams.");
}

#[test]
fn a_call_has_a_limit_of_open_sockets_and_closed_sockets_do_not_count() {
    let echo = EchoServer::start();
    let address = echo.address.to_string();
    let grant = format!("[permissions]\ntcp = [\"{address}\"]\nprivate_networks = [\"127.0.0.1\"]");
    let mut granted = start_server(&grant);
    let said = granted.text("hoard", json!({"address": address, "count": 100}));
    assert!(said.starts_with("16 connections, then: "), "{said}");
    assert_eq!(
        granted.text("come_and_go", json!({"address": address, "count": 100})),
        "done"
    );
    // Each socket uses memory of its call.
    let mut small = start_server(&format!("{grant}\n[limits]\nmemory = \"3MiB\""));
    assert_eq!(
        error_kind_and_text(&small.call("hoard", json!({"address": address, "count": 16}))).0,
        "memory"
    );
    assert_eq!(
        small.text("come_and_go", json!({"address": address, "count": 100})),
        "done"
    );
}

#[test]
fn connections_and_their_bytes_are_counted_and_have_limits() {
    let echo = EchoServer::start();
    let address = echo.address.to_string();
    let port = echo.port();
    let grant = |limits: &str| {
        format!(
            "[permissions]\ntcp = [\"{address}\"]\nprivate_networks = [\"127.0.0.1\"]\n[limits]\n{limits}"
        )
    };
    let talk = |bytes: usize| json!({"host": "127.0.0.1", "port": port, "text": "x".repeat(bytes)});
    let many = |count: u32| json!({"address": address, "count": count});
    let mut server = start_server(&grant("tcp_connections = 3\ntcp_bytes = \"200KiB\""));
    // Each byte is sent and received, which uses the whole limit.
    let result = server.call("talk", talk(100 << 10));
    let usage = &result["_meta"]["dev.toolbay/usage"];
    assert_eq!(
        (&usage["tcp_connections"], &usage["tcp_bytes"]),
        (&json!(1), &json!(200 << 10)),
        "{usage}"
    );
    let too_many = "The tool sent and received more than 200.0 KiB over TCP (to allow more, raise limits.tcp_bytes).";
    for bytes in [(100 << 10) + 1, 300 << 10] {
        assert_eq!(
            server.failure("talk", talk(bytes)),
            ("limit".into(), too_many.into()),
            "{bytes}"
        );
    }
    let result = server.call("come_and_go", many(3));
    assert_eq!(
        result["_meta"]["dev.toolbay/usage"]["tcp_connections"], 3,
        "{result}"
    );
    let too_many =
        "The tool made more than 3 TCP connections (to allow more, raise limits.tcp_connections).";
    for tool in ["come_and_go", "hoard"] {
        assert_eq!(
            server.failure(tool, many(4)),
            ("limit".into(), too_many.into()),
            "{tool}"
        );
    }
    // A denied connection does not count.
    let denied = json!({"host": "127.0.0.1", "port": 1});
    let result = server.call("try_to_connect", denied);
    assert_eq!(
        result["_meta"]["dev.toolbay/usage"].get("tcp_connections"),
        None,
        "{result}"
    );
    let mut server = self::start_server(&grant("tcp_connections = 0"));
    let (kind, text) = server.failure("talk", talk(1));
    assert_eq!(
        (kind.as_str(), text.contains("more than 0 TCP connections")),
        ("limit", true),
        "{text}"
    );
}

#[test]
fn a_connection_to_an_unresponsive_host_ends_with_the_call() {
    let silent = EchoServer::with_handler(|stream| {
        // The connection stays open, and the server does not read from it.
        std::mem::forget(stream);
        Ok(())
    });
    let grant = format!(
        "[limits]\ntimeout = \"300ms\"\n[permissions]\ntcp = [\"{}\"]\nprivate_networks = [\"127.0.0.1\"]",
        silent.address
    );
    let mut server = start_server(&grant);
    let (kind, _) = error_kind_and_text(
        &server.call("flood", json!({"host": "127.0.0.1", "port": silent.port()})),
    );
    assert_eq!(kind, "deadline");
    silent.came.recv().unwrap();
    assert_eq!(
        server.text("listen", json!({})).matches(DENIED).count(),
        3,
        "the next call is served"
    );
}

#[test]
fn a_mistake_in_tcp_names_the_line_and_the_nearest_key() {
    let folder = Folder::with("net.wasm", net());
    let said = |grant: &str| {
        folder.put("net.toml", grant);
        ToolbayCommand::new(&folder).args(["list"]).run().stdout
    };
    let typo = said("[permissions]\ntcps = [\"db.internal:5432\"]");
    assert!(
        typo.contains("! net.toml:2:1: unknown key `tcps`; did you mean `tcp`?"),
        "{typo}"
    );
    let port = said("[permissions]\ntcp = [\"db.internal\"]");
    assert!(
        port.contains(
            "\"db.internal\" has no port; write host and port, as in \"db.internal:443\""
        ),
        "{port}"
    );
    let listed = said("[permissions]\ntcp = [\"db.internal:5432\"]");
    assert!(
        listed.contains("    + TCP connections: db.internal:5432\n"),
        "{listed}"
    );
}
