//! Tests edits of realistic configurations against snapshots.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use toolbay_install::{
    ClientConfiguration, ConfigurationPath, ConfigurationScope, ConfigurationText, EditOutcome,
    PathEnvironment, ServerEntry, client_with_id,
};

fn around() -> PathEnvironment {
    PathEnvironment {
        home: PathBuf::from("/home/ada"),
        project: PathBuf::from("/work/app"),
        ..PathEnvironment::default()
    }
}

fn spot(client: &str) -> (&'static ClientConfiguration, ConfigurationPath) {
    let client = client_with_id(client).unwrap();
    (
        client,
        client
            .configuration_paths(ConfigurationScope::User, &around())
            .swap_remove(0),
    )
}

fn server() -> ServerEntry {
    let plugins: (&str, &Path) = ("--plugins", Path::new("/home/ada/plugins"));
    ServerEntry::command(Path::new("/usr/bin/toolbay"), &["serve"], &[plugins]).unwrap()
}

fn http() -> ServerEntry {
    ServerEntry::http("https://tools.example.com/mcp", Some("TOOLBAY_TOKEN")).unwrap()
}

/// Makes invisible characters of a text visible.
fn visible(text: &str) -> String {
    text.replace('\u{feff}', "<BOM>")
        .replace('\r', "<CR>")
        .replace('\t', "<TAB>")
}

fn edited(client: &str, text: &str, server: &ServerEntry) -> String {
    let (client, spot) = spot(client);
    let entry = server.to_entry(client, &spot, None).unwrap();
    let EditOutcome::Changed(after) = ConfigurationText::parse(spot.entry_format, text)
        .unwrap()
        .with_server("toolbay", &entry)
        .unwrap()
    else {
        panic!("nothing changed");
    };
    let again = ConfigurationText::parse(spot.entry_format, &after).unwrap();
    assert_eq!(
        again.with_server("toolbay", &entry).unwrap(),
        EditOutcome::Unchanged,
        "twice is once"
    );
    after
}

fn removed(client: &str, text: &str) -> String {
    let (_, spot) = spot(client);
    match ConfigurationText::parse(spot.entry_format, text)
        .unwrap()
        .without_server("toolbay")
        .unwrap()
    {
        EditOutcome::Changed(after) => after,
        EditOutcome::Unchanged => panic!("nothing changed"),
    }
}

/// Returns the text after installing and after uninstalling again.
fn both(client: &str, text: &str) -> String {
    let after = edited(client, text, &server());
    let back = removed(client, &after);
    let back = if back == text {
        "(as before)\n".to_owned()
    } else {
        visible(&back)
    };
    format!("{}--- uninstalled\n{back}", visible(&after))
}

/// Settings with comments, trailing commas and other servers.
const ZED: &str = r#"// Zed settings
//
// For information on how to configure Zed, see the Zed
// documentation: https://zed.dev/docs/configuring-zed
{
  "theme": { "mode": "system", "light": "One Light", "dark": "One Dark" },
  /* fonts */ "ui_font_size": 16, // large
  "context_servers": {
    // Documentation of libraries
    "docs": {
      "command": "npx",
      "args": ["-y", "docs-mcp@latest"], // newest
      "env": {},
    },
    // remote
    "linear": { "url": "https://mcp.linear.app/mcp" }, // sign in first
  },
  "buffer_font_size": 15.0,
  // the end
}
"#;

const CODEX: &str = r#"# Codex
model = "gpt-5"           # the default
approval_policy = "on-request"

[mcp_servers.docs]
command = "npx"
args = [
    "-y",
    "docs-mcp",  # no version
]

[mcp_servers.docs.env]
TOKEN = "abc"

# trusted
[projects."/work/app"]
trust_level = "trusted"

# the end
"#;

#[test]
fn settings_with_comments_and_trailing_commas() {
    insta::assert_snapshot!(both("zed", ZED));
}

#[test]
fn a_file_without_servers() {
    insta::assert_snapshot!(both(
        "gemini-cli",
        "{\n    \"theme\": \"GitHub\", // light\n    \"selectedAuthType\": \"oauth-personal\"\n}\n"
    ));
}

