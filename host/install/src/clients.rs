//! Table of supported clients.

use crate::client::ClientConfiguration;
use crate::configuration_path::{BaseFolder, OperatingSystem, UserPath, VariableOverride};
use crate::entry_format::{EntryFormat, FileFormat, TokenForm};

/// Format of Windsurf before it became Devin Desktop.
const LEGACY_WINDSURF_FORMAT: EntryFormat = EntryFormat {
    url_key: Some("serverUrl"),
    token_form: TokenForm::ENVIRONMENT,
    ..EntryFormat::COMMON
};

use BaseFolder::{Config, Home, MacSupport, Roaming, XdgConfig};
use OperatingSystem::{Linux, MacOs, Windows};

/// Supported clients, in listing order.
pub const CLIENTS: [ClientConfiguration; 9] = [
    ClientConfiguration {
        id: "claude-code",
        title: "Claude Code",
        programs: &["claude"],
        overrides: &[VariableOverride {
            variable: "CLAUDE_CONFIG_DIR",
            file: ".claude.json",
        }],
        user_paths: &[
            UserPath::new(Linux, Home, ".claude.json", &[(Home, ".claude")]),
            UserPath::new(Windows, Home, ".claude.json", &[(Home, ".claude")]),
        ],
        project_path: Some(".mcp.json"),
        entry_format: EntryFormat {
            stdio_type: true,
            http_type: true,
            token_form: TokenForm::Header("Bearer ${", "}"),
            ..EntryFormat::COMMON
        },
        next_step: "start a new session of Claude Code; `claude mcp list` shows the server",
        paste_hint: None,
    },
    ClientConfiguration {
        id: "claude-desktop",
        title: "Claude Desktop",
        programs: &["claude-desktop"],
        overrides: &[],
        user_paths: &[
            UserPath::new(
                Linux,
                XdgConfig,
                "Claude/claude_desktop_config.json",
                &[(XdgConfig, "Claude")],
            ),
            UserPath::new(
                MacOs,
                MacSupport,
                "Claude/claude_desktop_config.json",
                &[(MacSupport, "Claude")],
            ),
            UserPath::new(
                Windows,
                Roaming,
                "Claude/claude_desktop_config.json",
                &[(Roaming, "Claude")],
            ),
        ],
        project_path: None,
        entry_format: EntryFormat {
            url_key: None,
            ..EntryFormat::COMMON
        },
        next_step: "quit Claude Desktop and start it again",
        paste_hint: None,
    },
    ClientConfiguration {
        id: "vscode",
        title: "VS Code",
        programs: &["code", "code-insiders"],
        overrides: &[VariableOverride {
            variable: "VSCODE_PORTABLE",
            file: "user-data/User/mcp.json",
        }],
        user_paths: &[
            UserPath::new(
                Linux,
                XdgConfig,
                "Code/User/mcp.json",
                &[(XdgConfig, "Code")],
            ),
            UserPath::new(
                Linux,
                XdgConfig,
                "Code - Insiders/User/mcp.json",
                &[(XdgConfig, "Code - Insiders")],
            ),
            UserPath::new(
                MacOs,
                MacSupport,
                "Code/User/mcp.json",
                &[(MacSupport, "Code")],
            ),
            UserPath::new(
                MacOs,
                MacSupport,
                "Code - Insiders/User/mcp.json",
                &[(MacSupport, "Code - Insiders")],
            ),
            UserPath::new(Windows, Roaming, "Code/User/mcp.json", &[(Roaming, "Code")]),
            UserPath::new(
                Windows,
                Roaming,
                "Code - Insiders/User/mcp.json",
                &[(Roaming, "Code - Insiders")],
            ),
        ],
        project_path: Some(".vscode/mcp.json"),
        entry_format: EntryFormat {
            servers_key: "servers",
            stdio_type: true,
            http_type: true,
            token_form: TokenForm::ENVIRONMENT,
            ..EntryFormat::COMMON
        },
        next_step: "run `MCP: List Servers` in VS Code, start the server and confirm that you trust it",
        paste_hint: None,
    },
    ClientConfiguration {
        id: "cursor",
        title: "Cursor",
        programs: &["cursor", "cursor-agent"],
        overrides: &[],
        user_paths: &[
            UserPath::new(Linux, Home, ".cursor/mcp.json", &[(Home, ".cursor")]),
            UserPath::new(Windows, Home, ".cursor/mcp.json", &[(Home, ".cursor")]),
        ],
        project_path: Some(".cursor/mcp.json"),
        entry_format: EntryFormat {
            stdio_type: true,
            token_form: TokenForm::ENVIRONMENT,
            ..EntryFormat::COMMON
        },
        next_step: "restart Cursor, and see that the server is on in its list of MCP servers",
        paste_hint: None,
    },
    ClientConfiguration {
        id: "codex",
        title: "Codex",
        programs: &["codex"],
        overrides: &[VariableOverride {
            variable: "CODEX_HOME",
            file: "config.toml",
        }],
        user_paths: &[
            UserPath::new(Linux, Home, ".codex/config.toml", &[(Home, ".codex")]),
            UserPath::new(Windows, Home, ".codex/config.toml", &[(Home, ".codex")]),
        ],
        project_path: Some(".codex/config.toml"),
        entry_format: EntryFormat {
            format: FileFormat::Toml,
            servers_key: "mcp_servers",
            token_form: TokenForm::Key("bearer_token_env_var"),
            ..EntryFormat::COMMON
        },
        next_step: "start a new session of Codex; `codex mcp list` shows the server",
        paste_hint: None,
    },
    ClientConfiguration {
        id: "gemini-cli",
        title: "Gemini CLI",
        programs: &["gemini"],
        overrides: &[VariableOverride {
            variable: "GEMINI_CLI_HOME",
            file: ".gemini/settings.json",
        }],
        user_paths: &[
            UserPath::new(Linux, Home, ".gemini/settings.json", &[(Home, ".gemini")]),
            UserPath::new(Windows, Home, ".gemini/settings.json", &[(Home, ".gemini")]),
        ],
        project_path: Some(".gemini/settings.json"),
        entry_format: EntryFormat {
            url_key: Some("httpUrl"),
            token_form: TokenForm::Header("Bearer ${", "}"),
            ..EntryFormat::COMMON
        },
        next_step: "start Gemini CLI again; `/mcp` shows the server",
        paste_hint: None,
    },
    ClientConfiguration {
        id: "zed",
        title: "Zed",
        programs: &["zed", "zeditor"],
        overrides: &[VariableOverride {
            variable: "FLATPAK_XDG_CONFIG_HOME",
            file: "zed/settings.json",
        }],
        user_paths: &[
            UserPath::new(Linux, XdgConfig, "zed/settings.json", &[(XdgConfig, "zed")]),
            UserPath::new(
                Linux,
                Home,
                ".var/app/dev.zed.Zed/config/zed/settings.json",
                &[(Home, ".var/app/dev.zed.Zed")],
            ),
            UserPath::new(Windows, Roaming, "Zed/settings.json", &[(Roaming, "Zed")]),
        ],
        project_path: None,
        entry_format: EntryFormat {
            servers_key: "context_servers",
            ..EntryFormat::COMMON
        },
        next_step: "Zed starts the server at once; Settings > AI > MCP Servers shows it",
        paste_hint: None,
    },
    ClientConfiguration {
        id: "windsurf",
        title: "Windsurf (Devin Desktop)",
        programs: &["windsurf", "devin-desktop"],
        overrides: &[],
        user_paths: &[
            UserPath::new(
                Linux,
                XdgConfig,
                "devin/mcp_config.json",
                &[(XdgConfig, "devin")],
            ),
            UserPath::new(
                Linux,
                Home,
                ".codeium/windsurf/mcp_config.json",
                &[(Home, ".codeium/windsurf")],
            )
            .with_format(LEGACY_WINDSURF_FORMAT),
            UserPath::new(
                MacOs,
                Config,
                "devin/mcp_config.json",
                &[(MacSupport, "Devin")],
            ),
            UserPath::new(
                Windows,
                Roaming,
                "devin/mcp_config.json",
                &[(Roaming, "devin")],
            ),
            UserPath::new(
                Windows,
                Home,
                ".codeium/windsurf/mcp_config.json",
                &[(Home, ".codeium/windsurf")],
            )
            .with_format(LEGACY_WINDSURF_FORMAT),
        ],
        project_path: None,
        entry_format: EntryFormat {
            token_form: TokenForm::ENVIRONMENT,
            ..EntryFormat::COMMON
        },
        next_step: "refresh the list of MCP servers in the agent panel, or restart the editor",
        paste_hint: None,
    },
    ClientConfiguration {
        id: "jetbrains",
        title: "JetBrains (Junie, AI Assistant)",
        programs: &["junie"],
        overrides: &[],
        user_paths: &[
            UserPath::new(
                Linux,
                Home,
                ".junie/mcp/mcp.json",
                &[(Home, ".junie"), (XdgConfig, "JetBrains")],
            ),
            UserPath::new(
                Windows,
                Home,
                ".junie/mcp/mcp.json",
                &[(Home, ".junie"), (Roaming, "JetBrains")],
            ),
        ],
        project_path: Some(".junie/mcp/mcp.json"),
        entry_format: EntryFormat::COMMON,
        next_step: "Junie, in the IDE and on the command line, reads the file when it starts",
        paste_hint: Some(
            "AI Assistant reads no such file: paste this in Settings | Tools | AI Assistant | Model Context Protocol (MCP) | \
             Add, as JSON",
        ),
    },
];

/// Returns the client with this id.
pub fn client_with_id(id: &str) -> Option<&'static ClientConfiguration> {
    CLIENTS.iter().find(|client| client.id == id)
}
