//! Who can open the console: without tokens, whoever can read the log; with tokens, the owner of an
//! operator's token.

use serde_json::json;

use super::site::{Site, cookie, encode_form, enter, hidden_field, post};
use super::{RATES, folder};
use crate::http::auth::{KEY, bearer, jwt, plugins, resource_with, token};
use crate::support::{HttpServer, ToolbayCommand};

#[test]
fn with_tokens_only_an_operator_token_opens_the_console() {
    let (model, models) = token("model", "");
    let (operator, operators) = token("operator", "admin = true");
    let server = HttpServer::start_with_config(&plugins(), &format!("{models}{operators}"))
        .wait_until_ready();
    // A valid token without the right gets a page that states this.
    let got = enter(&server, &model);
    assert_eq!((got.status, cookie(&got)), (403, None), "{model}");
    for wrong in ["toolbay_wrong", "", &"0".repeat(64)] {
        let got = enter(&server, wrong);
        assert_eq!((got.status, cookie(&got)), (401, None), "{wrong}");
    }
    // Credentials for /mcp and /metrics do not open a session of the console.
    for known in [&model, &operator] {
        assert_eq!(
            server
                .get("/console", &[("Authorization", &bearer(known))])
                .status,
            303
        );
    }
    assert!(
        !server.log.text().contains("/console/login#"),
        "the log opens nothing"
    );
    let site = Site::enter(server, &operator);
    assert!(site.page("").contains("token:operator"));
    assert!(
        !site.server.log.text().contains(&operator),
        "a token in the log"
    );
    // A session of the console is not valid at /mcp.
    assert_eq!(
        site.server
            .post_stateless("tools/list", json!({}), &[("Cookie", &site.cookie)])
            .status,
        401
    );
    assert_eq!(
        site.server
            .get("/metrics", &[("Cookie", &site.cookie)])
            .status,
        401
    );
}

#[test]
fn an_operator_can_call_only_the_tools_of_the_token() {
    let (watcher, watchers) = token("watcher", "tools = [\"time.*\"]\nadmin = true");
    let config = format!("{RATES}{watchers}[console]\ncontents = true\n");
    let site = Site::enter(
        HttpServer::start_with_config(&plugins(), &config).wait_until_ready(),
        &watcher,
    );
    let page = site.page("/tool?name=time.now");
    let schema = hidden_field(&page, "schema");
    let call = |tool: &str| {
        site.post(
            "/tool",
            &[
                ("tool", tool),
                ("schema", &schema),
                ("raw", "yes"),
                ("json", "{}"),
            ],
        )
    };
    assert!(call("time.now").text().contains("badge good\">ok"));
    assert!(site.page("/tool?name=secret").contains("no right to call"));
    let refused = call("secret");
    assert_eq!(refused.status, 403);
    assert!(!refused.text().contains("class=\"result\""));
    let calls = site.page("/calls");
    assert!(
        calls.contains("time.now") && !calls.contains(">secret</a>"),
        "it was not called: {calls}"
    );
    assert!(calls.contains("token:watcher"));
}

#[test]
fn a_token_of_an_authorization_server_does_not_open_the_console() {
    let (operator, operators) = token("operator", "admin = true");
    let server = resource_with(&plugins(), &operators);
    let got = enter(&server, &jwt("one", KEY, json!({})));
    assert_eq!((got.status, cookie(&got)), (401, None));
    assert_eq!(enter(&server, &operator).status, 303);
    let server = resource_with(&plugins(), "");
    assert_eq!(
        server.get("/console", &[]).status,
        404,
        "nobody could open it"
    );
}

#[test]
fn the_console_is_not_served_where_it_cannot_be_opened() {
    let (model, models) = token("model", "");
    let (_, operators) = token("operator", "admin = true");
    let none = |config: &str, address: &str| {
        let folder = folder();
        folder.write_config(config);
        let server =
            HttpServer::run(ToolbayCommand::new(&folder).args(["serve", "--http", address]));
        let local = [("Host", "localhost")];
        for path in [
            "/",
            "/console",
            "/console/login",
            "/console/style.css",
            "/console/plugins",
        ] {
            assert_eq!(server.get(path, &local).status, 404, "{config} {path}");
        }
        let form = encode_form(&[("token", &model)]);
        assert_eq!(post(&server, "/console/login", &local, &form).status, 404);
    };
    none("[http]\nanonymous = true", "0.0.0.0:0");
    none(&models, "127.0.0.1:0");
    none("[console]\nenabled = false", "127.0.0.1:0");
    // On an address that others can reach, the operator must enable the console explicitly.
    none(&operators, "0.0.0.0:0");
}

#[test]
fn the_console_can_be_enabled_on_a_public_address() {
    let (operator, operators) = token("operator", "admin = true");
    let folder = folder();
    folder.write_config(&format!("{operators}[console]\nenabled = true\n"));
    let server =
        HttpServer::run(ToolbayCommand::new(&folder).args(["serve", "--http", "0.0.0.0:0"]));
    let host = [("Host", "localhost"), ("Origin", "http://localhost")];
    // Origins of this machine are foreign there, unless the operator lists them.
    assert_eq!(
        post(
            &server,
            "/console/login",
            &host,
            &encode_form(&[("token", &operator)])
        )
        .status,
        403
    );
    let hosts = "[http]\nallowed_hosts = [\"tools.example.com\"]\nallowed_origins = [\"https://tools.example.com\"]\n";
    folder.write_config(&format!("{hosts}{operators}[console]\nenabled = true\n"));
    let server =
        HttpServer::run(ToolbayCommand::new(&folder).args(["serve", "--http", "0.0.0.0:0"]));
    let host = [
        ("Host", "tools.example.com"),
        ("Origin", "https://tools.example.com"),
    ];
    assert_eq!(
        post(
            &server,
            "/console/login",
            &host,
            &encode_form(&[("token", &operator)])
        )
        .status,
        303
    );
}

#[test]
fn enabling_a_console_that_cannot_be_opened_is_an_error() {
    let (_, models) = token("model", "");
    for (config, address) in [
        ("[http]\nanonymous = true\n", "0.0.0.0:0"),
        (models.as_str(), "127.0.0.1:0"),
    ] {
        let folder = folder();
        folder.write_config(&format!("{config}[console]\nenabled = true\n"));
        let outcome = ToolbayCommand::new(&folder)
            .args(["serve", "--http", address])
            .run();
        assert_eq!(outcome.code, 64, "{outcome}");
        assert!(
            outcome
                .stderr
                .contains("console.enabled = true needs a caller who can open the console"),
            "{outcome}"
        );
    }
    let folder = folder();
    let command = ToolbayCommand::new(&folder)
        .args(["serve", "--http", "127.0.0.1:0"])
        .env("TOOLBAY_CONSOLE_ENABLED", "false");
    assert_eq!(HttpServer::run(command).get("/console", &[]).status, 404);
}
