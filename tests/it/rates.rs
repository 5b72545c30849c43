//! Rate limits, and plugins that are disabled.

use serde_json::json;

use crate::support::{
    Folder, HttpServer, StdioServer, TinyComponent, error_kind_and_text, hostile,
};

#[test]
fn a_rate_limit_applies_to_each_tool_of_a_plugin_separately() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["one", "two"]).build());
    folder.put("a.toml", "[rate_limit]\ncalls = 3\nper = \"1h\"");
    let mut server = StdioServer::start(&folder);
    for _ in 0..3 {
        server.text("one", json!({}));
    }
    let result = server.call("one", json!({}));
    let (kind, text) = error_kind_and_text(&result);
    assert_eq!(kind, "rate-limited");
    assert!(
        text.starts_with(
            "This tool exceeded its rate limit of 3 calls per 1h (to allow more, raise rate_limit). Retry after "
        ),
        "{text}"
    );
    let retry = result["_meta"]["dev.toolbay/retry-after-ms"]
        .as_u64()
        .unwrap();
    assert!(
        (1..=1_200_000).contains(&retry),
        "a third of the hour: {retry} ms"
    );
    assert_eq!(server.text("two", json!({})), "fine");
    // The grant raises the limit.
    folder.put("a.toml", "[rate_limit]\ncalls = 100\nper = \"1h\"");
    server.wait_until("the new rate holds", |server| {
        server.call("one", json!({})).get("isError").is_none()
    });
}

#[test]
fn the_server_can_limit_the_rate_of_every_tool_and_of_a_client() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["one", "two"]).build());
    let mut server =
        StdioServer::start_with_config(&folder, "[rate_limit]\ncalls = 1\nper = \"1h\"");
    server.text("one", json!({}));
    assert_eq!(server.failure("one", json!({})).0, "rate-limited");
    server.text("two", json!({}));
    drop(server);
    let mut server =
        StdioServer::start_with_config(&folder, "[caller_rate_limit]\ncalls = 2\nper = \"1h\"");
    server.text("one", json!({}));
    server.text("two", json!({}));
    let (kind, text) = server.failure("one", json!({}));
    assert_eq!(kind, "rate-limited");
    assert!(
        text.starts_with(
            "This client exceeded its rate limit of 2 calls per 1h (to allow more, raise caller_rate_limit)."
        ),
        "{text}"
    );
    // Only calls count.
    server.wait_until_listed(&["one", "two"]);
}

#[test]
fn over_http_there_are_default_rate_limits() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["one"]).build());
    let server = HttpServer::start(&folder);
    let call = json!({"name": "one", "arguments": {}});
    // One call becomes available every half second. A machine that makes calls faster than that
    // reaches the limit.
    let refused = (0..10_000)
        .map(|_| server.result("tools/call", call.clone()))
        .find(|r| r.get("isError").is_some());
    let (kind, text) = error_kind_and_text(&refused.unwrap());
    assert_eq!(kind, "rate-limited");
    assert!(
        text.starts_with("This tool exceeded its rate limit of 120 calls per 1m (to allow more, raise rate_limit)."),
        "{text}"
    );
    drop(server);
    let server = HttpServer::start_with_config(&folder, "[rate_limit]\ncalls = 1000\nper = \"1m\"");
    for n in 0..600 {
        assert!(
            server
                .result("tools/call", call.clone())
                .get("isError")
                .is_none(),
            "call {n}"
        );
    }
}

#[test]
fn a_plugin_that_crashes_repeatedly_is_disabled() {
    let folder = Folder::with("bad.wasm", hostile());
    folder.put("good.wasm", TinyComponent::new(&["good"]).build());
    let mut server = StdioServer::start_with_config(
        &folder,
        "[circuit_breaker]\ncrashes = 3\ndisable_duration = \"1h\"",
    );
    for tool in [
        "panic",
        "panic",
        "count",
        "fail",
        "panic",
        "panic",
        "exit_with_words",
        "panic",
        "panic",
    ] {
        server.call(tool, json!({}));
    }
    assert_eq!(server.text("count", json!({})), "1", "never three in a row");
    for _ in 0..3 {
        assert_eq!(server.failure("panic", json!({})).0, "trap");
    }
    let (kind, text) = server.failure("count", json!({}));
    assert_eq!(kind, "disabled");
    assert!(
        text.starts_with("The tool's plugin is disabled for a short time because it crashed repeatedly. Retry after "),
        "{text}"
    );
    assert_eq!(server.text("good", json!({})), "fine");
    // A new version starts with no crashes.
    folder.put("bad.wasm", crate::support::hostile_version(7));
    server.wait_until("the new version", |server| {
        server.call("count", json!({})).get("isError").is_none()
    });
}

