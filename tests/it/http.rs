//! MCP over HTTP.

mod auth;
mod crowd;
mod guard;
mod headers;
mod sessions;
mod slow;
mod sse;
mod stateless;
