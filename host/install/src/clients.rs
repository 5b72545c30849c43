//! Table of supported clients.

use crate::client::ClientConfiguration;
use crate::dialect::{EntryFormat, FileFormat, TokenForm};
use crate::place::{BaseFolder, OperatingSystem, UserPath, VariableOverride};

/// JSON with `mcpServers`, as most clients use it.
const COMMON: EntryFormat = EntryFormat {
    format: FileFormat::Json,
    servers: "mcpServers",
    stdio_type: false,
    http_type: false,
    url: Some("url"),
    token: TokenForm::None,
};

/// Token in the form `${env:NAME}`, as editors use it.
const ENV: TokenForm = TokenForm::Header("Bearer ${env:", "}");

/// Format of Windsurf before it became Devin Desktop.
const OLD_WINDSURF: EntryFormat = EntryFormat { url: Some("serverUrl"), token: ENV, ..COMMON };

use BaseFolder::{Config, Home, MacSupport, Roaming, XdgConfig};
use OperatingSystem::{Linux, MacOs, Windows};

/// Supported clients, in listing order.
pub const CLIENTS: [ClientConfiguration; 9] = [
    ClientConfiguration {
        id: "claude-code",
        title: "Claude Code",
        programs: &["claude"],
        overrides: &[VariableOverride { variable: "CLAUDE_CONFIG_DIR", file: ".claude.json" }],
        user: &[
            UserPath::new(Linux, Home, ".claude.json", &[(Home, ".claude")]),
            UserPath::new(Windows, Home, ".claude.json", &[(Home, ".claude")]),
        ],
        project: Some(".mcp.json"),
        dialect: EntryFormat {
            stdio_type: true,
            http_type: true,
            token: TokenForm::Header("Bearer ${", "}"),
            ..COMMON
        },
        next: "start a new session of Claude Code; `claude mcp list` shows the server",
        paste: None,
    },
    ClientConfiguration {
        id: "claude-desktop",
        title: "Claude Desktop",
        programs: &["claude-desktop"],
        overrides: &[],
        user: &[
            UserPath::new(Linux, XdgConfig, "Claude/claude_desktop_config.json", &[(XdgConfig, "Claude")]),
            UserPath::new(MacOs, MacSupport, "Claude/claude_desktop_config.json", &[(MacSupport, "Claude")]),
            UserPath::new(Windows, Roaming, "Claude/claude_desktop_config.json", &[(Roaming, "Claude")]),
        ],
        project: None,
        dialect: EntryFormat { url: None, ..COMMON },
        next: "quit Claude Desktop and start it again",
        paste: None,
    },
    ClientConfiguration {
        id: "vscode",
        title: "VS Code",
        programs: &["code", "code-insiders"],
        overrides: &[VariableOverride { variable: "VSCODE_PORTABLE", file: "user-data/User/mcp.json" }],
        user: &[
            UserPath::new(Linux, XdgConfig, "Code/User/mcp.json", &[(XdgConfig, "Code")]),
            UserPath::new(Linux, XdgConfig, "Code - Insiders/User/mcp.json", &[(XdgConfig, "Code - Insiders")]),
            UserPath::new(MacOs, MacSupport, "Code/User/mcp.json", &[(MacSupport, "Code")]),
            UserPath::new(MacOs, MacSupport, "Code - Insiders/User/mcp.json", &[(MacSupport, "Code - Insiders")]),
            UserPath::new(Windows, Roaming, "Code/User/mcp.json", &[(Roaming, "Code")]),
            UserPath::new(Windows, Roaming, "Code - Insiders/User/mcp.json", &[(Roaming, "Code - Insiders")]),
        ],
        project: Some(".vscode/mcp.json"),
        dialect: EntryFormat { servers: "servers", stdio_type: true, http_type: true, token: ENV, ..COMMON },
        next: "run `MCP: List Servers` in VS Code, start the server and say that you trust it",
        paste: None,
    },
    ClientConfiguration {
        id: "cursor",
        title: "Cursor",
        programs: &["cursor", "cursor-agent"],
        overrides: &[],
        user: &[
            UserPath::new(Linux, Home, ".cursor/mcp.json", &[(Home, ".cursor")]),
            UserPath::new(Windows, Home, ".cursor/mcp.json", &[(Home, ".cursor")]),
        ],
        project: Some(".cursor/mcp.json"),
        dialect: EntryFormat { stdio_type: true, token: ENV, ..COMMON },
        next: "restart Cursor, and see that the server is on in its list of MCP servers",
        paste: None,
    },
    ClientConfiguration {
        id: "codex",
        title: "Codex",
        programs: &["codex"],
        overrides: &[VariableOverride { variable: "CODEX_HOME", file: "config.toml" }],
        user: &[
            UserPath::new(Linux, Home, ".codex/config.toml", &[(Home, ".codex")]),
            UserPath::new(Windows, Home, ".codex/config.toml", &[(Home, ".codex")]),
        ],
        project: Some(".codex/config.toml"),
        dialect: EntryFormat {
            format: FileFormat::Toml,
            servers: "mcp_servers",
            token: TokenForm::Key("bearer_token_env_var"),
            ..COMMON
        },
        next: "start a new session of Codex; `codex mcp list` shows the server",
        paste: None,
    },
    ClientConfiguration {
        id: "gemini-cli",
        title: "Gemini CLI",
        programs: &["gemini"],
        overrides: &[VariableOverride { variable: "GEMINI_CLI_HOME", file: ".gemini/settings.json" }],
        user: &[
            UserPath::new(Linux, Home, ".gemini/settings.json", &[(Home, ".gemini")]),
            UserPath::new(Windows, Home, ".gemini/settings.json", &[(Home, ".gemini")]),
        ],
        project: Some(".gemini/settings.json"),
        dialect: EntryFormat { url: Some("httpUrl"), token: TokenForm::Header("Bearer ${", "}"), ..COMMON },
        next: "start Gemini CLI again; `/mcp` shows the server",
        paste: None,
    },
    ClientConfiguration {
        id: "zed",
        title: "Zed",
        programs: &["zed", "zeditor"],
        overrides: &[VariableOverride { variable: "FLATPAK_XDG_CONFIG_HOME", file: "zed/settings.json" }],
        user: &[
            UserPath::new(Linux, XdgConfig, "zed/settings.json", &[(XdgConfig, "zed")]),
            UserPath::new(
                Linux,
                Home,
                ".var/app/dev.zed.Zed/config/zed/settings.json",
                &[(Home, ".var/app/dev.zed.Zed")],
            ),
            UserPath::new(Windows, Roaming, "Zed/settings.json", &[(Roaming, "Zed")]),
        ],
        project: None,
        dialect: EntryFormat { servers: "context_servers", ..COMMON },
        next: "Zed starts the server at once; Settings > AI > MCP Servers shows it",
        paste: None,
    },
    ClientConfiguration {
        id: "windsurf",
        title: "Windsurf (Devin Desktop)",
        programs: &["windsurf", "devin-desktop"],
        overrides: &[],
        user: &[
            UserPath::new(Linux, XdgConfig, "devin/mcp_config.json", &[(XdgConfig, "devin")]),
            UserPath::new(Linux, Home, ".codeium/windsurf/mcp_config.json", &[(Home, ".codeium/windsurf")])
                .in_dialect(OLD_WINDSURF),
            UserPath::new(MacOs, Config, "devin/mcp_config.json", &[(MacSupport, "Devin")]),
            UserPath::new(Windows, Roaming, "devin/mcp_config.json", &[(Roaming, "devin")]),
            UserPath::new(Windows, Home, ".codeium/windsurf/mcp_config.json", &[(Home, ".codeium/windsurf")])
                .in_dialect(OLD_WINDSURF),
        ],
        project: None,
        dialect: EntryFormat { token: ENV, ..COMMON },
        next: "refresh the list of MCP servers in the agent panel, or restart the editor",
        paste: None,
    },
    ClientConfiguration {
        id: "jetbrains",
        title: "JetBrains (Junie, AI Assistant)",
        programs: &["junie"],
        overrides: &[],
        user: &[
            UserPath::new(Linux, Home, ".junie/mcp/mcp.json", &[(Home, ".junie"), (XdgConfig, "JetBrains")]),
            UserPath::new(Windows, Home, ".junie/mcp/mcp.json", &[(Home, ".junie"), (Roaming, "JetBrains")]),
        ],
        project: Some(".junie/mcp/mcp.json"),
        dialect: COMMON,
        next: "Junie, in the IDE and on the command line, reads the file when it starts",
        paste: Some(
            "AI Assistant reads no such file: paste this in Settings | Tools | AI Assistant | Model Context Protocol (MCP) | \
             Add, as JSON",
        ),
    },
];

/// Returns the client with this id.
pub fn client_named(id: &str) -> Option<&'static ClientConfiguration> {
    CLIENTS.iter().find(|client| client.id == id)
}
