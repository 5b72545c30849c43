//! Templates that are expensive to compare with a URI: their caller uses a bounded share of the
//! CPU, and other callers do not wait.

use serde_json::{Value, json};
use toolbay_testkit::TinyCoreModule;

use crate::support::{Folder, HttpServer, ToolbayCommand, library};

/// A number of templates that a plugin may plausibly have.
const TEMPLATES: usize = 3000;

/// Builds a plugin whose templates all have to be compared with `hostile_uri` variable by variable,
/// and none of which matches.
fn hostile() -> Vec<u8> {
    let body = (0..14)
        .map(|n| format!("{{+w{n}}}x"))
        .collect::<Vec<_>>()
        .concat();
    let templates = (0..TEMPLATES).map(|n| (format!("a:{{+v{n}}}x{body}Q{{+z}}"), format!("t{n}")));
    templates
        .fold(TinyCoreModule::new(), |offering, (uri, name)| {
            offering.template(&uri, &name)
        })
        .build()
}

fn hostile_uri(number: usize) -> String {
    format!("a:{}yQ{number:03}", "x".repeat(1990))
}

/// Starts a server with both plugins.
fn start_server() -> HttpServer {
    let folder = Folder::new();
    folder.put("hostile.wasm", hostile());
    folder.put("library.wasm", library());
    HttpServer::run(ToolbayCommand::new(&folder).args([
        "serve",
        "--http",
        "127.0.0.1:0",
        "--log",
        "debug",
    ]))
}

fn subscribe(server: &HttpServer, uris: &[String]) -> Value {
    let mut stream = server.post_stateless(
        "subscriptions/listen",
        json!({"notifications": {"resourceSubscriptions": uris}}),
        &[],
    );
    let acknowledged = stream.next_message().unwrap();
    assert_eq!(
        acknowledged["method"], "notifications/subscriptions/acknowledged",
        "{acknowledged}"
    );
    acknowledged["params"]["notifications"]["resourceSubscriptions"].clone()
}

#[test]
fn a_request_with_256_expensive_uris_has_a_bounded_cost() {
    let server = start_server();
    let mut uris = vec![
        "library://catalog".to_owned(),
        "library://books/woolf/orlando".to_owned(),
    ];
    uris.extend((0..254).map(hostile_uri));
    // Comparing each of them with every template to the end takes a second.
    assert_eq!(
        subscribe(&server, &uris),
        json!(["library://books/woolf/orlando", "library://catalog"])
    );
    server
        .log
        .wait_for("a URI was not compared with all resource templates");
}

#[test]
fn an_expensive_uri_is_not_found_and_other_uris_can_be_read() {
    let server = start_server();
    let expensive = server
        .post_stateless("resources/read", json!({"uri": hostile_uri(1)}), &[])
        .response_message();
    assert_eq!(expensive["error"]["code"], -32602, "{expensive}");
    server
        .log
        .wait_for("a URI was not compared with all resource templates");
    let reference = json!({"type": "ref/resource", "uri": hostile_uri(2)});
    let completed = server.post_stateless(
        "completion/complete",
        json!({"ref": reference, "argument": {"name": "z", "value": ""}}),
        &[],
    );
    assert_eq!(completed.response_message()["error"]["code"], -32602);
    for uri in ["library://catalog", "library://books/woolf/orlando"] {
        let read = server
            .post_stateless("resources/read", json!({"uri": uri}), &[])
            .response_message();
        assert_eq!(read["result"]["contents"][0]["uri"], uri, "{read}");
    }
}
