//! The methods, one file each. Two of the files handle notifications from clients.

pub(crate) mod call_tool;
pub(crate) mod cancelled;
pub(crate) mod discover;
pub(crate) mod initialize;
pub(crate) mod initialized;
pub(crate) mod list_tools;
pub(crate) mod listen;
pub(crate) mod ping;
pub(crate) mod set_level;

use serde_json::{Map, Value};

use crate::jsonrpc::Error;

/// The result of a method, or an error.
pub(crate) type Answered = Result<Map<String, Value>, Error>;
