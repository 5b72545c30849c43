//! MCP over HTTP.

pub(crate) mod auth;
mod connections;
mod crowd;
mod forwarded;
mod guard;
mod headers;
mod hoarders;
mod leniency;
mod neighbour;
mod resumption;
mod rights;
mod sessionless;
mod sessions;
mod slow;
mod socket;
mod sse;
mod stateless;
pub(crate) mod tls;
mod tokens;