/// Returns the `Authorization` headers of two callers over HTTP, and the configuration of their
/// tokens.
pub(crate) fn two_callers() -> ([String; 2], String) {
    let tokens = ["ada", "bob"].map(|name| crate::http::auth::token(name, ""));
    let config = tokens.each_ref().map(|(_, lines)| lines.as_str()).concat();
    (tokens.map(|(token, _)| format!("Bearer {token}")), config)
}

fn call_as(server: &HttpServer, caller: &str, tool: &str) -> serde_json::Value {
    server
        .post_stateless(
            "tools/call",
            json!({"name": tool}),
            &[("Authorization", caller)],
        )
        .response_message()["result"]
        .clone()
}

#[test]
fn a_plugin_that_crashes_for_one_caller_serves_the_others() {
    let ([ada, bob], tokens) = two_callers();
    let config = format!("{tokens}[circuit_breaker]\ncrashes = 3\ndisable_duration = \"1h\"");
    let server = HttpServer::start_with_config(&Folder::with("bad.wasm", hostile()), &config)
        .wait_until_ready();
    for _ in 0..3 {
        assert_eq!(
            error_kind_and_text(&call_as(&server, &ada, "panic")).0,
            "trap"
        );
    }
    assert_eq!(
        error_kind_and_text(&call_as(&server, &ada, "count")).0,
        "disabled"
    );
    let line = server.log.wait_for("in the calls of this caller");
    assert!(
        line.contains("token:ada") && line.contains("after 3 crashes in a row"),
        "{line}"
    );
    // Crashes in calls of one client do not deprive another client of the plugin.
    assert!(call_as(&server, &bob, "count").get("isError").is_none());
    for _ in 0..2 {
        assert_eq!(
            error_kind_and_text(&call_as(&server, &bob, "panic")).0,
            "trap",
            "the crashes of the other do not count"
        );
    }
    assert!(call_as(&server, &bob, "count").get("isError").is_none());
    assert_eq!(
        error_kind_and_text(&call_as(&server, &ada, "count")).0,
        "disabled",
        "nor do the successes"
    );
}

#[test]
fn each_caller_has_its_own_rate_limit_of_a_tool_unless_the_limit_is_shared() {
    let ([ada, bob], tokens) = two_callers();
    let folder = Folder::with("own.wasm", TinyComponent::new(&["own"]).build());
    folder.put("own.toml", "[rate_limit]\ncalls = 2\nper = \"1h\"");
    folder.put("shared.wasm", TinyComponent::new(&["shared"]).build());
    folder.put(
        "shared.toml",
        "[rate_limit]\ncalls = 2\nper = \"1h\"\nshared = true",
    );
    folder.put("default.wasm", TinyComponent::new(&["default"]).build());
    let config = format!("{tokens}[rate_limit]\ncalls = 1\nper = \"1h\"\nshared = true");
    let server = HttpServer::start_with_config(&folder, &config).wait_until_ready();
    let kind = |caller: &str, tool: &str| {
        let result = call_as(&server, caller, tool);
        if result.get("isError").is_some() {
            error_kind_and_text(&result).0
        } else {
            "fine".to_owned()
        }
    };
    for caller in [&ada, &bob] {
        assert_eq!(
            [(); 3].map(|()| kind(caller, "own")),
            ["fine", "fine", "rate-limited"]
        );
    }
    assert_eq!(
        [&ada, &bob, &ada, &bob].map(|caller| kind(caller, "shared")),
        ["fine", "fine", "rate-limited", "rate-limited"]
    );
    assert_eq!(
        [&ada, &bob].map(|caller| kind(caller, "default")),
        ["fine", "rate-limited"]
    );
}

#[test]
fn single_tools_may_have_limits_of_their_own() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put(
        "hostile.toml",
        "[limits]\nfuel = 1_000_000_000\noutput = \"1KiB\"\n[tools.burn.limits]\nfuel = 100_000\n[tools.big_output.limits]\noutput = \"1MiB\"",
    );
    let mut server = StdioServer::start(&folder);
    let (kind, text) = server.failure("burn", json!({"n": 100_000}));
    assert_eq!(
        (kind.as_str(), text.contains("100,000 instructions")),
        ("fuel", true),
        "{text}"
    );
    server.text("big_output", json!({"n": 10_000}));
    assert_eq!(
        server.failure("echo", json!({"text": "x".repeat(2000)})).0,
        "output"
    );
}
