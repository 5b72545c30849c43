//! `toolbay install` and `toolbay uninstall`, on the configurations of all clients in a home
//! folder.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{CommandOutput, Folder, ToolbayCommand, initialize};

/// Each client, the path of its configuration in the home folder, and the content of that file.
const CLIENTS: [(&str, &str, &str); 9] = [
    (
        "claude-code",
        ".claude.json",
        "{\n  \"numStartups\": 7,\n  \"mcpServers\": {\n    \"docs\": {\n      \"type\": \"http\",\n      \"url\": \
         \"https://docs.example.com/mcp\"\n    }\n  },\n  \"projects\": {\"/work\": {\"history\": []}}\n}\n",
    ),
    (
        "claude-desktop",
        ".config/Claude/claude_desktop_config.json",
        "{\r\n\t\"globalShortcut\": \"\",\r\n\t\"mcpServers\": {}\r\n}\r\n",
    ),
    (
        "vscode",
        ".config/Code/User/mcp.json",
        "{\n\t// servers for all workspaces\n\t\"servers\": {\n\t\t\"fetch\": { \"command\": \"uvx\", \"args\": \
         [\"mcp-server-fetch\"] }, // Python\n\t},\n\t\"inputs\": [],\n}\n",
    ),
    (
        "cursor",
        ".cursor/mcp.json",
        "\u{feff}{\"mcpServers\": {\"a\": {\"command\": \"a\"}}}",
    ),
    (
        "codex",
        ".codex/config.toml",
        "# my settings\nmodel = \"gpt-5\"  # the default\n\n[mcp_servers.docs]\ncommand = \"npx\"\n\n# trusted\n\
         [projects.\"/work\"]\ntrust_level = \"trusted\"\n",
    ),
    (
        "gemini-cli",
        ".gemini/settings.json",
        "{\n    \"theme\": \"GitHub\" // light\n}",
    ),
    (
        "zed",
        ".config/zed/settings.json",
        "// Zed settings\n{\n  \"theme\": \"One Dark\", /* dark */\n  \"context_servers\": {\n    \"linear\": {\"url\": \
         \"https://mcp.linear.app/mcp\"},\n  },\n}\n",
    ),
    (
        "windsurf",
        ".codeium/windsurf/mcp_config.json",
        "{\n  \"mcpServers\": {\n  }\n}\n",
    ),
    ("jetbrains", ".junie/mcp/mcp.json", ""),
];

/// A home folder next to a plugin folder.
struct Home {
    folder: Folder,
}

impl Home {
    fn new() -> Self {
        let folder = Folder::new();
        fs::create_dir(folder.sibling_path("home")).unwrap();
        Self { folder }
    }

    /// A home folder with the configurations of all clients.
    fn with_all_clients() -> Self {
        let home = Self::new();
        for (_, file, text) in CLIENTS {
            home.put(file, text);
        }
        home
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.sibling_path("home").join(file)
    }

    fn put(&self, file: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn toolbay(&self, args: &[&str]) -> ToolbayCommand {
        ToolbayCommand::new(&self.folder)
            .env(
                "HOME",
                self.path("").to_str().unwrap().trim_end_matches('/'),
            )
            .args(args)
    }

    fn run(&self, args: &[&str]) -> CommandOutput {
        let mut outcome = self.toolbay(args).run();
        outcome.stdout = self.normalize(&outcome.stdout);
        outcome.stderr = self.normalize(&outcome.stderr);
        outcome
    }

    /// Replaces the parts of a text that differ between machines.
    fn normalize(&self, text: &str) -> String {
        let program = self.folder.program().path().display().to_string();
        text.replace(&program, "<toolbay>")
            .replace(&self.folder.root().display().to_string(), "<root>")
    }

    /// Returns all files of the home folder, with their permissions and contents.
    fn files(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.folder.root().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let metadata = fs::symlink_metadata(&path).unwrap();
                if metadata.is_dir() {
                    folders.push(path.clone());
                }
                let content = if metadata.is_file() {
                    fs::read(&path).unwrap()
                } else {
                    Vec::new()
                };
                files.insert(path, (metadata.mode(), content));
            }
        }
        files
    }
}

