//! What the operator sees and does: the command line, the audit log, and mistakes in grants.

use std::fs;

use super::*;
use crate::support::{CommandOutput, TinyComponent, TinyTool, ToolbayCommand};

/// Returns a folder with a plugin that has a tool that requires approval and a read-only tool.
fn notes(grant: &str) -> Folder {
    let tools = vec![
        TinyTool::new("erase"),
        TinyTool {
            read_only: Some(true),
            ..TinyTool::new("look")
        },
    ];
    let folder = Folder::with(
        "notes.wasm",
        TinyComponent::with_tools(tools).with_echo().build(),
    );
    folder.put("notes.toml", grant);
    folder
}

fn run(folder: &Folder, args: &[&str]) -> CommandOutput {
    ToolbayCommand::new(folder).args(args).run()
}

#[test]
fn a_call_without_a_terminal_needs_the_flag() {
    let folder = notes("require_approval = \"destructive\"");
    let outcome = run(&folder, &["call", "erase", "{\"a\": 1}"]);
    assert_eq!(
        (outcome.code, outcome.stdout.as_str()),
        (1, ""),
        "{outcome}"
    );
    let expected = "toolbay: the grant of \"notes\" requires a person to allow calls of \"erase\" (require_approval): call it \
                    from a terminal, or add --yes\n";
    assert_eq!(outcome.stderr, expected);
    // Piped input does not count as a person.
    let outcome = ToolbayCommand::new(&folder)
        .args(["call", "erase"])
        .run_with("y\n");
    assert_eq!(
        (outcome.code, outcome.stdout.as_str()),
        (1, ""),
        "{outcome}"
    );
    let outcome = run(&folder, &["call", "erase", "{\"a\": 1}", "--yes"]);
    assert_eq!(
        (outcome.code, outcome.stdout.as_str()),
        (0, "{\"a\":1}\n"),
        "{outcome}"
    );
    for args in [&["call", "look"][..], &["call", "look", "--yes"]] {
        assert_eq!(run(&folder, args).code, 0, "{args:?}");
    }
}

/// Makes a call on a terminal where this is typed.
fn call_on_terminal(folder: &Folder, typed: &str) -> CommandOutput {
    let script = "exec script --quiet --return --command \"$*\" /dev/null";
    ToolbayCommand::new(folder)
        .args(["call", "erase"])
        .with_shell_wrapper(script)
        .run_with(typed)
}

#[test]
fn on_a_terminal_the_operator_is_asked() {
    let folder = notes("[tools.erase]\nrequire_approval = \"always\"");
    let outcome = call_on_terminal(&folder, "y\n");
    assert_eq!(outcome.code, 0, "{outcome}");
    for words in [
        "The operator of this server requires a person to allow this call",
        "    tool    erase",
        "    | {}",
        "Type y",
    ] {
        assert!(outcome.stdout.contains(words), "{words}: {outcome}");
    }
    for typed in ["n\n", "\n", "yep\n", ""] {
        let outcome = call_on_terminal(&folder, typed);
        assert_eq!(outcome.code, 1, "{typed:?}: {outcome}");
        assert!(outcome.stdout.contains("toolbay: not called"), "{outcome}");
    }
}

#[test]
fn list_and_check_name_the_tools_that_require_approval() {
    let folder = notes(
        "prefix = \"acme\"\nrequire_approval = \"destructive\"\n[tools.look]\nrequire_approval = \"first\"",
    );
    let listed = run(&folder, &["list"]).stdout;
    let line = "    + a person must allow: acme_erase (before each call), acme_look (before the first call)\n";
    assert!(listed.contains(line), "{listed}");
    let listed: Value =
        serde_json::from_str(&run(&folder, &["list", "--json"]).raw_stdout).unwrap();
    assert_eq!(
        listed["plugins"]["notes"]["require_approval"],
        json!({"acme_erase": "each", "acme_look": "first"})
    );
    let file = folder.plugin_path("notes.wasm").display().to_string();
    let checked = run(&folder, &["check", &file]).stdout;
    assert!(
        checked.contains("asks    a person must allow it, before each call"),
        "{checked}"
    );
    assert!(
        checked.contains("asks    a person must allow it, before the first call"),
        "{checked}"
    );
    let asks = |folder: &Folder| {
        let checked: Value =
            serde_json::from_str(&run(folder, &["check", &file, "--json"]).raw_stdout).unwrap();
        (
            checked["tools"][0]["require_approval"].clone(),
            checked["tools"][1]["require_approval"].clone(),
            checked["remarks"].clone(),
        )
    };
    assert_eq!(asks(&folder), (json!("each"), json!("first"), json!([])));
    folder.put("notes.toml", "");
    folder.write_config("require_approval = \"destructive\"");
    assert_eq!(asks(&folder), (json!("each"), Value::Null, json!([])));
    folder.put("notes.toml", "require_approval = \"allways\"");
    let why = "notes.toml:1:20: require_approval: expected \"always\", \"first\", \"destructive\" or \"never\", not \"allways\"; \
               did you mean \"always\"?";
    assert_eq!(asks(&folder).2, json!([why]));
}

