//! `toolbay check-config` and `toolbay doctor`: what they check, and that they change nothing.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::support::{CommandOutput, Folder, StdioServer, TinyComponent, ToolbayCommand};

/// Runs a check with an own home folder and compile cache.
fn check(folder: &Folder, args: &[&str]) -> CommandOutput {
    let home = folder.sibling_path("home");
    fs::create_dir_all(&home).unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
    ToolbayCommand::new(folder)
        .args(args)
        .env("HOME", home.to_str().unwrap())
        .run()
}

/// Returns the status of the first check of this subject.
fn status<'a>(report: &'a Value, subject: &str) -> (&'a str, &'a str) {
    let checks = report["checks"].as_array().unwrap();
    let Some(check) = checks.iter().find(|check| check["subject"] == subject) else {
        panic!("{subject} in {report}");
    };
    (
        check["status"].as_str().unwrap(),
        check["message"].as_str().unwrap(),
    )
}

fn report(outcome: &CommandOutput) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{outcome}"))
}

#[test]
fn check_config_finds_what_would_stop_a_server_and_changes_nothing() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["one"]).build());
    folder.put("broken.wasm", "no component");
    folder.put("a.toml", "[limits]\nmemory = \"1TiB\"\n");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    folder.write_config(&format!(
        "[http]\nlisten = \"{address}\"\n[audit]\nfolder = \"log\"\n\
         [[http.tokens]]\nname = \"ci\"\nsha256 = \"{}\"\ntools = [\"two\"]\n",
        "0".repeat(64)
    ));
    let outcome = check(&folder, &["check-config", "--json"]);
    assert_eq!(outcome.code, 1, "{outcome}");
    let found = report(&outcome);
    assert_eq!(status(&found, "configuration").0, "ok");
    let (in_use, message) = status(&found, "http.listen");
    assert!(
        in_use == "warning" && message.contains("is in use"),
        "{message}"
    );
    let (audit, message) = status(&found, "the audit log");
    assert!(
        audit == "ok" && message.ends_with("log will be created"),
        "{message}"
    );
    assert_eq!(status(&found, "plugin broken").0, "error");
    assert_eq!(status(&found, "plugin a").0, "warning");
    let unmatched = found["checks"].as_array().unwrap().iter().any(|check| {
        check["message"]
            .as_str()
            .unwrap()
            .contains("no tool, prompt or resource matches \"two\"")
    });
    assert!(unmatched, "{found}");
    assert!(!folder.sibling_path("log").exists());
    // The port is still the other program's.
    assert_eq!(taken.local_addr().unwrap(), address);

    folder.remove("broken.wasm");
    folder.remove("a.toml");
    fs::write(folder.sibling_path("log"), "a file").unwrap();
    let outcome = check(&folder, &["check-config"]);
    assert_eq!(outcome.code, 1, "{outcome}");
    assert!(
        outcome
            .stdout
            .lines()
            .any(|line| line.starts_with("error    the audit log")),
        "{outcome}"
    );
    fs::remove_file(folder.sibling_path("log")).unwrap();
    drop(taken);
    let outcome = check(&folder, &["check-config"]);
    assert_eq!(outcome.code, 0, "{outcome}");
    assert!(outcome.stdout.contains("no errors, 1 warning"), "{outcome}");
}

#[test]
fn check_config_reads_certificates_and_keys_and_refuses_invalid_configurations() {
    let folder = Folder::new();
    for (config, code, subject) in [
        ("log_format = \"xml\"\n", 64, ""),
        (
            "[http]\nlisten = \"127.0.0.1:0\"\nanonymous = true\n[http.tls]\ncertificate = \"none.pem\"\nkey = \"none.pem\"\n",
            1,
            "http.tls",
        ),
        (
            "[http]\nlisten = \"127.0.0.1:0\"\n[http.oauth]\nresource = \"https://a.example/mcp\"\n\
             authorization_servers = [\"https://b.example\"]\njwks = \"none.json\"\n",
            1,
            "http.oauth",
        ),
    ] {
        folder.write_config(config);
        let outcome = check(&folder, &["check-config", "--json"]);
        assert_eq!(outcome.code, code, "{config}: {outcome}");
        if code == 1 {
            let found = report(&outcome);
            let (status, message) = status(&found, subject);
            assert!(status == "error" && message.contains("none."), "{message}");
        }
    }
}

#[test]
fn doctor_shows_what_the_machine_offers_and_which_clients_start_a_server() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["one"]).build());
    let plugins = folder.plugin_folder();
    let outcome = check(&folder, &["doctor", "--json"]);
    assert_eq!(outcome.code, 0, "{outcome}");
    let found = report(&outcome);
    for subject in [
        "program",
        "kernel",
        "configuration",
        "open files",
        "threads",
        "memory",
        "plugin folder",
        "folder events",
        "sandbox",
        "compile cache",
    ] {
        assert_eq!(status(&found, subject).0, "ok", "{subject}: {found}");
    }
    assert_ne!(status(&found, "confinement").0, "error");
    assert!(status(&found, "clients").1.contains("no client starts"));

    let entry = json!({"mcpServers": {
        "tools": {"command": "/nowhere/toolbay", "args": ["serve", "--plugins", plugins]},
        "other": {"command": "npx"},
    }});
    fs::write(
        folder.sibling_path("home").join(".claude.json"),
        entry.to_string(),
    )
    .unwrap();
    let outcome = check(&folder, &["doctor"]);
    assert_eq!(outcome.code, 1, "{outcome}");
    let line = outcome
        .stdout
        .lines()
        .find(|line| line.contains("client claude-code"))
        .unwrap_or_else(|| panic!("{outcome}"));
    assert!(
        line.starts_with("error") && line.contains("/nowhere/toolbay does not exist"),
        "{line}"
    );
    assert!(!outcome.stdout.contains("npx"), "{outcome}");
}

#[test]
fn doctor_names_a_limit_of_the_address_space() {
    let folder = Folder::new();
    let home = folder.sibling_path("home");
    fs::create_dir_all(&home).unwrap();
    let outcome = ToolbayCommand::new(&folder)
        .args(["doctor", "--json"])
        .env("HOME", home.to_str().unwrap())
        .with_shell_wrapper("ulimit -v 100000000; ulimit -n 64; exec \"$@\"")
        .run();
    let found = report(&outcome);
    let (address_space, message) = status(&found, "address space");
    assert!(
        address_space == "warning" && message.contains("ulimit -v"),
        "{message}"
    );
    let (files, message) = status(&found, "open files");
    assert!(
        files == "warning" && message.contains("at most 64"),
        "{message}"
    );
}

#[test]
fn the_log_can_be_json() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["one"]).build());
    let mut server = StdioServer::start_with_config(&folder, "log_format = \"json\"\n");
    server.wait_for_tool("one");
    let line = server
        .log
        .wait_for("serving over standard input and output");
    let event: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
    assert_eq!(event["level"], "INFO");
    assert_eq!(event["target"], "toolbay::cli::serve");
    assert!(
        event["plugins"].is_string() && event["time"].is_string(),
        "{line}"
    );
}
