//! Detection of MCP servers among commands. A command is not run when it is loaded, unless it
//! contains words that every MCP server needs.

/// Words of the protocol. A server contains some of them however it was compiled.
const PROTOCOL_WORDS: [&[u8]; 5] = [
    b"protocolVersion",
    b"tools/list",
    b"inputSchema",
    b"notifications/initialized",
    b"modelcontextprotocol",
];

/// Returns whether the file contains a word of the protocol. Reads each byte several times, so it
/// runs in the compiler child process.
pub(crate) fn contains_mcp_words(file: &[u8]) -> bool {
    PROTOCOL_WORDS.iter().any(|word| contains_bytes(file, word))
}

fn contains_bytes(bytes: &[u8], word: &[u8]) -> bool {
    let [first, ..] = word else { return true };
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| byte == first) {
        let Some(candidate) = rest.get(at..) else {
            return false;
        };
        if candidate.starts_with(word) {
            return true;
        }
        rest = candidate.get(1..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_anywhere() {
        for file in [
            &b"protocolVersion"[..],
            b"\0asmppprotocolVersion\0",
            b"tttools/list",
            b"x inputSchema",
        ] {
            assert!(contains_mcp_words(file));
        }
        for file in [&b""[..], b"protocolVersio", b"tools/ list", b"inputschema"] {
            assert!(!contains_mcp_words(file));
        }
    }
}
