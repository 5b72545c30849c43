//! Tests with servers that misbehave.

use std::io;
use std::sync::Arc;

use http::Request;
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::setup::{
    LONG, PATIENT, SHORT, Server, TestNetwork, eventually, get, read, send, send_within, text,
    unlimited,
};
use crate::pool_partition::PoolPartition;
use crate::{ExceededLimit, RequestMeter, RequestTimeouts, SendError};

/// Reads the head of a request.
async fn head(stream: &mut TcpStream) -> io::Result<()> {
    let mut seen = Vec::new();
    while !seen.ends_with(b"\r\n\r\n") {
        seen.push(stream.read_u8().await?);
    }
    Ok(())
}

/// A server that sends this after each request, and ends the connection if `end` is set.
async fn answering(answer: &'static str, end: bool) -> Server {
    Server::raw(move |mut stream, _| async move {
        while head(&mut stream).await.is_ok() {
            if stream.write_all(answer.as_bytes()).await.is_err() || end {
                return;
            }
        }
    })
    .await
}

/// A server that sends the beginning and then the rest without end.
async fn endless(beginning: &'static str, rest: &'static str) -> Server {
    Server::raw(move |mut stream, _| async move {
        let _head = head(&mut stream).await;
        let mut result = stream.write_all(beginning.as_bytes()).await;
        while result.is_ok() {
            result = stream.write_all(rest.as_bytes()).await;
        }
    })
    .await
}

/// The response to a request with this timeout, read to its end.
async fn fetch(server: &Server, timeouts: RequestTimeouts) -> Result<String, SendError> {
    let outlet = TestNetwork::new().client(server, 1);
    let result = match send_within(&outlet, get(&server.url("http", "/")), timeouts).await {
        Ok(response) => read(response).await,
        Err(error) => Err(error),
    };
    if result.is_err() {
        eventually(|| outlet.connections() == (0, 1)).await;
    }
    result
}

#[tokio::test]
async fn silence_has_an_end() {
    let hasty = RequestTimeouts {
        connect: LONG,
        first_byte: SHORT,
        between_bytes: SHORT,
    };
    assert_eq!(
        fetch(&answering("", false).await, hasty).await,
        Err(SendError::FirstByteTimeout)
    );
    let begun = answering("HTTP/1.1 200 OK\r\ncontent-le", false).await;
    assert_eq!(fetch(&begun, hasty).await, Err(SendError::FirstByteTimeout));
    let stopped = answering("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345", false).await;
    assert_eq!(
        fetch(&stopped, hasty).await,
        Err(SendError::BetweenBytesTimeout)
    );
}

#[tokio::test]
async fn the_deadline_ends_everything() {
    let body = answering("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345", false).await;
    for (server, head) in [(answering("", false).await, true), (body, false)] {
        let outlet = TestNetwork::new().client(&server, 1);
        let request = get(&server.url("http", "/"));
        let deadline = Instant::now() + SHORT;
        let endless = RequestTimeouts {
            connect: std::time::Duration::MAX,
            first_byte: std::time::Duration::MAX,
            between_bytes: std::time::Duration::MAX,
        };
        let result = outlet
            .send(
                request,
                &PoolPartition::NONE,
                endless,
                deadline,
                &unlimited(),
            )
            .await;
        if head {
            assert_eq!(result.map(drop), Err(SendError::Deadline));
        } else {
            assert_eq!(read(result.unwrap()).await, Err(SendError::Deadline));
        }
        eventually(|| outlet.connections() == (0, 1)).await;
    }
}

#[tokio::test]
async fn a_truncated_response_is_an_error() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n12345\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n123",
    ] {
        let error = fetch(&answering(answer, true).await, PATIENT)
            .await
            .unwrap_err();
        assert!(
            matches!(error, SendError::Incomplete(_)),
            "{answer:?}: {error:?}"
        );
    }
    for answer in ["", "HTTP/1.1 200 OK\r\ncontent-length"] {
        let error = fetch(&answering(answer, true).await, PATIENT)
            .await
            .unwrap_err();
        assert!(
            matches!(error, SendError::Reset(_)),
            "{answer:?}: {error:?}"
        );
    }
}

#[tokio::test]
async fn a_response_can_end_with_its_connection() {
    for answer in [
        "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n12345",
        "HTTP/1.0 200 OK\r\n\r\n12345",
    ] {
        assert_eq!(
            fetch(&answering(answer, true).await, PATIENT)
                .await
                .unwrap(),
            "12345"
        );
    }
}

#[tokio::test]
async fn a_reset_is_an_error() {
    let server = Server::raw(|mut stream, _| async move {
        let _head = head(&mut stream).await;
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345";
        let _written = stream.write_all(answer).await;
        // With this, closing the socket resets the connection.
        stream.set_zero_linger().unwrap();
    })
    .await;
    let error = fetch(&server, PATIENT).await.unwrap_err();
    assert!(matches!(error, SendError::Reset(_)), "{error:?}");
}

#[tokio::test]
async fn what_comes_after_a_response_is_not_the_next_one() {
    let injected = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n12345HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil";
    let server = answering(injected, false).await;
    let outlet = TestNetwork::new().client(&server, 2);
    for connections in 1..=3 {
        assert_eq!(
            read(send(&outlet, get(&server.url("http", "/"))).await.unwrap())
                .await
                .unwrap(),
            "12345"
        );
        eventually(|| outlet.connections() == (0, 2)).await;
        assert_eq!(server.accepted(), connections);
    }
}

