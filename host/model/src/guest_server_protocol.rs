//! Protocol parameters of a component that is itself an MCP server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ParamHeader;

/// The protocol of a component that is itself an MCP server, as detected when it was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct GuestServerProtocol {
    /// The path of its HTTP endpoint; `None` if it uses standard input and output.
    pub path: Option<String>,
    /// The revision of MCP that it implements.
    pub revision: String,
    /// The arguments that headers repeat, by the names of the tools that have any.
    pub headers: BTreeMap<String, Vec<ParamHeader>>,
}
