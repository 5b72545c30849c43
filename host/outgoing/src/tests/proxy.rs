//! Tests of the operator's proxy, and of proxies in environment variables.

use std::process::Command;
use std::sync::Arc;

use http::Response;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;

use super::setup::{Authority, Server, TestNetwork, Valid, get, read, send, text};
use crate::{ConnectorOptions, SendError};

/// A proxy that connects all requests to one server, and records the heads that it receives.
async fn proxy(server: &Server) -> (Server, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heads = asked.clone();
    let port = server.port;
    let proxy = Server::raw(move |mut client, _| {
        let heads = heads.clone();
        async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let Ok(byte) = client.read_u8().await else {
                    return;
                };
                head.push(byte);
            }
            let head = String::from_utf8(head).unwrap();
            heads.lock().push(head.clone());
            if head.contains("forbidden.example") {
                let _written = client
                    .write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
                    .await;
            } else if head.starts_with("CONNECT ") {
                let mut server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                client
                    .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    .await
                    .unwrap();
                let _end = copy_bidirectional(&mut client, &mut server).await;
            } else {
                let _written = client
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nproxy")
                    .await;
            }
        }
    })
    .await;
    (proxy, asked)
}

#[tokio::test]
async fn everything_goes_through_the_proxy() {
    let authority = Authority::new();
    let tls = authority.server("server.example", Valid::Now, &["h2"]);
    let server = Server::http(Some(tls), |_| async { Response::new(text("server")) }).await;
    let (proxy, asked) = proxy(&server).await;
    let url = format!("http://user:password@127.0.0.1:{}", proxy.port);
    let trusting = TestNetwork::trusting(&authority);
    let connector = crate::HttpConnector::new(
        &ConnectorOptions {
            extra_ca: trusting.extra_ca.clone(),
            proxy: Some(url.parse().unwrap()),
        },
        trusting.names.clone(),
        4,
    )
    .unwrap();
    let world = TestNetwork {
        connector,
        ..trusting
    };
    // No private network is opened: the operator has chosen the address of the proxy, and only the
    // proxy can resolve the name.
    let origins = [
        "https://server.example",
        "http://server.example",
        "https://forbidden.example",
        "http://10.0.0.1",
    ];
    let outlet = world.client_for(&origins, &[], 4);

    let response = send(&outlet, get("https://server.example/path"))
        .await
        .unwrap();
    assert_eq!(response.version(), http::Version::HTTP_2);
    assert_eq!(read(response).await.unwrap(), "server");
    let response = send(&outlet, get("http://server.example/path"))
        .await
        .unwrap();
    assert_eq!(read(response).await.unwrap(), "proxy");
    let error = send(&outlet, get("https://forbidden.example/"))
        .await
        .map(drop)
        .unwrap_err();
    assert_eq!(error, SendError::Proxy(403));
    assert_eq!(
        error.details().unwrap(),
        "the proxy's response to CONNECT had the status 403"
    );
    let asked: Vec<String> = std::mem::take(&mut *asked.lock());
    let credentials = "proxy-authorization: Basic dXNlcjpwYXNzd29yZA==\r\n\r\n";
    assert_eq!(
        asked,
        [
            format!(
                "CONNECT server.example:443 HTTP/1.1\r\nhost: server.example:443\r\n{credentials}"
            ),
            format!(
                "GET http://server.example/path HTTP/1.1\r\nhost: server.example\r\n{credentials}"
            ),
            format!(
                "CONNECT forbidden.example:443 HTTP/1.1\r\nhost: forbidden.example:443\r\n{credentials}"
            ),
        ]
    );

    // An IP literal is checked without the proxy.
    let error = send(&outlet, get("http://10.0.0.1/"))
        .await
        .map(drop)
        .unwrap_err();
    assert!(matches!(error, SendError::AddressesRefused(_)), "{error:?}");
    assert_eq!(
        world
            .names
            .lookups
            .load(std::sync::atomic::Ordering::SeqCst),
        0
    );
}

/// Set in the process that the test below starts, which also has the proxy variables.
const INSIDE: &str = "TOOLBAY_TEST_INSIDE";

#[tokio::test]
async fn the_environment_names_no_proxy() {
    if std::env::var_os(INSIDE).is_some() {
        let server = Server::http(None, |_| async { Response::new(text("server")) }).await;
        let outlet = TestNetwork::new().client(&server, 1);
        assert_eq!(
            read(send(&outlet, get(&server.url("http", "/"))).await.unwrap())
                .await
                .unwrap(),
            "server"
        );
        return;
    }
    let unused = Server::raw(|_, _| async {}).await;
    let proxy = format!("http://127.0.0.1:{}", unused.port);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            "tests::proxy::the_environment_names_no_proxy",
            "--nocapture",
        ])
        .env(INSIDE, "1");
    for name in [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
    ] {
        command.env(name, &proxy);
    }
    let output = tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && told.contains("1 passed"),
        "{told}"
    );
    assert_eq!(unused.accepted(), 0);
}
