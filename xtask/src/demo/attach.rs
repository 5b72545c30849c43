//! Instructions for connecting clients to the server that the demo has built.

use serde_json::json;
use toolbay_testkit::build::BuildOutput;

/// Returns client configurations for the user to paste, with the paths of this machine.
pub(super) fn instructions(built: &BuildOutput) -> String {
    let server = built.server.display().to_string();
    let plugins = built.plugins.display().to_string();
    let code = json!({"servers": {"toolbay": {"type": "stdio", "command": server, "args": ["serve", "--plugins", plugins]}}});
    format!(
        "
Use it yourself, with the plugins in {plugins}

Claude Code:

    claude mcp add toolbay -- {} serve --plugins {}

VS Code, in .vscode/mcp.json:

{}

Codex, in ~/.codex/config.toml:

    [mcp_servers.toolbay]
    command = {}
    args = [\"serve\", \"--plugins\", {}]

Then copy a .wasm into that folder, or delete one.
",
        quote_shell(&server),
        quote_shell(&plugins),
        indent_lines(&format!("{code:#}")),
        quote_toml(&server),
        quote_toml(&plugins),
    )
}

/// Quotes `word` for a POSIX shell if necessary.
fn quote_shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Formats a TOML basic string, which has the same escapes as a JSON string.
fn quote_toml(text: &str) -> String {
    json!(text).to_string()
}

fn indent_lines(text: &str) -> String {
    text.lines()
        .map(|line| format!("    {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(quote_shell("/a/b-c.wasm"), "/a/b-c.wasm");
        assert_eq!(quote_shell("/my plugins"), "'/my plugins'");
        assert_eq!(quote_shell("it's"), r"'it'\''s'");
        assert_eq!(quote_shell(""), "''");
    }

    #[test]
    fn paths_are_real_and_escaped() {
        let built = BuildOutput {
            server: "/a b/toolbay".into(),
            plugins: "/p\"q".into(),
            guests: "/g".into(),
        };
        let text = instructions(&built);
        assert!(
            text.contains("claude mcp add toolbay -- '/a b/toolbay' serve --plugins '/p\"q'"),
            "{text}"
        );
        assert!(text.contains(r#""--plugins", "/p\"q"]"#), "{text}");
        assert!(text.contains(r#"    "servers": {"#), "{text}");
    }
}
