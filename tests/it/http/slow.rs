//! Requests that do not arrive completely. Each holds its connection only for a limited time.

use serde_json::json;

use crate::support::{Folder, HttpServer};

#[test]
fn slow_requests_time_out() {
    // With one connection at a time, the next is served when the previous one is closed.
    let server = HttpServer::start_with_config(
        &Folder::new(),
        "[http]\nconnections = 1\nidle_timeout = \"200ms\"",
    );
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: */*\r\n";
    for (begun, status) in [
        (String::new(), 0),
        (head.to_owned(), 0),
        (format!("{head}Content-Length: 100\r\n\r\n{{"), 408),
        (
            format!("{head}Transfer-Encoding: chunked\r\n\r\n1\r\n{{\r\n"),
            408,
        ),
    ] {
        assert_eq!(server.send_raw(&begun).status, status, "{begun:?}");
        assert_eq!(
            server.post_stateless("tools/list", json!({}), &[]).status,
            200,
            "after {begun:?}"
        );
    }
}
