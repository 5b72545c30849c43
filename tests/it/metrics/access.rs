//! Access to metrics: without tokens, clients on this machine; with tokens, callers whose token
//! allows it.

use serde_json::json;

use super::scrape;
use crate::http::auth::{KEY, bearer, jwt, plugins, resource_with, token};
use crate::support::{Folder, HttpResponse, HttpServer, TinyComponent, ToolbayCommand};

/// Returns the status of a response. Asserts that a response other than 200 reveals no metrics.
fn status(response: HttpResponse) -> u16 {
    let status = response.status;
    let said = response.text();
    assert_eq!(
        said.contains("# TYPE toolbay_calls_total"),
        status == 200,
        "{said}"
    );
    status
}

fn metrics_status(server: &HttpServer, headers: &[(&str, &str)]) -> u16 {
    status(server.get("/metrics", headers))
}

#[test]
fn without_tokens_local_clients_can_read_metrics_and_web_pages_cannot() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let server = HttpServer::start_with_config(
        &folder,
        "[http]\nallowed_origins = [\"https://app.example.com\"]",
    )
    .wait_until_ready();
    assert_eq!(metrics_status(&server, &[]), 200);
    assert_eq!(metrics_status(&server, &[("Host", "localhost")]), 200);
    assert_eq!(
        metrics_status(&server, &[("Authorization", "Bearer whatever")]),
        200
    );
    for (host, status) in [
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("-", 400),
    ] {
        assert_eq!(metrics_status(&server, &[("Host", host)]), status, "{host}");
    }
    for origin in ["https://evil.example", "null"] {
        assert_eq!(
            metrics_status(&server, &[("Origin", origin)]),
            403,
            "{origin}"
        );
    }
    // A page that may call tools may not read metrics.
    let page = [("Origin", "https://app.example.com")];
    assert_eq!(
        server
            .get("/metrics", &page)
            .header("access-control-allow-origin"),
        None
    );
    assert_eq!(status(server.request("POST", "/metrics", &[], b"{}")), 405);
    assert_eq!(
        server
            .request("OPTIONS", "/metrics", &page, b"")
            .header("access-control-allow-origin"),
        None
    );
    assert_eq!(
        server.get("/metrics", &[]).header("cache-control"),
        Some("no-store")
    );
}

#[test]
fn with_tokens_only_an_admin_token_can_read_metrics() {
    let (caller, callers) = token("caller", "");
    let (denied, is_denied) = token("denied", "admin = false");
    let (operator, operators) = token("operator", "tools = []\nadmin = true");
    let server =
        HttpServer::start_with_config(&plugins(), &format!("{callers}{is_denied}{operators}"))
            .wait_until_ready();
    let challenge = |token: &str| {
        let response = server.get("/metrics", &[("Authorization", &bearer(token))]);
        let challenge = response
            .header("www-authenticate")
            .unwrap_or_default()
            .to_owned();
        (status(response), challenge)
    };
    assert_eq!(metrics_status(&server, &[]), 401);
    assert_eq!(
        metrics_status(&server, &[("Authorization", "Basic YTpi")]),
        401
    );
    assert_eq!(challenge("toolbay_wrong").0, 401);
    for ordinary in [&caller, &denied] {
        let (status, challenge) = challenge(ordinary);
        assert_eq!(status, 403);
        assert!(
            challenge.contains("insufficient_scope") && challenge.contains("admin = true"),
            "{challenge}"
        );
    }
    assert_eq!(challenge(&operator).0, 200);
    assert_eq!(
        metrics_status(
            &server,
            &[
                ("Authorization", &bearer(&operator)),
                ("Origin", "https://evil.example")
            ]
        ),
        403
    );
    assert_eq!(
        status(server.get(&format!("/metrics?token={operator}"), &[])),
        401
    );
    // One right does not include the other.
    let unknown = server.post_stateless(
        "tools/call",
        json!({"name": "secret"}),
        &[("Authorization", &bearer(&operator))],
    );
    assert_eq!(
        unknown.response_message()["error"]["message"],
        "Unknown tool: secret"
    );
    assert!(!server.log.text().contains(&operator), "a token in the log");
}

#[test]
fn a_token_of_an_authorization_server_cannot_read_metrics() {
    let (operator, operators) = token("operator", "admin = true");
    let server = resource_with(&plugins(), &operators);
    assert_eq!(
        metrics_status(
            &server,
            &[("Authorization", &bearer(&jwt("one", KEY, json!({}))))]
        ),
        403
    );
    assert_eq!(
        metrics_status(
            &server,
            &[(
                "Authorization",
                &bearer(&jwt("one", KEY, json!({"aud": "else"})))
            )]
        ),
        401
    );
    assert_eq!(metrics_status(&server, &[]), 401);
    assert_eq!(
        metrics_status(&server, &[("Authorization", &bearer(&operator))]),
        200
    );
}

#[test]
fn anonymous_callers_cannot_read_metrics() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    folder.write_config("[http]\nanonymous = true");
    let server =
        HttpServer::run(ToolbayCommand::new(&folder).args(["serve", "--http", "0.0.0.0:0"]))
            .wait_until_ready();
    let local = [("Host", "localhost")];
    assert_eq!(
        server
            .post_stateless("tools/list", json!({}), &local)
            .status,
        200
    );
    assert_eq!(metrics_status(&server, &local), 403);
}

#[test]
fn requests_through_a_local_proxy_cannot_read_metrics() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let server = HttpServer::start_with_config(
        &folder,
        "[http]\nanonymous = true\nallowed_hosts = [\"tools.example.com\"]",
    )
    .wait_until_ready();
    let proxied = [("Host", "tools.example.com")];
    assert_eq!(
        server
            .post_stateless("tools/list", json!({}), &proxied)
            .status,
        200
    );
    for host in ["tools.example.com", "localhost"] {
        assert_eq!(metrics_status(&server, &[("Host", host)]), 403, "{host}");
    }
}

#[test]
fn the_log_warns_about_a_loopback_port_without_tokens() {
    let said = "every account of this machine can call all tools through this port";
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let open = HttpServer::start_with_config(&folder, "").wait_until_ready();
    let line = open.log.wait_for(said);
    assert!(
        line.contains("WARN") && line.contains("http.tokens"),
        "{line}"
    );
    let (_, callers) = token("caller", "");
    let closed = HttpServer::start_with_config(&plugins(), &callers).wait_until_ready();
    closed.log.wait_for("serving over HTTP");
    assert!(!closed.log.text().contains(said), "{}", closed.log.text());
}

#[test]
fn metrics_can_be_turned_off() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let server =
        HttpServer::start_with_config(&folder, "[metrics]\nenabled = false").wait_until_ready();
    assert_eq!(metrics_status(&server, &[]), 404);
    assert!(
        server
            .post_stateless("tools/call", json!({"name": "a"}), &[])
            .response_message()["result"]
            .is_object()
    );
    drop(server);
    folder.write_config("");
    let command = ToolbayCommand::new(&folder)
        .args(["serve", "--http", "127.0.0.1:0"])
        .env("TOOLBAY_METRICS_ENABLED", "false");
    assert_eq!(metrics_status(&HttpServer::run(command), &[]), 404);
    let server = HttpServer::start_with_config(&folder, "[metrics]\nenabled = true");
    assert!(!scrape(&server).families.is_empty());
}
