use http::{HeaderValue, Request, Version};
use toolbay_policy::{AuthorityError, DenialReason, HttpRule, OriginPattern};

use super::RequestTarget;
use crate::error::SendError;
use crate::header_fields::MAX_HTTP_HEAD_BYTES;
use crate::proxy::ProxySettings;

fn rules() -> Vec<HttpRule> {
    ["https://api.example", "http://api.example:8080"]
        .map(|origin| HttpRule::new(OriginPattern::parse(origin).unwrap()))
        .to_vec()
}

/// A request that the rules allow.
#[derive(Debug)]
struct CheckedRequest {
    target: RequestTarget,
    request: Request<()>,
    head_bytes: usize,
}

impl CheckedRequest {
    fn request(
        &self,
        http2: bool,
        proxy: Option<&ProxySettings>,
    ) -> Result<Request<()>, SendError> {
        let mut request = self.request.clone();
        self.target.address(&mut request, http2, proxy)?;
        Ok(request)
    }
}

fn check(request: http::request::Builder) -> Result<CheckedRequest, SendError> {
    let mut request = request.body(()).unwrap();
    let target = RequestTarget::check(&mut request, &rules())?;
    let head_bytes = target.head_bytes(&request)?;
    Ok(CheckedRequest {
        target,
        request,
        head_bytes,
    })
}

fn get(uri: &str) -> http::request::Builder {
    Request::get(uri)
}

#[test]
fn only_the_normalised_origin_is_sent() {
    let allowed = check(get("https://API.Example:443/a?b=c").header("accept", "*/*")).unwrap();
    let direct = allowed.request(false, None).unwrap();
    assert_eq!(direct.uri(), "/a?b=c");
    assert_eq!(direct.version(), Version::HTTP_11);
    assert_eq!(direct.headers()["host"], "api.example");
    let http2 = allowed.request(true, None).unwrap();
    assert_eq!(http2.uri(), "https://api.example/a?b=c");
    assert!(!http2.headers().contains_key("host"));
    let head = "GET /a?b=c HTTP/1.1\r\nhost: api.example\r\naccept: */*\r\n\r\n";
    assert_eq!(allowed.head_bytes, head.len());
}

#[test]
fn a_proxy_gets_the_whole_url_and_its_own_credentials() {
    let proxy =
        ProxySettings::parse(&"http://user:password@proxy.example".parse().unwrap()).unwrap();
    let asked = get("http://api.example:8080").header("proxy-authorization", "Basic of-the-guest");
    let request = check(asked).unwrap().request(false, Some(&proxy)).unwrap();
    assert_eq!(request.uri(), "http://api.example:8080/");
    assert_eq!(request.headers()["host"], "api.example:8080");
    assert_eq!(
        request
            .headers()
            .get_all("proxy-authorization")
            .iter()
            .count(),
        1
    );
    assert_eq!(
        request.headers()["proxy-authorization"],
        "Basic dXNlcjpwYXNzd29yZA=="
    );
}

#[test]
fn host_and_address_have_to_name_the_same_origin() {
    for host in ["api.example", "API.example:443", "api.example."] {
        check(get("https://api.example/").header("host", host)).unwrap();
    }
    for host in [
        "evil.example",
        "api.example:8080",
        "api.example:8443",
        "",
        "api.example@evil.example",
        "api.example, x",
    ] {
        let error = check(get("https://api.example/").header("host", host)).unwrap_err();
        assert_eq!(error, SendError::HostHeader, "{host:?}");
    }
    let two = get("https://api.example/")
        .header("host", "api.example")
        .header("host", "evil.example");
    assert_eq!(check(two).unwrap_err(), SendError::HostHeader);
    let unreadable =
        get("https://api.example/").header("host", HeaderValue::from_bytes(b"\xff").unwrap());
    assert_eq!(check(unreadable).unwrap_err(), SendError::HostHeader);
}

#[test]
fn what_the_guest_wrote_is_what_the_rules_see() {
    assert_eq!(
        check(get("/relative")).unwrap_err(),
        SendError::Denied(DenialReason::Scheme)
    );
    assert_eq!(
        check(get("ftp://api.example/")).unwrap_err(),
        SendError::Denied(DenialReason::Scheme)
    );
    let userinfo = check(get("https://api.example@evil.example/")).unwrap_err();
    assert_eq!(
        userinfo,
        SendError::Denied(DenialReason::Authority(AuthorityError::Userinfo))
    );
    let other = check(get("https://evil.example/")).unwrap_err();
    assert!(
        matches!(other, SendError::Denied(DenialReason::Host(_))),
        "{other:?}"
    );
    assert!(
        other
            .details()
            .unwrap()
            .contains("http = [\"https://evil.example\"]"),
        "{other:?}"
    );
    let connect = check(
        Request::builder()
            .method("CONNECT")
            .uri("https://api.example/"),
    )
    .unwrap_err();
    assert_eq!(
        connect,
        SendError::Denied(DenialReason::ForbiddenMethod("CONNECT"))
    );
}

#[test]
fn a_declared_length_is_one_number() {
    let post = || Request::post("https://api.example/");
    let allowed = check(
        post()
            .header("content-length", "007")
            .header("content-length", "7"),
    )
    .unwrap();
    assert_eq!(allowed.target.body_length, Some(7));
    let sent = allowed.request(false, None).unwrap();
    assert_eq!(
        sent.headers()
            .get_all("content-length")
            .iter()
            .collect::<Vec<_>>(),
        ["7"]
    );
    for length in [
        "",
        "+7",
        "-1",
        " 7",
        "7, 7",
        "0x7",
        "18446744073709551616",
        "7 8",
    ] {
        let error = check(post().header("content-length", length)).unwrap_err();
        assert_eq!(error, SendError::ContentLength, "{length:?}");
    }
    let two = post()
        .header("content-length", "7")
        .header("content-length", "8");
    assert_eq!(check(two).unwrap_err(), SendError::ContentLength);
    // The field for the other kind of request smuggling is removed.
    let chunked = check(
        post()
            .header("content-length", "7")
            .header("transfer-encoding", "chunked"),
    )
    .unwrap();
    assert!(
        !chunked
            .request(false, None)
            .unwrap()
            .headers()
            .contains_key("transfer-encoding")
    );
}

#[test]
fn options_can_be_for_the_server_as_a_whole() {
    let uri = http::Uri::builder()
        .scheme("https")
        .authority("api.example")
        .path_and_query("*")
        .build()
        .unwrap();
    let allowed = check(Request::options(uri)).unwrap();
    assert_eq!(allowed.request(false, None).unwrap().uri(), "*");
}

#[test]
fn a_head_is_bounded() {
    let long =
        |length: usize| check(get("https://api.example/").header("x-long", "x".repeat(length)));
    assert!(long(MAX_HTTP_HEAD_BYTES - 100).is_ok());
    assert_eq!(
        long(MAX_HTTP_HEAD_BYTES).unwrap_err(),
        SendError::RequestHeadTooLarge
    );
}
