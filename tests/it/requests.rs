//! HTTP requests of plugins: what a grant allows reaches the server, and nothing else does.

use std::fmt::Write as _;
use std::io::{BufReader, Read as _, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use toolbay_testkit::read_request;

use crate::http::tls::pem;
use crate::support::{Folder, StdioServer, ToolbayCommand, error_kind_and_text, web};

/// A web server. The path of each request selects its response.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    /// The heads and bodies of requests, in the order of arrival.
    pub(crate) requests: Receiver<String>,
}

impl Site {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let sender = sender.clone();
                thread::spawn(move || drop(serve(stream.unwrap(), &sender)));
            }
        });
        Self { address, requests }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns a grant that allows every request to this server.
    pub(crate) fn grant(&self) -> String {
        format!(
            "[permissions]\nhttp = [\"http://{}\"]\nprivate_networks = [\"127.0.0.1\"]\n",
            self.address
        )
    }
}

fn serve(mut stream: TcpStream, requests: &Sender<String>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some((head, body)) = read_request(&mut reader)? {
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        drop(requests.send(format!(
            "{head}\r\n{}",
            String::from_utf8_lossy(&body[..body.len().min(1000)])
        )));
        match path.as_str() {
            "/hello" => stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")?,
            "/book/" => {
                let page = "<!doctype html><title>Book</title><h1>The Rust Programming Language</h1>";
                write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{page}",
                    page.len()
                )?;
            }
            "/moved" => stream.write_all(
                b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest\r\nContent-Length: 0\r\n\r\n",
            )?,
            "/large" => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n")?;
                stream.write_all(&vec![b'x'; 1 << 20])?;
            }
            // The connection is not reused.
            "/last" => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nlast")?;
                return Ok(());
            }
            "/short" => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")?;
                return Ok(());
            }
            "/trailers" => {
                let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n";
                write!(stream, "{head}5\r\nhello\r\n0\r\nX-Sum: 15\r\n\r\n")?;
            }
            "/large-trailers" => {
                let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n";
                write!(stream, "{head}5\r\nhello\r\n0\r\nX-Sum: {}\r\n\r\n", "1".repeat(1 << 20))?;
            }
            path if path.starts_with("/echo") => {
                write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{head}", head.len())?;
            }
            // The request is never answered. The connection ends when the client closes it.
            "/stuck" => {}
            _ => stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")?,
        }
    }
    Ok(())
}

fn start_server(folder: &Folder, grant: &str) -> StdioServer {
    folder.put("web.wasm", web());
    folder.put("web.toml", grant);
    let mut server = StdioServer::start(folder);
    server.wait_for_tool("send");
    server
}

#[test]
fn a_request_that_the_grant_allows_is_sent() {
    let site = Site::start();
    let mut server = start_server(&Folder::new(), &site.grant());
    let asked = json!({"method": "POST", "url": site.url("/hello"), "headers": {"x-own": "value"}, "body": "{}"});
    let result = server.call("send", asked);
    let answered = json!({"status": 200, "location": null, "length": 5, "text": "hello"});
    assert_eq!(result["structuredContent"], answered, "{result}");
    let usage = &result["_meta"]["dev.toolbay/usage"];
    assert_eq!(usage["http_requests"], 1, "{usage}");
    assert!(
        (50..1000).contains(&usage["http_bytes"].as_u64().unwrap()),
        "{usage}"
    );
    let seen = site.requests.recv().unwrap().to_ascii_lowercase();
    assert!(
        seen.starts_with("post /hello http/1.1\r\n") && seen.ends_with("\r\n{}"),
        "{seen}"
    );
    assert!(
        seen.contains("x-own: value\r\n") && seen.contains(&format!("host: {}\r\n", site.address)),
        "{seen}"
    );
    // A call without requests has no usage of requests.
    let result = server.call("try_to_send", json!({"url": "nowhere"}));
    assert_eq!(
        result["_meta"]["dev.toolbay/usage"].get("http_requests"),
        None,
        "{result}"
    );
}

#[test]
fn a_request_without_a_body_declares_that_if_its_method_usually_has_one() {
    let site = Site::start();
    let mut server = start_server(&Folder::new(), &site.grant());
    for (method, declared) in [
        ("GET", false),
        ("DELETE", false),
        ("POST", true),
        ("PUT", true),
        ("PATCH", true),
    ] {
        let result = server.call("send", json!({"method": method, "url": site.url("/hello")}));
        assert_eq!(result["structuredContent"]["status"], 200, "{result}");
        let seen = site.requests.recv().unwrap().to_ascii_lowercase();
        assert_eq!(seen.contains("content-length: 0\r\n"), declared, "{seen}");
        assert!(!seen.contains("transfer-encoding"), "{seen}");
    }
}

