//! `[server]`: what the process as a whole may use, and what it tells clients of itself.

use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Deserializer};
use toolbay_model::setting::{any, count, size};

use super::bounds::{MANY, many};

/// How many calls may run at once at most: each takes a slot of the pool.
const MOST_CALLS: usize = 4096;

/// What the process as a whole may use.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerConfig {
    /// Calls running at once.
    #[serde(deserialize_with = "calls")]
    pub calls: usize,
    /// Calls of one client running at once.
    #[serde(deserialize_with = "many")]
    pub client_calls: usize,
    /// Calls of one client waiting for their turn; with 0, none waits.
    #[serde(deserialize_with = "queue")]
    pub queue: usize,
    /// How long a call waits for its turn; with 0, it does not.
    #[serde(deserialize_with = "any")]
    pub queue_wait: Duration,
    /// How long one message may be.
    #[serde(deserialize_with = "request")]
    pub request: ByteSize,
    /// How large a component file may be.
    #[serde(deserialize_with = "component")]
    pub component: ByteSize,
    /// The native stack of a guest.
    #[serde(deserialize_with = "stack")]
    pub stack: ByteSize,
    /// How long calls may go on after the client or the operator ended the server; with 0, none does.
    #[serde(deserialize_with = "any")]
    pub grace: Duration,
    /// How long the first `tools/list` waits for the plugins that are in the folder at start; with 0, it does not.
    #[serde(deserialize_with = "any")]
    pub first_list: Duration,
    /// What every client is told about this server, for its model; empty says nothing.
    pub instructions: String,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            calls: 64,
            client_calls: 32,
            queue: 1024,
            queue_wait: Duration::from_secs(5),
            request: ByteSize::mib(4),
            component: ByteSize::mib(64),
            stack: ByteSize::kib(512),
            grace: Duration::from_secs(5),
            first_list: Duration::from_secs(15),
            instructions: String::new(),
        }
    }
}

/// [`ServerConfig::calls`]: each takes a slot of the pool.
fn calls<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    count(deserializer, 1, MOST_CALLS)
}

fn queue<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    count(deserializer, 0, MANY)
}

fn request<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
    size(deserializer, ByteSize::kib(1), ByteSize::mib(64))
}

fn component<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
    size(deserializer, ByteSize::kib(1), ByteSize::mib(256))
}

fn stack<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
    size(deserializer, ByteSize::kib(64), ByteSize::mib(8))
}