#[test]
fn an_unknown_approval_value_refuses_the_plugin_and_stops_the_server() {
    let folder = notes("[tools.erase]\nrequire_approval = \"alwyas\"");
    let listed = run(&folder, &["list"]).stdout;
    assert!(
        listed.contains("notes  refused") && listed.contains("did you mean \"always\"?"),
        "{listed}"
    );
    folder.write_config("require_approval = \"ask\"");
    let outcome = run(&folder, &["serve"]);
    assert_eq!(outcome.code, 64, "{outcome}");
    let why = "require_approval: expected \"always\", \"first\", \"destructive\" or \"never\", not \"ask\"";
    assert!(outcome.stderr.contains(why), "{outcome}");
    let outcome = ToolbayCommand::new(&notes(""))
        .args(["list"])
        .env("TOOLBAY_REQUIRE_APPROVAL", "destructive")
        .run();
    assert!(
        outcome
            .stdout
            .contains("    + a person must allow: erase (before each call)\n"),
        "{outcome}"
    );
}

/// Returns the complete lines of the audit log about `event`.
fn events(folder: &Folder, event: &str) -> Vec<Value> {
    let files = fs::read_dir(folder.sibling_path("log"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    files.sort();
    let text: String = files
        .iter()
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["event"] == event).collect()
}

#[test]
fn the_audit_log_records_each_approval_with_its_caller_time_and_answer() {
    let folder = folder("require_approval = \"first\"");
    folder.write_config(&format!("{CONFIG}[audit]\nfolder = \"log\"\n"));
    let mut server = session(&folder, "2025-11-25", &form_capabilities());
    for answer in [
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
        approval_content(),
        approval_content(),
    ] {
        conversation(&mut server, count(), &mut |_| json!({"result": answer}));
    }
    server.stop();
    let mut server = session(&folder, "2025-03-26", &form_capabilities());
    server.result("tools/call", count());
    server.stop();
    let approvals = events(&folder, "approval");
    let decisions: Vec<&str> = approvals
        .iter()
        .map(|line| line["decision"].as_str().unwrap())
        .collect();
    let expected = [
        "requested",
        "declined",
        "requested",
        "cancelled",
        "requested",
        "approved",
        "remembered",
        "unsupported",
    ];
    assert_eq!(decisions, expected);
    let calls = events(&folder, "call");
    let outcomes: Vec<&str> = calls
        .iter()
        .map(|line| line["outcome"].as_str().unwrap())
        .collect();
    let refused = "not-approved";
    assert_eq!(
        outcomes,
        [
            "input-required",
            refused,
            "input-required",
            refused,
            "input-required",
            "ok",
            "ok",
            refused
        ]
    );
    for (approval, call) in approvals.iter().zip(&calls) {
        assert_eq!(approval["call"], call["call"]);
        assert_eq!(
            (&approval["caller"], &approval["tool"]),
            (&json!("stdio"), &json!("ask"))
        );
        assert!(
            approval["grant_sha256"].is_string() && approval["time"].is_string(),
            "{approval}"
        );
        assert_eq!(approval["arguments_sha256"], call["arguments_sha256"]);
        let is_answer =
            ["declined", "cancelled", "approved"].contains(&approval["decision"].as_str().unwrap());
        assert_eq!(approval["waited_ms"].is_u64(), is_answer, "{approval}");
        // Only approved calls entered the plugin.
        assert_eq!(
            call.get("usage").is_some(),
            call["outcome"] == "ok",
            "{call}"
        );
    }
    assert_eq!(run(&folder, &["audit", "verify"]).code, 0);
    let shown = run(&folder, &["audit", "show", "--outcome", "input-required"]).stdout;
    assert_eq!(shown.lines().count(), 4, "{shown}");
    let shown = run(&folder, &["audit", "show", "--tool", "ask"]).stdout;
    assert!(shown.contains("decision declined"), "{shown}");
}

#[test]
fn a_secret_in_the_arguments_is_not_shown_to_the_person() {
    let folder = folder("require_approval = \"always\"\n[secrets.word]\nenvironment = \"WORD\"");
    let command = ToolbayCommand::new(&folder)
        .args(["serve", "--http", "127.0.0.1:0"])
        .env("WORD", "s3cret-\"word\"-é");
    let server = HttpServer::run(command).wait_until_ready();
    let call = steps(json!([{"count": "the s3cret-\"word\"-é, \u{202e}again"}]));
    let asked = stateless(&server, &call, &form_capabilities(), &[]);
    let message = asked["result"]["inputRequests"][KEY]["params"]["message"]
        .as_str()
        .unwrap();
    assert!(
        !message.contains("s3cret") && message.contains("[secret:word], \\u202eagain"),
        "{message}"
    );
    assert!(
        message.contains("Secrets of the plugin are left out."),
        "{message}"
    );
    // The plugin receives the secret.
    let response = stateless(
        &server,
        &with_answer(&call, &asked["result"], Some(approval_content())),
        &form_capabilities(),
        &[],
    );
    assert_eq!(step_texts(&response["result"]), ["1"]);
}
