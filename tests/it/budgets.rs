//! Budgets of grants (`[budget]`): what the calls of a plugin may use per day.

use serde_json::{Value, json};

use crate::http::auth::token;
use crate::requests::Site;
use crate::support::{
    Folder, HttpServer, StdioServer, TinyComponent, ToolbayCommand, error_kind_and_text, web,
};

const CONFIG: &str = "[state]\nfolder = \"kept\"\n";

fn folder(budget: &str) -> Folder {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["echo"]).with_echo().build());
    folder.put("b.wasm", TinyComponent::new(&["other"]).with_echo().build());
    folder.put("a.toml", format!("[budget]\n{budget}\n"));
    folder.write_config(CONFIG);
    folder
}

fn start(folder: &Folder) -> StdioServer {
    let mut server = StdioServer::start(folder);
    server.wait_for_tool("echo");
    server.wait_for_tool("other");
    server
}

fn assert_used(result: &Value, key: &str) {
    let (kind, text) = error_kind_and_text(result);
    assert_eq!(kind, "rate-limited", "{result}");
    assert!(
        text.contains(&format!("({key})")) && text.contains("00:00 UTC"),
        "{text}"
    );
    assert!(
        result["_meta"]["dev.toolbay/retry-after-ms"].is_u64(),
        "{result}"
    );
}

#[test]
fn a_budget_of_calls_is_used_up_also_after_a_restart() {
    let folder = folder("calls = 2");
    let mut server = start(&folder);
    for _ in 0..2 {
        assert!(server.call("echo", json!({}))["isError"].is_null());
    }
    assert_used(&server.call("echo", json!({})), "budget.calls");
    assert!(server.call("other", json!({}))["isError"].is_null());
    server.stop();
    let listed = ToolbayCommand::new(&folder).args(["state", "list"]).run();
    assert!(listed.stdout.contains("budgets/a"), "{listed}");
    let mut server = start(&folder);
    assert_used(&server.call("echo", json!({})), "budget.calls");
    // Another budget applies to the same used part, without a restart.
    folder.put("a.toml", "[budget]\ncalls = 3\n");
    loop {
        let result = server.call("echo", json!({}));
        if result["isError"].is_null() {
            break;
        }
    }
    assert_used(&server.call("echo", json!({})), "budget.calls");
    let listed = ToolbayCommand::new(&folder).args(["list"]).run().stdout;
    assert!(listed.contains("budget: 3 calls per day\n"), "{listed}");
    let checked = ToolbayCommand::new(&folder).args(["call", "echo"]).run();
    assert_eq!(checked.code, 1, "{checked}");
}

#[test]
fn a_copy_of_the_state_contains_the_used_parts_of_budgets() {
    let [old, new] = [(); 2].map(|()| folder("calls = 1"));
    let mut server = start(&old);
    assert!(server.call("echo", json!({}))["isError"].is_null());
    server.stop();
    let listed = ToolbayCommand::new(&old).args(["state", "list"]).run();
    assert!(
        listed.stdout.contains("the used part of a budget"),
        "{listed}"
    );
    let copy = ToolbayCommand::new(&old).args(["state", "export"]).run();
    let file = new.sibling_path("copy");
    std::fs::write(&file, copy.raw_stdout).unwrap();
    let imported = ToolbayCommand::new(&new)
        .args(["state", "import", file.to_str().unwrap()])
        .run();
    assert_eq!(imported.code, 0, "{imported}");
    let mut server = start(&new);
    assert_used(&server.call("echo", json!({})), "budget.calls");
}

#[test]
fn without_a_budget_calls_are_not_counted() {
    let folder = folder("");
    let mut server = start(&folder);
    for _ in 0..5 {
        assert!(server.call("echo", json!({}))["isError"].is_null());
    }
    server.stop();
    let listed = ToolbayCommand::new(&folder).args(["state", "list"]).run();
    assert!(!listed.stdout.contains("budgets/"), "{listed}");
}

#[test]
fn a_call_gets_at_most_the_rest_of_the_fuel_in_the_budget() {
    let folder = folder("fuel = 1");
    let mut server = start(&folder);
    let result = server.call("echo", json!({}));
    assert_eq!(error_kind_and_text(&result).0, "fuel", "{result}");
    assert_used(&server.call("echo", json!({})), "budget.fuel");
    folder.put("a.toml", "[budget]\nfuel = 1_000_000_000\n");
    loop {
        let result = server.call("echo", json!({}));
        if result["isError"].is_null() {
            break;
        }
    }
}

