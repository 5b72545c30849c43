//! Tests of credentials, which the host adds to authorized requests.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use tokio::time::Instant;
use toolbay_policy::DenialReason;

use super::setup::{
    BoxedBody, LONG, PATIENT, Server, TestNetwork, get, read, send, text, unlimited,
};
use crate::{PluginClient, SendError};

/// Responds with the target, the host and the credential of a request.
async fn show(request: Request<hyper::body::Incoming>) -> Response<BoxedBody> {
    let field = |name: &str| match request.headers().get(name) {
        Some(value) => value.to_str().unwrap().to_owned(),
        None => "none".to_owned(),
    };
    Response::new(text(format!(
        "{} {} {} {}",
        request.uri(),
        field("host"),
        field("x-key"),
        field("connection"),
    )))
}

async fn send_with_key(outlet: &Arc<PluginClient>, url: &str, query: &str, key: &str) -> String {
    let mut request = outlet.authorize(get(url)).unwrap();
    let mut fields = HeaderMap::new();
    fields.insert("x-key", HeaderValue::from_str(key).unwrap());
    fields.insert("host", HeaderValue::from_static("evil.example"));
    fields.insert("connection", HeaderValue::from_static("close"));
    fields.insert("content-length", HeaderValue::from_static("7"));
    let uri: Uri = format!("{url}{query}").parse().unwrap();
    request
        .add_credentials(fields, &uri, key.as_bytes())
        .unwrap();
    let deadline = Instant::now() + LONG;
    read(request.send(PATIENT, deadline, &unlimited()).await.unwrap())
        .await
        .unwrap()
}

#[tokio::test]
async fn a_credential_is_sent_over_connections_of_its_own() {
    let server = Server::http(None, show).await;
    let outlet = TestNetwork::new().client(&server, 8);
    let url = server.url("http", "/a");
    let host = format!("server.example:{}", server.port);
    let plain = read(send(&outlet, get(&url)).await.unwrap()).await.unwrap();
    assert_eq!(plain, format!("/a {host} none none"));
    for accepted in [2, 2] {
        assert_eq!(
            send_with_key(&outlet, &url, "?key=1", "ada").await,
            format!("/a?key=1 {host} ada none"),
            "fields that only the client may set are ignored"
        );
        assert_eq!(server.accepted(), accepted);
    }
    send_with_key(&outlet, &url, "", "bob").await;
    assert_eq!(server.accepted(), 3);
    let root = server.url("http", "");
    assert_eq!(
        send_with_key(&outlet, &root, "?key=1", "bob").await,
        format!("/?key=1 {host} bob none")
    );
}

#[test]
fn a_credential_does_not_change_the_path_that_was_checked() {
    let outlet = tokio::runtime::Runtime::new()
        .unwrap()
        .block_on(async { TestNetwork::new().client_for(&["https://server.example"], &[], 1) });
    let uri = |target: &str| -> Uri {
        Uri::builder()
            .scheme("https")
            .authority("server.example")
            .path_and_query(target)
            .build()
            .unwrap()
    };
    let add = |method: Method, target: &str, with_query: &str| {
        let mut request = Request::new(());
        *request.method_mut() = method;
        *request.uri_mut() = uri(target);
        let mut request = outlet.authorize(request).unwrap();
        request.add_credentials(HeaderMap::new(), &uri(with_query), b"key")
    };
    let denied = Err(SendError::Denied(DenialReason::MalformedPath));
    add(Method::GET, "/a", "/a?b").unwrap();
    assert_eq!(add(Method::GET, "/a", "/b?b"), denied);
    add(Method::OPTIONS, "*", "*").unwrap();
    assert_eq!(add(Method::OPTIONS, "*", "/"), denied);
}
