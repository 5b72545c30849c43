//! Attempts of plugins to reach what their grants do not allow: each is denied, nothing arrives
//! anywhere, and the audit log has a line that reports it.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};

use crate::requests::Site;
use crate::support::{Folder, StdioServer, ToolbayCommand, net, result_text, web};

/// An attempt of a plugin. `{port}` stands for the port of a server that the plugin may call at
/// 127.0.0.1.
struct Attempt {
    what: &'static str,
    tool: &'static str,
    arguments: &'static str,
    /// The text that the guest gets instead of a response or a connection.
    guest: &'static str,
    /// The member `message` of the only `denied` line of the call.
    denied: &'static str,
    /// The member `remedy`, with `\n` for a line break; empty if there is none.
    remedy: &'static str,
}

/// Creates the rows of the table.
macro_rules! attempts {
    ($($what:literal: $tool:ident $arguments:literal => $guest:expr, $denied:expr, $remedy:expr;)*) => {
        const ATTEMPTS: &[Attempt] = &[$(Attempt {
            what: $what,
            tool: stringify!($tool),
            arguments: $arguments,
            guest: $guest,
            denied: $denied,
            remedy: $remedy,
        }),*];
    };
}

/// The SDK's message for a request that the grant does not allow.
const DENIED: &str = "The request is denied.";
const PROHIBITED: &str = "The server cannot be found.";
const NO_CONNECTION: &str = "Permission denied (os error 2)";
const HOST: &str = "The request cannot be sent: the host in its URL is invalid.";
const PATH: &str = "The request cannot be sent: the path in its URL is invalid.";
const HEADER: &str = "The request cannot be sent: the host refuses one of its headers.";

const INVALID: &str = "Invalid argument (os error 28)";
const USERINFO: &str = "The address of the request contains user information (the part before `@`), which is not allowed.";
const PORT: &str = "The address of the request has a port that is not a number from 1 to 65535.";
const CHARACTER: &str =
    "The address of the request contains a space, a control character, a slash, `\\`, `?` or `#`.";
const CONCEALED: &str = "This tool may call only some paths at https://paths.example, and its paths must be \
    plain: without encoded dots, slashes, backslashes and control characters, and without segments such as `..;`.";
const LITERAL: &str = "This tool may call an IP address only if its grant lists it.";
const TCP_LITERAL: &str = "This tool may connect to an IP address only if its grant lists it.";
const ADDRESS: &str = "This tool may not connect to the address of this host.";
const MALFORMED_PATH: &str =
    "The path of a request must begin with `/`, without spaces, control characters and `#`.";
const MALFORMED_HEADER: &str = "A header of the request is not valid: its name or its value has a character that HTTP \
    does not allow, or its `Content-Length` is not one decimal number.";

