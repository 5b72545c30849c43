//! `permissions.deterministic`: the same call returns the same result.

use serde_json::json;

use crate::support::{Folder, StdioServer, ToolbayCommand, net};

fn server(grant: &str) -> StdioServer {
    let folder = Folder::with("net.wasm", net());
    folder.put("net.toml", grant);
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("look");
    server
}

#[test]
fn the_same_call_has_the_same_clocks_and_random_numbers() {
    let look = |server: &mut StdioServer, label: &str| server.text("look", json!({"label": label}));
    let mut first = server("[permissions]\ndeterministic = true");
    let said = look(&mut first, "a");
    assert_eq!(look(&mut first, "a"), said);
    assert_eq!(
        look(&mut server("[permissions]\ndeterministic = true"), "a"),
        said,
        "in another server as well"
    );
    // The clock starts at 1 January 2020, and the call waited for the requested time.
    assert!(
        said.contains(" 1577836800 ") && said.contains(" true "),
        "{said}"
    );
    let numbers = |said: &str| said.split(" 1577836800 ").next().unwrap().to_owned();
    assert_ne!(
        numbers(&look(&mut first, "b")),
        numbers(&said),
        "other arguments, other numbers"
    );
    // A busy-wait on the clock ends after the same number of reads each time.
    assert_eq!(first.text("spin", json!({})), "499");
    let traced = json!({"name": "look", "arguments": {"label": "a"}, "_meta": {
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}});
    assert_eq!(
        first.result("tools/call", traced)["content"][0]["text"],
        said,
        "a trace changes nothing"
    );
}

#[test]
fn without_determinism_each_call_differs() {
    for grant in ["", "[permissions]\ndeterministic = false"] {
        let mut server = server(grant);
        let said = [(); 2].map(|()| server.text("look", json!({"label": "a"})));
        assert_ne!(said[0], said[1]);
        assert!(!said[0].contains(" 1577836800 "), "{}", said[0]);
    }
}

#[test]
fn an_invalid_key_is_an_error_and_list_shows_a_valid_one() {
    let folder = Folder::with("net.wasm", net());
    let said = |grant: &str| {
        folder.put("net.toml", grant);
        ToolbayCommand::new(&folder).args(["list"]).run().stdout
    };
    let typo = said("[permissions]\ndeterministc = true");
    assert!(typo.contains("did you mean `deterministic`?"), "{typo}");
    let wrong = said("[permissions]\ndeterministic = \"yes\"");
    assert!(
        wrong.contains(
            "net.toml:2:17: permissions.deterministic: expected true or false, not \"yes\""
        ),
        "{wrong}"
    );
    assert!(
        said("[permissions]\ndeterministic = true")
            .contains("    + deterministic: fixed clocks and random numbers\n")
    );
}
