//! The clients that are known, as data.

use crate::client::Client;
use crate::dialect::{Dialect, Format, TokenForm};
use crate::place::{Base, Override, Place, System};

/// JSON with `mcpServers`, as most clients have it.
const COMMON: Dialect = Dialect {
    format: Format::Json,
    servers: "mcpServers",
    stdio_type: false,
    http_type: false,
    url: Some("url"),
    token: TokenForm::None,
};

/// `${env:NAME}`, as editors have it.
const ENV: TokenForm = TokenForm::Header("Bearer ${env:", "}");

/// Windsurf before it became Devin Desktop.
const OLD_WINDSURF: Dialect = Dialect { url: Some("serverUrl"), token: ENV, ..COMMON };

use Base::{Config, Home, MacSupport, Roaming, XdgConfig};
use System::{Linux, MacOs, Windows};

/// The clients that are known, in the order in which they are listed.
pub const CLIENTS: [Client; 9] = [
    Client {
        id: "claude-code",
        title: "Claude Code",
        programs: &["claude"],
        overrides: &[Override { variable: "CLAUDE_CONFIG_DIR", file: ".claude.json" }],
        user: &[
            Place::new(Linux, Home, ".claude.json", &[(Home, ".claude")]),
            Place::new(Windows, Home, ".claude.json", &[(Home, ".claude")]),
        ],
        project: Some(".mcp.json"),
        dialect: Dialect { stdio_type: true, http_type: true, token: TokenForm::Header("Bearer ${", "}"), ..COMMON },
        next: "start a new session of Claude Code; `claude mcp list` shows the server",
        paste: None,
    },
    Client {
        id: "claude-desktop",
        title: "Claude Desktop",
        programs: &["claude-desktop"],
        overrides: &[],
        user: &[
            Place::new(Linux, XdgConfig, "Claude/claude_desktop_config.json", &[(XdgConfig, "Claude")]),
            Place::new(MacOs, MacSupport, "Claude/claude_desktop_config.json", &[(MacSupport, "Claude")]),
            Place::new(Windows, Roaming, "Claude/claude_desktop_config.json", &[(Roaming, "Claude")]),
        ],
        project: None,
        dialect: Dialect { url: None, ..COMMON },
        next: "quit Claude Desktop and start it again",
        paste: None,
    },
    Client {
        id: "vscode",
        title: "VS Code",
        programs: &["code", "code-insiders"],
        overrides: &[Override { variable: "VSCODE_PORTABLE", file: "user-data/User/mcp.json" }],
        user: &[
            Place::new(Linux, XdgConfig, "Code/User/mcp.json", &[(XdgConfig, "Code")]),
            Place::new(Linux, XdgConfig, "Code - Insiders/User/mcp.json", &[(XdgConfig, "Code - Insiders")]),
            Place::new(MacOs, MacSupport, "Code/User/mcp.json", &[(MacSupport, "Code")]),
            Place::new(MacOs, MacSupport, "Code - Insiders/User/mcp.json", &[(MacSupport, "Code - Insiders")]),
            Place::new(Windows, Roaming, "Code/User/mcp.json", &[(Roaming, "Code")]),
            Place::new(Windows, Roaming, "Code - Insiders/User/mcp.json", &[(Roaming, "Code - Insiders")]),
        ],
        project: Some(".vscode/mcp.json"),
        dialect: Dialect { servers: "servers", stdio_type: true, http_type: true, token: ENV, ..COMMON },
        next: "run `MCP: List Servers` in VS Code, start the server and say that you trust it",
        paste: None,
    },
    Client {
        id: "cursor",
        title: "Cursor",
        programs: &["cursor", "cursor-agent"],
        overrides: &[],
        user: &[
            Place::new(Linux, Home, ".cursor/mcp.json", &[(Home, ".cursor")]),
            Place::new(Windows, Home, ".cursor/mcp.json", &[(Home, ".cursor")]),
        ],
        project: Some(".cursor/mcp.json"),
        dialect: Dialect { stdio_type: true, token: ENV, ..COMMON },
        next: "restart Cursor, and see that the server is on in its list of MCP servers",
        paste: None,
    },
    Client {
        id: "codex",
        title: "Codex",
        programs: &["codex"],
        overrides: &[Override { variable: "CODEX_HOME", file: "config.toml" }],
        user: &[
            Place::new(Linux, Home, ".codex/config.toml", &[(Home, ".codex")]),
            Place::new(Windows, Home, ".codex/config.toml", &[(Home, ".codex")]),
        ],
        project: Some(".codex/config.toml"),
        dialect: Dialect {
            format: Format::Toml,
            servers: "mcp_servers",
            token: TokenForm::Key("bearer_token_env_var"),
            ..COMMON
        },
        next: "start a new session of Codex; `codex mcp list` shows the server",
        paste: None,
    },
    Client {
        id: "gemini-cli",
        title: "Gemini CLI",
        programs: &["gemini"],
        overrides: &[Override { variable: "GEMINI_CLI_HOME", file: ".gemini/settings.json" }],
        user: &[
            Place::new(Linux, Home, ".gemini/settings.json", &[(Home, ".gemini")]),
            Place::new(Windows, Home, ".gemini/settings.json", &[(Home, ".gemini")]),
        ],
        project: Some(".gemini/settings.json"),
        dialect: Dialect { url: Some("httpUrl"), token: TokenForm::Header("Bearer ${", "}"), ..COMMON },
        next: "start Gemini CLI again; `/mcp` shows the server",
        paste: None,
    },
    Client {
        id: "zed",
        title: "Zed",
        programs: &["zed", "zeditor"],
        overrides: &[Override { variable: "FLATPAK_XDG_CONFIG_HOME", file: "zed/settings.json" }],
        user: &[
            Place::new(Linux, XdgConfig, "zed/settings.json", &[(XdgConfig, "zed")]),
            Place::new(Linux, Home, ".var/app/dev.zed.Zed/config/zed/settings.json", &[(Home, ".var/app/dev.zed.Zed")]),
            Place::new(Windows, Roaming, "Zed/settings.json", &[(Roaming, "Zed")]),
        ],
        project: None,
        dialect: Dialect { servers: "context_servers", ..COMMON },
        next: "Zed starts the server at once; Settings > AI > MCP Servers shows it",
        paste: None,
    },
    Client {
        id: "windsurf",
        title: "Windsurf (Devin Desktop)",
        programs: &["windsurf", "devin-desktop"],
        overrides: &[],
        user: &[
            Place::new(Linux, XdgConfig, "devin/mcp_config.json", &[(XdgConfig, "devin")]),
            Place::new(Linux, Home, ".codeium/windsurf/mcp_config.json", &[(Home, ".codeium/windsurf")])
                .in_dialect(OLD_WINDSURF),
            Place::new(MacOs, Config, "devin/mcp_config.json", &[(MacSupport, "Devin")]),
            Place::new(Windows, Roaming, "devin/mcp_config.json", &[(Roaming, "devin")]),
            Place::new(Windows, Home, ".codeium/windsurf/mcp_config.json", &[(Home, ".codeium/windsurf")])
                .in_dialect(OLD_WINDSURF),
        ],
        project: None,
        dialect: Dialect { token: ENV, ..COMMON },
        next: "refresh the list of MCP servers in the agent panel, or restart the editor",
        paste: None,
    },
    Client {
        id: "jetbrains",
        title: "JetBrains (Junie, AI Assistant)",
        programs: &["junie"],
        overrides: &[],
        user: &[
            Place::new(Linux, Home, ".junie/mcp/mcp.json", &[(Home, ".junie"), (XdgConfig, "JetBrains")]),
            Place::new(Windows, Home, ".junie/mcp/mcp.json", &[(Home, ".junie"), (Roaming, "JetBrains")]),
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

/// The client with this id.
pub fn client_named(id: &str) -> Option<&'static Client> {
    CLIENTS.iter().find(|client| client.id == id)
}