#[test]
fn without_a_grant_no_request_is_sent_and_the_log_names_the_missing_permission() {
    let site = Site::start();
    let mut server = start_server(&Folder::new(), "");
    assert_eq!(
        server.text("try_to_send", json!({"url": site.url("/hello")})),
        "The request is denied."
    );
    let result = server.call("send", json!({"url": "https://api.example.com/weather"}));
    assert_eq!(
        error_kind_and_text(&result),
        (
            "denied".into(),
            "The request is denied.\nhttps://api.example.com is not among the origins that this tool may send requests to.".into()
        )
    );
    let line = server
        .log
        .wait_for("denied: https://api.example.com is not among the origins that this tool may send requests to. ");
    let remedy = r#"To allow it, add to [permissions] in web.toml: http = ["https://api.example.com"] plugin="web""#;
    assert!(line.contains(remedy), "{line}");
    assert!(site.requests.try_recv().is_err());
}

#[test]
fn an_address_that_is_not_global_needs_a_grant_of_its_own() {
    let site = Site::start();
    let grant = format!(
        "[permissions]\nhttp = [\"http://{0}\", \"http://localhost:{1}\"]",
        site.address,
        site.address.port()
    );
    let mut server = start_server(&Folder::new(), &grant);
    for host in [
        site.address.to_string(),
        format!("localhost:{}", site.address.port()),
    ] {
        let text = server.text(
            "try_to_send",
            json!({"url": format!("http://{host}/hello")}),
        );
        assert_eq!(text, "The server cannot be found.", "{host}");
    }
    let line = server.log.wait_for("private_networks = ");
    assert!(line.contains("127.0.0.1"), "{line}");
    assert!(site.requests.try_recv().is_err());
}

#[test]
fn requests_are_limited_to_the_granted_methods_and_paths() {
    let site = Site::start();
    let grant = format!(
        "[permissions]\nhttp = [{{ origin = \"http://{}\", methods = [\"GET\"], paths = [\"/hello\"] }}]\n\
         private_networks = [\"127.0.0.1\"]",
        site.address
    );
    let mut server = start_server(&Folder::new(), &grant);
    let mut sends = |method: &str, path: &str| {
        server.text(
            "try_to_send",
            json!({"method": method, "url": site.url(path)}),
        )
    };
    assert_eq!(sends("GET", "/hello"), "status 200");
    for (method, path) in [
        ("POST", "/hello"),
        ("GET", "/moved"),
        ("GET", "/hello/../moved"),
        ("GET", "/hello/%2e%2e/moved"),
    ] {
        assert_eq!(
            sends(method, path),
            "The request is denied.",
            "{method} {path}"
        );
    }
    assert_eq!(site.requests.try_iter().count(), 1);
}

#[test]
fn trailers_of_a_response_are_read_within_limits() {
    let site = Site::start();
    let mut server = start_server(&Folder::new(), &site.grant());
    assert_eq!(
        server.text("trailers", json!({"url": site.url("/trailers")})),
        "x-sum: 15"
    );
    assert_eq!(
        server.text("trailers", json!({"url": site.url("/hello")})),
        ""
    );
    // Too many fields are an error of the response.
    assert_eq!(
        server.text("trailers", json!({"url": site.url("/large-trailers")})),
        ""
    );
}

#[test]
fn a_redirect_goes_back_to_the_tool() {
    let site = Site::start();
    let mut server = start_server(&Folder::new(), &site.grant());
    let result = server.call("send", json!({"url": site.url("/moved")}));
    let answered = json!({"status": 302, "location": "http://169.254.169.254/latest", "length": 0, "text": ""});
    assert_eq!(result["structuredContent"], answered, "{result}");
    let location = server.text(
        "try_to_send",
        json!({"url": "http://169.254.169.254/latest"}),
    );
    assert_eq!(location, "The request is denied.");
}