#[tokio::test]
async fn a_head_is_bounded() {
    for (beginning, rest) in [
        (
            "HTTP/1.1 200 OK\r\n",
            "x-field: some text that makes the head longer\r\n",
        ),
        ("HTTP/1.1 200 OK\r\nx-field: ", "a value without end"),
        ("HTTP/1.1 200 ", "a reason without end"),
    ] {
        assert_eq!(
            fetch(&endless(beginning, rest).await, PATIENT).await,
            Err(SendError::HeadTooLarge),
            "{rest:?}"
        );
    }
}

#[tokio::test]
async fn interim_responses_are_skipped_and_bounded() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n\
                   HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    assert_eq!(
        fetch(&answering(interim, false).await, PATIENT)
            .await
            .unwrap(),
        "ok"
    );
    let server = endless("", "HTTP/1.1 102 Processing\r\n\r\n").await;
    assert_eq!(fetch(&server, PATIENT).await, Err(SendError::HeadTooLarge));
}

#[tokio::test]
async fn what_is_not_http_is_an_error() {
    for answer in [
        "SSH-2.0-OpenSSH_9.6\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n12",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nbad field: x\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnot a length\r\n",
    ] {
        let error = fetch(&answering(answer, false).await, PATIENT)
            .await
            .unwrap_err();
        assert!(
            matches!(error, SendError::Protocol(_)),
            "{answer:?}: {error:?}"
        );
    }
}

#[tokio::test]
async fn an_endless_body_ends_with_the_meter() {
    let server = endless("HTTP/1.1 200 OK\r\n\r\n", "0123456789abcdef").await;
    let outlet = TestNetwork::new().client(&server, 1);
    let meter = Arc::new(RequestMeter::new(1, 1_000_000));
    let request = get(&server.url("http", "/"));
    let response = outlet
        .send(
            request,
            &PoolPartition::NONE,
            PATIENT,
            Instant::now() + LONG,
            &meter,
        )
        .await
        .unwrap();
    let mut body = response.into_body();
    let mut received = 0;
    let error = loop {
        match body.frame().await.unwrap() {
            Ok(frame) => received += frame.into_data().unwrap().len(),
            Err(error) => break error,
        }
    };
    assert_eq!(error, SendError::LimitExceeded(ExceededLimit::Bytes));
    assert_eq!(meter.exceeded(), Some(ExceededLimit::Bytes));
    // At least the limit without one frame.
    assert!((700_000..1_000_000).contains(&received), "{received}");
    assert!(body.frame().await.is_none());
    eventually(|| outlet.connections() == (0, 1)).await;
    // The call has sent its only request.
    let again = outlet.send(
        get(&server.url("http", "/")),
        &PoolPartition::NONE,
        PATIENT,
        Instant::now() + LONG,
        &meter,
    );
    assert_eq!(
        again.await.map(drop),
        Err(SendError::LimitExceeded(ExceededLimit::Requests))
    );
    assert_eq!((meter.requests(), server.accepted()), (1, 1));
}

#[tokio::test]
async fn the_meter_counts_both_ways() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n12345";
    let server = answering(answer, false).await;
    let outlet = TestNetwork::new().client(&server, 1);
    let meter = Arc::new(RequestMeter::new(10, 10_000));
    let request = Request::post(server.url("http", "/path"))
        .body(text("123"))
        .unwrap();
    let response = outlet
        .send(
            request,
            &PoolPartition::NONE,
            PATIENT,
            Instant::now() + LONG,
            &meter,
        )
        .await
        .unwrap();
    assert_eq!(read(response).await.unwrap(), "12345");
    let asked = format!(
        "POST /path HTTP/1.1\r\nhost: server.example:{}\r\n\r\n123",
        server.port
    );
    // Only the status of the response line counts.
    let answered = answer.len() - " OK".len();
    assert_eq!(
        (meter.requests(), meter.bytes()),
        (1, (asked.len() + answered) as u64)
    );
}

#[tokio::test]
async fn who_refuses_and_who_is_silent_are_told_apart() {
    let world = TestNetwork::new();
    let closed = Server::raw(|_, _| async {}).await;
    let url = closed.url("http", "/");
    let outlet = world.client(&closed, 1);
    drop(closed);
    let error = loop {
        // The port is free when the task of the server has ended.
        let error = send(&outlet, get(&url)).await.map(drop).unwrap_err();
        if !matches!(error, SendError::Reset(_)) {
            break error;
        }
    };
    assert!(
        matches!(error, SendError::ConnectionRefused(_)),
        "{error:?}"
    );
    assert!(error.details().unwrap().contains("127.0.0.1"));
    assert!(!error.to_string().contains("127.0.0.1"));
    // TLS with a server that sends nothing.
    let silent = answering("", false).await;
    let outlet = world.client(&silent, 1);
    let hasty = RequestTimeouts {
        connect: SHORT,
        ..PATIENT
    };
    let error = send_within(&outlet, get(&silent.url("https", "/")), hasty)
        .await
        .map(drop)
        .unwrap_err();
    assert_eq!(error, SendError::ConnectTimeout);
    eventually(|| outlet.connections() == (0, 1)).await;
}
