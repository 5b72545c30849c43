//! Tests of both versions of HTTP, and of TLS verification.

use std::sync::Arc;

use http::{Request, Response, Version, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio_rustls::TlsAcceptor;

use super::setup::{Authority, BoxedBody, Server, TestNetwork, Valid, get, read, send, text};
use crate::SendError;

/// Responds with the received version, method, target, host, and length of the body.
async fn mirror(request: Request<Incoming>) -> Response<BoxedBody> {
    let host = request
        .headers()
        .get(header::HOST)
        .map(|host| host.to_str().unwrap().to_owned());
    let authority = request.uri().authority().map(ToString::to_string);
    let head = format!(
        "{:?} {} {}",
        request.version(),
        request.method(),
        request.uri().path_and_query().unwrap()
    );
    let length = request
        .into_body()
        .collect()
        .await
        .unwrap()
        .to_bytes()
        .len();
    let host = host.or(authority).unwrap();
    let host = host.split(':').next().unwrap();
    Response::new(text(format!("{head} {host} {length}")))
}

#[tokio::test]
async fn plain_http_is_version_1() {
    let server = Server::http(None, mirror).await;
    let outlet = TestNetwork::new().client(&server, 4);
    let post = Request::post(server.url("http", "/a?b"))
        .body(text("four"))
        .unwrap();
    let response = send(&outlet, post).await.unwrap();
    assert_eq!(response.version(), Version::HTTP_11);
    assert_eq!(
        read(response).await.unwrap(),
        "HTTP/1.1 POST /a?b server.example 4"
    );
}

#[tokio::test]
async fn tls_agrees_on_a_version() {
    let authority = Authority::new();
    for (alpn, version) in [
        (&["h2", "http/1.1"][..], "HTTP/2.0"),
        (&["http/1.1"], "HTTP/1.1"),
        (&[], "HTTP/1.1"),
    ] {
        let server = Server::http(
            Some(authority.server("server.example", Valid::Now, alpn)),
            mirror,
        )
        .await;
        let outlet = TestNetwork::trusting(&authority).client(&server, 4);
        let post = Request::post(server.url("https", "/a?b"))
            .body(text("four"))
            .unwrap();
        let answer = read(send(&outlet, post).await.unwrap()).await.unwrap();
        assert_eq!(answer, format!("{version} POST /a?b server.example 4"));
    }
}

#[tokio::test]
async fn certificates_are_verified() {
    let authority = Authority::new();
    let error = async |world: &TestNetwork, name: &str, valid| {
        let server = Server::http(Some(authority.server(name, valid, &["h2"])), mirror).await;
        send(&world.client(&server, 4), get(&server.url("https", "/")))
            .await
            .map(drop)
            .unwrap_err()
    };
    let trusting = TestNetwork::trusting(&authority);
    let untrusted = error(&TestNetwork::new(), "server.example", Valid::Now).await;
    assert!(
        matches!(untrusted, SendError::CertificateUntrusted(_)),
        "{untrusted:?}"
    );
    let expired = error(&trusting, "server.example", Valid::Before).await;
    assert!(
        matches!(expired, SendError::CertificateExpired(_)),
        "{expired:?}"
    );
    let early = error(&trusting, "server.example", Valid::Later).await;
    assert!(
        matches!(early, SendError::CertificateNotYetValid(_)),
        "{early:?}"
    );
    let other = error(&trusting, "other.example", Valid::Now).await;
    assert!(
        matches!(other, SendError::CertificateNameMismatch(_)),
        "{other:?}"
    );
    assert_eq!(
        other.to_string(),
        "The certificate of the host is for another name."
    );
    assert!(
        other.details().unwrap().contains("other.example"),
        "{other:?}"
    );
}

#[tokio::test]
async fn an_address_is_verified_as_one() {
    let authority = Authority::new();
    let world = TestNetwork::trusting(&authority);
    for (name, valid) in [
        ("127.0.0.1", true),
        ("127.0.0.2", false),
        ("server.example", false),
    ] {
        let server = Server::http(Some(authority.server(name, Valid::Now, &["h2"])), mirror).await;
        let url = format!("https://127.0.0.1:{}", server.port);
        let outlet = world.client_for(&[&url], &["127.0.0.1"], 4);
        let answer = send(&outlet, get(&url)).await.map(drop);
        assert_eq!(answer.is_ok(), valid, "{name}: {answer:?}");
        if let Err(error) = answer {
            assert!(
                matches!(error, SendError::CertificateNameMismatch(_)),
                "{error:?}"
            );
        }
    }
}

#[tokio::test]
async fn an_alert_is_told() {
    let authority = Authority::new();
    let mut config = Arc::unwrap_or_clone(authority.server("server.example", Valid::Now, &[]));
    config.alpn_protocols = vec![b"another".to_vec()];
    let config = Arc::new(config);
    let server = Server::raw(move |stream, _| {
        let acceptor = TlsAcceptor::from(config.clone());
        async move { drop(acceptor.accept(stream).await) }
    })
    .await;
    let outlet = TestNetwork::trusting(&authority).client(&server, 4);
    let error = send(&outlet, get(&server.url("https", "/")))
        .await
        .map(drop)
        .unwrap_err();
    assert_eq!(
        error,
        SendError::TlsAlert {
            id: 120,
            name: "NoApplicationProtocol".to_owned()
        }
    );
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn a_redirect_is_a_response() {
    let server = Server::http(None, |_| async {
        let redirect = Response::builder()
            .status(302)
            .header("location", "http://169.254.169.254/");
        redirect.body(text("elsewhere")).unwrap()
    })
    .await;
    let outlet = TestNetwork::new().client(&server, 4);
    let response = send(&outlet, get(&server.url("http", "/"))).await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["location"]),
        (302, &"http://169.254.169.254/".parse().unwrap())
    );
    assert_eq!(read(response).await.unwrap(), "elsewhere");
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn what_is_about_the_connection_is_not_sent() {
    let server = Server::http(None, |request| async move {
        let mut names: Vec<&str> = request
            .headers()
            .keys()
            .map(http::HeaderName::as_str)
            .collect();
        names.sort_unstable();
        Response::builder()
            .header("keep-alive", "timeout=5")
            .body(text(names.join(" ")))
            .unwrap()
    })
    .await;
    let outlet = TestNetwork::new().client(&server, 4);
    let asked = Request::get(server.url("http", "/"))
        .header("accept", "*/*")
        .header("connection", "x-listed, upgrade")
        .header("upgrade", "websocket")
        .header("proxy-authorization", "Basic eA==")
        .header("te", "trailers")
        .header("x-listed", "1");
    let response = send(&outlet, asked.body(text("")).unwrap()).await.unwrap();
    assert!(!response.headers().contains_key("keep-alive"));
    assert_eq!(read(response).await.unwrap(), "accept host");
}