attempts! {
    "calls another host":
        try_to_send r#"{"url": "https://evil.example/"}"#
        => DENIED, "https://evil.example is not among the origins that this tool may send requests to.", r#"http = ["https://evil.example"]"#;
    "calls a host whose name begins with an allowed one":
        try_to_send r#"{"url": "https://allowed.example.evil.example/"}"#
        => DENIED, "https://allowed.example.evil.example is not among the origins that this tool may send requests to.", r#"http = ["https://allowed.example.evil.example"]"#;
    "calls a host whose name ends with an allowed one":
        try_to_send r#"{"url": "https://evil-allowed.example/"}"#
        => DENIED, "https://evil-allowed.example is not among the origins that this tool may send requests to.", r#"http = ["https://evil-allowed.example"]"#;
    "calls a host below an allowed one":
        try_to_send r#"{"url": "https://evil.allowed.example/"}"#
        => DENIED, "https://evil.allowed.example is not among the origins that this tool may send requests to.", r#"http = ["https://evil.allowed.example"]"#;
    "calls the domain of a pattern":
        try_to_send r#"{"url": "https://pattern.example/"}"#
        => DENIED, "https://pattern.example is not among the origins that this tool may send requests to.", r#"http = ["https://pattern.example"]"#;
    "calls a name with a letter that looks alike":
        try_to_send r#"{"url": "https://xn--llowed-2fg.example/"}"#
        => DENIED, "https://xn--llowed-2fg.example is not among the origins that this tool may send requests to.", r#"http = ["https://xn--llowed-2fg.example"]"#;
    "calls a name with a dot that is none":
        try_to_send r#"{"url": "https://evil.example。pattern.example/"}"#
        => HOST, "The address of the request contains a character that only looks like a dot; write `.`.", "";
    "names an allowed host before an @":
        try_to_send r#"{"url": "http://127.0.0.1:{port}@evil.example/"}"#
        => DENIED, USERINFO, "";
    "names an allowed host as a password":
        try_to_send r#"{"url": "http://evil:127.0.0.1@evil.example/"}"#
        => DENIED, USERINFO, "";
    "names an allowed host after an @":
        try_to_send r#"{"url": "http://evil.example@127.0.0.1:{port}/"}"#
        => DENIED, USERINFO, "";
    "ends the host with a backslash":
        try_to_send r#"{"url": "http://evil.example\\.allowed.example/"}"#
        => HOST, CHARACTER, "";
    "ends the host with an encoded slash":
        try_to_send r#"{"url": "https://evil.example%2f.pattern.example/"}"#
        => HOST, "The address of the request contains `%`; write a host without percent-encoding and without an IPv6 zone.", "";
    "ends the host with a line break":
        try_to_send r#"{"url": "https://allowed.example\r\nHost: evil.example/"}"#
        => HOST, CHARACTER, "";
    "ends the host with a null byte":
        try_to_send r#"{"url": "https://allowed.example\u0000.evil.example/"}"#
        => HOST, CHARACTER, "";
    "calls no host":
        try_to_send r#"{"url": "https:///"}"#
        => HOST, "The address of the request has no host.", "";

    "calls the metadata service":
        try_to_send r#"{"url": "http://169.254.169.254/latest"}"#
        => DENIED, LITERAL, r#"http = ["http://169.254.169.254"]\nprivate_networks = ["169.254.169.254"]"#;
    "calls the metadata service in decimal":
        try_to_send r#"{"url": "http://2852039166/latest"}"#
        => DENIED, LITERAL, r#"http = ["http://169.254.169.254"]\nprivate_networks = ["169.254.169.254"]"#;
    "calls the metadata service in hexadecimal":
        try_to_send r#"{"url": "http://0xa9fea9fe/latest"}"#
        => DENIED, LITERAL, r#"http = ["http://169.254.169.254"]\nprivate_networks = ["169.254.169.254"]"#;
    "calls the metadata service in octal":
        try_to_send r#"{"url": "http://0251.0376.0251.0376/latest"}"#
        => DENIED, LITERAL, r#"http = ["http://169.254.169.254"]\nprivate_networks = ["169.254.169.254"]"#;
    "calls the metadata service with parts left out":
        try_to_send r#"{"url": "http://169.254.43518/latest"}"#
        => DENIED, LITERAL, r#"http = ["http://169.254.169.254"]\nprivate_networks = ["169.254.169.254"]"#;
    "calls the metadata service as an address of IPv6":
        try_to_send r#"{"url": "http://[::ffff:169.254.169.254]/latest"}"#
        => DENIED, LITERAL, r#"http = ["http://[::ffff:169.254.169.254]"]\nprivate_networks = ["169.254.169.254"]"#;
    "calls the metadata service in hexadecimal IPv6":
        try_to_send r#"{"url": "http://[::ffff:a9fe:a9fe]/latest"}"#
        => DENIED, LITERAL, r#"http = ["http://[::ffff:169.254.169.254]"]\nprivate_networks = ["169.254.169.254"]"#;
    "calls the metadata service through NAT64":
        try_to_send r#"{"url": "http://[64:ff9b::a9fe:a9fe]/latest"}"#
        => DENIED, LITERAL, r#"http = ["http://[64:ff9b::a9fe:a9fe]"]\nprivate_networks = ["64:ff9b::a9fe:a9fe", "169.254.169.254"]"#;
    "calls the metadata service of IPv6":
        try_to_send r#"{"url": "http://[fd00:ec2::254]/latest"}"#
        => DENIED, LITERAL, r#"http = ["http://[fd00:ec2::254]"]\nprivate_networks = ["fd00:ec2::254"]"#;
    "calls loopback in decimal":
        try_to_send r#"{"url": "http://2130706434:{port}/"}"#
        => DENIED, LITERAL, r#"http = ["http://127.0.0.2:{port}"]\nprivate_networks = ["127.0.0.2"]"#;
    "calls loopback in octal":
        try_to_send r#"{"url": "http://0177.0.0.2:{port}/"}"#
        => DENIED, LITERAL, r#"http = ["http://127.0.0.2:{port}"]\nprivate_networks = ["127.0.0.2"]"#;
    "calls loopback as an address of IPv6":
        try_to_send r#"{"url": "http://[::ffff:127.0.0.1]:{port}/"}"#
        => DENIED, LITERAL, r#"http = ["http://[::ffff:127.0.0.1]:{port}"]\nprivate_networks = ["127.0.0.1"]"#;
    "calls loopback of IPv6":
        try_to_send r#"{"url": "http://[::1]:{port}/"}"#
        => DENIED, LITERAL, r#"http = ["http://[::1]:{port}"]\nprivate_networks = ["::1"]"#;
    "calls the unspecified address":
        try_to_send r#"{"url": "http://0.0.0.0:{port}/"}"#
        => DENIED, LITERAL, r#"http = ["http://0.0.0.0:{port}"]\nprivate_networks = ["0.0.0.0"]"#;
    "calls a host with a zone":
        try_to_send r#"{"url": "http://[fe80::1%25eth0]/"}"#
        => DENIED, "The address of the request contains `%`; write a host without percent-encoding and without an IPv6 zone.", "";
    "calls an address that is none":
        try_to_send r#"{"url": "http://127.0.0.256:{port}/"}"#
        => DENIED, "The address of the request ends in a number or has brackets, but is not a valid IP address.", "";
    "calls an allowed address that is private":
        try_to_send r#"{"url": "http://10.0.0.7/"}"#
        => PROHIBITED, ADDRESS, r#"private_networks = ["10.0.0.7"]"#;
    "calls an allowed address that is private, in decimal":
        try_to_send r#"{"url": "http://167772167/"}"#
        => PROHIBITED, ADDRESS, r#"private_networks = ["10.0.0.7"]"#;
    "calls loopback by its name":
        try_to_send r#"{"url": "http://localhost:1/"}"#
        => DENIED, "http://localhost:1 is not among the origins that this tool may send requests to.", r#"http = ["http://localhost:1"]"#;

    "calls another port":
        try_to_send r#"{"url": "http://127.0.0.1:1/"}"#
        => DENIED, "This tool may call 127.0.0.1 at another port, and not at 1.", r#"http = ["http://127.0.0.1:1"]\nprivate_networks = ["127.0.0.1"]"#;
    "calls the default port":
        try_to_send r#"{"url": "http://127.0.0.1/"}"#
        => DENIED, "This tool may call 127.0.0.1 at another port, and not at 80.", r#"http = ["http://127.0.0.1"]\nprivate_networks = ["127.0.0.1"]"#;
    "calls port 0":
        try_to_send r#"{"url": "http://127.0.0.1:0/"}"#
        => DENIED, PORT, "";
    "calls a port that overflows to an allowed one":
        try_to_send r#"{"url": "https://allowed.example:65979/"}"#
        => DENIED, PORT, "";
    "calls two ports":
        try_to_send r#"{"url": "http://127.0.0.1:{port}:80/"}"#
        => HOST, PORT, "";
    "calls a port with a sign":
        try_to_send r#"{"url": "https://allowed.example:+443/"}"#
        => DENIED, PORT, "";
    "calls with the other scheme":
        try_to_send r#"{"url": "http://allowed.example/"}"#
        => DENIED, "This tool may call allowed.example over https, and not over http.", r#"http = ["http://allowed.example"]"#;
    "calls with the other scheme at the same port":
        try_to_send r#"{"url": "https://127.0.0.1:{port}/"}"#
        => DENIED, "This tool may call 127.0.0.1 over http, and not over https.", r#"http = ["https://127.0.0.1:{port}"]\nprivate_networks = ["127.0.0.1"]"#;

    "uses another method":
        try_to_send r#"{"method": "POST", "url": "https://paths.example/v1"}"#
        => DENIED, "The method is not among those that this tool may use at https://paths.example (case matters).", r#"http = [{ origin = "https://paths.example", methods = ["POST"], paths = ["/v1"] }]"#;
    "uses an allowed method in another case":
        try_to_send r#"{"method": "get", "url": "https://paths.example/v1"}"#
        => DENIED, "The method is not among those that this tool may use at https://paths.example (case matters).", "";
    "makes a tunnel":
        try_to_send r#"{"method": "CONNECT", "url": "http://127.0.0.1:{port}/"}"#
        => DENIED, "No tool may send requests with the method CONNECT.", "";
    "has its headers returned":
        try_to_send r#"{"method": "TRACE", "url": "http://127.0.0.1:{port}/"}"#
        => DENIED, "No tool may send requests with the method TRACE.", "";
    "ends the request line in the method":
        try_to_send r#"{"method": "GET / HTTP/1.1\r\nX: ", "url": "http://127.0.0.1:{port}/"}"#
        => "The request cannot be sent: its method is no HTTP method.", "The method of the request is not a valid HTTP method.", "";
    "calls another path":
        try_to_send r#"{"url": "https://paths.example/v10"}"#
        => DENIED, "The path is not among those that this tool may call at https://paths.example.", r#"http = [{ origin = "https://paths.example", methods = ["GET"], paths = ["/v10"] }]"#;
    "goes up in the path":
        try_to_send r#"{"url": "https://paths.example/v1/../admin"}"#
        => DENIED, "The path is not among those that this tool may call at https://paths.example.", r#"http = [{ origin = "https://paths.example", methods = ["GET"], paths = ["/admin"] }]"#;
    "goes up in the path, encoded":
        try_to_send r#"{"url": "https://paths.example/v1/%2e%2e/admin"}"#
        => DENIED, CONCEALED, "";
    "goes up in the path, encoded twice":
        try_to_send r#"{"url": "https://paths.example/v1/%252e%252e/admin"}"#
        => DENIED, CONCEALED, "";
    "goes up in the path with a backslash":
        try_to_send r#"{"url": "https://paths.example/v1/..%5cadmin"}"#
        => DENIED, CONCEALED, "";
    "ends the request line in the path":
        try_to_send r#"{"url": "http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: evil.example\r\n\r\nGET /"}"#
        => PATH, MALFORMED_PATH, "";

    "names another host in the header Host":
        try_to_send r#"{"url": "http://127.0.0.1:{port}/", "headers": {"Host": "evil.example"}}"#
        => HEADER, "No tool may set the header host.", "";
    "names the same host in the header Host":
        try_to_send r#"{"url": "http://127.0.0.1:{port}/", "headers": {"host": "127.0.0.1"}}"#
        => HEADER, "No tool may set the header host.", "";
    "smuggles a request by Transfer-Encoding":
        try_to_send r#"{"url": "http://127.0.0.1:{port}/", "headers": {"Transfer-Encoding": "chunked"}, "body": "0\r\n\r\nGET /admin HTTP/1.1\r\n\r\n"}"#
        => HEADER, "No tool may set the header transfer-encoding.", "";
    "smuggles a request by a header with a tab in its name":
        try_to_send r#"{"url": "http://127.0.0.1:{port}/", "headers": {"Transfer-Encoding\t": "chunked"}, "body": "0\r\n\r\nGET /admin HTTP/1.1\r\n\r\n"}"#
        => HEADER, MALFORMED_HEADER, "";
    "smuggles a request by Content-Length":
        try_to_send r#"{"method": "POST", "url": "http://127.0.0.1:{port}/", "headers": {"Content-Length": "0"}, "body": "GET /admin HTTP/1.1\r\n\r\n"}"#
        => HEADER, MALFORMED_HEADER, "";
    "smuggles a request by two numbers in Content-Length":
        try_to_send r#"{"method": "POST", "url": "http://127.0.0.1:{port}/", "headers": {"Content-Length": "0, 23"}}"#
        => HEADER, MALFORMED_HEADER, "";
    "smuggles a request by a signed Content-Length":
        try_to_send r#"{"method": "POST", "url": "http://127.0.0.1:{port}/", "headers": {"Content-Length": "+0"}}"#
        => HEADER, MALFORMED_HEADER, "";
    "smuggles a header in a value":
        try_to_send r#"{"url": "http://127.0.0.1:{port}/", "headers": {"x-own": "1\r\nAuthorization: Bearer stolen"}}"#
        => HEADER, MALFORMED_HEADER, "";
    "smuggles a header with a line feed":
        try_to_send r#"{"url": "http://127.0.0.1:{port}/", "headers": {"x-own": "1\nAuthorization: Bearer stolen"}}"#
        => HEADER, MALFORMED_HEADER, "";
    "smuggles a header with a carriage return":
        try_to_send r#"{"url": "http://127.0.0.1:{port}/", "headers": {"x-own": "1\rAuthorization: Bearer stolen"}}"#
        => HEADER, MALFORMED_HEADER, "";
    "smuggles a request in a value":
        try_to_send r#"{"url": "http://127.0.0.1:{port}/", "headers": {"x-own": "1\r\n\r\nGET /admin HTTP/1.1\r\n\r\n"}}"#
        => HEADER, MALFORMED_HEADER, "";
    "smuggles a header in a name":
        try_to_send r#"{"url": "http://127.0.0.1:{port}/", "headers": {"x-own: 1\r\nAuthorization": "Bearer stolen"}}"#
        => HEADER, MALFORMED_HEADER, "";
    "hides the end of a value behind a null byte":
        try_to_send r#"{"url": "http://127.0.0.1:{port}/", "headers": {"x-own": "1\u0000"}}"#
        => HEADER, MALFORMED_HEADER, "";
    "speaks another protocol":
        try_to_send r#"{"url": "http://127.0.0.1:{port}/", "headers": {"Upgrade": "h2c"}}"#
        => HEADER, "No tool may set the header upgrade.", "";
    "has a proxy forget what the server adds":
        try_to_send r#"{"url": "http://127.0.0.1:{port}/", "headers": {"Connection": "authorization"}}"#
        => HEADER, "No tool may set the header connection.", "";
    "speaks to a proxy":
        try_to_send r#"{"url": "http://127.0.0.1:{port}/", "headers": {"Proxy-Authorization": "Basic eDp5"}}"#
        => HEADER, "No tool may set the header proxy-authorization.", "";

    "connects to another host":
        try_to_connect r#"{"host": "evil.example", "port": 5432}"#
        => NO_CONNECTION, "evil.example is not among the hosts that this tool may connect to.", r#"tcp = ["evil.example:PORT"]"#;
    "connects to a host below an allowed one":
        try_to_connect r#"{"host": "evil.db.example", "port": 5432}"#
        => NO_CONNECTION, "evil.db.example is not among the hosts that this tool may connect to.", r#"tcp = ["evil.db.example:PORT"]"#;
    "connects to a host behind an @":
        try_to_connect r#"{"host": "db.example@evil.example", "port": 5432}"#
        => INVALID, "The name to resolve is not a valid host name.", "";
    "connects to a host with an encoded dot":
        try_to_connect r#"{"host": "evil%2eexample", "port": 5432}"#
        => INVALID, "The name to resolve contains `%`; write a host without percent-encoding and without an IPv6 zone.", "";
    "connects to the metadata service":
        try_to_connect r#"{"host": "169.254.169.254", "port": 80}"#
        => NO_CONNECTION, TCP_LITERAL, r#"tcp = ["169.254.169.254:80"]\nprivate_networks = ["169.254.169.254"]"#;
    "connects to the metadata service as an address of IPv6":
        try_to_connect r#"{"host": "::ffff:169.254.169.254", "port": 80}"#
        => INVALID, "No tool may connect to [::ffff:169.254.169.254]:80: that is not the address of a host.", "";
    "connects to another port":
        try_to_connect r#"{"host": "127.0.0.1", "port": 1}"#
        => NO_CONNECTION, "This tool may connect to 127.0.0.1 at another port, and not at 1.", r#"tcp = ["127.0.0.1:1"]\nprivate_networks = ["127.0.0.1"]"#;
    "connects to port 0":
        try_to_connect r#"{"host": "127.0.0.1", "port": 0}"#
        => INVALID, "Port 0 is not a port to connect to.", "";
    "connects to the unspecified address":
        try_to_connect r#"{"host": "0.0.0.0", "port": 5432}"#
        => INVALID, "No tool may connect to 0.0.0.0:5432: that is not the address of a host.", "";
    "connects to loopback in IPv6":
        try_to_connect r#"{"host": "::1", "port": 5432}"#
        => NO_CONNECTION, TCP_LITERAL, r#"tcp = ["[::1]:5432"]\nprivate_networks = ["::1"]"#;
    "connects to an allowed address that is private":
        try_to_connect r#"{"host": "10.0.0.7", "port": 5432}"#
        => NO_CONNECTION, ADDRESS, r#"private_networks = ["10.0.0.7"]"#;
    "resolves another name":
        resolve r#"{"host": "secret.evil.example", "port": 5432}"#
        => NO_CONNECTION, "secret.evil.example is not among the hosts that this tool may connect to.", r#"tcp = ["secret.evil.example:PORT"]"#;
}