#[test]
fn a_request_to_a_stalled_server_ends_in_time() {
    let site = Site::start();
    let grant = format!("{}[limits]\ntimeout = \"1s\"", site.grant());
    let mut server = start_server(&Folder::new(), &grant);
    let stuck = |timeout: Value| json!({"url": site.url("/stuck"), "timeout_ms": timeout});
    assert_eq!(
        server.text("try_to_send", stuck(json!(50))),
        "The server did not answer in time."
    );
    let (kind, text) = server.failure("send", stuck(Value::Null));
    assert_eq!(kind, "deadline", "{text}");
    let short = json!({"url": site.url("/short")});
    assert_eq!(
        server.text("try_to_send", short),
        "The request failed: incomplete HTTP response."
    );
    // Other requests are served as before.
    assert_eq!(
        server.text("try_to_send", json!({"url": site.url("/hello")})),
        "status 200"
    );
}

#[test]
fn requests_and_their_bytes_have_limits() {
    let site = Site::start();
    let grant = format!(
        "{}[limits]\nhttp_requests = 3\nhttp_bytes = \"1MiB\"",
        site.grant()
    );
    let mut server = start_server(&Folder::new(), &grant);
    let send = |path: &str, again: u32| json!({"url": site.url(path), "again": again});
    assert_eq!(server.text("try_to_send", send("/hello", 2)), "status 200");
    assert_eq!(
        server.failure("send", send("/hello", 3)),
        (
            "limit".into(),
            "The tool sent more than 3 HTTP requests (to allow more, raise limits.http_requests)."
                .into()
        )
    );
    assert_eq!(
        server.failure("send", send("/large", 0)),
        (
            "limit".into(),
            "The tool sent and received more than 1.0 MiB over HTTP (to allow more, raise limits.http_bytes).".into()
        )
    );
    let upload = json!({"method": "POST", "url": site.url("/hello"), "bytes": 2 << 20});
    assert_eq!(server.failure("send", upload).0, "limit");
}

#[test]
fn calls_share_the_connections_of_their_plugin() {
    let site = Site::start();
    let grant = format!(
        "{}[limits]\nhttp_connections = 1\ntimeout = \"2s\"",
        site.grant()
    );
    let mut server = start_server(&Folder::new(), &grant);
    let holds = server.start_call("send", json!({"url": site.url("/stuck")}));
    assert!(site.requests.recv().unwrap().starts_with("GET /stuck "));
    // The only connection is in use.
    let waits = json!({"url": site.url("/hello"), "timeout_ms": 100});
    assert_eq!(
        server.text("try_to_send", waits),
        "The request failed: connection limit reached."
    );
    server.notify("notifications/cancelled", json!({"requestId": holds}));
    assert_eq!(
        server.text("try_to_send", json!({"url": site.url("/hello")})),
        "status 200"
    );
}

#[test]
fn requests_carry_secrets_that_the_tool_cannot_read() {
    let site = Site::start();
    let other = Site::start();
    let folder = Folder::with("web.wasm", web());
    let here = site.address;
    let there = other.address;
    folder.put(
        "web.toml",
        format!(
            "[permissions]\nhttp = [\"http://{here}\", \"http://{there}\"]\nprivate_networks = [\"127.0.0.1\"]\n\
             [secrets.token]\nenvironment = \"WEB_TOKEN\"\nheader = \"Authorization\"\nformat = \"Bearer {{}}\"\n\
             origins = [\"http://{here}\"]\n\
             [secrets.key]\nenvironment = \"WEB_KEY\"\nquery = \"key\"\norigins = [\"http://{there}\"]\n\
             [secrets.absent]\nenvironment = \"WEB_ABSENT\"\nheader = \"x\"\norigins = [\"https://else.example\"]\n"
        ),
    );
    let command = || {
        ToolbayCommand::new(&folder)
            .env("WEB_TOKEN", "s3cret-of-here")
            .env("WEB_KEY", "s3cret-of-there")
    };
    let mut server =
        StdioServer::run(command().args(["serve", "--log", "debug"])).with_handshake("2025-11-25");
    server.wait_for_tool("send");
    server
        .log
        .wait_for("web.toml: secrets.absent: the environment variable WEB_ABSENT is not set, so requests to its origins are denied");
    let own = json!({"authorization": "the tool's own"});
    // The secret in the site's response does not reach the client.
    let result = server.call(
        "send",
        json!({"url": site.url("/echo?key=own"), "headers": own}),
    );
    let text = result["structuredContent"]["text"]
        .as_str()
        .unwrap()
        .to_ascii_lowercase();
    assert!(
        text.contains("authorization: bearer [secret:token]\n") && text.contains("/echo?key=own "),
        "{text}"
    );
    let seen = site.requests.recv().unwrap().to_ascii_lowercase();
    assert!(
        seen.contains("\r\nauthorization: bearer s3cret-of-here\r\n"),
        "{seen}"
    );
    assert!(!seen.contains("the tool's own"), "{seen}");
    // Another origin gets its own secret, and the tool's header unchanged.
    server.call(
        "send",
        json!({"url": other.url("/echo?a=1&key=own"), "headers": own}),
    );
    let seen = other.requests.recv().unwrap();
    assert!(
        seen.starts_with("GET /echo?a=1&key=s3cret-of-there HTTP/1.1\r\n"),
        "{seen}"
    );
    assert!(
        seen.contains("the tool's own") && !seen.contains("of-here"),
        "{seen}"
    );
    let listed = command().args(["list"]).run();
    let carried =
        format!("+ HTTP requests carry token as the header authorization, at http://{here}\n");
    assert!(listed.raw_stdout.contains(&carried), "{listed}");
    server.stop();
    server.log.wait_for_end();
    assert!(
        !server.log.text().contains("s3cret") && !listed.raw_stdout.contains("s3cret"),
        "{}",
        server.log.text()
    );
}