#[test]
fn requests_send_and_receive_at_most_the_rest_of_the_budget() {
    let site = Site::start();
    let folder = Folder::with("web.wasm", web());
    let grant = |bytes: &str| format!("{}[budget]\nnetwork_bytes = {bytes:?}\n", site.grant());
    folder.put("web.toml", grant("1B"));
    folder.write_config(CONFIG);
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("send");
    let request = json!({"method": "GET", "url": site.url("/hello")});
    let result = server.call("send", request.clone());
    assert_eq!(result["isError"], true, "{result}");
    assert!(site.requests.try_recv().is_err());
    // Each exchange has more than 80 bytes.
    folder.put("web.toml", grant("1KiB"));
    let mut count = 0;
    loop {
        let result = server.call("send", request.clone());
        let is_sent = result["isError"].is_null();
        count += u32::from(is_sent);
        if count > 0 && !is_sent {
            break;
        }
    }
    assert!(count <= 12, "{count}");
}

#[test]
fn calls_that_run_at_once_reserve_the_rest_of_the_budget() {
    let site = Site::start();
    let folder = Folder::with("web.wasm", web());
    // As many bytes as one call may use.
    folder.put(
        "web.toml",
        format!(
            "{}[budget]\nnetwork_bytes = \"1MiB\"\n[limits]\nhttp_bytes = \"1MiB\"\n",
            site.grant()
        ),
    );
    folder.write_config(CONFIG);
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("send");
    let stuck = server.start_call("send", json!({"method": "GET", "url": site.url("/stuck")}));
    site.requests.recv().unwrap();
    let hello = json!({"method": "GET", "url": site.url("/hello")});
    let assert_reserved = |server: &mut StdioServer| {
        let result = server.call("send", hello.clone());
        let (kind, text) = error_kind_and_text(&result);
        assert_eq!(kind, "rate-limited", "{result}");
        assert!(text.contains("have reserved the rest"), "{text}");
        assert_eq!(result["_meta"]["dev.toolbay/retry-after-ms"], 1_000);
    };
    assert_reserved(&mut server);
    // Cancelling a call saves nothing.
    server.notify("notifications/cancelled", json!({"requestId": stuck}));
    assert_reserved(&mut server);
    server.stop();
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("send");
    assert_reserved(&mut server);
    assert!(site.requests.try_recv().is_err());
}

#[test]
fn each_caller_has_a_budget_of_its_own_only_with_that_scope() {
    for (scope, shares) in [("scope = \"caller\"", false), ("", true)] {
        let folder = folder(&format!("calls = 1\n{scope}"));
        let (ada, ada_table) = token("ada", "");
        let (bob, bob_table) = token("bob", "");
        let config = format!("{CONFIG}{ada_table}{bob_table}");
        let server = HttpServer::start_with_config(&folder, &config).wait_until_ready();
        let call = |word: &str| {
            let bearer = format!("Bearer {word}");
            let session = server.start_session_with_capabilities(
                "2025-11-25",
                json!({}),
                &[("Authorization", &bearer)],
            );
            session.result("tools/call", json!({"name": "echo", "arguments": {}}))
        };
        assert!(call(&ada)["isError"].is_null());
        assert_used(&call(&ada), "budget.calls");
        if shares {
            assert_used(&call(&bob), "budget.calls");
        } else {
            assert!(call(&bob)["isError"].is_null());
        }
    }
}

#[test]
fn no_call_begins_if_the_used_part_is_unknown() {
    for (config, why) in [
        ("[state]\nfolder = \"\"\n", "the server stores no state"),
        (
            "[state]\nfolder = \"file\"\n",
            "the used part of the budget is unknown",
        ),
    ] {
        let folder = folder("calls = 100");
        std::fs::write(folder.sibling_path("file"), "in the way").unwrap();
        folder.write_config(config);
        let mut server = start(&folder);
        let result = server.call("echo", json!({}));
        let (kind, text) = error_kind_and_text(&result);
        assert_eq!(kind, "disabled", "{result}");
        assert!(text.contains("its state is not available"), "{text}");
        server.log.wait_for(why);
        assert!(server.call("other", json!({}))["isError"].is_null());
    }
}
