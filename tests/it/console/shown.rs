//! What the console shows: grants, reasons, contents without secrets, and the audit log.

use serde_json::{Value, json};

use super::RATES;
use super::site::{Site, cookie, encode_form, enter, hidden_field, post};
use crate::http::auth::token;
use crate::support::{
    Folder, HttpServer, TinyComponent, ToolbayCommand, error_kind_and_text, hostile,
};

const VALUE: &str = "hunter2-hunter2";

/// Opens the console of a server whose plugin has a secret.
fn site(config: &str) -> Site {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put(
        "hostile.toml",
        "[permissions]\nenvironment = [\"SECRET\"]\n[secrets.token]\nenvironment = \"SECRET\"",
    );
    folder.write_config(&format!("{RATES}{config}"));
    let command = ToolbayCommand::new(&folder)
        .args(["serve", "--http", "127.0.0.1:0"])
        .env("SECRET", VALUE);
    Site::open(HttpServer::run(command).wait_until_ready())
}

fn call(site: &Site, tool: &str, text: &str) {
    let params = json!({"name": tool, "arguments": {"text": text}});
    site.server
        .post_stateless("tools/call", params, &[])
        .response_message();
}

#[test]
fn arguments_and_results_are_stored_only_if_configured() {
    let quiet = site("");
    call(&quiet, "echo", "words of a caller");
    for path in ["/calls", "", "/log", "/audit"] {
        assert!(!quiet.page(path).contains("words of a caller"), "{path}");
    }
    let told = site("[console]\ncontents = true\n");
    call(&told, "echo", "words of a caller");
    let calls = told.page("/calls");
    assert_eq!(
        calls.matches("words of a caller").count(),
        2,
        "the argument and the result: {calls}"
    );
}

#[test]
fn contents_are_redacted_and_truncated() {
    let site = site("[console]\ncontents = true\n");
    call(&site, "tell", "content");
    call(&site, "echo", VALUE);
    call(&site, "echo", &"x".repeat(100_000));
    let calls = site.page("/calls");
    assert!(
        !calls.contains(VALUE) && calls.contains("[secret:token]"),
        "{calls}"
    );
    assert!(
        calls.contains("(the beginning)") && calls.len() < 60_000,
        "{}",
        calls.len()
    );
}

#[test]
fn the_audit_log_shows_only_digests_even_if_the_console_stores_contents() {
    let site = site("[console]\ncontents = true\n[audit]\nfolder = \"audit\"\n");
    call(&site, "echo", "words of a caller");
    assert!(site.page("/calls").contains("words of a caller"));
    let audit = site.until("/audit", |page| page.contains(">echo</td>"));
    assert!(
        audit.contains("arguments ") && !audit.contains("words of a caller"),
        "{audit}"
    );
}

#[test]
fn the_audit_log_has_only_actions_of_an_operator_that_were_done() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["echo"]).with_echo().build());
    // A separate cache: other tests of this build share theirs.
    let (operator, operators) = token("operator", "admin = true");
    let config = format!(
        "{RATES}[audit]\nfolder = \"log\"\n[compile]\ncache_folder = \"cache\"\n{operators}"
    );
    let site = Site::enter(
        HttpServer::start_with_config(&folder, &config).wait_until_ready(),
        &operator,
    );
    let stranger = site
        .server
        .request("POST", "/console/cache", &[("Cookie", &site.cookie)], b"");
    assert!(stranger.status >= 400, "{}", stranger.status);
    for (path, form, status) in [
        ("/plugin", vec![("id", "nobody"), ("disabled", "yes")], 404),
        ("/plugin", vec![("id", "a"), ("disabled", "yes")], 303),
        ("/plugin", vec![("id", "a"), ("disabled", "no")], 303),
        ("/cache", Vec::new(), 303),
    ] {
        assert_eq!(site.post(path, &form).status, status, "{path} {form:?}");
    }
    // The lines are written in this order.
    let page = site.until("/audit", |page| page.contains("action clear-cache"));
    assert!(
        page.contains("action disable") && page.contains("action enable"),
        "{page}"
    );
    let outcome = ToolbayCommand::new(&folder)
        .args(["audit", "show", "--json", "--caller", "token:operator"])
        .run();
    let lines = outcome
        .raw_stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let did: Vec<Value> = lines.filter(|line| line["event"] == "operator").collect();
    let [disable, enable, clear] = did.as_slice() else {
        panic!("{outcome}")
    };
    for (line, action) in [(disable, "disable"), (enable, "enable")] {
        assert_eq!(
            (&line["action"], &line["plugin"], &line["outcome"]),
            (&json!(action), &json!("a"), &json!("ok"))
        );
        assert_eq!(
            line["plugin_sha256"].as_str().map(str::len),
            Some(64),
            "{line}"
        );
    }
    assert_eq!(
        (&clear["action"], &clear["outcome"]),
        (&json!("clear-cache"), &json!("ok"))
    );
    assert!(
        clear.get("plugin").is_none()
            && clear["time"]
                .as_str()
                .is_some_and(|time| time.ends_with('Z')),
        "{clear}"
    );
    let verified = ToolbayCommand::new(&folder).args(["audit", "verify"]).run();
    assert_eq!(verified.code, 0, "{verified}");
}

