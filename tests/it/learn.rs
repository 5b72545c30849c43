//! `toolbay serve --learn`: denials stay denials, and become proposals of grants. Only the operator
//! puts a proposal in place.

use serde_json::json;

use crate::support::{Folder, StdioServer, ToolbayCommand, net, web};

/// Starts a server with `--learn`.
fn start_learning(folder: &Folder) -> StdioServer {
    let revision = toolbay_testkit::revision::NEWEST_SESSION_REVISION;
    StdioServer::run(ToolbayCommand::new(folder).args(["serve", "--learn"]))
        .with_handshake(revision)
}

fn read_proposal(folder: &Folder, plugin: &str) -> String {
    std::fs::read_to_string(
        folder
            .plugin_folder()
            .join(format!("{plugin}.toml.proposed")),
    )
    .unwrap()
}

#[test]
fn a_denial_is_proposed_and_is_allowed_after_the_operator_renames_the_proposal() {
    let folder = Folder::with("web.wasm", web());
    folder.put("web.toml", "# ours\n[limits]\ntimeout = \"5s\"\n");
    let mut server = start_learning(&folder);
    server.wait_for_tool("send");
    let url = "http://127.0.0.1:9/x";
    for _ in 0..2 {
        assert_eq!(
            server.text("try_to_send", json!({"url": url})),
            "The request is denied."
        );
    }
    server
        .log
        .wait_for("wrote a proposed grant: web.toml.proposed; to accept it, rename it");
    let text = read_proposal(&folder, "web");
    assert!(
        text.contains("# ours") && text.contains("timeout = \"5s\""),
        "{text}"
    );
    assert!(
        text.contains("http = [\"http://127.0.0.1:9\"]\nprivate_networks = [\"127.0.0.1\"]\n"),
        "{text}"
    );
    // A proposal is neither a grant nor a file that `toolbay list` reports.
    assert_eq!(
        server.text("try_to_send", json!({"url": url})),
        "The request is denied."
    );
    let listed = ToolbayCommand::new(&folder).args(["list"]).run().stdout;
    assert!(
        !listed.contains("proposed") && !listed.contains("HTTP requests"),
        "{listed}"
    );
    let plugins = folder.plugin_folder();
    std::fs::rename(plugins.join("web.toml.proposed"), plugins.join("web.toml")).unwrap();
    // No server listens at this address, so the error is another one.
    server.wait_until("the grant applies", |server| {
        server.text("try_to_send", json!({"url": url})) != "The request is denied."
    });
    // A later denial is added to the grant that exists now.
    server.text("try_to_send", json!({"url": "https://b.example.com/"}));
    server.wait_until("the next proposal is written", |server| {
        server.result("ping", json!({}));
        plugins.join("web.toml.proposed").exists()
    });
    let text = read_proposal(&folder, "web");
    assert!(
        text.contains("http = [\"http://127.0.0.1:9\", \"https://b.example.com\"]"),
        "{text}"
    );
}

#[test]
fn each_plugin_has_its_own_proposal_and_a_name_without_a_port_is_a_hint() {
    let folder = Folder::with("web.wasm", web());
    folder.put("net.wasm", net());
    let mut server = start_learning(&folder);
    server.wait_for_tool("send");
    server.wait_for_tool("talk");
    server.text("try_to_send", json!({"url": "https://a.example.com"}));
    server
        .log
        .wait_for("wrote a proposed grant: web.toml.proposed");
    server.text("try_to_connect", json!({"host": "10.0.0.7", "port": 6379}));
    server.text("resolve", json!({"host": "db.internal", "port": 5432}));
    drop(server);
    let web = read_proposal(&folder, "web");
    let net = read_proposal(&folder, "net");
    assert!(
        web.contains("[permissions]\nhttp = [\"https://a.example.com\"]\n"),
        "{web}"
    );
    assert!(
        net.contains("tcp = [\"10.0.0.7:6379\"]\nprivate_networks = [\"10.0.0.7\"]\n"),
        "{net}"
    );
    assert!(
        net.contains("# Under [permissions], complete and add: tcp = [\"db.internal:PORT\"]\n"),
        "{net}"
    );
}

#[test]
fn without_learn_no_proposal_is_written() {
    let folder = Folder::with("web.wasm", web());
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("send");
    server.text("try_to_send", json!({"url": "https://a.example.com"}));
    server.log.wait_for("denied: ");
    drop(server);
    let mut names: Vec<_> = std::fs::read_dir(folder.plugin_folder())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["web.wasm"]);
}

#[test]
fn a_guest_controls_neither_the_path_nor_the_syntax_of_a_proposal() {
    let folder = Folder::with("web.wasm", web());
    let victim = folder.sibling_path("victim");
    std::fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, folder.plugin_folder().join("web.toml.proposed")).unwrap();
    let mut server = start_learning(&folder);
    server.wait_for_tool("send");
    for url in [
        "https://a.example.com/\"]%0A[permissions]",
        "https://a.example.com\"]\n[[permissions.mounts]]\nhost=\"/",
        "https://../../etc/passwd",
        "https://a.example.com/\u{1b}[2J",
        "https://*.example.com/",
    ] {
        server.text("try_to_send", json!({"url": url}));
    }
    for n in 0..200 {
        server.text(
            "try_to_send",
            json!({"url": format!("https://h{n}.example.com/")}),
        );
    }
    drop(server);
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    let text = read_proposal(&folder, "web");
    assert!(
        text.len() < 64 << 10 && text.contains("# The plugin was denied more than is listed here."),
        "{text}"
    );
    assert!(
        !text.contains("mounts") && !text.contains("passwd") && !text.contains('\u{1b}'),
        "{text}"
    );
    folder.put("web.toml", text);
    let listed = ToolbayCommand::new(&folder).args(["list"]).run().stdout;
    assert!(
        listed.contains("web  ready") && !listed.contains("mount"),
        "it is a valid grant: {listed}"
    );
}

#[test]
fn learn_is_refused_on_an_address_that_others_can_reach() {
    let folder = Folder::with("web.wasm", web());
    folder.write_config("[http]\nanonymous = true\nallowed_hosts = [\"a\"]");
    let open = ToolbayCommand::new(&folder)
        .args(["serve", "--learn", "--http", "0.0.0.0:0"])
        .run();
    assert_eq!(open.code, 64, "{open}");
    let said = "--learn: expected standard input and output or a loopback address such as 127.0.0.1:8931, not 0.0.0.0:0";
    assert!(open.stderr.contains(said), "{open}");
}
