//! A client with another address of this machine than the usual one.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::LazyLock;

use serde_json::Value;
use tokio::net::TcpSocket;
use toolbay_testkit::other_local_address;

use crate::support::{DEADLINE, HttpResponse, HttpServer, initialize, modern};

/// The other address. Every address that begins with 127 counts as the usual one.
static ADDRESS: LazyLock<Ipv4Addr> = LazyLock::new(|| other_local_address().unwrap());

/// Connects from the other address or, if `near`, from the usual address.
pub(super) fn connect(server: &HttpServer, near: bool) -> TcpStream {
    connect_from(server, if near { Ipv4Addr::LOCALHOST } else { *ADDRESS })
}

/// Connects from an address of this machine.
fn connect_from(server: &HttpServer, from: Ipv4Addr) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .unwrap();
    let stream = runtime.block_on(async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((from, 0))).unwrap();
        socket
            .connect(server.address)
            .await
            .unwrap()
            .into_std()
            .unwrap()
    });
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.set_write_timeout(Some(DEADLINE)).unwrap();
    stream
}

/// Returns a POST to `/mcp` with these headers.
pub(super) fn post(headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: */*\r\n{headers}\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Returns a stateless request.
pub(super) fn stateless(method: &str, params: Value) -> Vec<u8> {
    let name = params["name"]
        .as_str()
        .map(|name| format!("Mcp-Name: {name}\r\n"))
        .unwrap_or_default();
    let headers = format!(
        "MCP-Protocol-Version: {}\r\nMcp-Method: {method}\r\n{name}",
        crate::support::MODERN
    );
    post(
        &headers,
        modern(serde_json::json!(1), method, params)
            .to_string()
            .as_bytes(),
    )
}

/// Sends a request from the other address and reads the head of the response.
pub(super) fn ask(server: &HttpServer, request: &[u8]) -> HttpResponse {
    ask_from(server, *ADDRESS, request)
}

fn ask_from(server: &HttpServer, from: Ipv4Addr, request: &[u8]) -> HttpResponse {
    let mut stream = connect_from(server, from);
    stream.write_all(request).unwrap();
    HttpResponse::read(stream)
}

/// Starts a session from the other address and returns its id, if there is one.
pub(super) fn session(server: &HttpServer) -> Option<String> {
    session_from(server, *ADDRESS)
}

/// Starts a session from an address of this machine and returns its id, if there is one.
pub(super) fn session_from(server: &HttpServer, from: Ipv4Addr) -> Option<String> {
    let response = ask_from(
        server,
        from,
        &post("", initialize("2025-11-25").to_string().as_bytes()),
    );
    response.header("mcp-session-id").map(str::to_owned)
}

/// Returns the status of a `ping` in this session from the other address.
pub(super) fn ping(server: &HttpServer, session: &str) -> u16 {
    ping_from(server, *ADDRESS, session)
}

/// Returns the status of a `ping` in this session from an address of this machine.
pub(super) fn ping_from(server: &HttpServer, from: Ipv4Addr, session: &str) -> u16 {
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    ask_from(
        server,
        from,
        &post(&format!("Mcp-Session-Id: {session}\r\n"), ping),
    )
    .status
}