/// Makes a byte order mark, carriage returns and tabs visible.
fn escape_invisible(text: &str) -> String {
    text.replace('\u{feff}', "<BOM>")
        .replace('\r', "<CR>")
        .replace('\t', "<TAB>")
}

#[test]
fn install_adds_the_server_to_every_client_once_and_uninstall_removes_it() {
    let home = Home::with_all_clients();
    let mut said = String::new();
    for (client, file, before) in CLIENTS {
        let path = home.path(file);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let outcome = home.run(&["install", client]);
        assert_eq!(
            (outcome.code, outcome.stderr.as_str()),
            (0, ""),
            "{outcome}"
        );
        let after = fs::read_to_string(&path).unwrap();
        let _ = writeln!(
            said,
            "=== {client}\n{}--- before\n{}\n--- after\n{}",
            outcome.stdout,
            escape_invisible(before),
            { escape_invisible(&home.normalize(&after)) }
        );
        assert_eq!(
            fs::metadata(&path).unwrap().mode() & 0o777,
            0o640,
            "{client}"
        );
        let backup = PathBuf::from(format!("{}.before-toolbay", path.display()));
        assert_eq!(fs::read_to_string(&backup).unwrap(), before, "{client}");
        assert_eq!(
            fs::metadata(&backup).unwrap().mode() & 0o777,
            0o640,
            "{client}"
        );

        let inode = fs::metadata(&path).unwrap().ino();
        let again = home.run(&["install", client]);
        assert!(
            again.code == 0 && again.stdout.contains("already; nothing was changed"),
            "{again}"
        );
        assert_eq!(
            fs::metadata(&path).unwrap().ino(),
            inode,
            "{client}: it was not written"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), after, "{client}");

        let outcome = home.run(&["uninstall", client]);
        assert_eq!(
            (outcome.code, outcome.stderr.as_str()),
            (0, ""),
            "{outcome}"
        );
        let back = fs::read_to_string(&path).unwrap();
        let _ = writeln!(
            said,
            "--- uninstalled\n{}",
            if back == before {
                "(as before)".to_owned()
            } else {
                escape_invisible(&back)
            }
        );
        let again = home.run(&["uninstall", client]);
        assert!(
            again.code == 0 && again.stdout.contains("has no server toolbay"),
            "{again}"
        );
    }
    insta::assert_snapshot!(said);
}

