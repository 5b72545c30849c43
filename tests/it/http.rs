//! MCP over HTTP.

mod auth;
mod crowd;
mod guard;
mod headers;
mod sessions;
mod sse;
mod stateless;