#[test]
fn a_mistake_in_a_grant_is_reported_with_its_position() {
    let folder = Folder::with("web.wasm", web());
    let mut said = String::new();
    for permissions in [
        "[secrets.token]\nenvironment = \"A\"\nheadr = \"a\"",
        "[secrets.token]\nenvironment = \"A\"\nheader = \"a\"",
        "[secrets.token]\nenvironment = \"A\"\norigins = [\"https://a.example\"]",
        "[secrets.token]\nenvironment = \"A\"\nheader = \"a\"\nquery = \"b\"\norigins = [\"https://a.example\"]",
        "[secrets.token]\nenvironment = \"A\"\nheader = \"a\"\nformat = \"Bearer\"\norigins = [\"https://a.example\"]",
        "[secrets.token]\nenvironment = \"A\"\nquery = \"a\"\nformat = \"{}\"\norigins = [\"https://a.example\"]",
        "[secrets.token]\nenvironment = \"WEB_TOKEN\"\nheader = \"a b\"\norigins = [\"https://a.example\"]",
        "[secrets.token]\nenvironment = \"WEB_TOKEN\"\nheader = \"a\"\norigins = [\"https://a.example\"]",
        "htp = []",
        "http = \"https://a.example\"",
        "http = [\"a.example\"]",
        "http = [\"https://a.example/path\"]",
        "http = [\"https://*.com\"]",
        "http = [{ origin = \"https://a.example\", method = [\"GET\"] }]",
        "http = [{ origin = \"https://a.example\", methods = [\"get\"] }]",
        "private_networks = [\"10.0.0.1/8\"]",
        "private_networks = [\"0.0.0.0/0\"]",
    ] {
        folder.put("web.toml", format!("[permissions]\n{permissions}\n"));
        let outcome = ToolbayCommand::new(&folder)
            .env("WEB_TOKEN", "s3cret-of-here")
            .args(["list"])
            .run();
        let problem = outcome
            .stdout
            .lines()
            .find(|line| line.trim_start().starts_with('!'));
        let _ = writeln!(
            said,
            "{permissions}\n  {}",
            problem.unwrap_or(&outcome.stdout).trim()
        );
    }
    insta::assert_snapshot!(said);
}

#[test]
fn list_shows_what_a_plugin_can_request() {
    let folder = Folder::with("web.wasm", web());
    folder.put(
        "web.toml",
        "[permissions]\nhttp = [\"https://API.example.com:443\", { origin = \"https://*.example.org\", methods = [\"GET\"], \
         paths = [\"/v1\"] }]\nprivate_networks = [\"10.0.0.0/8\"]",
    );
    insta::assert_snapshot!(ToolbayCommand::new(&folder).args(["list"]).run());
}

/// Returns a certificate authority. Writes its certificate to a file next to the plugin folder.
pub(crate) fn create_authority(folder: &Folder) -> Issuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    std::fs::write(
        folder.sibling_path("ca.pem"),
        pem("CERTIFICATE", params.self_signed(&key).unwrap().der()),
    )
    .unwrap();
    Issuer::new(params, key)
}

