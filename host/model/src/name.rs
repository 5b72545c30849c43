//! Validation of the names of tools, prefixes and variables.

/// Maximum length of a tool's name, in bytes (MCP, "Tool Names").
pub const MAX_MCP_TOOL_NAME_BYTES: usize = 128;

/// Returns whether `text` is one or more of `A-Z a-z 0-9 _ - .`, of any length.
pub fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

/// Returns whether MCP allows `text` as the name of a tool: a name of at most
/// [`MAX_MCP_TOOL_NAME_BYTES`] bytes.
pub fn is_tool_name(text: &str) -> bool {
    text.len() <= MAX_MCP_TOOL_NAME_BYTES && is_name(text)
}
