//! The identity of a caller.

use std::sync::Arc;

use crate::access::Rights;
use crate::host::Client;

/// The identity behind a request: its name, its rights and its share of the server's capacity.
///
/// It belongs to one request and never changes. Two requests of one session can have different rights, because each
/// has a token of its own.
#[derive(Clone)]
pub struct Caller {
    /// Name for the log, such as `stdio`, `token:ci`, `oauth:ada of https://auth.example.com`, `ip:192.0.2.7` or
    /// `ip:2001:db8:0:1::/64`. Never a secret.
    pub name: String,
    /// The tools that the caller may list and call.
    pub rights: Rights,
    /// Its queue, concurrency and rate limits.
    pub client: Arc<dyn Client>,
}

impl Caller {
    /// The name of the caller of a stdio session.
    pub const LOCAL: &str = "stdio";

    /// The caller of a stdio session, which may use every tool.
    pub fn local(client: Arc<dyn Client>) -> Self {
        Self { name: Self::LOCAL.to_owned(), rights: Rights::All, client }
    }

    /// Whether the caller may list and call the tool `tool`.
    pub fn may_use(&self, tool: &str) -> bool {
        self.rights.allow(tool)
    }
}
