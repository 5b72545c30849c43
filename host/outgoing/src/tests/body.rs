//! Tests of bodies of any size, in bounded memory, with the declared length.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty, StreamBody};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::setup::{
    Authority, BoxedBody, LONG, PATIENT, SHORT, Server, TestNetwork, Valid, eventually, get, read,
    send, send_within, text,
};
use crate::pool_partition::PoolPartition;
use crate::{ExceededLimit, RequestMeter, RequestTimeouts, SendError};

const CHUNK: usize = 64 * 1024;
/// Number of chunks of a body of 100 MiB.
const CHUNKS: usize = 1600;
/// The buffers of the sockets of both sides (`tcp_wmem`, `tcp_rmem`), the windows of HTTP/2 and the
/// buffers of hyper: much less than the body.
const IN_FLIGHT: usize = 32 * 1024 * 1024;

/// A part of a body that reports when its memory is freed.
struct Counted(Vec<u8>, Arc<AtomicUsize>);

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A body of 100 MiB that is generated while it is read.
struct Large {
    left: usize,
    made: Arc<AtomicUsize>,
    /// The chunks that exist.
    alive: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Large {
    fn new() -> Self {
        Self {
            left: CHUNKS,
            made: Arc::default(),
            alive: Arc::default(),
            most: Arc::default(),
        }
    }
}

impl Body for Large {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= 1;
        self.made.fetch_add(1, Ordering::SeqCst);
        let alive = self.alive.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(alive, Ordering::SeqCst);
        let chunk = Bytes::from_owner(Counted(vec![7; CHUNK], self.alive.clone()));
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }
}

/// Runs all tasks until a count does not change any more.
async fn settled(count: &AtomicUsize) -> usize {
    let mut last = usize::MAX;
    loop {
        let now = count.load(Ordering::SeqCst);
        if now == last && now > 0 {
            return now;
        }
        last = now;
        for _ in 0..5000 {
            tokio::task::yield_now().await;
        }
    }
}

async fn length(mut body: impl Body<Data = Bytes, Error: std::fmt::Debug> + Unpin) -> usize {
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        length += frame.unwrap().into_data().map_or(0, |data| data.len());
    }
    length
}

#[tokio::test]
async fn a_large_request_is_sent_as_the_server_takes_it() {
    let authority = Authority::new();
    for alpn in ["http/1.1", "h2"] {
        let go = Arc::new(Semaphore::new(0));
        let tls = authority.server("server.example", Valid::Now, &[alpn]);
        let server = {
            let go = go.clone();
            Server::http(Some(tls), move |request| {
                let go = go.clone();
                async move {
                    go.acquire().await.unwrap().forget();
                    Response::new(text(length(request.into_body()).await.to_string()))
                }
            })
            .await
        };
        let outlet = TestNetwork::trusting(&authority).client(&server, 1);
        let body = Large::new();
        let made = body.made.clone();
        let most = body.most.clone();
        let request = Request::post(server.url("https", "/")).body(body).unwrap();
        let check = async {
            let made = settled(&made).await;
            assert!(made * CHUNK < IN_FLIGHT, "{alpn}: {made} chunks");
            go.add_permits(1);
        };
        let (response, ()) = tokio::join!(send(&outlet, request), check);
        assert_eq!(
            read(response.unwrap()).await.unwrap(),
            (CHUNKS * CHUNK).to_string(),
            "{alpn}"
        );
        assert_eq!(made.load(Ordering::SeqCst), CHUNKS);
        // The guest's memory that this process holds at any moment.
        let most = most.load(Ordering::SeqCst);
        assert!(most * CHUNK <= 1024 * 1024, "{alpn}: {most} chunks at once");
    }
}

