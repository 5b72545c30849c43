//! `toolbay token`: generates, lists and revokes tokens.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::support::{CommandOutput, Folder, ToolbayCommand};

fn toolbay(folder: &Folder, args: &[&str]) -> CommandOutput {
    ToolbayCommand::new(folder).args(args).run()
}

/// Writes a configuration with generated tokens.
fn with_tokens(folder: &Folder, tokens: &[&[&str]]) -> String {
    let mut config = "# My server.\nlog = \"info\"\n\n".to_owned();
    for args in tokens {
        let made = toolbay(folder, &[&["token"][..], args].concat());
        assert_eq!(made.code, 0, "{made}");
        config.push_str(&made.raw_stdout);
        config.push('\n');
    }
    folder.write_config(&config);
    config
}

#[test]
fn tokens_are_generated_with_rights_listed_and_revoked() {
    let folder = Folder::new();
    with_tokens(
        &folder,
        &[
            &["ada"],
            &["ops", "--admin"],
            &["ci", "--tools", "time.*,echo"],
        ],
    );
    let listed = toolbay(&folder, &["token", "list"]);
    insta::assert_snapshot!(listed.stdout, @r"
    ada         every tool
    ops  admin  every tool
    ci          time.*, echo
    ");
    let as_json = toolbay(&folder, &["token", "list", "--json"]);
    let as_json: Value = serde_json::from_str(&as_json.raw_stdout).unwrap();
    assert_eq!(
        as_json["tokens"][2],
        json!({"name": "ci", "admin": false, "tools": ["time.*", "echo"]})
    );
    let revoked = toolbay(&folder, &["token", "revoke", "ops"]);
    assert_eq!(revoked.code, 0, "{revoked}");
    let listed = toolbay(&folder, &["token", "list"]);
    assert!(!listed.stdout.contains("ops"), "{listed}");
    let config = std::fs::read_to_string(folder.sibling_path("toolbay.toml")).unwrap();
    assert!(
        config.starts_with("# My server.\nlog = \"info\"\n") && config.contains("name = \"ci\""),
        "{config}"
    );
}

#[test]
fn mistakes_with_tokens_are_explained_and_change_nothing() {
    let folder = Folder::new();
    let config = with_tokens(&folder, &[&["ada"]]);
    let mut said = String::new();
    for args in [
        &["token", ""][..],
        &["token", "x", "--tools", "a*b"],
        &["token", "revoke", "adaa"],
        &["token", "revoke", "zzz"],
        &["token", "revoke", "ada"],
    ] {
        let outcome = toolbay(&folder, args);
        assert_ne!(outcome.code, 0, "{outcome}");
        let first = outcome.stderr.lines().next().unwrap_or_default();
        let _ = writeln!(said, "$ toolbay {}\n{first}\n", args.join(" "));
    }
    insta::assert_snapshot!(said);
    let after = std::fs::read_to_string(folder.sibling_path("toolbay.toml")).unwrap();
    assert_eq!(after, config);
}
