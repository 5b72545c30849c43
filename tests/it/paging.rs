//! Pages of `tools/list`.

use serde_json::json;

use crate::support::{Folder, StdioServer, TinyComponent};

const PAGES_OF_TWO: &str = "page_size = 2";

fn page(
    server: &mut StdioServer,
    cursor: Option<&serde_json::Value>,
) -> (Vec<String>, Option<serde_json::Value>) {
    let params = cursor.map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
    let result = server.result("tools/list", params);
    let tools = result["tools"].as_array().unwrap();
    let names = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    (names, result.get("nextCursor").cloned())
}

#[test]
fn pages_have_the_configured_size_and_are_sorted_by_name() {
    let folder = Folder::new();
    folder.put("x.wasm", TinyComponent::new(&["e", "a", "c"]).build());
    folder.put("y.wasm", TinyComponent::new(&["d", "b"]).build());
    let mut server = StdioServer::start_with_config(&folder, PAGES_OF_TWO);
    server.wait_until_listed(&["a", "b", "c", "d", "e"]);
    let (first, cursor) = page(&mut server, None);
    let (second, cursor) = page(&mut server, cursor.as_ref());
    let (third, end) = page(&mut server, cursor.as_ref());
    assert_eq!([first, second, third].concat(), ["a", "b", "c", "d", "e"]);
    assert_eq!(end, None);
}

#[test]
fn the_default_page_holds_five_hundred() {
    let names: Vec<String> = (0..501).map(|n| format!("tool-{n:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut server = StdioServer::start(&Folder::with(
        "many.wasm",
        TinyComponent::new(&names).build(),
    ));
    server.wait_until_listed(&names);
    let (first, cursor) = page(&mut server, None);
    assert_eq!(first, names[..500]);
    assert_eq!(
        page(&mut server, cursor.as_ref()),
        (vec!["tool-500".to_owned()], None)
    );
}

#[test]
fn a_reload_between_two_pages_neither_fails_nor_skips() {
    let folder = Folder::new();
    folder.put("x.wasm", TinyComponent::new(&["b", "d", "f", "h"]).build());
    let mut server = StdioServer::start_with_config(&folder, PAGES_OF_TWO);
    server.wait_until_listed(&["b", "d", "f", "h"]);
    let (_, cursor) = page(&mut server, None);
    // The tool that the cursor names is removed, and tools before and after it are added.
    folder.put("x.wasm", TinyComponent::new(&["a", "e", "f", "h"]).build());
    server.wait_until_listed(&["a", "e", "f", "h"]);
    let (second, cursor) = page(&mut server, cursor.as_ref());
    assert_eq!(second, ["e", "f"]);
    assert_eq!(
        page(&mut server, cursor.as_ref()),
        (vec!["h".to_owned()], None)
    );
}

#[test]
fn an_unknown_cursor_is_an_error() {
    let mut server =
        StdioServer::start(&Folder::with("x.wasm", TinyComponent::new(&["a"]).build()));
    for cursor in [json!("not a cursor!"), json!(7), json!("//")] {
        assert_eq!(
            server.error("tools/list", json!({"cursor": cursor}))["code"],
            -32602,
            "{cursor}"
        );
    }
    let error = server.error("tools/list", json!({"cursor": "?"}));
    assert_eq!(error["message"], "Invalid cursor");
    server.wait_until_listed(&["a"]);
}