#[tokio::test]
async fn a_large_response_comes_as_it_is_read() {
    let authority = Authority::new();
    for alpn in ["http/1.1", "h2"] {
        let made = Arc::new(AtomicUsize::new(0));
        let tls = authority.server("server.example", Valid::Now, &[alpn]);
        let server =
            {
                let made = made.clone();
                Server::http(Some(tls), move |_| {
                let body = Large { made: made.clone(), ..Large::new() };
                async move { Response::new(body.map_err(|never| match never {}).boxed_unsync()) }
            })
            .await
            };
        let outlet = TestNetwork::trusting(&authority).client(&server, 1);
        let response = send(&outlet, get(&server.url("https", "/"))).await.unwrap();
        let waiting = settled(&made).await;
        assert!(waiting * CHUNK < IN_FLIGHT, "{alpn}: {waiting} chunks");
        assert_eq!(length(response.into_body()).await, CHUNKS * CHUNK, "{alpn}");
    }
}

#[tokio::test]
async fn a_stream_that_nobody_reads_does_not_stop_the_others() {
    let authority = Authority::new();
    let tls = authority.server("server.example", Valid::Now, &["h2"]);
    let server = Server::http(Some(tls), |_| async {
        Response::new(Large::new().map_err(|never| match never {}).boxed_unsync())
    })
    .await;
    let outlet = TestNetwork::trusting(&authority).client(&server, 1);
    let mut unread = Vec::new();
    for _ in 0..8 {
        unread.push(send(&outlet, get(&server.url("https", "/"))).await.unwrap());
    }
    let read = send(&outlet, get(&server.url("https", "/"))).await.unwrap();
    assert_eq!(length(read.into_body()).await, CHUNKS * CHUNK);
    assert_eq!(server.accepted(), 1);
}

/// A body of these frames, without a declared length.
fn frames(frames: &[&'static str]) -> BoxedBody {
    let frames: Vec<_> = frames
        .iter()
        .map(|frame| Ok(Frame::data(Bytes::from_static(frame.as_bytes()))))
        .collect();
    StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync()
}

#[tokio::test]
async fn a_body_has_the_length_that_its_request_declares() {
    let authority = Authority::new();
    for alpn in ["http/1.1", "h2"] {
        let complete = Arc::new(AtomicUsize::new(0));
        let tls = authority.server("server.example", Valid::Now, &[alpn]);
        let server = {
            let complete = complete.clone();
            Server::http(Some(tls), move |request| {
                let complete = complete.clone();
                async move {
                    if request.into_body().collect().await.is_ok() {
                        complete.fetch_add(1, Ordering::SeqCst);
                    }
                    Response::new(text("ok"))
                }
            })
            .await
        };
        let outlet = TestNetwork::trusting(&authority).client(&server, 1);
        let post = async |length: &str, body| {
            let request = Request::post(server.url("https", "/"))
                .header("content-length", length)
                .body(body)
                .unwrap();
            send(&outlet, request).await.map(drop)
        };
        let wrong = Err(SendError::RequestBodyLength(5));
        for body in [
            &["123"][..],
            &["123456"],
            &["12", "3456"],
            &["12345", "6"],
            &["12345", "", "GET / HTTP/1.1\r\n"],
        ] {
            assert_eq!(post("5", frames(body)).await, wrong, "{alpn} {body:?}");
        }
        assert_eq!(post("5", frames(&[])).await, wrong, "{alpn}");
        assert_eq!(post("5", text("123")).await, wrong, "{alpn}");
        assert_eq!(post("5", text("")).await, wrong, "{alpn}");
        assert_eq!(
            complete.load(Ordering::SeqCst),
            0,
            "{alpn}: no server took one of these for complete"
        );
        assert_eq!(
            post("5", frames(&["12", "", "345"])).await,
            Ok(()),
            "{alpn}"
        );
        assert_eq!(post("0", frames(&[])).await, Ok(()), "{alpn}");
        assert_eq!(complete.load(Ordering::SeqCst), 2, "{alpn}");
    }
}

#[tokio::test]
async fn a_request_ends_with_the_meter_or_with_its_body() {
    let authority = Authority::new();
    for alpn in ["http/1.1", "h2"] {
        let tls = authority.server("server.example", Valid::Now, &[alpn]);
        let server = Server::http(Some(tls), |request| async move {
            let _length = request.into_body().collect().await;
            Response::new(text("ok"))
        })
        .await;
        let outlet = TestNetwork::trusting(&authority).client(&server, 1);
        let meter = Arc::new(RequestMeter::new(1, 1_000_000));
        let request = Request::post(server.url("https", "/"))
            .body(Large::new())
            .unwrap();
        let sent = outlet
            .send(
                request,
                &PoolPartition::NONE,
                PATIENT,
                Instant::now() + LONG,
                &meter,
            )
            .await;
        assert_eq!(
            sent.map(drop),
            Err(SendError::LimitExceeded(ExceededLimit::Bytes)),
            "{alpn}"
        );
        let broken = StreamBody::new(futures_util::stream::iter([
            Ok(Frame::data(Bytes::from_static(b"123"))),
            Err("the guest was stopped".into()),
        ]));
        let request = Request::post(server.url("https", "/"))
            .body(broken.boxed_unsync())
            .unwrap();
        let sent = send::<BoxedBody>(&outlet, request).await.map(drop);
        assert_eq!(
            sent,
            Err(SendError::RequestBody("the guest was stopped".to_owned())),
            "{alpn}"
        );
    }
}

#[tokio::test]
async fn the_guest_may_take_its_time() {
    let server = Server::http(None, |request| async move {
        Response::new(text(length(request.into_body()).await.to_string()))
    })
    .await;
    let outlet = TestNetwork::new().client(&server, 1);
    let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
    let slow = futures_util::stream::once(async move {
        receiver.await.unwrap();
        Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"123")))
    });
    let request = Request::post(server.url("http", "/"))
        .body(StreamBody::new(slow))
        .unwrap();
    let hasty = RequestTimeouts {
        first_byte: SHORT,
        ..PATIENT
    };
    let guest = async {
        tokio::time::timeout(3 * SHORT, std::future::pending::<()>())
            .await
            .unwrap_err();
        sender.send(()).unwrap();
    };
    let (response, ()) = tokio::join!(send_within(&outlet, request, hasty), guest);
    assert_eq!(read(response.unwrap()).await.unwrap(), "3");
}

