//! Tests of connection reuse and of connection limits.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

use super::setup::{
    Authority, LONG, PATIENT, SHORT, Server, TestNetwork, Valid, eventually, get, read, send,
    send_within, text, unlimited,
};
use crate::pool_partition::PoolPartition;
use crate::{PluginClient, RequestTimeouts, SendError};

async fn hello(_: Request<hyper::body::Incoming>) -> Response<super::setup::BoxedBody> {
    Response::new(text("hello"))
}

async fn with(outlet: &Arc<PluginClient>, url: &str, partition: &PoolPartition) -> String {
    let deadline = Instant::now() + LONG;
    read(
        outlet
            .send(get(url), partition, PATIENT, deadline, &unlimited())
            .await
            .unwrap(),
    )
    .await
    .unwrap()
}

#[tokio::test]
async fn connections_are_used_again_by_their_plugin_for_the_same_credential() {
    let authority = Authority::new();
    for (scheme, alpn) in [
        ("http", None),
        ("https", Some("http/1.1")),
        ("https", Some("h2")),
    ] {
        let tls = alpn.map(|alpn| authority.server("server.example", Valid::Now, &[alpn]));
        let server = Server::http(tls, hello).await;
        let world = TestNetwork::trusting(&authority);
        let outlet = world.client(&server, 8);
        let url = server.url(scheme, "/");
        for _ in 0..5 {
            assert_eq!(with(&outlet, &url, &PoolPartition::NONE).await, "hello");
        }
        assert_eq!(server.accepted(), 1, "{scheme} {alpn:?}");
        let ada = PoolPartition::from_secret(b"ada");
        let bob = PoolPartition::from_secret(b"bob");
        for partition in [&ada, &bob, &ada, &bob] {
            with(&outlet, &url, partition).await;
        }
        assert_eq!(server.accepted(), 3, "one more for each credential");
        let other = world.client(&server, 8);
        with(&other, &url, &ada).await;
        assert_eq!(
            server.accepted(),
            4,
            "another plugin has connections of its own"
        );
    }
}

