//! `/console`: who can open it, what attackers try, what it shows, and the actions that it offers.

mod access;
mod answers;
mod attacks;
mod held;
mod shown;
pub(crate) mod site;
mod stdio;

use serde_json::json;

use self::site::{Site, hidden_field};
use crate::support::{
    DEADLINE, Folder, HttpServer, TinyComponent, error_kind_and_text, hostile, result_text, web,
};

/// Rate limits that no test reaches.
const RATES: &str = "[rate_limit]\ncalls = 100_000\nper = \"1m\"\n[caller_rate_limit]\ncalls = 100_000\nper = \"1m\"\n";

/// Every page.
const PAGES: [&str; 8] = [
    "",
    "/plugins",
    "/tools",
    "/calls",
    "/denials",
    "/approvals",
    "/audit",
    "/log",
];

/// Returns a folder with a plugin that echoes its arguments.
fn folder() -> Folder {
    Folder::with("a.wasm", TinyComponent::new(&["echo"]).with_echo().build())
}

#[test]
fn an_operator_opens_the_console_calls_a_tool_and_sees_the_call() {
    let site = Site::open(HttpServer::start_with_config(&folder(), RATES).wait_until_ready());
    let page = site.page("/tool?name=echo");
    let called = site.post(
        "/tool",
        &[
            ("tool", "echo"),
            ("schema", &hidden_field(&page, "schema")),
            ("raw", "yes"),
            ("json", "{}"),
        ],
    );
    assert_eq!(called.status, 200);
    let called = called.text();
    assert!(
        called.contains("class=\"badge good\">ok</span>"),
        "{called}"
    );
    let calls = site.page("/calls");
    assert!(
        calls.contains(">echo</a>") && calls.contains(">console</td>"),
        "{calls}"
    );
    let overview = site.page("");
    assert!(
        overview.contains("<dd>1<small>none failed</small>"),
        "{overview}"
    );
    site.server
        .log
        .wait_for("console: opened viewer=\"console\"");
}

#[test]
fn disabling_a_plugin_rejects_calls_and_enabling_it_resets_its_circuit_breaker() {
    let folder = Folder::with("hostile.wasm", hostile());
    let config = format!("{RATES}[circuit_breaker]\ncrashes = 2\ndisable_duration = \"1h\"\n");
    let site = Site::open(HttpServer::start_with_config(&folder, &config).wait_until_ready());
    let call = |tool: &str| {
        let arguments = if tool == "echo" {
            json!({"text": "hello"})
        } else {
            json!({})
        };
        let params = json!({"name": tool, "arguments": arguments});
        site.server
            .post_stateless("tools/call", params, &[])
            .response_message()["result"]
            .clone()
    };
    let set = |disabled: &str| {
        site.post("/plugin", &[("id", "hostile"), ("disabled", disabled)])
            .status
    };
    assert_eq!(result_text(&call("echo")), "hello");
    assert_eq!(set("yes"), 303);
    let (kind, said) = error_kind_and_text(&call("echo"));
    assert_eq!(
        (
            kind.as_str(),
            said.contains("was disabled by the operator of the server")
        ),
        ("disabled", true),
        "{said}"
    );
    assert!(site.page("/plugin?id=hostile").contains(">disabled</span>"));
    assert_eq!(set("no"), 303);
    assert_eq!(result_text(&call("echo")), "hello");
    for _ in 0..2 {
        assert_eq!(error_kind_and_text(&call("panic")).0, "trap");
    }
    assert_eq!(error_kind_and_text(&call("echo")).0, "disabled");
    let page = site.page("/plugin?id=hostile");
    assert!(
        page.contains("Disabled after crashes") && page.contains("ip:127.0.0.1"),
        "{page}"
    );
    assert_eq!(set("no"), 303);
    assert_eq!(result_text(&call("echo")), "hello");
    assert!(
        !site
            .page("/plugin?id=hostile")
            .contains("Disabled after crashes")
    );
    assert_eq!(
        site.post("/plugin", &[("id", "nobody"), ("disabled", "yes")])
            .status,
        404
    );
}

#[test]
fn clearing_the_compile_cache_does_not_affect_calls() {
    let folder = folder();
    // A separate cache: other tests of this build share theirs.
    let config = format!("{RATES}[compile]\ncache_folder = \"cache\"\n");
    let site = Site::open(HttpServer::start_with_config(&folder, &config).wait_until_ready());
    let files = || {
        let all = std::fs::read_dir(folder.root().join("cache/toolbay-compiled")).unwrap();
        all.filter(|file| {
            file.as_ref()
                .unwrap()
                .path()
                .extension()
                .is_some_and(|kind| kind == "cwasm")
        })
        .count()
    };
    assert_eq!(files(), 1);
    assert_eq!(
        site.post("/cache", &[]).header("location"),
        Some("/console?done=cleared")
    );
    assert_eq!(files(), 0);
    let params = json!({"name": "echo", "arguments": {}});
    assert!(site.server.result("tools/call", params)["content"].is_array());
    site.server
        .log
        .wait_for("the compile cache was cleared viewer=\"console\" components=1");
}