#[test]
fn tabs_and_an_empty_object_of_servers() {
    insta::assert_snapshot!(both("vscode", "{\n\t\"inputs\": [],\n\t\"servers\": {}\n}"));
}

#[test]
fn line_ends_of_windows_and_a_mark() {
    let text =
        "\u{feff}{\r\n  \"mcpServers\": {\r\n    \"a\": { \"command\": \"a\" }\r\n  }\r\n}\r\n";
    insta::assert_snapshot!(both("claude-desktop", text));
}

#[test]
fn a_file_on_one_line() {
    insta::assert_snapshot!(both(
        "cursor",
        "{\"mcpServers\":{\"a\":{\"url\":\"https://a.example/mcp\"}},\"x\":[1,2.50,1e3]}"
    ));
}

#[test]
fn files_without_content() {
    let mut said = String::new();
    for text in ["", "\n", "  \r\n", "// nothing yet", "{}", "{\n}\n"] {
        let _ = write!(
            said,
            "=== {}\n{}",
            text.escape_debug(),
            both("cursor", text)
        );
    }
    for text in ["", "\n", "  \r\n", "# nothing yet"] {
        let _ = write!(said, "=== {}\n{}", text.escape_debug(), both("codex", text));
    }
    insta::assert_snapshot!(said);
}

#[test]
fn toml_with_comments() {
    insta::assert_snapshot!(both("codex", CODEX));
}

#[test]
fn toml_with_line_ends_of_windows_stays_as_it_is() {
    let text = CODEX.replace('\n', "\r\n");
    assert!(both("codex", &text).ends_with("(as before)\n"));
    let after = edited("codex", &text, &server());
    assert_eq!(after.matches('\n').count(), after.matches("\r\n").count());
    // Changing an entry uses the tree, which loses Windows line ends.
    let again = edited("codex", &after, &http());
    assert_eq!(again.matches('\n').count(), again.matches("\r\n").count());
    assert!(again.starts_with(&text), "{again}");
}

#[test]
fn toml_with_other_forms_of_tables() {
    insta::assert_snapshot!(
        "inline",
        both(
            "codex",
            "mcp_servers = { a = { command = \"a\" } } # all\nz = 1\n"
        )
    );
    insta::assert_snapshot!(
        "dotted",
        both("codex", "mcp_servers.a.command = \"a\" # a\nz = 1\n")
    );
    insta::assert_snapshot!(
        "explicit",
        both(
            "codex",
            "[mcp_servers]\n# servers\n[mcp_servers.a]\ncommand = \"a\"\n"
        )
    );
}

#[test]
fn an_entry_keeps_what_does_not_say_how_the_server_is_reached() {
    let json = r#"{
  "mcpServers": {
    "toolbay": {
      // the old one
      "command": "/old/toolbay", // moved
      "args": ["serve"],
      "env": { "TOOLBAY_LOG": "debug" }, // more
      "disabled": false
    },
    "b": { "command": "b" }
  }
}
"#;
    insta::assert_snapshot!("changed", edited("claude-code", json, &server()));
    insta::assert_snapshot!("changed_to_http", edited("claude-code", json, &http()));
    let toml = r#"[mcp_servers.toolbay]
# the old one
command = "/old/toolbay" # moved
args = ["serve"]
startup_timeout_sec = 20

[mcp_servers.toolbay.env]
TOOLBAY_LOG = "debug"

[tui]
theme = "x"
"#;
    insta::assert_snapshot!("changed_toml", edited("codex", toml, &server()));
    insta::assert_snapshot!("changed_toml_to_http", edited("codex", toml, &http()));
    insta::assert_snapshot!("removed_toml", removed("codex", toml));
}

#[test]
fn comments_around_a_removed_entry_stay() {
    let json = r#"{
  "mcpServers": {
    "a": { "command": "a" }, // about a
    // about toolbay
    "toolbay": { "command": "toolbay" /* inside */ },
    // about b
    "b": { "command": "b" } // at the end
    // after all
  }
}
"#;
    insta::assert_snapshot!("between", removed("cursor", json));
    let json = "{\n  \"mcpServers\": {\n    \"a\": {}, // about a\n    \"toolbay\": {} // goes with it\n    // stays\n  } // servers\n}\n";
    insta::assert_snapshot!("last", removed("cursor", json));
    let json = "{\n  \"mcpServers\": {\n    // mine\n    \"toolbay\": {}\n  },\n  \"x\": 1\n}\n";
    insta::assert_snapshot!("only", removed("cursor", json));
    let toml = "# top\n[mcp_servers.toolbay] # gone\ncommand = \"x\"\n# stays\n\n# tui\n[tui]\n";
    insta::assert_snapshot!("between_toml", removed("codex", toml));
}