#[tokio::test]
async fn dropping_the_response_ends_the_request() {
    let authority = Authority::new();
    for alpn in ["http/1.1", "h2"] {
        let tls = authority.server("server.example", Valid::Now, &[alpn]);
        let server = Server::http(Some(tls), |request| async move {
            // Responds immediately, and accepts the body afterwards.
            let unread = StreamBody::new(futures_util::stream::once(async move {
                let _length = request.into_body().collect().await;
                Ok(Frame::data(Bytes::from_static(b"done")))
            }));
            Response::new(unread.boxed_unsync())
        })
        .await;
        let outlet = TestNetwork::trusting(&authority).client(&server, 1);
        let held = Arc::new(());
        let alive = Arc::downgrade(&held);
        let stalled = futures_util::stream::once(async move {
            std::future::pending::<()>().await;
            drop(held);
            Ok::<_, Infallible>(Frame::data(Bytes::new()))
        });
        let request = Request::post(server.url("https", "/"))
            .body(StreamBody::new(stalled))
            .unwrap();
        let response = send(&outlet, request).await.unwrap();
        assert!(alive.upgrade().is_some());
        drop(response);
        eventually(|| alive.upgrade().is_none()).await;
    }
}

#[tokio::test]
async fn a_response_without_a_body_frees_its_connection() {
    let server = Server::http(None, |_| async {
        Response::builder()
            .header("content-length", "5")
            .body(text("12345"))
            .unwrap()
    })
    .await;
    let outlet = TestNetwork::new().client(&server, 1);
    for _ in 0..3 {
        let request = Request::head(server.url("http", "/"))
            .body(Empty::<Bytes>::new())
            .unwrap();
        let response = send(&outlet, request).await.unwrap();
        assert_eq!(response.headers()["content-length"], "5");
        assert!(response.body().is_end_stream());
    }
    assert_eq!(server.accepted(), 1);
}
