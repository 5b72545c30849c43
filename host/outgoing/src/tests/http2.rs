//! Tests with HTTP/2 servers that misbehave or end.

use std::sync::Arc;

use bytes::Bytes;
use h2::Reason;
use http::{HeaderValue, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::sync::{Notify, mpsc};
use tokio_rustls::TlsAcceptor;

use super::setup::{
    Authority, LONG, PATIENT, SHORT, Server, TestNetwork, Valid, eventually, get, read, send,
    send_within, text,
};
use crate::{PluginClient, RequestTimeouts, SendError};

/// An HTTP/2 server that runs this function for each request.
async fn serving<F, R>(authority: &Authority, serve: F) -> Server
where
    F: Fn(h2::server::SendResponse<Bytes>) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let tls = authority.server("server.example", Valid::Now, &["h2"]);
    Server::raw(move |stream, _| {
        let tls = tls.clone();
        let serve = serve.clone();
        async move {
            let stream = TlsAcceptor::from(tls).accept(stream).await.unwrap();
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((_, respond))) = connection.accept().await {
                tokio::spawn(serve(respond));
            }
        }
    })
    .await
}

fn outlet(authority: &Authority, server: &Server) -> Arc<PluginClient> {
    TestNetwork::trusting(authority).client(server, 1)
}

async fn fetch(
    outlet: &Arc<PluginClient>,
    server: &Server,
    timeouts: RequestTimeouts,
) -> Result<String, SendError> {
    read(send_within(outlet, get(&server.url("https", "/")), timeouts).await?).await
}

#[tokio::test]
async fn a_body_with_another_length_than_declared() {
    let authority = Authority::new();
    for body in ["123", "1234567"] {
        let server = serving(&authority, move |mut respond| async move {
            let response = Response::builder()
                .header("content-length", "5")
                .body(())
                .unwrap();
            let mut stream = respond.send_response(response, false).unwrap();
            stream
                .send_data(Bytes::from_static(body.as_bytes()), true)
                .unwrap();
        })
        .await;
        let error = fetch(&outlet(&authority, &server), &server, PATIENT)
            .await
            .unwrap_err();
        assert!(
            matches!(error, SendError::Incomplete(_)),
            "{body}: {error:?}"
        );
    }
}

#[tokio::test]
async fn a_stream_that_is_reset() {
    let authority = Authority::new();
    for begun in [false, true] {
        let server = serving(&authority, move |mut respond| async move {
            if begun {
                let mut stream = respond.send_response(Response::new(()), false).unwrap();
                stream
                    .send_data(Bytes::from_static(b"12345"), false)
                    .unwrap();
                stream.send_reset(Reason::INTERNAL_ERROR);
            } else {
                respond.send_reset(Reason::REFUSED_STREAM);
            }
        })
        .await;
        let outlet = outlet(&authority, &server);
        for _ in 0..3 {
            let error = fetch(&outlet, &server, PATIENT).await.unwrap_err();
            assert!(matches!(error, SendError::Reset(_)), "{begun}: {error:?}");
        }
        assert_eq!(server.accepted(), 1, "the connection is as good as before");
    }
}

#[tokio::test]
async fn silence_has_an_end() {
    let authority = Authority::new();
    let hasty = RequestTimeouts {
        connect: LONG,
        first_byte: SHORT,
        between_bytes: SHORT,
    };
    for (begun, error) in [
        (false, SendError::FirstByteTimeout),
        (true, SendError::BetweenBytesTimeout),
    ] {
        let server = serving(&authority, move |mut respond| async move {
            let stream = begun.then(|| respond.send_response(Response::new(()), false).unwrap());
            std::future::pending::<()>().await;
            drop((stream, respond));
        })
        .await;
        let outlet = outlet(&authority, &server);
        for _ in 0..3 {
            assert_eq!(fetch(&outlet, &server, hasty).await, Err(error.clone()));
        }
        assert_eq!(server.accepted(), 1);
    }
}

#[tokio::test]
async fn a_head_is_bounded() {
    let authority = Authority::new();
    for (fields, length) in [(101, 1), (10, 8000)] {
        let server = serving(&authority, move |mut respond| async move {
            let mut response = Response::new(());
            for number in 0..fields {
                let name = http::HeaderName::try_from(format!("x-{number}")).unwrap();
                response
                    .headers_mut()
                    .insert(name, HeaderValue::try_from("x".repeat(length)).unwrap());
            }
            respond.send_response(response, true).unwrap();
        })
        .await;
        let error = fetch(&outlet(&authority, &server), &server, PATIENT)
            .await
            .unwrap_err();
        // h2 resets the stream of a longer body without further details.
        let bounded = matches!(error, SendError::HeadTooLarge | SendError::Protocol(_));
        assert!(bounded, "{fields} fields: {error:?}");
    }
}

