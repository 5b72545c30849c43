use std::os::unix::net::UnixListener as StdListener;
use std::path::PathBuf;

use axum::routing::get;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::*;
use crate::access::LoginOutcome;
use crate::approval_requests::{ApprovalRequest, ApprovalResponse, request_approvals};
use crate::forwarder;
use crate::server_data::ApprovalOutcome;

/// One running call, with the number 7.
struct StubControl;

impl CallControl for StubControl {
    fn running_calls(&self) -> String {
        "[7]".to_owned()
    }

    fn stop_call(&self, id: u64) -> bool {
        id == 7
    }
}

/// A server with a page, its socket, and a port that forwards to it.
struct Served {
    folder: tempfile::TempDir,
    serving: JoinHandle<()>,
    access: ConsoleAccess,
    port: u16,
}

impl Served {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = StdListener::bind(folder.path().join("1.sock")).unwrap();
        listener.set_nonblocking(true).unwrap();
        let access = ConsoleAccess::socket();
        let console = OpenedConsole {
            router: Router::new().route("/page", get(async || "shown")),
            approvals: Arc::new(|request| {
                let answered = match request {
                    ApprovalRequest::Answer { id: 7, .. } => ApprovalOutcome::Done,
                    _ => ApprovalOutcome::Gone,
                };
                Box::pin(std::future::ready(ApprovalResponse::Answered(answered)))
            }),
            access: access.clone(),
        };
        let serving = serve(
            UnixListener::from_std(listener).unwrap(),
            "/plugins".to_owned(),
            Arc::new(StubControl),
            move || Some(console),
        );
        let serving = tokio::spawn(serving);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let served = Self {
            folder,
            serving,
            access,
            port,
        };
        let socket = served.socket();
        tokio::spawn(async move { forwarder::forward(listener, &socket).await });
        served
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("1.sock")
    }

    /// Sends bytes through the port. Returns the response.
    async fn through_the_port(&self, sent: &[u8]) -> String {
        let mut browser = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        browser.write_all(sent).await.unwrap();
        let mut answer = Vec::new();
        // A connection that is closed before everything was read is reset.
        drop(browser.read_to_end(&mut answer).await);
        String::from_utf8(answer).unwrap()
    }

    async fn get(&self, path: &str, host: &str) -> String {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        self.through_the_port(head.as_bytes()).await
    }
}