/// Returns the form that calls `echo` without arguments.
fn echo_form(schema: &str) -> [(&str, &str); 4] {
    [
        ("tool", "echo"),
        ("schema", schema),
        ("raw", "yes"),
        ("json", "{}"),
    ]
}

#[test]
fn a_call_that_requires_approval_is_made_when_the_viewer_approves() {
    let folder = folder();
    folder.put("a.toml", "require_approval = \"always\"\n");
    let site = Site::open(HttpServer::start_with_config(&folder, RATES).wait_until_ready());
    let schema = hidden_field(&site.page("/tool?name=echo"), "schema");
    let form = echo_form(&schema);
    let asked = site.post("/tool", &form).text();
    assert!(
        asked.contains("Approve this call?")
            && asked.contains("The operator of this server requires a person"),
        "{asked}"
    );
    assert!(!asked.contains("class=\"result\""), "it was not made");
    assert!(site.page("/approvals").contains("1 call waits"));
    let wrong = site
        .post(
            "/tool",
            &[&form[..], &[("allow", &"0".repeat(64))]].concat(),
        )
        .text();
    assert!(
        wrong.contains("Approve this call?"),
        "a yes to another question counts for nothing"
    );
    let allow = hidden_field(&asked, "allow");
    let called = site
        .post("/tool", &[&form[..], &[("allow", &allow)]].concat())
        .text();
    assert!(
        called.contains("class=\"result\"") && called.contains("badge good\">ok"),
        "{called}"
    );
    assert!(site.page("/approvals").contains("approved"));
}

#[test]
fn a_viewer_approves_only_the_version_that_was_shown() {
    let component = |text: &str| TinyComponent::new(&["echo"]).with_text(text).build();
    let folder = Folder::with("a.wasm", component("one"));
    folder.put("a.toml", "require_approval = \"always\"\n");
    let site = Site::open(HttpServer::start_with_config(&folder, RATES).wait_until_ready());
    let schema = hidden_field(&site.page("/tool?name=echo"), "schema");
    let form = echo_form(&schema);
    let ask = || hidden_field(&site.post("/tool", &form).text(), "allow");
    let allow = ask();
    assert_eq!(allow, ask());
    // The same tool with the same question.
    folder.put("a.wasm", component("two"));
    while ask() == allow {}
    let late = site
        .post("/tool", &[&form[..], &[("allow", &allow)]].concat())
        .text();
    assert!(
        late.contains("Approve this call?") && !late.contains("class=\"result\""),
        "{late}"
    );
}

#[test]
fn a_denial_is_shown_with_the_line_that_would_allow_it() {
    let site = Site::open(
        HttpServer::start_with_config(&Folder::with("web.wasm", web()), RATES).wait_until_ready(),
    );
    for _ in 0..2 {
        let params = json!({"name": "try_to_send", "arguments": {"url": "https://evil.example/"}});
        assert!(result_text(&site.server.result("tools/call", params)).contains("denied"));
    }
    let page = site.page("/denials");
    assert!(
        page.contains("2 times") && page.contains("web.toml"),
        "{page}"
    );
    assert!(
        page.contains("http = [&quot;https://evil.example&quot;]"),
        "{page}"
    );
}

#[test]
fn calls_are_pushed_to_the_page_however_they_end() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put(
        "hostile.toml",
        "[limits]\ntimeout = \"1m\"\nfuel = 1_000_000_000_000\n[tools.burn.limits]\nfuel = 1_000_000\n".to_owned()
            + &folder.create_gate(),
    );
    let site = Site::open(HttpServer::start_with_config(&folder, RATES).wait_until_ready());
    let call = |tool: &str, arguments| {
        site.server
            .post_stateless(
                "tools/call",
                json!({"name": tool, "arguments": arguments}),
                &[],
            )
            .response_message()
    };
    call("echo", json!({"text": "hello"}));
    call("burn", json!({"n": 100_000_000}));
    call("burn", json!({"n": "secret words"}));
    call("panic", json!({}));
    call("nobody_knows_it", json!({}));
    let page = site.page("/calls");
    for outcome in ["ok", "fuel", "invalid-arguments", "trap", "unknown-tool"] {
        assert!(
            page.contains(&format!(">{outcome}</span>")),
            "{outcome}: {page}"
        );
    }
    assert!(
        page.contains("limits.fuel") && page.contains("do not match the input schema"),
        "{page}"
    );
    assert!(
        !page.contains("secret words"),
        "a value of an argument: {page}"
    );
    let running = site.server.post_stateless(
        "tools/call",
        json!({"name": "wait_for_gate", "arguments": {}, "_meta": {"progressToken": 1}}),
        &[],
    );
    running.close();
    site.until("/calls", |page| page.contains(">cancelled</span>"));
    let failed = site.page("/calls?failed=yes");
    assert!(
        !failed.contains(">ok</span>") && failed.contains(">trap</span>"),
        "{failed}"
    );
    assert!(
        site.page("/calls?q=burn").contains(">burn</a>")
            && !site.page("/calls?q=burn").contains(">panic</a>")
    );
}