/// Writes grants for a plugin that sends requests and for one that connects. Both may reach a
/// server at 127.0.0.1.
fn put_grants(folder: &Folder, port: u16) {
    let private = "private_networks = [\"127.0.0.1\"]";
    folder.put(
        "web.toml",
        format!(
            "[permissions]\n{private}\nhttp = [\"http://127.0.0.1:{port}\", \"https://allowed.example\", \
             \"https://*.pattern.example\", \"http://10.0.0.7\", \"http://moves.test:{port}\",\n\
             {{ origin = \"https://paths.example\", methods = [\"GET\"], paths = [\"/v1\"] }}]\n"
        ),
    );
    folder.put(
        "net.toml",
        format!(
            "[permissions]\n{private}\ntcp = [\"127.0.0.1:{port}\", \"db.example:5432\", \"10.0.0.7:5432\", \
             \"moves.test:{port}\"]\n"
        ),
    );
    folder.put("web.wasm", web());
    folder.put("net.wasm", net());
    folder.write_config("[audit]\nfolder = \"log\"\n");
}

/// Returns the lines of the audit log, after the server has ended.
fn audit_lines(folder: &Folder) -> Vec<Value> {
    let files = fs::read_dir(folder.sibling_path("log"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    files.sort();
    let text: String = files
        .iter()
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Returns the denials of a call in the audit log: the message and the remedy of each.
fn denials(lines: &[Value], call: usize) -> Vec<(&str, &str)> {
    let of_call = lines
        .iter()
        .filter(|line| line["event"] == "denied" && line["call"] == call);
    of_call
        .map(|line| {
            (
                line["message"].as_str().unwrap(),
                line["remedy"].as_str().unwrap_or_default(),
            )
        })
        .collect()
}

#[test]
fn each_attempt_is_denied_and_logged() {
    let folder = Folder::new();
    let site = Site::start();
    let port = site.address.port();
    put_grants(&folder, port);
    let mut server =
        StdioServer::run(ToolbayCommand::new(&folder).args(["serve"])).with_handshake("2025-11-25");
    server.wait_for_tool("try_to_send");
    server.wait_for_tool("try_to_connect");
    let here = |text: &str| text.replace("{port}", &port.to_string());
    let said: Vec<String> = ATTEMPTS
        .iter()
        .map(|attempt| {
            let arguments = serde_json::from_str(&here(attempt.arguments)).unwrap();
            result_text(&server.call(attempt.tool, arguments))
        })
        .collect();
    // The plugins reach what they may, and nothing from the attempts has arrived before.
    assert_eq!(
        server.text("try_to_send", json!({"url": site.url("/hello")})),
        "status 200"
    );
    let first = site.requests.recv().unwrap();
    assert!(first.starts_with("GET /hello "), "{first}");
    server.stop();
    let lines = audit_lines(&folder);
    let calls: Vec<_> = lines
        .iter()
        .filter(|line| line["event"] == "call")
        .collect();
    assert_eq!(calls.len(), ATTEMPTS.len() + 1);
    for line in lines.iter().filter(|line| line["event"] == "denied") {
        let call = calls
            .iter()
            .find(|call| call["call"] == line["call"])
            .unwrap();
        for member in ["caller", "tool", "plugin", "plugin_sha256", "grant_sha256"] {
            assert!(
                line[member].is_string() && line[member] == call[member],
                "{member}: {line}\n{call}"
            );
        }
    }
    let mut differ = String::new();
    for (index, (attempt, said)) in ATTEMPTS.iter().zip(&said).enumerate() {
        let denied = denials(&lines, index + 1);
        let what = here(attempt.denied);
        let remedy = here(attempt.remedy).replace("\\n", "\n");
        if said != &here(attempt.guest) || denied != [(what.as_str(), remedy.as_str())] {
            let _ = writeln!(
                differ,
                "a plugin that {}: {said}\n  {denied:?}",
                attempt.what
            );
        }
    }
    assert!(differ.is_empty(), "{differ}");
}

/// Starts a server whose `/etc/hosts` is the file `hosts` next to the plugin folder, so that a test
/// can change the addresses of names. Returns `None` if mounting is not permitted here.
#[allow(clippy::print_stderr, reason = "it says why it is left out")]
fn start_with_hosts_file(folder: &Folder) -> Option<StdioServer> {
    fs::write(folder.sibling_path("hosts"), "").unwrap();
    let script = "mount --bind hosts /etc/hosts";
    if !ToolbayCommand::new(folder)
        .with_mount_namespace(script)
        .succeeds()
    {
        eprintln!("left out: nobody may mount a file here");
        return None;
    }
    let command = ToolbayCommand::new(folder)
        .args(["serve"])
        .with_mount_namespace(&format!("{script} && exec \"$@\""));
    let mut server = StdioServer::run(command).with_handshake("2025-11-25");
    server.wait_for_tool("try_to_send");
    server.wait_for_tool("try_to_connect");
    Some(server)
}

#[test]
fn a_name_whose_address_changes_before_the_next_connection_is_denied_and_logged() {
    let folder = Folder::new();
    let site = Site::start();
    let port = site.address.port();
    put_grants(&folder, port);
    let Some(mut server) = start_with_hosts_file(&folder) else {
        return;
    };
    let leads_to = |address: &str| {
        fs::write(
            folder.sibling_path("hosts"),
            format!("{address} moves.test\n"),
        )
        .unwrap();
    };
    let send = json!({"url": format!("http://moves.test:{port}/last")});
    let connect = json!({"host": "moves.test", "port": port});
    leads_to("127.0.0.1");
    assert_eq!(server.text("try_to_send", send.clone()), "status 200");
    assert_eq!(
        server.text("try_to_connect", connect.clone()),
        format!("connected to 127.0.0.1:{port}")
    );
    assert!(site.requests.recv().unwrap().starts_with("GET /last "));
    let elsewhere = [
        "169.254.169.254",
        "10.0.0.7",
        "127.0.0.2",
        "::ffff:169.254.169.254",
        "fd00:ec2::254",
    ];
    let mut expected = vec![vec![], vec![]];
    for address in elsewhere {
        leads_to(address);
        assert_eq!(
            server.text("try_to_send", send.clone()),
            PROHIBITED,
            "{address}"
        );
        assert_eq!(
            server.text("try_to_connect", connect.clone()),
            NO_CONNECTION,
            "{address}"
        );
        let remedy = format!(
            "private_networks = [{:?}]",
            address.trim_start_matches("::ffff:")
        );
        expected.extend([vec![remedy.clone()], vec![remedy]]);
    }
    assert!(site.requests.try_recv().is_err());
    server.stop();
    let lines = audit_lines(&folder);
    for (index, expected) in expected.iter().enumerate() {
        let denied = denials(&lines, index + 1);
        let expected: Vec<_> = expected
            .iter()
            .map(|remedy| (ADDRESS, remedy.as_str()))
            .collect();
        assert_eq!(denied, expected, "call {}", index + 1);
    }
}

#[test]
fn the_target_of_a_redirect_is_denied_and_logged() {
    let folder = Folder::new();
    let site = Site::start();
    put_grants(&folder, site.address.port());
    let mut server =
        StdioServer::run(ToolbayCommand::new(&folder).args(["serve"])).with_handshake("2025-11-25");
    server.wait_for_tool("send");
    let moved = server.call("send", json!({"url": site.url("/moved")}));
    let location = moved["structuredContent"]["location"].as_str().unwrap();
    assert_eq!(location, "http://169.254.169.254/latest");
    let (kind, said) = server.failure("send", json!({"url": location}));
    assert_eq!(
        (kind.as_str(), said),
        ("denied", format!("{DENIED}\n{LITERAL}"))
    );
    server.stop();
    let lines = audit_lines(&folder);
    let remedy = "http = [\"http://169.254.169.254\"]\nprivate_networks = [\"169.254.169.254\"]";
    assert_eq!(
        (denials(&lines, 1), denials(&lines, 2)),
        (vec![], vec![(LITERAL, remedy)])
    );
    let outcomes: Vec<_> = lines
        .iter()
        .filter(|line| line["event"] == "call")
        .map(|call| &call["outcome"])
        .collect();
    assert_eq!(outcomes, ["ok", "denied"]);
}
