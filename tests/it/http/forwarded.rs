//! `http.trusted_proxies`: the address of a caller behind a reverse proxy.

use serde_json::{Value, json};

use crate::support::{Folder, HttpServer, TinyComponent, ToolbayCommand};

/// Each address may make one call.
const CONFIG: &str = "[audit]\nfolder = \"log\"\n[caller_rate_limit]\ncalls = 1\nper = \"1h\"\n";

fn start(http: &str) -> (Folder, HttpServer) {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["one"]).build());
    let config = format!("{CONFIG}[http]\nanonymous = true\n{http}");
    let server = HttpServer::start_with_config(&folder, &config).wait_until_ready();
    (folder, server)
}

/// Calls the tool with this `X-Forwarded-For`, and returns whether the call was made.
fn is_called(server: &HttpServer, forwarded: &str) -> bool {
    let params = json!({"name": "one", "arguments": {}});
    let response = server.post_stateless("tools/call", params, &[("X-Forwarded-For", forwarded)]);
    response.status == 200 && response.json()["result"]["isError"] != true
}

/// Returns the callers of the calls in the audit log, the oldest first.
fn callers(folder: &Folder) -> Vec<String> {
    let shown = ToolbayCommand::new(folder)
        .args([
            "audit",
            "show",
            "--event",
            "call",
            "--outcome",
            "ok",
            "--json",
        ])
        .run();
    let caller = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["caller"].as_str().unwrap().to_owned()
    };
    shown.raw_stdout.lines().map(caller).collect()
}

#[test]
fn each_address_behind_a_trusted_proxy_is_a_caller() {
    let (folder, server) = start("trusted_proxies = [\"127.0.0.0/8\"]\n");
    assert!(is_called(&server, "192.0.2.7"));
    assert!(!is_called(&server, "192.0.2.7"));
    assert!(is_called(&server, "192.0.2.8"));
    // What a client writes does not make it another caller.
    assert!(!is_called(&server, "198.51.100.1, 192.0.2.8"));
    assert!(!is_called(&server, "127.0.0.1, 192.0.2.8:4711"));
    // Without an address from the proxy, the proxy is the caller.
    assert!(is_called(&server, "198.51.100.1, unknown"));
    assert!(!is_called(&server, ""));
    assert_eq!(
        callers(&folder),
        ["ip:192.0.2.7", "ip:192.0.2.8", "ip:127.0.0.1"]
    );
}

#[test]
fn no_header_states_an_address_without_a_trusted_proxy() {
    for http in ["", "trusted_proxies = [\"192.0.2.0/24\"]\n"] {
        let (folder, server) = start(http);
        assert!(is_called(&server, "192.0.2.7"));
        assert!(!is_called(&server, "192.0.2.8"));
        assert_eq!(callers(&folder), ["ip:127.0.0.1"]);
    }
}

#[test]
fn behind_a_proxy_a_loopback_address_does_not_make_an_operator() {
    let (_folder, open) = start("");
    assert_eq!(open.get("/metrics", &[]).status, 200);
    let (_folder, server) = start("trusted_proxies = [\"127.0.0.1\"]\n");
    for forwarded in ["127.0.0.1", "192.0.2.7"] {
        let response = server.get("/metrics", &[("X-Forwarded-For", forwarded)]);
        assert_eq!(response.status, 403, "{forwarded}");
    }
}

#[test]
fn mistakes_in_the_list_stop_the_server() {
    let folder = Folder::new();
    for (list, why) in [
        ("[\"0.0.0.0/0\"]", "contains every address"),
        ("[\"proxy.example\"]", "is not an address"),
        (
            "[\"unix\"]",
            "is for a server that listens on a Unix socket",
        ),
        ("[\"127.0.0.1\"]", "set up tokens"),
    ] {
        let anonymous = if why == "set up tokens" {
            ""
        } else {
            "anonymous = true\n"
        };
        folder.write_config(&format!(
            "[http]\nlisten = \"127.0.0.1:0\"\n{anonymous}trusted_proxies = {list}\n"
        ));
        let output = ToolbayCommand::new(&folder).args(["serve"]).run();
        assert!(output.code == 64 && output.stderr.contains(why), "{output}");
    }
}
