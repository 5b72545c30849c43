//! Members of `_meta` that a plugin cannot set.

/// The member of a request's `_meta` that requests progress.
const PROGRESS_TOKEN: &str = "progressToken";

/// The first labels of the prefix of members that only Toolbay sets.
const TOOLBAY_PREFIX_LABELS: [&str; 2] = ["dev", "toolbay"];

/// The labels that reserve a prefix for the protocol.
const RESERVED_LABELS: [&str; 2] = ["modelcontextprotocol", "mcp"];

/// Returns whether only the protocol or Toolbay defines the meaning of this member of a `_meta`.
/// Clients act on such members, so a plugin that set one would speak for the server. The comparison
/// ignores case, because a client may do the same.
///
/// The protocol reserves prefixes whose second label is `modelcontextprotocol` or `mcp` (since MCP
/// 2025-11-25), and prefixes in which one of them is not the last label (MCP 2025-06-18).
pub fn is_reserved_meta(key: &str) -> bool {
    if key.eq_ignore_ascii_case(PROGRESS_TOKEN) {
        return true;
    }
    let Some((prefix, _)) = key.split_once('/') else {
        return false;
    };
    let labels: Vec<&str> = prefix.split('.').collect();
    let has_toolbay_prefix = labels.len() >= TOOLBAY_PREFIX_LABELS.len()
        && TOOLBAY_PREFIX_LABELS
            .iter()
            .zip(&labels)
            .all(|(expected, label)| expected.eq_ignore_ascii_case(label));
    let is_protocol = |label: &str| {
        RESERVED_LABELS
            .iter()
            .any(|reserved| reserved.eq_ignore_ascii_case(label))
    };
    has_toolbay_prefix
        || labels
            .iter()
            .enumerate()
            .any(|(at, label)| (at == 1 || at + 1 < labels.len()) && is_protocol(label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_the_protocol_and_of_toolbay_are_reserved() {
        let reserved = [
            "progressToken",
            "PROGRESSTOKEN",
            "io.modelcontextprotocol/related-task",
            "io.modelcontextprotocol/serverInfo",
            "IO.ModelContextProtocol/serverInfo",
            "dev.mcp/",
            "org.modelcontextprotocol.api/x",
            "com.mcp.tools/x",
            "modelcontextprotocol.io/x",
            "mcp.dev/x",
            "tools.example.mcp.com/x/y",
            "dev.toolbay/error",
            "Dev.Toolbay/usage",
            "dev.toolbay.console/x",
        ];
        for key in reserved {
            assert!(is_reserved_meta(key), "{key}");
        }
    }

    #[test]
    fn other_members_are_not_reserved() {
        let plugin_keys = [
            "",
            "/",
            "a",
            "ui",
            "ui/resourceUri",
            "progress",
            "mcp",
            "mcp/x",
            "com.example.mcp/x",
            "com.example/mcp",
            "com.example/io.modelcontextprotocol/x",
            "io.modelcontextprotocols/x",
            "io.modelcontextprotocol",
            "dev/toolbay/x",
            "dev.toolbays/x",
            "com.dev.toolbay/x",
            "traceparent",
        ];
        for key in plugin_keys {
            assert!(!is_reserved_meta(key), "{key}");
        }
    }
}