#[test]
fn an_installed_command_starts_the_server_from_any_directory() {
    let home = Home::with_all_clients();
    home.folder.put(
        "a.wasm",
        crate::support::TinyComponent::new(&["hello"]).build(),
    );
    assert_eq!(home.run(&["install", "cursor"]).code, 0);
    let text = fs::read_to_string(home.path(".cursor/mcp.json")).unwrap();
    let config: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).unwrap();
    let entry = &config["mcpServers"]["toolbay"];
    let words = entry["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().unwrap());
    let mut client = Command::new(entry["command"].as_str().unwrap())
        .args(words)
        .env_clear()
        .env("HOME", home.path(""))
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    writeln!(client.stdin.take().unwrap(), "{}", initialize("2025-11-25")).unwrap();
    let answer: Value = serde_json::from_slice(&client.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(
        answer["result"]["serverInfo"]["name"], "toolbay",
        "{answer}"
    );
}

#[test]
fn a_configuration_with_invalid_content_is_not_changed() {
    let home = Home::with_all_clients();
    let mut said = String::new();
    for (client, file, _) in CLIENTS {
        let key = match client {
            "vscode" => "servers",
            "zed" => "context_servers",
            _ => "mcpServers",
        };
        let texts = if client == "codex" {
            [
                "[mcp_servers.a]\ncommand = \n".to_owned(),
                "mcp_servers = [\"a\"]\n".to_owned(),
            ]
        } else {
            [
                format!("{{\n  \"{key}\": {{\n    \"a\": {{}}\n    \"b\": {{}}\n  }}\n}}\n"),
                format!("{{\"{key}\": []}}"),
            ]
        };
        for text in texts {
            home.put(file, &text);
            let before = home.files();
            for command in ["install", "uninstall"] {
                let outcome = home.run(&[command, client, "--yes"]);
                assert_eq!(
                    (outcome.code, outcome.stdout.as_str()),
                    (1, ""),
                    "{outcome}"
                );
                if command == "install" {
                    said += &outcome.stderr;
                }
                assert_eq!(home.files(), before, "{client}");
            }
        }
    }
    home.put(".cursor/mcp.json", b"{\n  \"a\": \"\xff\"}");
    said += &home.run(&["install", "cursor"]).stderr;
    fs::remove_file(home.path(".cursor/mcp.json")).unwrap();
    fs::create_dir(home.path(".cursor/mcp.json")).unwrap();
    said += &home.run(&["install", "cursor"]).stderr;
    insta::assert_snapshot!(said);
}

#[test]
fn a_configuration_that_is_a_link_stays_a_link() {
    let home = Home::new();
    let real = home.put("dotfiles/cursor.json", "{}\n");
    fs::create_dir(home.path(".cursor")).unwrap();
    symlink("../dotfiles/cursor.json", home.path(".cursor/mcp.json")).unwrap();
    let outcome = home.run(&["install", "cursor"]);
    assert_eq!(outcome.code, 0, "{outcome}");
    assert_eq!(
        fs::read_link(home.path(".cursor/mcp.json")).unwrap(),
        Path::new("../dotfiles/cursor.json")
    );
    assert!(fs::read_to_string(&real).unwrap().contains("toolbay"));
    assert_eq!(
        fs::read_to_string(home.path("dotfiles/cursor.json.before-toolbay")).unwrap(),
        "{}\n"
    );
    assert_eq!(fs::read_dir(home.path(".cursor")).unwrap().count(), 1);
    // A link without a target is a mistake of the user.
    fs::remove_file(real).unwrap();
    let outcome = home.run(&["install", "cursor"]);
    assert!(
        outcome.code == 1
            && outcome
                .stderr
                .contains("it is a link to ../dotfiles/cursor.json"),
        "{outcome}"
    );
}

#[test]
fn a_client_that_is_not_installed_is_configured_only_with_force() {
    let home = Home::new();
    let before = home.files();
    for (client, file, _) in CLIENTS.iter().filter(|(client, ..)| *client != "windsurf") {
        let outcome = home.run(&["install", client]);
        assert!(
            outcome.code == 1 && outcome.stderr.contains("is not found here"),
            "{outcome}"
        );
        assert_eq!(home.files(), before, "{client}");
        let outcome = home.run(&["install", client, "--force"]);
        assert_eq!(outcome.code, 0, "{outcome}");
        assert_eq!(
            fs::metadata(home.path(file)).unwrap().mode() & 0o777,
            0o600,
            "{client}"
        );
        fs::remove_dir_all(home.path("")).unwrap();
        fs::create_dir(home.path("")).unwrap();
    }
    // Its folder shows that the client is installed.
    fs::create_dir(home.path(".cursor")).unwrap();
    assert_eq!(home.run(&["install", "cursor"]).code, 0);
    // So does its program.
    fs::create_dir_all(home.path("bin")).unwrap();
    fs::write(home.path("bin/gemini"), "").unwrap();
    let bin = home.path("bin").display().to_string();
    assert_eq!(
        home.toolbay(&["install", "gemini-cli"])
            .env("PATH", &bin)
            .run()
            .code,
        0
    );
}

#[test]
fn a_foreign_entry_of_the_same_name_is_replaced_only_after_confirmation() {
    let home = Home::new();
    let other = r#"{"mcpServers": {"toolbay": {"url": "https://x.example/mcp", "headers": {"Authorization": "Bearer secret"}, "env": {"A": "1"}}}}"#;
    let path = home.put(".cursor/mcp.json", other);
    for command in ["install", "uninstall"] {
        let outcome = home.run(&[command, "cursor"]);
        assert!(
            outcome.code == 1 && outcome.stderr.contains("add --yes"),
            "{outcome}"
        );
        assert!(!outcome.to_string().contains("secret"), "{outcome}");
        assert_eq!(fs::read_to_string(&path).unwrap(), other);
    }
    assert_eq!(home.run(&["install", "cursor", "--yes"]).code, 0);
    let entry: Value = serde_json::from_str::<Value>(&fs::read_to_string(&path).unwrap()).unwrap()
        ["mcpServers"]["toolbay"]
        .take();
    assert_eq!(entry["env"], json!({"A": "1"}));
    assert!(
        entry.get("url").is_none() && entry.get("headers").is_none(),
        "{entry}"
    );
    // Uninstalling removes this program's own entry without a confirmation.
    assert_eq!(home.run(&["uninstall", "cursor"]).code, 0);
}

#[test]
fn dry_run_changes_nothing() {
    let home = Home::with_all_clients();
    let before = home.files();
    let mut said = String::new();
    for (client, ..) in CLIENTS {
        let _ = writeln!(
            said,
            "$ toolbay install {client} --dry-run\n{}",
            home.run(&["install", client, "--dry-run"])
        );
    }
    for args in [
        &[
            "install",
            "codex",
            "--http",
            "https://tools.example.com/mcp",
            "--token-variable",
            "TOOLBAY_TOKEN",
            "--dry-run",
        ][..],
        &[
            "install",
            "windsurf",
            "--http",
            "http://127.0.0.1:8931/mcp",
            "--dry-run",
        ],
        &[
            "install",
            "vscode",
            "--scope",
            "project",
            "--name",
            "tools",
            "--dry-run",
            "--json",
        ],
        &["uninstall", "zed", "--dry-run"],
        &["uninstall", "zed", "--dry-run", "--json"],
    ] {
        let _ = writeln!(said, "$ toolbay {}\n{}", args.join(" "), home.run(args));
    }
    assert_eq!(home.files(), before);
    insta::assert_snapshot!(said);
}

#[test]
fn a_project_has_its_own_configuration() {
    let home = Home::with_all_clients();
    let root = home.folder.root();
    home.folder.write_config("page_size = 10\n");
    for (client, file) in [
        ("claude-code", ".mcp.json"),
        ("vscode", ".vscode/mcp.json"),
        ("cursor", ".cursor/mcp.json"),
        ("codex", ".codex/config.toml"),
        ("gemini-cli", ".gemini/settings.json"),
        ("jetbrains", ".junie/mcp/mcp.json"),
    ] {
        let outcome = home.run(&["install", client, "--scope", "project"]);
        assert_eq!(outcome.code, 0, "{outcome}");
        let text = fs::read_to_string(root.join(file)).unwrap();
        let config = root.join("toolbay.toml").display().to_string();
        assert!(
            text.contains("--config") && text.contains(&config) && !text.contains("--plugins"),
            "{text}"
        );
        assert_ne!(
            fs::metadata(root.join(file)).unwrap().mode() & 0o044,
            0,
            "{client}: the others can read it"
        );
    }
    for client in ["claude-desktop", "zed", "windsurf"] {
        let outcome = home.run(&["install", client, "--scope", "project"]);
        assert!(
            outcome.code == 1 && outcome.stderr.contains("no configuration for a project"),
            "{outcome}"
        );
    }
    // In the home folder, the file of the project would be the user's configuration.
    let root = root.display().to_string();
    let outcome = home
        .toolbay(&["install", "cursor", "--scope", "project"])
        .env("HOME", &root)
        .run();
    assert!(
        outcome.code == 1
            && outcome
                .stderr
                .contains("the current folder is the home folder"),
        "{outcome}"
    );
}

#[test]
fn environment_variables_of_the_clients_change_the_paths_of_their_configurations() {
    let home = Home::new();
    for (client, variable, file) in [
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("gemini-cli", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("vscode", "VSCODE_PORTABLE", "user-data/User/mcp.json"),
        ("zed", "XDG_CONFIG_HOME", "zed/settings.json"),
        (
            "claude-desktop",
            "XDG_CONFIG_HOME",
            "Claude/claude_desktop_config.json",
        ),
    ] {
        let folder = home.path(&format!("elsewhere/{client}"));
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let outcome = home
            .toolbay(&["install", client])
            .env(variable, folder.to_str().unwrap())
            .run();
        assert_eq!(outcome.code, 0, "{outcome}");
        assert!(
            fs::read_to_string(path).unwrap().contains("toolbay"),
            "{client}"
        );
    }
    // If the user names a file, that file is used.
    let path = home.put("other/mcp.json", "{}");
    assert_eq!(
        home.run(&["install", "cursor", "--file", path.to_str().unwrap()])
            .code,
        0
    );
    assert!(fs::read_to_string(path).unwrap().contains("toolbay"));
}

#[test]
fn install_without_a_client_lists_all_clients() {
    let home = Home::with_all_clients();
    home.put(".gemini/settings.json", "{");
    fs::remove_dir_all(home.path(".junie")).unwrap();
    fs::remove_file(home.path(".cursor/mcp.json")).unwrap();
    assert_eq!(home.run(&["install", "codex"]).code, 0);
    assert_eq!(
        home.run(&["install", "vscode", "--scope", "project"]).code,
        0
    );
    let before = home.files();
    let listed = home.run(&["install"]);
    let json = home.run(&["install", "--json"]);
    assert_eq!((home.files(), listed.code, json.code), (before, 0, 0));
    insta::assert_snapshot!(format!("{listed}\n{json}"));
}

#[test]
fn invalid_arguments_are_reported_before_any_file_is_written() {
    let home = Home::with_all_clients();
    let before = home.files();
    let mut said = String::new();
    for (code, args) in [
        (2, &["install", "emacs"][..]),
        (2, &["uninstall"]),
        (2, &["install", "cursor", "--name", "a b"]),
        (2, &["install", "cursor", "--token-variable", "A"]),
        (
            2,
            &[
                "install",
                "cursor",
                "--http",
                "https://a.example/mcp",
                "--plugins",
                "plugins",
            ],
        ),
        (1, &["install", "cursor", "--http", "a.example"]),
        (1, &["install", "cursor", "--http", "ftp://a.example/mcp"]),
        (
            1,
            &[
                "install",
                "cursor",
                "--http",
                "https://me:secret@a.example/mcp",
            ],
        ),
        (
            1,
            &[
                "install",
                "cursor",
                "--http",
                "https://a.example/mcp",
                "--token-variable",
                "a-b",
            ],
        ),
        (
            1,
            &[
                "install",
                "claude-desktop",
                "--http",
                "https://a.example/mcp",
            ],
        ),
        (
            1,
            &[
                "install",
                "zed",
                "--http",
                "https://a.example/mcp",
                "--token-variable",
                "A",
            ],
        ),
        (64, &["install", "cursor", "--plugins", "nowhere"]),
        (64, &["install", "cursor", "--config", "nowhere.toml"]),
    ] {
        let outcome = home.run(args);
        assert_eq!(
            (outcome.code, outcome.stdout.as_str()),
            (code, ""),
            "{args:?}: {outcome}"
        );
        let _ = writeln!(said, "$ toolbay {}\n{}", args.join(" "), outcome.stderr);
    }
    assert_eq!(home.files(), before);
    insta::assert_snapshot!(said);
    let outcome = home.run(&[
        "install",
        "cursor",
        "--http",
        "http://a.example/mcp",
        "--token-variable",
        "A",
    ]);
    assert!(
        outcome.code == 0 && outcome.stderr.contains("unencrypted"),
        "{outcome}"
    );
}
