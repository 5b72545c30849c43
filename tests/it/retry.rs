//! Loads that failed for a reason that may be temporary are retried without a change to the file.

use std::os::unix::fs::symlink;

use serde_json::json;
use toolbay::{CompileConfig, Config, Flags};
use toolbay_catalog::PluginFileStatus;

use crate::support::{DEADLINE, Folder, StdioServer, TinyComponent};

#[tokio::test]
async fn a_compilation_that_could_not_be_started_is_retried() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let compiler = folder.sibling_path("compiler");
    let config = Config::load(
        &Flags {
            plugins: Some(folder.plugin_folder()),
            ..Flags::default()
        },
        [],
    )
    .unwrap();
    let compile = CompileConfig {
        cache_folder: Some("".into()),
        ..CompileConfig::default()
    };
    let config = Config { compile, ..config };
    let server = toolbay::Server::builder(config)
        .compiler(&compiler)
        .watch(false)
        .start()
        .unwrap();
    let snapshot = server.complete().await;
    let report = &snapshot.plugins["a"];
    assert_eq!(report.status, PluginFileStatus::Refused);
    assert_eq!(
        report.problems,
        [
            "cannot start the compiler: No such file or directory (os error 2); the load is retried automatically"
        ]
    );
    symlink(env!("CARGO_BIN_EXE_toolbay"), compiler).unwrap();
    let ready = server.wait_for(|snapshot| snapshot.plugins["a"].status == PluginFileStatus::Ready);
    let snapshot = tokio::time::timeout(DEADLINE, ready)
        .await
        .expect("it is tried again");
    assert!(snapshot.tools.contains_key("a"));
}

#[test]
fn listing_tools_that_timed_out_is_retried_without_delaying_others() {
    let spin = "(loop $for-ever (br $for-ever))";
    let folder = Folder::with(
        "slow.wasm",
        TinyComponent::new(&["slow"]).before_list(spin).build(),
    );
    let config = "log = \"debug\"\n[describe]\nfuel = 1_000_000_000_000\ntimeout = \"20ms\"";
    let mut server = StdioServer::start_with_config(&folder, config);
    let why = "listing what it offers failed: it did not finish within 20ms; the load is retried automatically";
    server.log.wait_for(&format!("WARN refused: {why}"));
    folder.put("a.wasm", TinyComponent::new(&["a"]).build());
    server.wait_until_listed(&["a"]);
    let pause = |server: &StdioServer, count: usize| {
        let line = server
            .log
            .wait_for_count(&format!("DEBUG still failing: {why}"), count);
        line.split("retry_after=").nth(1).unwrap().trim().to_owned()
    };
    assert_eq!([pause(&server, 1), pause(&server, 2)], ["2s", "4s"]);
    assert_eq!(server.text("a", json!({})), "fine");
    assert_eq!(
        server.log.text().matches("WARN refused").count(),
        1,
        "it is said once"
    );
    // A new version does not wait for the retry.
    folder.put("slow.wasm", TinyComponent::new(&["quick"]).build());
    server.wait_until_listed(&["a", "quick"]);
}
