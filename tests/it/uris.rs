//! URIs: parsed before a client has to parse them, and compared by their normalized form.

use serde_json::json;
use toolbay_testkit::TinyCoreModule;

use crate::support::{Folder, MODERN, StdioServer, ToolbayCommand, library};

#[test]
fn a_plugin_with_a_uri_that_clients_cannot_parse_is_refused() {
    let folder = Folder::with("library.wasm", library());
    let cases = [
        (
            "bracket",
            "http://[::1/",
            "begins with \"[\" and does not end with \"]\"",
        ),
        ("hostless", "http://", "has no host"),
        ("port", "notes://h:99999/", "has the port \"99999\""),
    ];
    for (id, uri, _) in cases {
        folder.put(
            &format!("{id}.wasm"),
            TinyCoreModule::new().resource(uri, "a").build(),
        );
    }
    folder.put(
        "template.wasm",
        TinyCoreModule::new()
            .template("http://h:99999/{id}", "a")
            .build(),
    );
    let said = ToolbayCommand::new(&folder).args(["list"]).run().stdout;
    for (id, uri, why) in cases {
        let line = said
            .lines()
            .find(|line| line.contains(&format!("resource {uri:?}")))
            .unwrap_or(&said);
        assert!(line.contains(why), "{id}: {line}");
    }
    assert!(
        said.contains("resource template \"http://h:99999/{id}\": it has the port \"99999\""),
        "{said}"
    );
    let mut server = StdioServer::start(&folder);
    server.wait_until("the library is there", |server| {
        !server.result("resources/list", json!({}))["resources"]
            .as_array()
            .unwrap()
            .is_empty()
    });
}

#[test]
fn a_resource_can_be_read_by_every_equivalent_uri() {
    let folder = Folder::with("library.wasm", library());
    for revision in ["2025-11-25", MODERN] {
        let mut server = StdioServer::start_with_revision(revision, &folder);
        server.wait_until("the library is there", |server| {
            !server.result("resources/list", json!({}))["resources"]
                .as_array()
                .unwrap()
                .is_empty()
        });
        for (uri, listed) in [
            ("library://catalog", "library://catalog"),
            ("LIBRARY://Catalog", "library://catalog"),
            ("library://c%61talog", "library://catalog"),
            (
                "Library://BOOKS/woolf/orland%6F",
                "library://books/woolf/orlando",
            ),
        ] {
            let read = server.result("resources/read", json!({"uri": uri}));
            assert_eq!(read["contents"][0]["uri"], listed, "{uri}");
        }
        // A URI with another normalized form is another resource.
        for uri in [
            "library://books/Woolf/orlando",
            "library://books/woolf/%2e%2e/catalog",
        ] {
            let error = server.error("resources/read", json!({"uri": uri}));
            assert!(
                error["code"] == -32002 || error["code"] == -32602,
                "{error}"
            );
        }
    }
}