#[test]
fn every_client_has_its_own_entry() {
    let mut said = String::new();
    for client in &toolbay_install::CLIENTS {
        for (what, server) in [("command", server()), ("HTTP", http())] {
            for spot in client.configuration_paths(ConfigurationScope::User, &around()) {
                let entry = server.to_entry(client, &spot, None);
                let text = match entry {
                    Ok(entry) => {
                        match ConfigurationText::parse(spot.entry_format, "")
                            .unwrap()
                            .with_server("toolbay", &entry)
                            .unwrap()
                        {
                            EditOutcome::Changed(text) => text,
                            EditOutcome::Unchanged => panic!("nothing changed"),
                        }
                    }
                    Err(why) => format!("{why}\n"),
                };
                let _ = writeln!(
                    said,
                    "{} · {what} · {}\n{text}",
                    client.id,
                    spot.file.display()
                );
            }
        }
    }
    insta::assert_snapshot!(said);
}

#[test]
fn mistakes_are_told_with_their_place() {
    let mut said = String::new();
    for (client, texts) in [
        (
            "cursor",
            &[
                "{",
                "{\n  \"mcpServers\": {\n    \"a\": {}\n    \"b\": {}\n  }\n}",
                "{\"mcpServers\": {}",
                "[]",
                "\"text\"",
                "{} {}",
                "{\n  \"mcpServers\": []\n}",
                "{\n  \"mcpServers\": null\n}",
                "{\n  \"mcpServers\": {\n    \"toolbay\": \"x\"\n  }\n}",
                "{\n  \"mcpServers\": {\n    \"a\": 1\n  }\n}",
                "{\n  \"mcpServers\": {},\n  \"mcpServers\": {}\n}",
                "{\"mcpServers\": {\"toolbay\": {},\n  \"tool\\u0062ay\": {}}}",
                "{'mcpServers': {}}",
                "{mcpServers: {}}",
                "{\"a\": 0xff}",
                "{\"a\": /* open",
                "<html>",
                "\0",
            ][..],
        ),
        (
            "codex",
            &[
                "[mcp_servers",
                "model = ",
                "a = 1\na = 2",
                "mcp_servers = 1",
                "mcp_servers = []",
                "[mcp_servers]\ntoolbay = \"x\"",
                "[[mcp_servers.toolbay]]\ncommand = \"x\"",
                "{\"mcpServers\": {}}",
            ],
        ),
    ] {
        let (_, spot) = spot(client);
        for text in texts {
            let mistake = ConfigurationText::parse(spot.entry_format, text).expect_err(text);
            let _ = writeln!(said, "{}\n    {mistake}", text.escape_debug());
        }
    }
    insta::assert_snapshot!(said);
}

#[test]
fn a_text_that_is_nested_deeply_is_a_mistake_and_a_large_one_none() {
    let (client, spot) = spot("claude-code");
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(ConfigurationText::parse(spot.entry_format, &deep).is_err());
    let project = r#"{"history": [{"display": "a question", "pasted": {}}], "allowedTools": []}"#;
    let projects: Vec<String> = (0..20_000)
        .map(|n| format!("    \"/work/{n}\": {project}"))
        .collect();
    let large = format!(
        "{{\n  \"projects\": {{\n{}\n  }}\n}}\n",
        projects.join(",\n")
    );
    let entry = server().to_entry(client, &spot, None).unwrap();
    let EditOutcome::Changed(after) = ConfigurationText::parse(spot.entry_format, &large)
        .unwrap()
        .with_server("toolbay", &entry)
        .unwrap()
    else {
        panic!("nothing changed");
    };
    assert!(after.starts_with(large.trim_end_matches("\n}\n")));
}
