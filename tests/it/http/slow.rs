//! Requests that do not arrive: each holds its connection for only so long.

use serde_json::json;

use crate::support::{Folder, HttpServer};

#[test]
fn what_does_not_arrive_is_not_waited_for() {
    // Of one connection at once, the next is served when the one before is closed.
    let server = HttpServer::configured(&Folder::new(), "[http]\nconnections = 1\nidle = \"200ms\"");
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: */*\r\n";
    for (begun, status) in [
        (String::new(), 0),
        (head.to_owned(), 0),
        (format!("{head}Content-Length: 100\r\n\r\n{{"), 408),
        (format!("{head}Transfer-Encoding: chunked\r\n\r\n1\r\n{{\r\n"), 408),
    ] {
        assert_eq!(server.raw(&begun).status, status, "{begun:?}");
        assert_eq!(server.modern("tools/list", json!({}), &[]).status, 200, "after {begun:?}");
    }
}
