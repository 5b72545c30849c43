//! Web pages: requests that a browser could be made to send are rejected, whoever the caller is.

use serde_json::json;

use crate::support::{Folder, HttpServer, TinyComponent};

fn status(server: &HttpServer, headers: &[(&str, &str)]) -> u16 {
    let response = server.post_stateless("tools/list", json!({}), headers);
    let status = response.status;
    if status != 200 {
        let said = response.text();
        assert!(
            !said.contains("the-tool") && !said.contains("toolbay/"),
            "{said}"
        );
    }
    status
}

#[test]
fn hosts_and_origins_are_checked_always() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["the-tool"]).build());
    let config = "[http]\nanonymous = true\nallowed_hosts = [\"tools.example.com\"]\n\
                  allowed_origins = [\"https://app.example.com\"]";
    for config in ["", config] {
        let server = HttpServer::start_with_config(&folder, config).wait_until_ready();
        let own = !config.is_empty();
        let port = server.address.port();
        for (host, allowed) in [
            (format!("127.0.0.1:{port}"), true),
            (format!("localhost:{port}"), true),
            ("localhost".to_owned(), true),
            (format!("[::1]:{port}"), true),
            ("tools.example.com".to_owned(), own),
            ("tools.example.com:443".to_owned(), own),
            (format!("evil.example:{port}"), false),
            (format!("127.0.0.1.evil.example:{port}"), false),
            (format!("localhost@evil.example:{port}"), false),
            ("192.168.0.1".to_owned(), false),
        ] {
            let expected = if allowed { 200 } else { 403 };
            assert_eq!(
                status(&server, &[("Host", &host)]),
                expected,
                "Host: {host}"
            );
        }
        for malformed in [
            &[("Host", "-")][..],
            &[("Host", "localhost"), ("Host", "evil.example")],
        ] {
            assert_eq!(status(&server, malformed), 400, "{malformed:?}");
        }
        for (origin, allowed) in [
            (format!("http://localhost:{port}"), true),
            ("http://127.0.0.1:6274".to_owned(), true),
            ("https://app.example.com".to_owned(), own),
            ("http://app.example.com".to_owned(), false),
            ("https://app.example.com:444".to_owned(), false),
            ("https://evil.example".to_owned(), false),
            ("http://localhost.evil.example".to_owned(), false),
            ("null".to_owned(), false),
            ("file://".to_owned(), false),
        ] {
            let expected = if allowed { 200 } else { 403 };
            assert_eq!(
                status(&server, &[("Origin", &origin)]),
                expected,
                "Origin: {origin}"
            );
        }
        // An allowed Host does not make up for an Origin that is not allowed.
        assert_eq!(
            status(
                &server,
                &[("Host", "localhost"), ("Origin", "https://evil.example")]
            ),
            403
        );
    }
}

#[test]
fn every_path_of_the_server_is_guarded() {
    let server = HttpServer::start_with_config(&Folder::new(), "[http]\nsse = true");
    for (method, path) in [
        ("POST", "/mcp"),
        ("GET", "/mcp"),
        ("DELETE", "/mcp"),
        ("OPTIONS", "/mcp"),
        ("GET", "/sse"),
        ("POST", "/messages"),
    ] {
        assert_eq!(
            server
                .request(method, path, &[("Host", "evil.example")], b"{}")
                .status,
            403,
            "{method} {path}"
        );
        let origin = [("Origin", "https://evil.example")];
        assert_eq!(
            server.request(method, path, &origin, b"{}").status,
            403,
            "{method} {path}"
        );
    }
}

#[test]
fn allowed_pages_get_cors_headers() {
    let server = HttpServer::start_with_config(
        &Folder::new(),
        "[http]\nallowed_origins = [\"https://app.example.com\"]",
    );
    let asked = [
        ("Origin", "https://app.example.com"),
        ("Access-Control-Request-Method", "POST"),
        (
            "Access-Control-Request-Headers",
            "content-type,mcp-method,mcp-param-region",
        ),
    ];
    let response = server.request("OPTIONS", "/mcp", &asked, b"");
    assert_eq!(response.status, 200);
    assert_eq!(
        response.header("access-control-allow-origin"),
        Some("https://app.example.com")
    );
    assert!(
        response
            .header("access-control-allow-headers")
            .unwrap()
            .contains("mcp-param-region")
    );
    let response = server.post_stateless("tools/list", json!({}), &asked[..1]);
    assert_eq!(
        response.header("access-control-allow-origin"),
        Some("https://app.example.com")
    );
    assert!(
        response
            .header("access-control-expose-headers")
            .unwrap()
            .contains("mcp-session-id")
    );
    assert_eq!(
        server
            .post_stateless("tools/list", json!({}), &[])
            .header("access-control-allow-origin"),
        None
    );
}
