//! What the protocol asks of the host behind it: a list of tools, changes of it, and calls.

use std::sync::Arc;
use std::time::Duration;

use bytesize::ByteSize;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use toolbay_model::{Answer, Observer, Rejection, Tool, Trace};

/// The host behind the protocol.
pub trait Host: Send + Sync + 'static {
    /// How the protocol is to be served.
    fn options(&self) -> &Options;

    /// Counts the changes of what `tools/list` returns.
    fn listing(&self) -> u64;

    /// Waits until [`Host::listing`] is greater than `listing`, and returns it; `None` when it will not change any more.
    fn changed(&self, listing: u64) -> BoxFuture<'_, Option<u64>>;

    /// Whether every plugin that was there at start has been tried.
    fn is_complete(&self) -> bool;

    /// Waits for [`Host::is_complete`], within the time that the host's configuration allows.
    fn complete(&self) -> BoxFuture<'_, ()>;

    /// Up to `limit` tools whose names come after `after` and are `visible`, by name.
    fn page(&self, after: Option<&str>, limit: usize, visible: &dyn Fn(&str) -> bool) -> Page;

    /// The tool of this name.
    fn tool(&self, name: &str) -> Option<Arc<Tool>>;

    /// A new client's share of the host: its own rate limit and its own queue.
    fn client(&self) -> Arc<dyn Client>;

    /// Runs work that makes calls where the host makes them.
    fn spawn(&self, work: BoxFuture<'static, ()>);
}

/// How the protocol is served, whatever the transport.
#[derive(Clone, Debug)]
pub struct Options {
    /// Tools in one page of `tools/list`.
    pub page_size: usize,
    /// Whether results carry `_meta["dev.toolbay/usage"]`.
    pub usage: bool,
    /// The longest message, in bytes.
    pub request: ByteSize,
    /// How long calls may go on after the server began to end.
    pub grace: Duration,
    /// What the server tells every client about itself (`instructions`); empty says nothing.
    pub instructions: String,
}

/// A page of the list of tools.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The tools, by name.
    pub tools: Vec<Arc<Tool>>,
    /// Whether there are more after them.
    pub more: bool,
    /// What [`Host::listing`] was when the page was taken.
    pub listing: u64,
}

/// One client's share of the host.
pub trait Client: Send + Sync {
    /// Takes a place in the client's queue for a call of `tool`.
    ///
    /// # Errors
    ///
    /// The client calls too often, or its queue is full. The host has counted that.
    fn queue(&self, tool: &str) -> Result<Box<dyn Place>, Rejection>;
}

/// A place in a client's queue. Dropped before the call ended, it is a call that was cancelled.
pub trait Place: Send {
    /// Makes the call, once its turn has come. To cancel it, drop the future.
    ///
    /// The future must run where [`Host::spawn`] runs work. The place stays taken until it is dropped.
    fn call(&mut self, call: Call, observer: Arc<dyn Observer>) -> BoxFuture<'_, Answer>;
}

/// A call as it came from a client.
#[derive(Clone, Debug)]
pub struct Call {
    /// The tool's name, with its prefix.
    pub tool: String,
    /// Whether the caller may use a tool of this name. One that it may not use does not exist for it.
    pub permitted: bool,
    /// The arguments, not yet checked.
    pub arguments: Map<String, Value>,
    /// The capabilities that the client declared.
    pub capabilities: Map<String, Value>,
    /// Where the call belongs in a trace.
    pub trace: Option<Trace>,
}