/// Starts a web server behind TLS, with a certificate for `localhost`. Returns its address, and the
/// beginning of each request that it receives. It answers each connection once.
pub(crate) fn start_tls_server(
    issuer: &Issuer<'static, KeyPair>,
) -> (SocketAddr, Receiver<String>) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["localhost".to_owned()])
        .unwrap()
        .signed_by(&key, issuer)
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = Arc::new(config);
    let address = listener.local_addr().unwrap();
    let (sender, requests) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let tls = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(tls, stream.unwrap());
            let mut head = [0; 4096];
            // A client that does not trust the certificate ends the handshake.
            if let Ok(count @ 1..) = stream.read(&mut head) {
                drop(sender.send(String::from_utf8_lossy(&head[..count]).into_owned()));
                drop(stream.write_all(
                    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
                ));
                stream.conn.send_close_notify();
                drop(stream.flush());
            }
        }
    });
    (address, requests)
}

#[test]
fn a_certificate_is_trusted_if_its_authority_is_listed() {
    let folder = Folder::new();
    let (address, _) = start_tls_server(&create_authority(&folder));
    let url = format!("https://localhost:{}", address.port());
    let grant =
        format!("[permissions]\nhttp = [\"{url}\"]\nprivate_networks = [\"127.0.0.1\", \"::1\"]\n");
    let sends = |config: &str| {
        folder.write_config(config);
        start_server(&folder, &grant).text("try_to_send", json!({"url": url}))
    };
    assert_eq!(sends(""), "The connection to the server is not secure.");
    assert_eq!(
        sends("[http_client]\nextra_ca = [\"ca.pem\"]"),
        "status 200"
    );
}

#[test]
fn a_file_without_certificates_stops_the_server() {
    let folder = Folder::new();
    std::fs::write(folder.sibling_path("empty.pem"), "").unwrap();
    let mut said = String::new();
    for path in ["missing.pem", "empty.pem"] {
        folder.write_config(&format!("[http_client]\nextra_ca = [{path:?}]"));
        let outcome = ToolbayCommand::new(&folder).args(["serve"]).run();
        assert_eq!(outcome.code, 64, "{outcome}");
        said += &outcome.stderr;
    }
    insta::assert_snapshot!(said);
}

#[test]
fn every_request_goes_through_the_configured_proxy() {
    let proxy = Site::start();
    let folder = Folder::new();
    let grant = "[permissions]\nhttp = [\"http://api.example.com\", \"http://10.0.0.1\"]\n";
    let url = |user: &str| format!("http://{user}{}", proxy.address);
    folder.write_config(&format!("[http_client]\nproxy = {:?}", url("")));
    let mut direct = start_server(&folder, grant);
    // The name does not resolve: only the proxy needs to know it.
    let asked = json!({"url": "http://api.example.com/hello"});
    assert_eq!(
        direct.text("try_to_send", asked.clone()),
        "status 404",
        "the site knows no whole URLs"
    );
    let seen = proxy.requests.recv().unwrap();
    assert!(
        seen.starts_with("GET http://api.example.com/hello HTTP/1.1\r\n"),
        "{seen}"
    );
    // A request that the grant does not allow does not reach the proxy, nor does a request to an
    // address that is not global.
    assert_eq!(
        direct.text("try_to_send", json!({"url": "http://other.example.com/"})),
        "The request is denied."
    );
    assert_eq!(
        direct.text("try_to_send", json!({"url": "http://10.0.0.1/"})),
        "The server cannot be found."
    );
    assert!(proxy.requests.try_recv().is_err());
    direct.stop();
    // A variable can contain a password, which is sent only to the proxy.
    let command =
        ToolbayCommand::new(&folder).env("TOOLBAY_HTTP_CLIENT_PROXY", &url("ada:s3cret-word@"));
    let mut server =
        StdioServer::run(command.args(["serve", "--log", "debug"])).with_handshake("2025-11-25");
    server.wait_for_tool("send");
    assert_eq!(server.text("try_to_send", asked), "status 404");
    let seen = proxy.requests.recv().unwrap();
    let authorization = format!(
        "\r\nproxy-authorization: Basic {}\r\n",
        BASE64.encode("ada:s3cret-word")
    );
    assert!(seen.contains(&authorization), "{seen}");
    server.stop();
    server.log.wait_for_end();
    assert!(
        !server.log.text().contains("s3cret"),
        "{}",
        server.log.text()
    );
    // A file cannot contain one.
    folder.write_config(&format!(
        "[http_client]\nproxy = {:?}",
        url("ada:s3cret-word@")
    ));
    let refused = ToolbayCommand::new(&folder).args(["serve"]).run();
    assert_eq!(refused.code, 64, "{refused}");
    assert!(
        refused
            .stderr
            .contains("http_client.proxy: a file must not contain the user and password"),
        "{refused}"
    );
    assert!(!format!("{refused}").contains("s3cret"), "{refused}");
}