#[tokio::test]
async fn interim_responses_are_skipped() {
    let authority = Authority::new();
    let server = serving(&authority, |mut respond| async move {
        for status in [100, 103] {
            respond
                .send_informational(Response::builder().status(status).body(()).unwrap())
                .unwrap();
        }
        let mut stream = respond.send_response(Response::new(()), false).unwrap();
        stream.send_data(Bytes::from_static(b"ok"), true).unwrap();
    })
    .await;
    assert_eq!(
        fetch(&outlet(&authority, &server), &server, PATIENT)
            .await
            .unwrap(),
        "ok"
    );
}

#[tokio::test]
async fn what_is_in_progress_outlives_a_graceful_end() {
    let authority = Authority::new();
    let tls = authority.server("server.example", Valid::Now, &["h2"]);
    let end = Arc::new(Notify::new());
    let rest = Arc::new(Notify::new());
    let server = {
        let end = end.clone();
        let rest = rest.clone();
        Server::raw(move |stream, number| {
            let tls = tls.clone();
            let end = end.clone();
            let rest = rest.clone();
            async move {
                let stream = TlsAcceptor::from(tls).accept(stream).await.unwrap();
                let service = hyper::service::service_fn(move |_| {
                    let rest = rest.clone();
                    async move {
                        if number > 1 {
                            return Ok::<_, std::convert::Infallible>(Response::new(text(
                                "another",
                            )));
                        }
                        let frames = futures_util::stream::unfold(0, move |count| {
                            let rest = rest.clone();
                            async move {
                                if count == 1 {
                                    rest.notified().await;
                                }
                                let frame = http_body::Frame::data(Bytes::from_static(b"part "));
                                (count < 2).then_some((Ok(frame), count + 1))
                            }
                        });
                        Ok(Response::new(StreamBody::new(frames).boxed_unsync()))
                    }
                });
                let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service);
                tokio::pin!(connection);
                tokio::select! {
                    _ = &mut connection => return,
                    () = end.notified() => connection.as_mut().graceful_shutdown(),
                }
                let _end = connection.await;
            }
        })
        .await
    };
    let outlet = TestNetwork::trusting(&authority).client(&server, 2);
    let mut first = send(&outlet, get(&server.url("https", "/"))).await.unwrap();
    assert_eq!(
        first
            .body_mut()
            .frame()
            .await
            .unwrap()
            .unwrap()
            .into_data()
            .unwrap(),
        "part "
    );
    end.notify_one();
    // As soon as the end is detected, the plugin uses another connection.
    while server.accepted() == 1 {
        let _of_the_first = send_within(
            &outlet,
            get(&server.url("https", "/")),
            RequestTimeouts {
                first_byte: SHORT,
                ..PATIENT
            },
        )
        .await;
    }
    assert_eq!(fetch(&outlet, &server, PATIENT).await.unwrap(), "another");
    rest.notify_one();
    assert_eq!(read(first).await.unwrap(), "part ");
    eventually(|| outlet.connections() == (1, 1)).await;
}

#[tokio::test]
async fn dropping_one_response_leaves_the_others() {
    let authority = Authority::new();
    let (told, mut resets) = mpsc::unbounded_channel();
    let server = serving(&authority, move |mut respond| {
        let told = told.clone();
        async move {
            let mut stream = respond.send_response(Response::new(()), false).unwrap();
            stream
                .send_data(Bytes::from_static(b"12345"), false)
                .unwrap();
            let reason = std::future::poll_fn(|context| stream.poll_reset(context))
                .await
                .unwrap();
            told.send(reason).unwrap();
        }
    })
    .await;
    let outlet = outlet(&authority, &server);
    let first = send(&outlet, get(&server.url("https", "/"))).await.unwrap();
    let mut second = send(&outlet, get(&server.url("https", "/"))).await.unwrap();
    drop(first);
    assert_eq!(resets.recv().await.unwrap(), Reason::CANCEL);
    assert_eq!(
        second
            .body_mut()
            .frame()
            .await
            .unwrap()
            .unwrap()
            .into_data()
            .unwrap(),
        "12345"
    );
    drop(second);
    assert_eq!(resets.recv().await.unwrap(), Reason::CANCEL);
    assert_eq!(server.accepted(), 1);
}