#[tokio::test]
async fn port_serves_only_pages() {
    let served = Served::start().await;
    for host in [
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost:9",
        "[::1]:9",
        "LOCALHOST",
    ] {
        let page = served.get("/page", host).await;
        assert!(
            page.starts_with("HTTP/1.1 200") && page.ends_with("shown"),
            "{page}"
        );
    }
    for path in [
        "/mcp",
        "/metrics",
        "/healthz",
        "/.well-known/oauth-protected-resource",
    ] {
        assert!(
            served
                .get(path, "127.0.0.1")
                .await
                .starts_with("HTTP/1.1 404"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn foreign_host_names_are_rejected() {
    let served = Served::start().await;
    for host in [
        "evil.example",
        "127.0.0.1.evil.example",
        "user@127.0.0.1",
        "192.168.0.1",
        "0.0.0.0",
        "",
    ] {
        let rejected = served.get("/page", host).await;
        assert!(
            !rejected.contains("shown") && rejected.starts_with("HTTP/1.1 4"),
            "{host}: {rejected}"
        );
    }
    let twice =
        b"GET /page HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    assert!(!served.through_the_port(twice).await.contains("shown"));
    assert!(
        !served
            .get("http://evil.example/page", "127.0.0.1")
            .await
            .contains("shown")
    );
    assert!(
        !served
            .through_the_port(b"GET /page HTTP/1.0\r\n\r\n")
            .await
            .contains("shown")
    );
}

#[tokio::test]
async fn only_the_socket_issues_tokens() {
    let served = Served::start().await;
    assert_eq!(
        forwarder::describe_server(&served.socket()).await.unwrap(),
        "/plugins"
    );
    let login = forwarder::request_login(&served.socket()).await.unwrap();
    // Bytes from the port are always treated as HTTP.
    for word in [&b"l"[..], b"l\n", b"a", b"pl", b"\n\nl"] {
        let mut browser = TcpStream::connect(("127.0.0.1", served.port))
            .await
            .unwrap();
        browser.write_all(word).await.unwrap();
        browser.shutdown().await.unwrap();
        let mut answer = Vec::new();
        drop(browser.read_to_end(&mut answer).await);
        let answer = String::from_utf8(answer).unwrap();
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 400"),
            "{answer}"
        );
    }
    assert!(
        matches!(
            served.access.authenticate(&login.token),
            LoginOutcome::Admitted(..)
        ),
        "nobody got another one in its place"
    );
    assert!(matches!(
        served.access.authenticate(&login.token),
        LoginOutcome::Invalid
    ));
}

#[tokio::test]
async fn client_with_a_token_is_notified_of_the_end() {
    let served = Served::start().await;
    let mut login = forwarder::request_login(&served.socket()).await.unwrap();
    served.serving.abort();
    timeout(REQUEST_TIMEOUT, login.wait_for_server_end())
        .await
        .unwrap();
    assert!(forwarder::request_login(&served.socket()).await.is_err());
}

#[tokio::test]
async fn idle_connections_do_not_block_token_requests() {
    let served = Served::start().await;
    let mut silent = Vec::new();
    for _ in 0..2 * MAX_CONNECTIONS {
        let mut browser = TcpStream::connect(("127.0.0.1", served.port))
            .await
            .unwrap();
        browser
            .write_all(b"GET /page HTTP/1.1\r\nHo")
            .await
            .unwrap();
        silent.push(browser);
    }
    // When the last connection has a response, the forwarder has accepted all of them. The oldest
    // one was evicted.
    let last = silent.last_mut().unwrap();
    last.write_all(b"st: 127.0.0.1\r\n\r\n").await.unwrap();
    let mut answer = [0; 12];
    last.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    let closed = timeout(REQUEST_TIMEOUT, silent[0].read(&mut answer))
        .await
        .unwrap();
    assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
    forwarder::request_login(&served.socket()).await.unwrap();
    drop(silent);
    assert!(served.get("/page", "127.0.0.1").await.ends_with("shown"));
}

#[tokio::test]
async fn approvals_are_answered_at_the_socket_but_not_through_the_port_or_with_operator_tokens() {
    let served = Served::start().await;
    let answer = |id| ApprovalRequest::Answer { id, approve: true };
    let done = ApprovalResponse::Answered(ApprovalOutcome::Done);
    let answered = request_approvals(&served.socket(), answer(7)).await;
    assert_eq!(answered.unwrap(), done);
    let answered = request_approvals(&served.socket(), ApprovalRequest::List).await;
    assert_ne!(answered.unwrap(), done);
    // A browser's bytes are never such a request.
    let sent = b"q{\"answer\":{\"id\":7,\"approve\":true}}\n";
    assert!(!served.through_the_port(sent).await.contains("done"));
    let mut stream = UnixStream::connect(served.socket()).await.unwrap();
    stream
        .write_all(b"q{\"answer\":{\"id\":7}}\n")
        .await
        .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert_eq!(response, "", "a request without an answer");
    served.access.set_admins(Vec::new(), Vec::new());
    request_approvals(&served.socket(), answer(7))
        .await
        .unwrap_err();
}

#[tokio::test]
async fn only_the_socket_lists_and_stops_calls() {
    let served = Served::start().await;
    let socket = served.socket();
    assert_eq!(forwarder::list_running_calls(&socket).await.unwrap(), "[7]");
    assert!(forwarder::stop_running_call(&socket, 7).await.unwrap());
    assert!(!forwarder::stop_running_call(&socket, 8).await.unwrap());
    for word in [&b"c"[..], b"s7\n"] {
        let answer = served.through_the_port(&[word, b"\r\n\r\n"].concat()).await;
        assert!(
            !answer.contains("[7]") && !answer.contains("stopped"),
            "{answer}"
        );
    }
    // A number that is not one is not answered.
    for number in ["", "x\n", "-7\n", "777777777777777777777777777777777\n"] {
        let mut stream = UnixStream::connect(&socket).await.unwrap();
        stream
            .write_all(format!("s{number}").as_bytes())
            .await
            .unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer).await);
        assert!(answer.is_empty(), "{number}: {answer:?}");
    }
}
