//! MCP over HTTP.

pub(crate) mod auth;
mod crowd;
mod guard;
mod headers;
mod rights;
mod sessions;
mod slow;
mod sse;
mod stateless;
mod tokens;
