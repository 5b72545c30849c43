//! `toolbay ps`: running calls of a server, and stopping one.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::support::{CommandOutput, Folder, StdioServer, TinyComponent, ToolbayCommand};

/// A user with a server whose tool `spin` never ends.
struct User {
    folder: Folder,
    session: tempfile::TempDir,
}

impl User {
    fn new() -> Self {
        let spin = TinyComponent::new(&["spin"]).before_call("(loop $again (br $again))");
        let folder = Folder::with("a.wasm", spin.build());
        folder.put(
            "a.toml",
            "[limits]\ntimeout = \"10m\"\nfuel = 1_000_000_000_000\n",
        );
        folder.write_config("[audit]\nfolder = \"log\"\n");
        let session = tempfile::tempdir().unwrap();
        std::fs::set_permissions(session.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        Self { folder, session }
    }

    fn toolbay(&self, args: &[&str]) -> ToolbayCommand {
        let own = self.session.path().to_str().unwrap();
        ToolbayCommand::new(&self.folder)
            .args(args)
            .env("XDG_RUNTIME_DIR", own)
            .env("HOME", own)
    }

    fn run(&self, args: &[&str]) -> CommandOutput {
        self.toolbay(args).run()
    }

    fn serve(&self) -> StdioServer {
        let mut server = StdioServer::run(self.toolbay(&["serve"])).with_handshake("2025-11-25");
        server.wait_for_tool("spin");
        server
    }

    /// Returns the running calls of the first server.
    fn calls(&self) -> Vec<Value> {
        let listed = self.run(&["ps", "--json"]);
        assert_eq!(listed.code, 0, "{listed}");
        let listed: Value = serde_json::from_str(&listed.raw_stdout).unwrap();
        listed["servers"][0]["calls"].as_array().unwrap().clone()
    }
}

#[test]
fn a_running_call_is_listed_and_stopped_with_a_line_in_the_audit_log() {
    let user = User::new();
    let mut server = user.serve();
    assert!(user.calls().is_empty());
    let idle = user.run(&["ps"]);
    assert!(idle.stderr.contains("no running calls"), "{idle}");
    let id = server.start_call("spin", json!({}));
    // The command starts after the call was sent, but the server may not have read it.
    let mut calls = Vec::new();
    server.wait_until("the call is listed", |_| {
        calls = user.calls();
        calls.len() == 1 && calls[0]["plugin"] == "a"
    });
    let call = &calls[0];
    assert_eq!(
        (&call["tool"], &call["caller"], &call["progress"]),
        (&json!("spin"), &json!("stdio"), &json!(null))
    );
    assert!(call["age_ms"].is_u64(), "{call}");
    let shown = user.run(&["ps"]);
    assert!(
        shown.stdout.starts_with("CALL ") && shown.stdout.contains("spin"),
        "{shown}"
    );
    let number = call["call"].to_string();
    let unknown = user.run(&["ps", "--stop", "999"]);
    assert_eq!(unknown.code, 1);
    assert!(
        unknown.stderr.contains("no call 999 is running"),
        "{unknown}"
    );
    let stopped = user.run(&["ps", "--stop", &number]);
    assert_eq!(stopped.code, 0, "{stopped}");
    let result = server.finish_call(id);
    assert_eq!(result["isError"], true, "{result}");
    assert!(user.calls().is_empty());
    server.stop();
    let audit = user.run(&["audit", "show", "--event", "operator", "--json"]);
    let line: Value = serde_json::from_str(audit.raw_stdout.trim()).unwrap();
    assert_eq!(line["action"], "stop-call", "{line}");
    assert!(
        line["caller"].as_str().unwrap().starts_with("uid:"),
        "{line}"
    );
}

#[test]
fn without_a_server_or_with_several_the_next_step_is_printed() {
    let user = User::new();
    for args in [&["ps"][..], &["ps", "--stop", "1"], &["ps", "--pid", "1"]] {
        let none = user.run(args);
        assert_eq!(none.code, 1);
        assert!(
            none.stderr.contains("no server of this user answers"),
            "{none}"
        );
    }
    // Only one server at a time writes to a log.
    user.folder.write_config("");
    let servers = [user.serve(), user.serve()];
    let several = user.run(&["ps", "--stop", "1"]);
    assert_eq!(several.code, 64);
    assert!(
        several.stderr.contains("name the one with --pid"),
        "{several}"
    );
    let pid = servers[1].pid().to_string();
    let one = user.run(&["ps", "--pid", &pid]);
    assert!(
        one.code == 0 && one.stderr.contains(&pid) && one.stderr.lines().count() == 1,
        "{one}"
    );
}
