//! Validation of the names of tools, prefixes and variables.

/// Maximum length of a tool's name, in bytes (MCP, "Tool Names").
pub const TOOL_NAME: usize = 128;

/// Returns whether `text` is one or more of `A-Z a-z 0-9 _ - .`, of any length.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

/// Returns whether MCP allows `text` as the name of a tool: a name of at most [`TOOL_NAME`] bytes.
pub fn is_tool_name(text: &str) -> bool {
    text.len() <= TOOL_NAME && is_name(text)
}