#[test]
fn grants_are_in_plain_words_and_a_refused_file_has_its_reason() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["echo"]).build());
    folder.put(
        "a.toml",
        "prefix = \"acme\"\n[permissions]\nhttp = [\"https://api.example.com\"]\n[limits]\ntimeout = \"7s\"\n[config]\nunits = \"metric\"",
    );
    folder.put("broken.wasm", "not WebAssembly");
    let site = Site::open(HttpServer::start_with_config(&folder, RATES).wait_until_ready());
    let page = site.page("/plugin?id=a");
    for words in [
        "HTTP requests: &quot;https://api.example.com&quot;",
        "prefix: acme",
        "configuration keys: units",
        "7s",
        "acme_echo",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let page = site.page("/plugin?id=broken");
    assert!(
        page.contains("Reason for refusal") && page.contains("refused</span>"),
        "{page}"
    );
    let overview = site.page("");
    assert!(
        overview.contains("Attention needed") && overview.contains("broken"),
        "{overview}"
    );
    assert!(
        site.page("/tools?q=ECHO").contains("acme_echo")
            && site.page("/tools?q=nothing").contains("No tool matches")
    );
}

#[test]
fn an_operator_stops_a_running_call() {
    let folder = Folder::with("hostile.wasm", hostile());
    let (operator, operators) = token("operator", "admin = true");
    let (watcher, watchers) = token("watcher", "admin = true\ntools = [\"echo\"]");
    let (client, clients) = token("client", "");
    let config = format!("{RATES}[audit]\nfolder = \"log\"\n{operators}{watchers}{clients}");
    let server = HttpServer::start_with_config(&folder, &config).wait_until_ready();
    let authorization = format!("Bearer {client}");
    let params = json!({"name": "sleep_hour", "arguments": {}});
    let running = server.post_stateless("tools/call", params, &[("Authorization", &authorization)]);
    let site = Site::enter(server, &operator);
    let page = site.until("/calls", |page| page.contains("1 running call"));
    assert!(
        page.contains("token:client") && page.contains("name=sleep_hour"),
        "{page}"
    );
    let id = hidden_field(&page, "id");
    // A token that may not use the tool sees the call, and cannot stop it.
    let cookie = cookie(&enter(&site.server, &watcher)).unwrap();
    let seen = site
        .server
        .get("/console/calls", &[("Cookie", &cookie)])
        .text();
    assert!(
        seen.contains("1 running call") && !seen.contains("name=\"id\""),
        "{seen}"
    );
    let csrf = hidden_field(&seen, "csrf");
    let form = encode_form(&[("csrf", &csrf), ("id", &id)]);
    let refused = post(
        &site.server,
        "/console/calls",
        &[("Cookie", &cookie)],
        &form,
    );
    assert_eq!(refused.status, 403);
    for (id, notice) in [("999", "call-ended"), ("x", "call-ended"), (&id, "stopped")] {
        let response = site.post("/calls", &[("id", id)]);
        assert_eq!(
            response.header("location"),
            Some(format!("/console/calls?done={notice}").as_str())
        );
    }
    let answer = running.response_message();
    assert_eq!(
        error_kind_and_text(&answer["result"]),
        (
            "cancelled".to_owned(),
            "An operator of the server stopped the call.".to_owned()
        )
    );
    let page = site.until("/calls", |page| !page.contains("running call"));
    assert!(page.contains("stopped by an operator"), "{page}");
    assert_eq!(
        site.post("/calls", &[("id", &id)]).header("location"),
        Some("/console/calls?done=call-ended")
    );
    let outcome = ToolbayCommand::new(&folder)
        .args(["audit", "show", "--json", "--event", "operator"])
        .run();
    let lines: Vec<Value> = outcome
        .raw_stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [line] = lines.as_slice() else {
        panic!("{outcome}")
    };
    assert_eq!(
        (&line["action"], &line["plugin"], &line["caller"]),
        (
            &json!("stop-call"),
            &json!("hostile"),
            &json!("token:operator")
        )
    );
}
