//! The kinds of components: those of Toolbay's contract, plain functions, commands, HTTP handlers,
//! MCP servers, and ACT components.

pub(crate) mod act;
pub(crate) mod command;
pub(crate) mod contract;
pub(crate) mod functions;
pub(crate) mod http_handler;
pub(crate) mod linked_command;
pub(crate) mod mcp_server;
