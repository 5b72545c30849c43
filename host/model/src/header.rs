//! Arguments that clients repeat in HTTP headers.

use serde::{Deserialize, Serialize};

/// An argument that the header `Mcp-Param-…` repeats (MCP 2026-07-28, `x-mcp-header`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct ParamHeader {
    /// The part of the header's name after `Mcp-Param-`.
    pub name: String,
    /// The properties that lead to the argument, outermost first.
    pub path: Vec<String>,
    /// The argument's type.
    pub kind: HeaderKind,
}

/// The types of arguments that a header can repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub enum HeaderKind {
    /// A string.
    String,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
}
