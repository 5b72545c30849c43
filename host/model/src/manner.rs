//! How a component that is an MCP server of its own is spoken to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ParamHeader;

/// How a component that is an MCP server of its own is spoken to: what it answered to when it was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct GuestServerProtocol {
    /// The path of its endpoint; `None` if it is spoken to over standard input and output.
    pub path: Option<String>,
    /// The revision of MCP that it speaks.
    pub revision: String,
    /// The arguments that headers repeat, by the names of the tools that have any.
    pub headers: BTreeMap<String, Vec<ParamHeader>>,
}