#[tokio::test]
async fn http2_mixes_requests_on_one_connection() {
    let authority = Authority::new();
    let gate = Arc::new(Semaphore::new(0));
    let waiting = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let tls = authority.server("server.example", Valid::Now, &["h2"]);
    let server = {
        let gate = gate.clone();
        let waiting = waiting.clone();
        Server::http(Some(tls), move |request| {
            let gate = gate.clone();
            let waiting = waiting.clone();
            async move {
                if request.uri().path() == "/wait" {
                    waiting.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    gate.acquire().await.unwrap().forget();
                }
                Response::new(text("hello"))
            }
        })
        .await
    };
    let outlet = Arc::new(TestNetwork::trusting(&authority).client(&server, 1));
    with(&outlet, &server.url("https", "/"), &PoolPartition::NONE).await;
    let requests: Vec<_> = (0..8)
        .map(|_| {
            let outlet = outlet.clone();
            let url = server.url("https", "/wait");
            tokio::spawn(
                async move { read(send(&outlet, get(&url)).await.unwrap()).await.unwrap() },
            )
        })
        .collect();
    eventually(|| waiting.load(std::sync::atomic::Ordering::SeqCst) == 8).await;
    gate.add_permits(8);
    for request in requests {
        assert_eq!(request.await.unwrap(), "hello");
    }
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn no_more_connections_than_the_limit() {
    let gate = Arc::new(Notify::new());
    let server = {
        let gate = gate.clone();
        Server::http(None, move |request| {
            let gate = gate.clone();
            async move {
                if request.uri().path() == "/wait" {
                    gate.notified().await;
                }
                Response::new(text("hello"))
            }
        })
        .await
    };
    let outlet = Arc::new(TestNetwork::new().client(&server, 1));
    let held = {
        let outlet = outlet.clone();
        let url = server.url("http", "/wait");
        tokio::spawn(async move { read(send(&outlet, get(&url)).await.unwrap()).await.unwrap() })
    };
    eventually(|| server.accepted() == 1).await;
    let hasty = RequestTimeouts {
        connect: SHORT,
        ..PATIENT
    };
    let error = send_within(&outlet, get(&server.url("http", "/")), hasty)
        .await
        .map(drop)
        .unwrap_err();
    assert_eq!(error, SendError::PluginConnectionLimit);
    // The waiting request gets the connection when it is free.
    let next = {
        let outlet = outlet.clone();
        let url = server.url("http", "/");
        tokio::spawn(async move { read(send(&outlet, get(&url)).await.unwrap()).await.unwrap() })
    };
    gate.notify_one();
    assert_eq!(held.await.unwrap(), "hello");
    assert_eq!(next.await.unwrap(), "hello");
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn an_idle_connection_makes_room_for_another_origin() {
    let one = Server::http(None, hello).await;
    let two = Server::http(None, hello).await;
    let world = TestNetwork::new();
    let outlet = world.client_for(
        &[&one.url("http", ""), &two.url("http", "")],
        &["127.0.0.0/8"],
        1,
    );
    for _ in 0..3 {
        with(&outlet, &one.url("http", "/"), &PoolPartition::NONE).await;
        with(&outlet, &two.url("http", "/"), &PoolPartition::NONE).await;
    }
    assert_eq!((one.accepted(), two.accepted()), (3, 3));
}

/// Sends a response, reads until the client closes the connection, and then notifies the test.
fn until_closed(
    answer: &'static [u8],
) -> (
    impl Fn(tokio::net::TcpStream, usize) -> futures_util::future::BoxFuture<'static, ()>,
    Arc<Semaphore>,
) {
    let closed = Arc::new(Semaphore::new(0));
    let told = closed.clone();
    let serve = move |mut stream: tokio::net::TcpStream, _| {
        let closed = closed.clone();
        let serve = async move {
            let mut buffer = [0; 1024];
            let mut answered = false;
            while let Ok(1..) = stream.read(&mut buffer).await {
                if !answered {
                    answered = true;
                    if stream.write_all(answer).await.is_err() {
                        break;
                    }
                }
            }
            closed.add_permits(1);
        };
        Box::pin(serve) as futures_util::future::BoxFuture<'static, ()>
    };
    (serve, told)
}

#[tokio::test]
async fn dropping_a_body_in_the_middle_closes_the_connection() {
    let (serve, closed) = until_closed(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345");
    let server = Server::raw(serve).await;
    let outlet = TestNetwork::new().client(&server, 1);
    let mut response = send(&outlet, get(&server.url("http", "/"))).await.unwrap();
    let frame = response.body_mut().frame().await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), "12345");
    assert_eq!(outlet.connections(), (1, 0));
    drop(response);
    closed.acquire().await.unwrap().forget();
    eventually(|| outlet.connections() == (0, 1)).await;
}

#[tokio::test]
async fn giving_up_a_request_closes_the_connection() {
    let (serve, closed) = until_closed(b"");
    let server = Server::raw(serve).await;
    let outlet = TestNetwork::new().client(&server, 1);
    let hasty = RequestTimeouts {
        first_byte: SHORT,
        ..PATIENT
    };
    let error = send_within(&outlet, get(&server.url("http", "/")), hasty)
        .await
        .map(drop)
        .unwrap_err();
    assert_eq!(error, SendError::FirstByteTimeout);
    closed.acquire().await.unwrap().forget();
    let url = server.url("http", "/");
    let request = send(&outlet, get(&url));
    tokio::select! {
        _ = request => panic!("there is no answer"),
        () = eventually(|| server.accepted() == 2) => {}
    }
    closed.acquire().await.unwrap().forget();
    eventually(|| outlet.connections() == (0, 1)).await;
}

#[tokio::test]
async fn all_connections_end_with_their_plugin() {
    let (serve, closed) = until_closed(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    let server = Server::raw(serve).await;
    let outlet = TestNetwork::new().client(&server, 2);
    read(send(&outlet, get(&server.url("http", "/"))).await.unwrap())
        .await
        .unwrap();
    drop(outlet);
    closed.acquire().await.unwrap().forget();

    let (serve, closed) =
        until_closed(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n");
    let server = Server::raw(serve).await;
    let outlet = TestNetwork::new().client(&server, 2);
    let response = send(&outlet, get(&server.url("http", "/"))).await.unwrap();
    drop(outlet);
    closed.acquire().await.unwrap().forget();
    let error = read(response).await.unwrap_err();
    assert!(
        matches!(error, SendError::Reset(_)),
        "what came is not the whole: {error:?}"
    );
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_a_while() {
    let authority = Authority::new();
    for alpn in ["http/1.1", "h2"] {
        let tls = authority.server("server.example", Valid::Now, &[alpn]);
        let server = Server::http(Some(tls), hello).await;
        let outlet = TestNetwork::trusting(&authority)
            .client(&server, 1)
            .keeping(Duration::from_millis(50));
        with(&outlet, &server.url("https", "/"), &PoolPartition::NONE).await;
        eventually(|| outlet.connections() == (0, 1)).await;
    }
}

#[tokio::test]
async fn a_connection_that_the_server_has_closed_is_not_used() {
    let server = Server::raw(|mut stream, number| async move {
        let mut buffer = [0; 1024];
        let _request = stream.read(&mut buffer).await;
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{number}");
        stream.write_all(answer.as_bytes()).await.unwrap();
    })
    .await;
    let outlet = TestNetwork::new().client(&server, 1);
    for number in ["1", "2", "3"] {
        let request = Request::post(server.url("http", "/"))
            .body(Empty::<bytes::Bytes>::new())
            .unwrap();
        assert_eq!(
            read(send(&outlet, request).await.unwrap()).await.unwrap(),
            number
        );
        eventually(|| outlet.connections() == (0, 1)).await;
    }
}

#[tokio::test]
async fn the_connections_of_all_plugins_together_are_bounded() {
    let server = Server::http(None, hello).await;
    let world = TestNetwork::narrow(2);
    let outlets: Vec<Arc<PluginClient>> = (0..5).map(|_| world.client(&server, 8)).collect();
    let url = server.url("http", "/");
    // Each plugin keeps its connection until the next plugin but one takes it.
    for outlet in outlets.iter().chain(&outlets) {
        assert_eq!(with(outlet, &url, &PoolPartition::NONE).await, "hello");
        let open: usize = outlets.iter().map(|outlet| outlet.connections().0).sum();
        assert!(open <= 2, "{open}");
    }
    assert_eq!(server.accepted(), 10);
    // Connections in use are not evicted.
    let used = [
        send(&outlets[0], get(&url)).await.unwrap(),
        send(&outlets[1], get(&url)).await.unwrap(),
    ];
    let soon = RequestTimeouts {
        connect: SHORT,
        ..PATIENT
    };
    let error = send_within(&outlets[2], get(&url), soon)
        .await
        .map(drop)
        .unwrap_err();
    assert_eq!(error, SendError::ServerConnectionLimit);
    assert!(error.details().unwrap().contains("ulimit -n"));
    // A connection that becomes idle while another plugin waits is closed for it.
    let waiting = send(&outlets[2], get(&url));
    let [first, second] = used;
    let (answer, ended) = tokio::join!(waiting, read(first));
    assert_eq!(
        (read(answer.unwrap()).await.unwrap(), ended.unwrap()),
        ("hello".to_owned(), "hello".to_owned())
    );
    assert_eq!(read(second).await.unwrap(), "hello");
}
